"""PyTorch's counterparts of the rows of tests/proof/optim.cpp."""
import pathlib
import sys

import torch
from torch.nn import functional as F
from torch.optim import lr_scheduler

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from muon import Muon

LR = 0.1
STEPS = 20  # of a schedule
IDS = torch.tensor([0, 2, 4, 4, 1, 2])

# label -> (optimizer, its options, weight decay of matrices)
OPTIMIZERS = {
    "sgd: plain": (torch.optim.SGD, {}, 0),
    "sgd: weight decay": (torch.optim.SGD, {}, 0.1),
    "sgd: momentum": (torch.optim.SGD, {"momentum": 0.9}, 0),
    "sgd: Nesterov, weight decay": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}, 0.1),
    "adam: plain": (torch.optim.Adam, {}, 0),
    "adam: weight decay": (torch.optim.Adam, {}, 0.1),
    "adamw: weight decay": (torch.optim.AdamW, {}, 0.1),
    "adam: AMSGrad, weight decay": (torch.optim.Adam, {"amsgrad": True}, 0.1),
    "adamw: AMSGrad": (torch.optim.AdamW, {"amsgrad": True}, 0.1),
    "rmsprop: plain": (torch.optim.RMSprop, {"alpha": 0.9}, 0),
    "rmsprop: momentum, weight decay": (torch.optim.RMSprop, {"alpha": 0.9, "momentum": 0.5}, 0.1),
    "adagrad: plain": (torch.optim.Adagrad, {"eps": 1e-8}, 0),
    "adagrad: weight decay": (torch.optim.Adagrad, {"eps": 1e-8}, 0.1),
    "muon: plain": (Muon, {}, 0),
    "muon: weight decay, beta1": (Muon, {"betas": (0.95, 0.999)}, 0.1),
    "clip_norm: sgd": (torch.optim.SGD, {}, 0),
    "clip_value: sgd": (torch.optim.SGD, {}, 0),
    "moving average: adam": (torch.optim.Adam, {}, 0),
    "accumulation: adam": (torch.optim.Adam, {}, 0),
}


def steps(label, p, x, targets, count):
    """The parameters after each of `count` updates."""
    optimizer, options, decay = OPTIMIZERS[label]
    weight, bias, embedding = p["weight"], p["bias"], p["embedding"]
    # Weight decay spares biases and embeddings.
    groups = [{"params": [weight], "weight_decay": decay},
              {"params": [bias, embedding], "weight_decay": 0, **({"hidden": False} if optimizer is Muon else {})}]
    optimizer = optimizer(groups, lr=LR, **options)
    parts = 3 if label.startswith("accumulation") else 1
    average = None
    for _ in range(count):
        optimizer.zero_grad()
        for rows in torch.arange(len(x)).chunk(parts):
            y = F.linear(x[rows], weight, bias) + F.embedding(IDS[rows], embedding)
            (F.mse_loss(y, targets[rows]) / parts).backward()
        if label.startswith("clip_norm"):
            # clip_grad_norm_ adds 1e-6 to the norm, which qkv does not.
            norm = torch.cat([value.grad.ravel() for value in p.values()]).norm()
            for value in p.values():
                value.grad *= 0.5 / max(norm, 0.5)
        if label.startswith("clip_value"):
            torch.nn.utils.clip_grad_value_(list(p.values()), 0.1)
        optimizer.step()
        now = {name: value.detach().clone() for name, value in p.items()}
        if label.startswith("moving average") and average:
            now = {name: 0.8 * average[name] + 0.2 * value for name, value in now.items()}
        average = now
        yield now


def warmed_up(optimizer, after):
    """A linear warm-up over five steps, then another schedule."""
    first = lr_scheduler.LinearLR(optimizer, 1 / 5, 1, total_iters=4)
    return lr_scheduler.SequentialLR(optimizer, [first, after(optimizer)], milestones=[5])


SCHEDULES = {
    "constant: no warm-up": lambda o: lr_scheduler.ConstantLR(o, 1),
    "constant: warm-up": lambda o: warmed_up(o, lambda o: lr_scheduler.ConstantLR(o, 1)),
    "linear: to a floor": lambda o: lr_scheduler.LinearLR(o, 1, 0.1, total_iters=STEPS),
    "linear: warm-up": lambda o: warmed_up(o, lambda o: lr_scheduler.LinearLR(o, 1, 0, total_iters=STEPS - 5)),
    "cosine: to a floor": lambda o: lr_scheduler.CosineAnnealingLR(o, STEPS, 0.1 * LR),
    "cosine: warm-up": lambda o: warmed_up(o, lambda o: lr_scheduler.CosineAnnealingLR(o, STEPS - 5, 0.1 * LR)),
    # Vaswani et al. 2017, 5.3, scaled so that the largest rate is LR
    "inverse_sqrt: warm-up":
        lambda o: lr_scheduler.LambdaLR(o, lambda s: 5**0.5 * min((s + 1)**-0.5, (s + 1) * 5**-1.5)),
    "one_cycle: warm-up":
        lambda o: lr_scheduler.OneCycleLR(o, LR, total_steps=STEPS, pct_start=5 / STEPS, cycle_momentum=False,
                                          div_factor=25, final_div_factor=4),
}


def rates(label):
    """The learning rate of each step."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=LR)
    schedule = SCHEDULES[label](optimizer)
    result = []
    for _ in range(STEPS):
        result.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return torch.tensor(result, dtype=torch.float64)
