"""PyTorch's counterparts of the layers and optimizers whose random cases qkv_fuzz draws.

A layer is a function of inputs and of parameters in the order in which the layer names them.
"""
import pathlib
import sys

import torch
from torch.nn import functional as F

from torch_ops import attention, gelu, gru, linear, lstm, rms_norm, rnn, rotary, rotary_cos_sin, rows_below, silu

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from muon import Muon


class NormKind:
    pre, post = "pre", "post"


class AttentionKind:
    learned, parameter_free, uniform = "learned", "parameter_free", "uniform"


class PositionKind:
    rotary, none = "rotary", "none"


class ActivationKind:
    gelu_tanh, relu, relu_squared = gelu, F.relu, lambda x: F.relu(x).square()


class CellKind:
    rnn, gru, lstm = "rnn", "gru", "lstm"


def Linear(inputs, parameters):
    return linear(*inputs, *parameters)


def LayerNorm(inputs, parameters):
    return F.layer_norm(*inputs, inputs[0].shape[-1:], *parameters)


def RmsNorm(inputs, parameters):
    return rms_norm(*inputs, *parameters, 1e-5)


def SwiGlu(inputs, parameters):
    third = len(parameters) // 3
    w_1, w_2, w_3 = (parameters[i * third:(i + 1) * third] for i in range(3))
    return Linear([silu(Linear(inputs, w_1)) * Linear(inputs, w_3)], w_2)


def FeedForward(inputs, parameters, activation):
    half = len(parameters) // 2
    return linear(activation(Linear(inputs, parameters[:half])), *parameters[half:])


def MultiHeadAttention(inputs, parameters, mask, options, cross=False):
    kind, count = options["attention"], 2 if options["bias"] else 1
    query, memory = inputs
    heads = 1 if kind == "parameter_free" else options["heads"]
    part = options["width"] // heads
    rest = list(parameters)

    def projected(x, learned, turns):
        y = x
        if learned:
            y = linear(x, *rest[:count])
            del rest[:count]
        own = y.shape[-1] // part
        if turns and not cross and options["position"] == "rotary":
            y = rotary(y, own, rotary_cos_sin(y.shape[1], part, 0, y.dtype))
        return y.unflatten(-1, (own, part)).repeat_interleave(heads // own, 2).flatten(2)

    q = projected(query, kind == "learned", True)
    k = projected(memory, kind == "learned", True)
    v = projected(memory, kind != "parameter_free", False)
    scale = 0 if kind == "uniform" else part**-0.5 if options["scale"] else 1
    return projected(attention(q, k, v, mask, {"heads": heads, "scale": scale}, 0), kind != "parameter_free", False)


def TransformerBlock(inputs, parameters, mask, options, memory_lengths):
    (x, *memory), pre, rest = inputs, options["norm"] == "pre", list(parameters)
    if options["attention"] == "parameter_free":
        return MultiHeadAttention([x, x], parameters, mask, options)
    count = 2 if options["bias"] else 1

    def added(x, part, linears):
        norm, own = rest[:count], rest[count:(linears + 1) * count]
        del rest[:(linears + 1) * count]
        y = x + part(LayerNorm([x], norm) if pre else x, own)
        return y if pre else LayerNorm([y], norm)

    projections = 4 if options["attention"] == "learned" else 2
    x = added(x, lambda h, own: MultiHeadAttention([h, h], own, mask, options), projections)
    for m in memory:
        x = added(x, lambda h, own: MultiHeadAttention([h, m], own, [memory_lengths, False], options, True), projections)
    return added(x, lambda h, own: FeedForward([h], own, gelu), 2) if rest else x


def Recurrent(inputs, parameters, lengths, options):
    (x, ), cell = inputs, {"rnn": rnn, "gru": gru, "lstm": lstm}[options["cell"]]
    directions = [False, True] if options["bidirectional"] else [False]
    rest = list(parameters)
    for _ in range(options["layers"]):
        parts = []
        for reverse in directions:
            parts.append(cell(x, rest[:4], lengths, reverse))
            del rest[:4]
        x = torch.cat(parts, -1)
    return x


def ConvolutionLayer(inputs, parameters, lengths):
    x, = inputs
    if len(lengths):
        x = x * rows_below(lengths, x).to(x.dtype)
    x = x.transpose(1, 2)
    parts = []
    for weight, bias in zip(parameters[::2], parameters[1::2]):
        reach = weight.shape[2]
        parts.append(F.conv1d(F.pad(x, ((reach - 1) // 2, reach // 2)), weight, bias).relu())
    return torch.cat(parts, 1).transpose(1, 2)


# Optimizers -----------------------------------------------------------------------------------------------------------

class OptimizerKind:
    sgd, adam, adamw, rmsprop, adagrad, muon = "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Muon"


def stepped(value, gradients, options):
    names = {"SGD": {"momentum", "nesterov"}, "Adam": {"amsgrad", "eps"}, "AdamW": {"amsgrad", "eps"},
             "RMSprop": {"momentum", "eps"}, "Adagrad": {"eps"}, "Muon": {"amsgrad", "eps"}}[options["kind"]]
    given = {"lr": options["lr"], "weight_decay": options["weight_decay"]}
    given.update({name: options["epsilon" if name == "eps" else name] for name in names})
    if options["kind"] in ("Adam", "AdamW", "Muon"):
        given["betas"] = (options["beta1"], options["beta2"])
    if options["kind"] == "RMSprop":
        given["alpha"] = options["beta2"]
    parameter = value.detach().clone().requires_grad_()
    optimizer = (Muon if options["kind"] == "Muon" else getattr(torch.optim, options["kind"]))([parameter], **given)
    for gradient in gradients.detach().split(len(value)):
        parameter.grad = gradient.clone()
        optimizer.step()
    return parameter.detach()
