"""How a step changes the parameters: clipping, learning rate, update rule, moving average."""
import math
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "support"))
from muon import Muon


def make_optimizer(config, named):
    """Weight decay spares biases, norms, embeddings and positions; Muon leaves these and the output layer to AdamW."""
    groups = []
    for name, parameter in named:
        decays = parameter.dim() >= 2 and not any(part in name for part in ("embedding", "positions", "token_types", "norm"))
        group = {"params": [parameter], "weight_decay": config["optimizer.weight_decay"] if decays else 0}
        if config["optimizer.kind"] == "muon":
            group["hidden"] = decays and not name.startswith("head.")
        groups.append(group)
    kind, lr, epsilon = config["optimizer.kind"], config["optimizer.lr"], config["optimizer.epsilon"]
    betas = config["optimizer.beta1"], config["optimizer.beta2"]
    if kind == "sgd":
        return torch.optim.SGD(groups, lr, momentum=config["optimizer.momentum"], nesterov=config["optimizer.nesterov"])
    if kind == "rmsprop":
        return torch.optim.RMSprop(groups, lr, alpha=betas[1], eps=epsilon, momentum=config["optimizer.momentum"])
    if kind == "adagrad":
        return torch.optim.Adagrad(groups, lr, eps=epsilon)
    rule = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "muon": Muon}[kind]
    return rule(groups, lr, betas=betas, eps=epsilon, amsgrad=config["optimizer.amsgrad"])


def clip(config, gradients):
    """First each element, then the norm of all; returns the norm between."""
    for gradient in gradients:
        if config["train.clip_value"]:
            gradient.clamp_(-config["train.clip_value"], config["train.clip_value"])
    norm = math.sqrt(sum(gradient.double().square().sum().item() for gradient in gradients))
    if 0 < config["train.clip"] < norm:
        for gradient in gradients:
            gradient *= config["train.clip"] / norm
    return norm


def learning_rate(config, step, steps):
    """Of a step, counted from 0 (optim/schedule.h)."""
    lr, kind, warmup, floor = (config[key] for key in ("optimizer.lr", "schedule.kind", "schedule.warmup", "schedule.floor"))

    def half_cosine(begin, end, progress):
        return end + (begin - end) * (1 + math.cos(math.pi * min(progress, 1))) / 2
    if kind == "one-cycle":
        top = max(warmup - 1, 0)
        return lr * (half_cosine(1 / 25, 1, step / top) if step < top else
                     half_cosine(1, floor, (step - top) / max(steps - 1 - top, 1)))
    if step < warmup:
        return lr * (step + 1) / warmup
    progress = min((step - warmup) / max(steps - warmup, 1), 1)
    return lr * {"constant": 1, "linear": floor + (1 - floor) * (1 - progress), "cosine": half_cosine(1, floor, progress),
                 "inverse-sqrt": math.sqrt(max(warmup, 1) / (step + 1))}[kind]


class Average:
    """average = decay average + (1 - decay) value, from the first values on."""

    def __init__(self, decay):
        self.decay, self.values = decay, None

    def update(self, parameters):
        now = {name: value.detach().clone() for name, value in parameters.items()}
        if self.values:
            now = {name: self.decay * self.values[name] + (1 - self.decay) * value for name, value in now.items()}
        self.values = now
