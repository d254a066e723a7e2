"""A run's model in PyTorch, which computes in float64 what the parameters say (python/qkv.py)."""
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
import qkv


class Float64Model:
    def __init__(self, run):
        found = qkv.run(run)
        self.model, self.tokens = found.torch().double(), found.vocabulary["tokens"]
        self.longest = found.config["model"].get("max_length", qkv.DEFAULTS["max_length"])

    @torch.no_grad()
    def logits(self, ids, index=None):
        """The logits of the answers about token `index`, or about the text."""
        x = self.model.contextual([ids])
        return self.model.logits(self.model.sentence(x) if index is None else x[:, index]).flatten().tolist()

    @torch.no_grad()
    def probability_of_written(self, ids):
        """The probability of the text that an encoder-decoder writes, token by token the most probable one."""
        encoded, end = self.model.contextual([ids]), self.tokens.index("<eos>")
        written, probability = [self.tokens.index("<bos>")], 1.0
        while len(written) <= self.longest and written[-1] != end:
            probabilities = self.model.logits(self.model.decode([written], encoded))[0, -1].softmax(-1)
            written.append(probabilities.argmax().item())
            probability *= probabilities[written[-1]].item()
        return probability
