"""PyTorch's counterparts of the functions of core/ops.h, by their names there, and of the types of their arguments."""
import builtins
import math

import numpy
import torch
from torch.nn import functional as F

# Ops that PyTorch 1.13 lacks: their formulas are written out and differentiated by PyTorch.
FORMULAS = {"masked_mean", "masked_max", "select_rows", "rms_norm", "RmsNorm", "rotary", "rotary_cos_sin"}
INFINITY, NAN, true, false = math.inf, math.nan, True, False


class Transpose:
    none, first, second = range(3)


class Reduction:
    none, sum, mean = "none", "sum", "mean"


class Purpose:
    testing = 4


def Random(seed, purpose):
    return seed


def Shape(*sizes):
    return list(sizes)


def Indices(values, shape):
    return torch.tensor(values, dtype=torch.long).reshape(shape)


def Tensor(values=None, shape=None):
    return None if values is None else torch.tensor(values, dtype=torch.float64).reshape(shape)


def listed(axes, x):
    return tuple(axes) or tuple(range(x.dim()))


# Elementwise ----------------------------------------------------------------------------------------------------------

add, subtract, multiply, divide = torch.add, torch.sub, torch.mul, torch.div
maximum, minimum, sin, cos, erf = torch.maximum, torch.minimum, torch.sin, torch.cos, torch.erf
sqrt, abs, exp, log, tanh, sigmoid, relu, silu = (torch.sqrt, torch.abs, torch.exp, torch.log, torch.tanh,
                                                  torch.sigmoid, torch.relu, F.silu)
gelu_exact, clamp = F.gelu, torch.clamp


def affine(x, scale, shift):
    return scale * x + shift


def power(x, exponent):
    return torch.pow(x + 0.0 if exponent in (0.5, -0.5) else x, exponent)  # of -0.0 it takes another root


def gelu(x):
    near = F.gelu(x.clamp(-100, 100), approximate="tanh")  # whose cube does not overflow
    return torch.where(x.abs() > 100, x.relu(), near)


def softplus(x):
    return F.softplus(x, threshold=50) if x.numel() else x  # beyond it PyTorch returns x; its exp overflows early


def comparison(compare):
    return lambda a, b: compare(a, b).to(a.dtype)


equal, not_equal = comparison(torch.eq), comparison(torch.ne)
less, less_equal = comparison(torch.lt), comparison(torch.le)
greater, greater_equal = comparison(torch.gt), comparison(torch.ge)


def where(condition, a, b):
    return torch.where(condition != 0, a, b)


def masked_fill(x, mask, value):
    return x.masked_fill(mask != 0, value)


# Shape ----------------------------------------------------------------------------------------------------------------

reshape, stack, concatenate = torch.reshape, torch.stack, torch.cat


def expand(x, shape):
    return x.expand(shape)


def permute(x, axes):
    return x.permute(axes)


def vector(axes):
    return axes


def slice(x, axis, begin, end, step):
    size = x.shape[axis]
    at = [builtins.slice(None)] * x.dim()
    at[axis] = builtins.slice(begin + size if begin < 0 else begin, end, step)
    return x[tuple(at)]


def split(x, axis, parts):
    return x.chunk(parts, axis)


def split_by_size(x, axis, size):
    return x.split(size, axis)


def reversed(parts, axis):
    return torch.cat(parts[::-1], axis)


def pad(x, axis, before, after, value):
    sizes = list(x.shape)
    ends = []
    for size in (before, after):
        sizes[axis] = size
        ends.append(x.new_full(sizes, value))
    return torch.cat([ends[0], x, ends[1]], axis)


def gather(x, axis, ids):
    return x.gather(axis, ids)


def select_rows(x, rows):
    return x[torch.arange(len(x)), rows]


# Reductions -----------------------------------------------------------------------------------------------------------

def sum(x, axes, keep):
    return x.sum(listed(axes, x), keep) if x.dim() else x.sum()


def mean(x, axes, keep):
    count = math.prod(x.shape[axis] for axis in listed(axes, x))
    return sum(x, axes, keep) / count if count else sum(x, axes, keep)


def variance(x, axes, keep, correction):
    if not x.dim():
        return (x - x)**2
    return x.var(listed(axes, x), unbiased=bool(correction), keepdim=keep)


def columns(x, axes, keep, f):
    """f over several axes as one, which is the last."""
    axes = [axis % x.dim() for axis in listed(axes, x)]
    others = [axis for axis in range(x.dim()) if axis not in axes]
    count = math.prod(x.shape[axis] for axis in axes)
    shape = [x.shape[axis] for axis in others]
    y = f(x.permute(others + sorted(axes)).reshape(shape + [count]))
    return y.reshape([1 if axis in axes else x.shape[axis] for axis in range(x.dim())]) if keep else y


def max(x, axes, keep):
    return columns(x, axes, keep, lambda rows: rows.max(-1).values) if x.numel() else sum(x, axes, keep)


def min(x, axes, keep):
    return columns(x, axes, keep, lambda rows: rows.min(-1).values) if x.numel() else sum(x, axes, keep)


def argmax(x, axes, keep):
    return columns(x, axes, keep, lambda rows: rows.argmax(-1)).to(x.dtype) if x.numel() else sum(x, axes, keep)


class topk:
    def __init__(self, x, count, axis):
        order = x.sort(dim=axis, descending=True, stable=True)
        self.values = order.values.narrow(axis, 0, count)
        self.indices = order.indices.narrow(axis, 0, count).to(x.dtype)


def logsumexp(x, axes, keep):
    return x.logsumexp(listed(axes, x), keep) if x.dim() else x.reshape(1).logsumexp(0)


cumulative_sum = torch.cumsum


def rows_below(lengths, x):
    return (torch.arange(x.shape[1]) < lengths[:, None])[..., None]


def masked_mean(x, lengths):
    total = torch.where(rows_below(lengths, x), x, torch.zeros_like(x)).sum(1)
    return total / lengths.clamp(min=1)[:, None]


def masked_max(x, lengths):
    rows = [row[:n].max(0).values if n else torch.zeros_like(row.sum(0)) for row, n in zip(x, lengths)]
    return torch.stack(rows) if rows else x.sum(1)


# Products, attention, layers ------------------------------------------------------------------------------------------

def matmul(a, b, transpose=Transpose.none):
    return (a.mT if transpose == Transpose.first else a) @ (b.mT if transpose == Transpose.second else b)


def linear(x, weight, bias=None):
    y = x @ weight.T
    return y if bias is None else y + bias


def gelu_linear(x, weight, bias=None):
    return linear(gelu(x), weight, bias)


def softmax(x, axis):
    none = (x == -INFINITY).all(axis, keepdim=True)
    return torch.where(none, torch.zeros_like(x), torch.where(none, torch.zeros_like(x), x).softmax(axis))


def log_softmax(x, axis):
    return x.log_softmax(axis)


def dropout_factors(shape, probability, seed):
    """The factors of qkv's dropout: words of Philox4x32-10 (Salmon et al. 2011) below a threshold drop."""
    count = math.prod(shape)
    block = numpy.arange((count + 3) // 4, dtype=numpy.uint64)
    zero = numpy.zeros_like(block)
    counter, key = [block, zero, zero, zero + numpy.uint64(4 << 24)], [seed, 0]
    low = numpy.uint64(0xFFFFFFFF)
    for _ in range(10):
        first, second = counter[0] * numpy.uint64(0xD2511F53), counter[2] * numpy.uint64(0xCD9E8D57)
        counter = [(second >> numpy.uint64(32)) ^ counter[1] ^ numpy.uint64(key[0]), second & low,
                   (first >> numpy.uint64(32)) ^ counter[3] ^ numpy.uint64(key[1]), first & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    bits = numpy.stack(counter, 1).ravel()[:count].astype(numpy.float64)
    return torch.tensor((bits >= math.ceil(probability * 2**32)) / (1 - probability)).reshape(shape)


def dropout(x, probability, seed):
    return x * dropout_factors(x.shape, probability, seed).to(x.dtype) if probability else x


def heads_of(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).transpose(1, 2)


def attention_weights(q, k, mask, options):
    return attention_scores(q, k, mask, options).detach()


def attention_scores(q, k, mask, options):
    (lengths, causal, *bias), heads = mask, options["heads"]
    scores = options["scale"] * (heads_of(q, heads) @ heads_of(k, heads).transpose(-2, -1))
    queries, keys = scores.shape[-2:]
    hidden = torch.zeros(len(q), 1, queries, keys, dtype=torch.bool)
    if len(lengths):
        hidden = hidden | (torch.arange(keys) >= lengths[:, None, None, None])
    if causal:
        hidden = hidden | torch.ones(queries, keys).triu(keys - queries + 1).bool()
    if bias:
        hidden = hidden | (bias[0] == -INFINITY)
        scores = scores + bias[0].masked_fill(bias[0] == -INFINITY, 0)
    none = hidden.all(-1, keepdim=True)
    weights = scores.masked_fill(hidden, -INFINITY).masked_fill(none, 0).softmax(-1)
    return weights.masked_fill(hidden, 0)


def attention(q, k, v, mask, options, seed):
    weights = attention_scores(q, k, mask, options)
    if options.get("dropout"):
        weights = weights * dropout_factors(weights.mT.shape, options["dropout"], seed).mT.to(weights.dtype)
    return (weights @ heads_of(v, options["heads"])).transpose(1, 2).reshape(q.shape)


def embedding(weight, ids, padding=None):
    return F.embedding(ids, weight, padding_idx=padding)


def layer_norm(x, gain, bias, epsilon):
    return F.layer_norm(x, x.shape[-1:], gain, bias, epsilon)


def rms_norm(x, gain, epsilon):
    return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * gain


def rotary_cos_sin(time, width, first, dtype):
    half = width // 2
    return (first + torch.arange(time).double())[:, None] / 10000**(torch.arange(half).double() / half)


def rotary(x, heads, angles):
    parts = x.reshape(*x.shape[:2], heads, 2, x.shape[2] // heads // 2)
    first, second = parts[..., 0, :], parts[..., 1, :]
    c, s = angles.cos().to(x.dtype)[:, None], angles.sin().to(x.dtype)[:, None]
    return torch.stack([first * c - second * s, first * s + second * c], -2).reshape(x.shape)


def conv1d(x, weight, bias, options):
    return F.conv1d(x.transpose(1, 2), weight, bias, **options).transpose(1, 2)


def recurrent(function, x, weights, lengths, *initial_and_reverse):
    *initial, reverse = initial_and_reverse
    states = 2 if function is torch._VF.lstm else 1
    starts = initial[0] if initial else [x.new_zeros(len(x), weights[1].shape[1])] * states
    rows = []
    for i, sequence in enumerate(x):
        length = int(lengths[i]) if len(lengths) else len(sequence)
        states = sequence.new_zeros(len(sequence), weights[1].shape[1])
        last = [start[i] for start in starts]
        if length:
            real = sequence[:length].flip(0) if reverse else sequence[:length]
            state = [start[None, None] for start in last]
            y, *last = function(real[None], state if len(state) > 1 else state[0], weights, True, 1, 0.0, False, False,
                                True)
            states = torch.cat([y[0].flip(0) if reverse else y[0], states[length:]])
        rows.append(torch.cat([states] + [state.reshape(1, -1) for state in last if initial]))
    rows = rows or [x.new_zeros(x.shape[1] + len(starts) * len(initial), weights[1].shape[1])]
    return torch.stack(rows)[:len(x)] + 0 * x[:0].sum()


def joined(states):
    return states


def rnn(*arguments):
    return recurrent(torch._VF.rnn_tanh, *arguments)


def gru(*arguments):
    return recurrent(torch._VF.gru, *arguments)


def lstm(*arguments):
    return recurrent(torch._VF.lstm, *arguments)


# Losses ---------------------------------------------------------------------------------------------------------------

def cross_entropy(x, targets, options={}):
    shape, x, targets = targets.shape, x.reshape(-1, x.shape[-1]), targets.reshape(-1)
    targets = torch.where(targets == options.get("ignore_index", -1), -1, targets)
    weights = options.get("class_weights")
    weights = None if not isinstance(weights, torch.Tensor) else weights.to(x.dtype)
    counted, reduction = targets[targets >= 0], options.get("reduction", "mean")
    if not len(counted) or (reduction == "mean" and weights is not None and not weights[counted].sum()):
        zero = 0 * torch.where(x.isfinite(), x, torch.zeros_like(x)).sum()
        return zero.expand(shape) if reduction == "none" else zero
    y = F.cross_entropy(x, targets, weights, ignore_index=-1, label_smoothing=options.get("label_smoothing", 0),
                        reduction=reduction)
    return y.reshape(shape) if reduction == "none" else y


def reduced(loss):
    def call(x, targets, reduction=Reduction.mean, pos_weight=None):
        options = {} if pos_weight is None else {"pos_weight": pos_weight.detach()}
        return loss(x, targets, reduction="sum" if not x.numel() and reduction == "mean" else reduction, **options)
    return call


binary_cross_entropy = reduced(F.binary_cross_entropy)
binary_cross_entropy_with_logits = reduced(F.binary_cross_entropy_with_logits)
mean_squared_error = reduced(F.mse_loss)
