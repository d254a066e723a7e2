"""Dropout (Srivastava et al. 2014) in a model of python/qkv.py, by the draws of a chunk in the program's order.

The model's attribute `draws` is the stream of the chunk that it computes; None, as in evaluation, drops nothing.
"""
import math

import torch

from program import qkv


def with_dropout(model, probability):
    """Adds dropout to the model's inputs, attention weights and sub-layers."""
    model.draws = None
    drop = Dropout(model, probability)
    if model.kind == "convolution":
        for layer in model.convolution.layers:
            layer.register_forward_pre_hook(lambda _, inputs: drop(inputs[0]))
    elif model.kind == "feed-forward":
        model.feed_forward.register_forward_pre_hook(lambda _, inputs: drop(inputs[0]))
    elif model.kind != "static":
        model._embedded = after(model._embedded, drop)
    for module in model.modules():
        if isinstance(module, qkv.Attention):
            module.weights = after(module.weights, drop.of_weights)
        if isinstance(module, qkv.Block) and not module.free:
            module._with_residual = residual(module._with_residual, drop)
    return model


def after(function, drop):
    return lambda *arguments: drop(function(*arguments))


def residual(function, drop):
    return lambda x, norm, sublayer: function(x, norm, lambda h: drop(sublayer(h)))


class Dropout:
    def __init__(self, model, probability):
        self.model, self.probability = model, probability

    def __call__(self, x):
        return x * self.mask(x.shape).to(x) if self.model.draws else x

    def of_weights(self, weights):
        """Attention weights [batch, head, query, key], which the program keeps by key and query."""
        return weights * self.mask(weights.mT.shape).mT.to(weights) if self.model.draws else weights

    def mask(self, shape):
        draws = self.model.draws.next()
        if not self.probability:
            return torch.ones(shape)
        least = min(math.ceil(self.probability * 2**32), 2**32 - 1)
        kept = torch.from_numpy(draws.bits(shape.numel()) >= least)
        return kept.reshape(shape).double() / (1 - self.probability)
