"""Tasks that predict tokens: language-model, masked-language-model, translate."""
import math

import torch

from streams import evaluation_random
from task import Task, lines_of, nearest, padded, split_lines


class PredictsTokens(Task):
    def metrics(self, scores, targets, loss):
        return {"perplexity": math.exp(loss)}


class LanguageModel(PredictsTokens):
    """An example is a window of max_length tokens and the one after."""

    def read(self, folder):
        texts = {split: (folder / f"{split}.txt").read_text() for split in ("train", "valid", "test")}
        if self.config["task.valid_share"] is not None:
            cut = len(texts["train"]) - nearest(self.config["task.valid_share"] * len(texts["train"]))
            texts |= {"train": texts["train"][:cut], "valid": texts["train"][cut:]}
        longest = self.config["model.max_length"]
        return {split: list(self.windows(text, self.config["task.stride"] if split == "train" else longest))
                for split, text in texts.items()}

    def windows(self, text, stride):
        """Until one reaches the end."""
        ids, size = [self.id(character) for character in text], self.config["model.max_length"] + 1
        for begin in range(0, max(len(ids) - size, 0) + stride, stride):
            yield ids[begin:begin + size]

    def tokens(self, example):
        return len(example) - 1

    def scores(self, model, examples, draws):
        ids, lengths = padded([window[:-1] for window in examples])
        model.draws = draws
        rows = torch.arange(ids.shape[1]) < lengths[:, None]
        return model(ids, lengths)[rows], padded([window[1:] for window in examples])[0][rows]

    def metrics(self, scores, targets, loss):
        return super().metrics(scores, targets, loss) | {"bits_per_token": loss / math.log(2)}


class MaskedLanguageModel(PredictsTokens):
    """An example is the ids of a line, or of max_length tokens of it, that has a known word."""

    def read(self, folder):
        return {split: [part for line in lines_of(folder / f"{split}.txt") for part in self.parts(self.encoded(line))
                        if any(token > 1 for token in part)] for split in ("train", "valid", "test")}

    def parts(self, ids):
        longest = self.config["model.max_length"]
        return [ids[begin:begin + longest] for begin in range(0, len(ids), longest)]

    def tokens(self, example):
        return len(example)

    def masked(self, ids, random):
        """Of the tokens to predict 80 % are masked, 10 % replaced: the input, and their positions (Devlin et al. 2019)."""
        known = [i for i, token in enumerate(ids) if token > 1]
        count = min(max(nearest(self.config["task.mask_probability"] * len(ids)), 1), len(known))
        read, chosen = list(ids), [known[i] for i in random.permutation(len(known))[:count]]
        for n, position in enumerate(chosen):
            draw = len(known) + 1 + 2 * n  # the permutation takes those before
            kind = random.uniform(draw)
            if kind < 0.8:
                read[position] = 1
            elif kind < 0.9:
                read[position] = 2 + random.bit(draw + 1) % (len(self.ids) - 2)
        return read, chosen

    def scores(self, model, examples, draws):
        masked = [self.masked(ids, draws.next() if draws else evaluation_random(ids)) for ids in examples]
        ids, lengths = padded([read for read, _ in masked])
        model.draws = draws
        x = model.contextual(ids, lengths)
        at_masks = [(b, t) for b, (_, chosen) in enumerate(masked) for t in chosen]
        rows, columns = zip(*at_masks)
        return model.logits(x[rows, columns]), torch.tensor([examples[b][t] for b, t in at_masks])

    def metrics(self, scores, targets, loss):
        return super().metrics(scores, targets, loss) | Task.metrics(self, scores, targets, loss)


class Translation(Task):
    """An example is (ids of the source, ids of the target)."""

    def read(self, folder):
        longest = self.config["model.max_length"]

        def example(line):
            source, target = map(self.encoded, line.split("\t"))
            return source[:longest], target[:longest - 1]
        return {split: list(map(example, lines)) for split, lines in split_lines(self.config, folder, lines_of).items()}

    def tokens(self, example):
        return len(example[0]) + 1 + len(example[1])

    def scores(self, model, examples, draws):
        ids, lengths = padded([source for source, _ in examples])
        outputs, counts = padded([[self.ids["<bos>"], *target] for _, target in examples])
        answers, _ = padded([[*target, self.ids["<eos>"]] for _, target in examples])
        model.draws = draws
        rows = torch.arange(outputs.shape[1]) < counts[:, None]
        return model(ids, lengths, outputs=outputs)[rows], answers[rows]

    def metrics(self, scores, targets, loss):
        return {}  # of the text that the model writes
