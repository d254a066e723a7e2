"""What python/qkv.py makes of the rows of tests/proof/models.cpp: label -> function of the parameters.

Each gives the vectors of the words of two sentences, followed by the sentences' own. layer_recipes.py has what the models
consist of by PyTorch's own layers.
"""
import pathlib
import sys

import torch
from torch.nn.utils.stateless import functional_call

import layer_recipes
from layer_recipes import below

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
import qkv

SMALL = {"width": 6, "layers": 2, "heads": 2, "feed_forward": 10, "max_length": 8}
IDS = torch.tensor([[6, 1, 0, 1], [2, 5, 3, 3]])
LENGTHS = torch.tensor([4, 2])
OUTPUT_IDS = torch.tensor([[1, 4, 4], [2, 0, 6]])


class Recurrent(torch.nn.Module):
    """torch.nn.LSTM keeps its own list of weights, which functional_call misses."""

    def __init__(self, p):
        super().__init__()
        self.p, self.bidirectional = p, True

    def forward(self, packed):
        x, _ = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        states = layer_recipes.recurrent(torch.nn.LSTM, self.p, x)
        return torch.nn.utils.rnn.pack_padded_sequence(states, LENGTHS, batch_first=True), None


class Vectors(qkv.Model):
    def forward(self):
        x = self.contextual(IDS, LENGTHS)
        if self.kind == "encoder-decoder":
            return self.decode(OUTPUT_IDS, x, LENGTHS)
        return torch.cat([x, self.sentence(x, LENGTHS)[:, None]], 1)


def recipe(kind, **options):
    def vectors(p):
        model = Vectors(SMALL | {"kind": kind, **options}, 7)
        if kind == "recurrent":
            model.recurrent = Recurrent(below(p, "recurrent."))
            p = {"embedding.weight": p["embedding.weight"]}
        return functional_call(model.to(p["embedding.weight"].dtype), p, ())
    return vectors


RECIPES = {
    "encoder: sinusoidal positions": recipe("encoder"),
    "bert: norms after, exact GELU": recipe("bert", position="learned", norm="post", activation="gelu"),
    "decoder: learned positions": recipe("decoder", position="learned"),
    "decoder: rotary positions": recipe("decoder", position="rotary", heads=1),
    "encoder_decoder: sinusoidal positions": recipe("encoder-decoder"),
    "recurrent: lstm, both ways": recipe("recurrent", bidirectional=True),
    "convolution: two layers": recipe("convolution"),
    "fixed_length: a hidden layer": recipe("feed-forward"),
    "static_embedding: vectors": recipe("static"),
}
