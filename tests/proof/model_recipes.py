"""What PyTorch's layers make of the rows of tests/proof/models.cpp: label -> function of the parameters.

Each gives the vectors of the words of two sentences, followed by the sentences' own.
"""
import torch
from torch import nn
from torch.nn import functional as F

import layer_recipes
import op_recipes
from layer_recipes import CAUSAL, PADDING, below

LENGTHS = [4, 2]
OUTPUT_IDS = torch.tensor([[1, 4, 4], [2, 0, 6]])


def embedded(p, ids=torch.tensor([[6, 1, 0, 1], [2, 5, 3, 3]])):
    return F.embedding(ids, p["embedding.weight"])


def with_positions(x):
    return x + layer_recipes.sinusoidal(*x.shape[1:]).to(x.dtype)


def with_sentences(x, sentences=None):
    """Unless the model has its own way, a sentence's vector is the mean of its words'."""
    sentences = op_recipes.masked_mean(x, LENGTHS) if sentences is None else sentences
    return torch.cat([x, sentences[:, None]], 1)


def encoder_decoder(p):
    memory = layer_recipes.encoder(below(p, "encoder."), with_positions(embedded(p)))
    return layer_recipes.decoder(below(p, "decoder."), with_positions(embedded(p, OUTPUT_IDS)), memory)


def affine(p, name, x):
    return F.linear(x, p[name + ".weight"], p[name + ".bias"])


def norm(p, name, x):
    return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"])


def rotary_decoder(p, x):
    """PyTorch has no rotary positions: the blocks are written out."""
    for i in (0, 1):
        block = below(p, f"layers.{i}.")
        h = norm(block, "norm_1", x)
        q, k, v = (affine(block, f"attention.w_{name}", h) for name in "qkv")
        q, k = op_recipes.rotary(q, 1), op_recipes.rotary(k, 1)
        x = x + affine(block, "attention.w_o", op_recipes.attention(q, k, v, 1, 6**-0.5, LENGTHS, causal=True))
        hidden = F.gelu(affine(block, "feed_forward.w_1", norm(block, "norm_2", x)), approximate="tanh")
        x = x + affine(block, "feed_forward.w_2", hidden)
    return norm(p, "norm", x)


def recurrent(p):
    """A sentence's vector: the states after its last word, read forwards, and after its first, read backwards."""
    x = layer_recipes.recurrent(nn.LSTM, below(p, "recurrent."), embedded(p))
    return with_sentences(x, torch.cat([x[[0, 1], [length - 1 for length in LENGTHS], :3], x[:, 0, 3:]], 1))


def convolution(p):
    x = embedded(p)
    for i in (0, 1):
        x = layer_recipes.convolution_layer(below(p, f"convolution.layers.{i}."), x)
    return with_sentences(x, op_recipes.masked_max(x, LENGTHS))


def fixed_length(p):
    """All words of a sentence, filled up with zeros to eight, at once."""
    x = F.pad(embedded(p).masked_fill(PADDING[..., None], 0), (0, 0, 0, 4)).flatten(1)
    hidden = F.gelu(affine(p, "feed_forward.w_1", x), approximate="tanh")
    return with_sentences(affine(p, "feed_forward.w_2", hidden).unflatten(1, (8, 6))[:, :4])


RECIPES = {
    "encoder: sinusoidal positions":
        lambda p: with_sentences(layer_recipes.encoder(below(p, "encoder."), with_positions(embedded(p)))),
    "decoder: learned positions":
        lambda p: with_sentences(
            layer_recipes.encoder(below(p, "decoder."), embedded(p) + p["positions.weight"][:4], CAUSAL)),
    "decoder: rotary positions": lambda p: with_sentences(rotary_decoder(below(p, "decoder."), embedded(p))),
    "encoder_decoder: sinusoidal positions": encoder_decoder,
    "recurrent: lstm, both ways": recurrent,
    "convolution: two layers": convolution,
    "fixed_length: a hidden layer": fixed_length,
    "static_embedding: vectors": lambda p: with_sentences(embedded(p)),
}
