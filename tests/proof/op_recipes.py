"""What PyTorch makes of each row of the op table: label -> function of the row's inputs.

A row of tests/core/op_cases/ without a recipe here fails the proof, and so does a recipe without a row.
"""
import functools
import math

import numpy
import torch
from torch.nn import functional as F

# Ops that PyTorch 1.13 lacks: their recipes write out the formula, differentiated by PyTorch.
FORMULAS = {"masked_mean", "masked_max", "select_rows", "rms_norm", "rotary"}

LENGTHS = {"padding": [3, 1], "both": [4, 2], "long": [21, 10]}


def pattern(shape, like):
    """Every third number is true."""
    return (torch.arange(math.prod(shape)) % 3 == 0).reshape(shape)


def rows_below(lengths, x):
    """Which rows of x [B, T, D] count, [B, T, 1]."""
    return (torch.arange(x.shape[1]) < torch.tensor(lengths)[:, None])[..., None]


def rotary(x, heads, first=0):
    """Each head's elements i and i + half are a complex number, turned by position / 10000^(i / half)."""
    parts = x.unflatten(-1, (heads, 2, -1))
    half = parts.shape[-1]
    position, frequency = first + torch.arange(x.shape[1]).double(), 10000**(torch.arange(half).double() / half)
    angles = position[:, None] / frequency
    turns = torch.polar(torch.ones_like(angles), angles)[:, None].to(torch.complex(x[:0], x[:0]).dtype)
    y = torch.complex(parts[..., 0, :], parts[..., 1, :]) * turns
    return torch.stack([y.real, y.imag], -2).flatten(2)


def masked_mean(x, lengths):
    total = torch.where(rows_below(lengths, x), x, torch.zeros_like(x)).sum(1)
    return total / torch.tensor(lengths).clamp(min=1)[:, None]


def masked_max(x, lengths):
    parts = [x[b, :length].amax(0) if length else 0 * x[b].sum(0) for b, length in enumerate(lengths)]
    return torch.stack(parts)


def dropout_factors(shape, probability, seed=7):
    """What qkv's dropout multiplies with: numbers of Philox4x32-10 (Salmon et al. 2011) below a threshold drop."""
    count = math.prod(shape)
    block = numpy.arange((count + 3) // 4, dtype=numpy.uint64)
    zero = numpy.zeros_like(block)
    counter, key = [block, zero, zero, zero + (4 << 24)], [seed, 0]
    low = numpy.uint64(0xFFFFFFFF)
    for _ in range(10):
        first, second = counter[0] * numpy.uint64(0xD2511F53), counter[2] * numpy.uint64(0xCD9E8D57)
        counter = [(second >> numpy.uint64(32)) ^ counter[1] ^ numpy.uint64(key[0]), second & low,
                   (first >> numpy.uint64(32)) ^ counter[3] ^ numpy.uint64(key[1]), first & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    bits = numpy.stack(counter, 1).ravel()[:count].astype(numpy.float64)
    kept = bits >= math.ceil(probability * 2**32)
    return torch.tensor(kept / (1 - probability)).reshape(shape)


def hiding(queries, keys):
    """-inf for every third element and the first row, else 0."""
    flat = torch.arange(queries * keys)
    return torch.zeros(queries, keys).masked_fill(((flat % 3 == 0) | (flat < keys)).reshape(queries, keys), -math.inf)


def attention(q, k, v, heads, scale, lengths=None, causal=False, dropout=0, bias=None):
    """softmax(scale q k^T + mask) v for each head; rows that see no key are 0, which PyTorch makes NaN."""
    def split(x):
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)
    scores = scale * split(q) @ split(k).transpose(-2, -1)
    queries, keys = scores.shape[-2:]
    if bias is not None:
        scores = scores + bias
    if lengths:
        scores = scores.masked_fill(torch.arange(keys) >= torch.tensor(lengths)[:, None, None, None], -math.inf)
    if causal:
        scores = scores.masked_fill(torch.ones(queries, keys).triu(keys - queries + 1).bool(), -math.inf)
    seen = (scores > -math.inf).any(-1, keepdim=True)
    weights = torch.where(seen, scores, torch.zeros_like(scores)).softmax(-1) * seen
    if dropout:
        factors = dropout_factors(weights.mT.shape, dropout).mT  # drawn key by key
        weights = weights * factors.to(weights.dtype)
    return (weights @ split(v)).transpose(1, 2).flatten(2)


def cross_entropy(x, targets, **options):
    """Classes come last in qkv, second in PyTorch."""
    x = x.reshape(-1, x.shape[-1])
    if "weight" in options:
        options["weight"] = torch.tensor(options["weight"], dtype=x.dtype)
    return F.cross_entropy(x, torch.tensor(targets), **options)


def conv1d(x, weight, bias=None, **options):
    """Channels come last in qkv, second in PyTorch."""
    return F.conv1d(x.transpose(1, 2), weight, bias, **options).transpose(1, 2)


def recurrent(cell, x, weight_ih, weight_hh, bias_ih, bias_hh, *initial, reverse, lengths, last=False):
    """One direction of PyTorch's layer over each sequence without its padding; with `last` rows of the last state."""
    function = {torch.nn.RNN: torch._VF.rnn_tanh, torch.nn.GRU: torch._VF.gru, torch.nn.LSTM: torch._VF.lstm}[cell]
    weights = [weight_ih, weight_hh, bias_ih, bias_hh]
    initial = initial or [x.new_zeros(len(x), weight_hh.shape[1])] * (2 if cell is torch.nn.LSTM else 1)
    rows = []
    for b, (sequence, length) in enumerate(zip(x, lengths)):
        states = sequence.new_zeros(len(sequence), weight_hh.shape[1])
        state = [start[b][None, None] for start in initial]
        if length:
            real = sequence[:length].flip(0) if reverse else sequence[:length]
            y, *state = function(real[None], state if len(state) > 1 else state[0], weights, True, 1, 0.0, False, False,
                                 True)
            states = torch.cat([y[0].flip(0) if reverse else y[0], states[length:]])
        rows.append(torch.cat([states] + [row[0] for row in state]) if last else states)
    return torch.stack(rows)


ELEMENTWISE = {
    "add: same shape": lambda a, b: a + b,
    "add: both broadcast": lambda a, b: a + b,
    "add: scalar": lambda a, b: a + b,
    "add: empty": lambda a, b: a + b,
    "add: size 1": lambda a, b: a + b,
    "subtract: broadcast": lambda a, b: a - b,
    "multiply: same shape": lambda a, b: a * b,
    "multiply: broadcast": lambda a, b: a * b,
    "multiply: with itself": lambda x: x * x,
    "divide: broadcast": lambda a, b: a / b,
    "divide: empty": lambda a, b: a / b,
    "maximum: broadcast": torch.maximum,
    "maximum: equal elements": lambda x: torch.maximum(x, x),
    "maximum: empty": torch.maximum,
    "minimum: both broadcast": torch.minimum,
    "minimum: equal elements": lambda x: torch.minimum(x, x),
    "sin: vector": torch.sin,
    "sin: large": torch.sin,
    "cos: vector": torch.cos,
    "cos: empty": torch.cos,
    "erf: vector": torch.erf,
    "erf: wide": torch.erf,
    "softplus: vector": F.softplus,
    "softplus: wide": lambda x: F.softplus(x, threshold=100),
    "affine: operators": lambda x: 1 - 3 * (x + 2) / 4,
    "power: cube": lambda x: x.pow(3),
    "power: fraction": lambda x: x.pow(-0.5),
    "power: reciprocal": lambda x: 2 / x,
    "sqrt: matrix": torch.sqrt,
    "sqrt: size 1": torch.sqrt,
    "abs: vector": torch.abs,
    "abs: empty": torch.abs,
    "clamp: both sides": lambda x: x.clamp(-0.5, 1),
    "clamp: matrix": lambda x: x.clamp(-1, 1.5),
    "exp: vector": torch.exp,
    "exp: empty": torch.exp,
    "log: vector": torch.log,
    "tanh: vector": torch.tanh,
    "tanh: scalar": torch.tanh,
    "sigmoid: vector": torch.sigmoid,
    "sigmoid: large": torch.sigmoid,
    "relu: vector": torch.relu,
    "relu: empty": torch.relu,
    "gelu: vector": lambda x: F.gelu(x, approximate="tanh"),
    "gelu: size 1": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_exact: vector": F.gelu,
    "gelu_exact: wide": F.gelu,
    "silu: vector": F.silu,
    "silu: wide": F.silu,
    "equal: signs": lambda a, b: torch.where((a > 0) == (b > 0), a, b),
    "not_equal: signs": lambda a, b: torch.where((a > 0) != (b > 0), a, b),
    "less: smaller of two": lambda a, b: torch.where(a < b, a, b),
    "less_equal: with a number": lambda x: torch.where(x <= 0.5, x, 2 * x),
    "greater: larger of two": lambda a, b: torch.where(a > b, a, b),
    "greater_equal: with itself": lambda x: torch.where(x >= x, x, 2 * x),
    "where: all broadcast": lambda a, b: torch.where(pattern((3, 4), a), a, b),
    "where: size 1": lambda a, b: torch.where(pattern((1,), a), a, b),
    "where: empty": lambda a, b: torch.where(pattern((3,), a), a, b),
    "masked_fill: rows": lambda x: x.masked_fill(pattern((3, 1), x), -7),
    "masked_fill: elements": lambda x: x.masked_fill(pattern((3, 4), x), 0.5),
}

SHAPE = {
    "reshape: inferred size": lambda x: x.reshape(3, -1),
    "reshape: a shape": lambda x: x.reshape(3, 1, 4),
    "reshape: empty": lambda x: x.reshape(2, 0),
    "expand: rows": lambda x: x.expand(2, 3, 4),
    "expand: scalar": lambda x: x.expand(5),
    "expand: a size kept": lambda x: x.expand(4, -1, 5, -1),
    "permute: cycle": lambda x: x.permute(1, 2, 0),
    "permute: heads": lambda x: x.permute(0, 2, 1, 3),
    "permute: scalar": lambda x: x.permute(()),
    "permute: empty": lambda x: x.permute(1, 0),
    "slice: middle axis": lambda x: x[:, 1:4],
    "slice: nothing": lambda x: x[:, 2:2],
    "slice: of a permuted": lambda x: x.permute(1, 0)[:, 1:3],
    "slice: a step": lambda x: x[:, 1:7:2],
    "slice: from the end": lambda x: x[-4:-1:3],
    "concatenate: middle axis": lambda a, b: torch.cat([a, b], 1),
    "concatenate: one twice": lambda x: torch.cat([x, x]),
    "concatenate: an empty part": lambda a, b: torch.cat([a, b], -1),
    "stack: first axis": lambda a, b: torch.stack([a, b]),
    "stack: middle axis": lambda a, b, c: torch.stack([a, b, c], 1),
    "stack: scalars": lambda a, b: torch.stack([a, b], -1),
    "split: swapped parts": lambda x: torch.cat(x.split(2, 1)[::-1], 1),
    "split: product of halves": lambda x: x.split(2, 0)[0] * x.split(2, 0)[1],
    "split: with a rest": lambda x: torch.cat(x.chunk(3, 1)[::-1], 1),
    "split: an empty axis": lambda x: torch.cat(x.chunk(3, 1)),
    "split_by_size: with a rest": lambda x: torch.cat(x.split(3, -1)[::-1], 1),
    "split_by_size: one part": lambda x: x.split(5, 0)[0],
    "pad: both sides": lambda x: F.pad(x, (0, 0, 2, 1)),
    "pad: a value after": lambda x: F.pad(x, (0, 2), value=1.5),
    "pad: an empty axis": lambda x: F.pad(x, (1, 1)),
    "gather: last axis": lambda x: x.gather(1, torch.tensor([[4, 0, 4], [1, 1, 2]])),
    "gather: first axis": lambda x: x.gather(0, torch.tensor([[2, 0]])),
    "gather: nothing": lambda x: x.gather(0, torch.zeros((0, 2), dtype=torch.long)),
    "select_rows: one a sequence": lambda x: x[torch.arange(3), torch.tensor([3, 0, 3])],
}

REDUCTION = {
    "sum: all": torch.sum,
    "sum: first axis": lambda x: x.sum(0),
    "sum: last axis kept": lambda x: x.sum(-1, keepdim=True),
    "sum: two axes apart": lambda x: x.sum((0, 2)),
    "sum: two axes apart, kept": lambda x: x.sum((-1, 1), keepdim=True),
    "sum: last two axes": lambda x: x.sum((1, 2)),
    "sum: an empty axis": lambda x: x.sum(1),
    "sum: scalar": torch.sum,
    "mean: all": torch.mean,
    "mean: middle axis": lambda x: x.mean(1),
    "mean: two axes apart": lambda x: x.mean((2, 0)),
    "mean: all, kept": lambda x: x.mean((0, 1), keepdim=True),
    "variance: all": lambda x: x.var(unbiased=False),
    "variance: rows, sample": lambda x: x.var(-1, keepdim=True),
    "variance: two axes apart": lambda x: x.var((0, 2), unbiased=False),
    "variance: of one": lambda x: x.var(1, unbiased=False),
    "max: all": torch.max,
    "max: first axis": lambda x: x.max(0).values,
    "max: two axes apart, kept": lambda x: x.amax((0, 2), keepdim=True),
    "max: size 1": lambda x: x.max(-1).values,
    "min: all": torch.min,
    "min: middle axis": lambda x: x.min(1).values,
    "min: of no rows": lambda x: x.amin(1),
    "topk: last axis": lambda x: x.topk(3).values,
    "topk: middle axis": lambda x: x.topk(5, 1).values,
    "topk: none": lambda x: x.topk(0).values,
    "logsumexp: all": lambda x: x.logsumexp((0, 1)),
    "logsumexp: middle axis, kept": lambda x: x.logsumexp(1, keepdim=True),
    "logsumexp: large": lambda x: x.logsumexp(-1),
    "logsumexp: size 1": lambda x: x.logsumexp(-1),
    "cumulative_sum: last axis": lambda x: x.cumsum(-1),
    "cumulative_sum: first axis": lambda x: x.cumsum(0),
    "cumulative_sum: empty": lambda x: x.cumsum(1),
    "masked_mean: one empty": lambda x: masked_mean(x, [4, 0, 2]),
    "masked_max: one empty": lambda x: masked_max(x, [4, 0, 2]),
    "masked_max: size 1": lambda x: masked_max(x, [1]),
}

LAYER = {
    "matmul: matrices": torch.matmul,
    "matmul: batches": torch.matmul,
    "matmul: one matrix for a batch": torch.matmul,
    "matmul: first transposed": lambda a, b: a.mT @ b,
    "matmul: second transposed": lambda a, b: a @ b.mT,
    "matmul: size 1": torch.matmul,
    "matmul: two vectors": torch.matmul,
    "matmul: a vector and matrices": torch.matmul,
    "matmul: matrices and a vector": torch.matmul,
    "matmul: a vector and a transposed matrix": lambda a, b: a @ b.mT,
    "matmul: leading axes broadcast": torch.matmul,
    "matmul: both broadcast, second transposed": lambda a, b: a @ b.mT,
    "matmul: one matrix, first transposed": lambda a, b: a.mT @ b,
    "matmul: empty batch": torch.matmul,
    "linear: with bias": F.linear,
    "linear: without bias": F.linear,
    "gelu_linear: with bias": lambda x, w, b: F.linear(F.gelu(x, approximate="tanh"), w, b),
    "gelu_linear: without bias": lambda x, w: F.linear(F.gelu(x, approximate="tanh"), w),
    "softmax: rows": lambda x: x.softmax(-1),
    "softmax: rows of one": lambda x: x.softmax(-1),
    "log_softmax: rows": lambda x: x.log_softmax(-1),
    "softmax: first axis": lambda x: x.softmax(0),
    "softmax: middle axis": lambda x: x.softmax(-3),
    "log_softmax: first axis": lambda x: x.log_softmax(0),
    "log_softmax: middle axis": lambda x: x.log_softmax(1),
    "log_softmax: large": lambda x: x.log_softmax(-1),
    "log_softmax: rows of one": lambda x: x.log_softmax(-1),
    "attention: one head": lambda q, k, v: attention(q, k, v, 1, 0.5),
    "attention: two heads, padding": lambda q, k, v: attention(q, k, v, 2, 0.6, LENGTHS["padding"]),
    "attention: causal": lambda q, k, v: attention(q, k, v, 3, 0.7, causal=True),
    "attention: causal, padding and dropout":
        lambda q, k, v: attention(q, k, v, 2, 0.7, LENGTHS["both"], causal=True, dropout=0.4),
    "attention: longer than a vector, causal and padding":
        lambda q, k, v: attention(q, k, v, 2, 0.7, LENGTHS["long"], causal=True),
    "attention: fewer queries than keys, causal and dropout":
        lambda q, k, v: attention(q, k, v, 1, 0.9, causal=True, dropout=0.3),
    "attention: more queries than keys, causal": lambda q, k, v: attention(q, k, v, 2, 0.6, causal=True),
    "attention: parameter-free": lambda x: attention(x, x, x, 1, 1, LENGTHS["padding"]),
    "attention: uniform": lambda x: attention(x, x, x, 1, 0, LENGTHS["padding"]),
    "attention: a bias of each score": lambda q, k, v, bias: attention(q, k, v, 2, 0.6, bias=bias),
    "attention: a bias of each head, causal, padding and dropout":
        lambda q, k, v, bias: attention(q, k, v, 2, 0.7, LENGTHS["both"], causal=True, dropout=0.4, bias=bias),
    "attention: a bias of each key of a sequence, longer than a vector":
        lambda q, k, v, bias: attention(q, k, v, 2, 0.7, causal=True, bias=bias),
    "attention: a bias that hides, rows without any key among them":
        lambda q, k, v: attention(q, k, v, 2, 0.7, bias=hiding(5, 7).to(q.dtype)),
    "embedding: padding that counts for nothing":
        lambda w: F.embedding(torch.tensor([[4, 0], [4, 1]]), w, padding_idx=4) * w.new_tensor([[0, 1], [0, 1]])[..., None],
    "embedding: an id twice": lambda w: F.embedding(torch.tensor([[4, 0], [4, 1]]), w),
    "embedding: one id": lambda w: F.embedding(torch.tensor([3]), w),
    "layer_norm: rows": lambda x, gain, bias: F.layer_norm(x, x.shape[-1:], gain, bias),
    "layer_norm: one row": lambda x, gain, bias: F.layer_norm(x, x.shape[-1:], gain, bias),
    "layer_norm: without bias": lambda x, gain: F.layer_norm(x, x.shape[-1:], gain),
    "rotary: two heads": lambda x: rotary(x, 2, first=5),
    "rms_norm: rows": lambda x, gain: x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * gain,
    "rms_norm: width 1": lambda x, gain: x * (x.square().mean(-1, keepdim=True) + 0.1).rsqrt() * gain,
    "conv1d: with bias": conv1d,
    "conv1d: stride, padding and dilation": lambda x, w: conv1d(x, w, stride=2, padding=2, dilation=2),
    "conv1d: a stride that does not divide": lambda x, w, b: conv1d(x, w, b, stride=2),
    "conv1d: a kernel as long as the sequence": conv1d,
    "conv1d: size 1": conv1d,
    "dropout: half": lambda x: x * dropout_factors(x.shape, 0.5).to(x.dtype),
}

RECURRENT = {f"{name}: {what}": functools.partial(recurrent, cell, reverse="reverse" in what, lengths=lengths)
             for name, cell in (("rnn", torch.nn.RNN), ("gru", torch.nn.GRU), ("lstm", torch.nn.LSTM))
             for what, lengths in (("padding", [4, 0, 2]), ("reverse, padding", [4, 0, 2]), ("size 1", [1]))
             if name == "rnn" or what != "size 1"}
RECURRENT.update({f"{name}: {what}": functools.partial(recurrent, cell, reverse="reverse" in what,
                                                       lengths=[4, 0, 2], last=True)
                  for name, cell in (("rnn", torch.nn.RNN), ("gru", torch.nn.GRU), ("lstm", torch.nn.LSTM))
                  for what in ("state, padding", "state, reverse, padding", "last state from zeros, padding")
                  if name == "lstm" or what.startswith("state")})

LOSS = {
    "cross_entropy: one ignored": lambda x: cross_entropy(x, [2, 0, -1, 4], ignore_index=-1),
    "cross_entropy: sequences": lambda x: cross_entropy(x, [2, 0, 3, 1, 1, -1], ignore_index=-1),
    "cross_entropy: smoothed": lambda x: cross_entropy(x, [2, 0, -1, 4], ignore_index=-1, label_smoothing=0.1),
    "cross_entropy: weighted": lambda x: cross_entropy(x, [2, 0, 1, 2], weight=[0.5, 2, 1.25]),
    "cross_entropy: smoothed, weighted and ignored":
        lambda x: cross_entropy(x, [2, 0, 1, 2], ignore_index=0, label_smoothing=0.2, weight=[0.5, 2, 1.25]),
    "cross_entropy: each row":
        lambda x: cross_entropy(x, [2, 0, -1, 2], ignore_index=-1, reduction="none").reshape(2, 2),
    "cross_entropy: sum, smoothed and weighted":
        lambda x: cross_entropy(x, [2, 0, 1, 2], label_smoothing=0.2, weight=[0.5, 2, 1.25], reduction="sum"),
    "cross_entropy: each row, smoothed and weighted":
        lambda x: cross_entropy(x, [2, 0, 1, 2], ignore_index=1, label_smoothing=0.2, weight=[0.5, 2, 1.25],
                                reduction="none"),
    "cross_entropy: one class": lambda x: cross_entropy(x, [0, 0]),
    "binary_cross_entropy: matrix": F.binary_cross_entropy,
    "binary_cross_entropy: size 1": F.binary_cross_entropy,
    "binary_cross_entropy_with_logits: matrix": lambda x, t: F.binary_cross_entropy_with_logits(x, t.sigmoid()),
    "binary_cross_entropy_with_logits: large": lambda x, t: F.binary_cross_entropy_with_logits(x, t.sigmoid()),
    "binary_cross_entropy: each element": lambda p, t: F.binary_cross_entropy(p, t, reduction="none"),
    "binary_cross_entropy_with_logits: sum":
        lambda x, t: F.binary_cross_entropy_with_logits(x, t.sigmoid(), reduction="sum"),
    "binary_cross_entropy_with_logits: weighted":
        lambda x, t: F.binary_cross_entropy_with_logits(x, t.sigmoid(), pos_weight=x.new_tensor([0.5, 2, 1, 3])),
    "binary_cross_entropy_with_logits: weighted, each element, large": lambda x, t:
        F.binary_cross_entropy_with_logits(x, t.sigmoid(), reduction="none", pos_weight=x.new_tensor(3)),
    "mean_squared_error: matrix": F.mse_loss,
    "mean_squared_error: each element": lambda p, t: F.mse_loss(p, t, reduction="none"),
    "mean_squared_error: sum": lambda p, t: F.mse_loss(p, t, reduction="sum"),
    "mean_squared_error: scalar": F.mse_loss,
}

RECIPES = {**ELEMENTWISE, **SHAPE, **REDUCTION, **LAYER, **RECURRENT, **LOSS}
