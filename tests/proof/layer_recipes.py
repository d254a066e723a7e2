"""What PyTorch's layers make of each row of tests/proof/layers.cpp: label -> function of parameters and inputs.

`p` holds the parameters by qkv's paths, `x` the tensors that go in.
"""
import functools
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.stateless import functional_call

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))
import torch_ops

PADDING = torch.arange(4) >= torch.tensor([4, 2])[:, None]
CAUSAL = torch.ones(4, 4).triu(1).bool()


def below(p, prefix):
    """The parameters below a path, without it."""
    return {name[len(prefix):]: value for name, value in p.items() if name.startswith(prefix)}


def attention_parameters(p):
    """nn.MultiheadAttention keeps the projections of queries, keys and values in one matrix."""
    return {"in_proj_weight": torch.cat([p["w_q.weight"], p["w_k.weight"], p["w_v.weight"]]),
            "in_proj_bias": torch.cat([p["w_q.bias"], p["w_k.bias"], p["w_v.bias"]]),
            "out_proj.weight": p["w_o.weight"], "out_proj.bias": p["w_o.bias"]}


def block_parameters(p):
    attention = attention_parameters(below(p, "attention."))
    return {**{"self_attn." + name: value for name, value in attention.items()},
            **{f"norm{i}.{name}": p[f"norm_{i}.{name}"] for i in (1, 2) for name in ("weight", "bias")},
            **{f"linear{i}.{name}": p[f"feed_forward.w_{i}.{name}"] for i in (1, 2) for name in ("weight", "bias")}}


def attention(p, query, memory, **masks):
    layer = nn.MultiheadAttention(6, 2, batch_first=True)
    return functional_call(layer, attention_parameters(p), (query, memory, memory), {"need_weights": False, **masks})[0]


def gelu(x):
    return F.gelu(x, approximate="tanh")


def block():
    return nn.TransformerEncoderLayer(6, 2, 10, dropout=0, activation=gelu, batch_first=True, norm_first=True)


def decoder(p, x, memory):
    parameters = {"norm." + name: value for name, value in below(p, "norm.").items()}
    for i in (0, 1):
        block = below(p, f"layers.{i}.")
        for name, value in attention_parameters(below(block, "attention.")).items():
            parameters[f"layers.{i}.self_attn.{name}"] = value
        for name, value in attention_parameters(below(block, "cross_attention.")).items():
            parameters[f"layers.{i}.multihead_attn.{name}"] = value
        for ours, theirs in (("norm_1", "norm1"), ("norm_cross", "norm2"), ("norm_2", "norm3"),
                             ("feed_forward.w_1", "linear1"), ("feed_forward.w_2", "linear2")):
            for name, value in below(block, ours + ".").items():
                parameters[f"layers.{i}.{theirs}.{name}"] = value
    layer = nn.TransformerDecoderLayer(6, 2, 10, dropout=0, activation=gelu, batch_first=True, norm_first=True)
    return functional_call(nn.TransformerDecoder(layer, 2, nn.LayerNorm(6)), parameters, (x, memory),
                           {"tgt_mask": CAUSAL[:3, :3], "memory_key_padding_mask": PADDING})


def recurrent(cell, p, x, *initial):
    """Two layers in both directions, with the last states from given ones.

    PyTorch's module keeps its own list of weights, which functional_call misses.
    """
    function = {nn.RNN: torch._VF.rnn_tanh, nn.GRU: torch._VF.gru, nn.LSTM: torch._VF.lstm}[cell]
    names = [name for name, _ in cell(6, 3, num_layers=2, bidirectional=True).named_parameters()]
    packed = nn.utils.rnn.pack_padded_sequence(x, [4, 2], batch_first=True)
    state = list(initial) or [x.new_zeros(4, 2, 3)] * (2 if cell is nn.LSTM else 1)
    y, *last = function(packed.data, packed.batch_sizes, state if len(state) > 1 else state[0],
                        [p[name] for name in names], True, 2, 0.0, False, True)
    states = nn.utils.rnn.pad_packed_sequence(packed._replace(data=y), batch_first=True)[0]
    return torch.cat([states.flatten()] + [value.flatten() for value in last]) if initial else states


def same_convolution(x, weight, bias):
    """Channels come last in qkv, second in PyTorch."""
    return F.conv1d(x.transpose(1, 2), weight, bias, padding="same").transpose(1, 2)


def sinusoidal(time, width, first=0):
    """Vaswani et al. 2017, 3.5."""
    angles = (first + torch.arange(time).double())[:, None] / 10000**(torch.arange(0, width, 2).double() / width)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


def encoder(p, x, mask=None):
    parameters = {f"layers.{i}.{name}": value for i in (0, 1)
                  for name, value in block_parameters(below(p, f"layers.{i}.")).items()}
    parameters.update({"norm." + name: value for name, value in below(p, "norm.").items()})
    return functional_call(nn.TransformerEncoder(block(), 2, nn.LayerNorm(6)), parameters, (x,),
                           {"mask": mask, "src_key_padding_mask": PADDING})


def feed_forward(activation, p, x):
    return F.linear(activation(F.linear(x, p["w_1.weight"], p["w_1.bias"])), p["w_2.weight"], p["w_2.bias"])


def by_distance(p, x):
    return x + p["weight"][(torch.arange(4) - torch.arange(1, 4)[:, None]).clamp(-2, 2) + 2].permute(2, 0, 1)


RECIPES = {
    "Embedding: an id twice":
        lambda p: functional_call(nn.Embedding(7, 4), p, (torch.tensor([[6, 0, 6], [1, 2, 2]]),)),
    "FeedForward: exact GELU": functools.partial(feed_forward, F.gelu),
    "FeedForward: ReLU": functools.partial(feed_forward, F.relu),
    "FeedForward: squared ReLU": functools.partial(feed_forward, lambda x: F.relu(x).square()),
    "LayerNorm: another epsilon": lambda p, x: functional_call(nn.LayerNorm(6, 1e-3), p, (x,)),
    "MultiHeadAttention: self, padding and a bias": lambda p, x, bias: attention(
        p, x, x, attn_mask=bias.repeat(2, 1, 1), key_padding_mask=PADDING),
    "Transformer: encoder of two blocks, padding": encoder,
    "Transformer: decoder of two blocks, causal": decoder,
    "Recurrent: rnn, from a state, with the last": functools.partial(recurrent, nn.RNN),
    "Recurrent: gru, from a state, with the last": functools.partial(recurrent, nn.GRU),
    "Recurrent: lstm, from a state, with the last": functools.partial(recurrent, nn.LSTM),
    "Conv1d: even kernel": lambda p, x: same_convolution(x, p["weight"], p["bias"]),
    "InputPositions: sinusoidal": lambda p, x: x + sinusoidal(4, 6, first=3).to(x.dtype),
    "InputPositions: learned": lambda p, x: x + p["weight"][3:7],
    "AttentionPositions: relative": by_distance,
    "AttentionPositions: windows": by_distance,
    "AttentionPositions: rotary": lambda p, x: torch_ops.rotary(x, 1, torch_ops.rotary_cos_sin(4, 6, 3, x.dtype)),
}
