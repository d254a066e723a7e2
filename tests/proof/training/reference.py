"""Trains a config in PyTorch, from the program's first parameters."""
import fractions
import math
from typing import NamedTuple

import torch

from dropout import with_dropout
from program import qkv
from sentences import OneAnswer, Tagging
from streams import chunk_random, chunks, micro_batch
from texts import LanguageModel, MaskedLanguageModel, Translation
from updates import Average, clip, learning_rate, make_optimizer
from word_vectors import WordVectors

TASKS = {"tagging": Tagging, "language-model": LanguageModel, "masked-language-model": MaskedLanguageModel,
         "translate": Translation, "static-embedding": WordVectors}
EXPLODED, GROWTH = 1e9, 1000  # a loss is beyond both: the first, and that many times the first loss
OVERFLOW = 1e30  # a score whose sums or squares float32 does not have


class Undecided(Exception):
    """A loss and gradients that float32 has, from scores whose sums it may lack: whether an update is left out depends on how
    the sums are taken."""


class Evaluated(NamedTuple):
    """After a step."""
    train: dict       # {"loss": mean since the last evaluation, "learning_rate": ..., "gradient_norm": ...}
    valid: dict       # {"loss": ..., metric: ...}
    test: dict
    parameters: dict


class Reference:
    """The training of a config; `start` is a checkpoint of the first parameters."""

    def __init__(self, config, folder, start, dtype=torch.float64):
        self.config = config
        self.task = TASKS.get(config["task.kind"], OneAnswer)(config, start.vocabulary, folder)
        self.model = self.model_of(start).to(dtype)
        self.count = sum(value.size for value in start.parameters.values())
        self.live = [(name, p) for name, p in self.model.named_parameters() if not self.is_frozen(name)]
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(not self.is_frozen(name))
        self.optimizer = make_optimizer(config, self.live)
        self.average = Average(config["train.ema"]) if config["train.ema"] else None
        self.steps = self.last_step()
        self.first_loss, self.losses = None, []

    def model_of(self, start):
        """With the options as the config has them, whatever the program wrote."""
        options = start.config["model"] | {key.removeprefix("model."): value for key, value in self.config.items()
                                           if key.startswith("model.")}
        outputs = start.parameters["head.weight"].shape[0] if "head.weight" in start.parameters else None
        model = qkv.Model(options, len(start.parameters["embedding.weight"]), outputs, self.config["task.kind"])
        model.load_state_dict({path: torch.from_numpy(value) for path, value in start.parameters.items()})
        return with_dropout(model, self.config["model.dropout"])

    def moved(self, seed):
        """Starts elsewhere, no further than float32 rounds."""
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.mul_(1 + 2**-24 * (2 * torch.rand(parameter.shape, generator=generator) - 1))
        return self

    def is_frozen(self, name):
        parts = name.rpartition(".")[0]
        return any(parts == part or parts.endswith(f".{part}") for part in self.config["train.freeze"])

    def last_step(self):
        """The last pass may be a part: 1.1 passes over 10 examples are 11."""
        if not self.config["train.epochs"]:
            return self.config["train.steps"]
        examples = fractions.Fraction(str(self.config["train.epochs"])) * len(self.task.examples["train"])
        return max(math.ceil(examples / (self.config["train.batch"] * self.config["train.accumulate"])), 1)

    def train(self, last_step):
        """{step: Evaluated} of each evaluation up to `last_step`, which early stopping may set."""
        every = 1000 if self.config["train.on_divergence"] == "skip" else self.config["train.eval_every"]
        found = {}
        for step in range(last_step):
            statistics = self.step(step)
            if (step + 1) % every == 0 or step + 1 == self.steps:
                found[step + 1] = self.evaluated(statistics)
        return found

    def step(self, step):
        """An update, unless its loss is not finite."""
        loss, scores = self.loss(step)
        self.first_loss = loss.item() if self.first_loss is None else self.first_loss
        statistics = {"learning_rate": learning_rate(self.config, step, self.steps)}
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        gradients = [parameter.grad for _, parameter in self.live if parameter.grad is not None]
        if not self.is_usable(loss.item(), gradients, scores):
            return statistics
        self.losses.append(loss.item())
        norm = clip(self.config, gradients)
        for group in self.optimizer.param_groups:
            group["lr"] = statistics["learning_rate"]
        self.optimizer.step()
        if self.average:
            self.average.update(dict(self.model.named_parameters()))
        return statistics | {"gradient_norm": norm}

    def loss(self, step):
        """The mean over the targets of all micro-batches, whose chunks have draws of their own."""
        size, count = self.config["train.batch"], self.config["train.accumulate"]
        examples = self.task.examples["train"]
        numbers = range(step * count, (step + 1) * count)
        batches = [[examples[i] for i in micro_batch(n, size, len(examples), self.config["seed"])] for n in numbers]
        tokens = sum(self.task.tokens(example) for batch in batches for example in batch) // count
        parts = chunks(size, tokens, self.count)
        bounds = [size * i // parts for i in range(parts + 1)]
        scores, targets = self.task.joined(
            [self.task.scores(self.model, batch[begin:end], chunk_random(self.config["seed"], number * size + begin))
             for number, batch in zip(numbers, batches) for begin, end in zip(bounds, bounds[1:])])
        return self.task.loss(scores, targets, True), scores

    def is_usable(self, loss, gradients, scores):
        limit = max(EXPLODED, GROWTH * self.first_loss if self.first_loss < OVERFLOW else 0)
        if not abs(loss) < limit or any(not gradient.float().isfinite().all() for gradient in gradients):
            return False
        if (scores.detach().abs().nan_to_num(posinf=0) > OVERFLOW).any():
            raise Undecided
        return True

    def evaluated(self, statistics):
        """By the averaged parameters, where there are."""
        own = {name: value.detach().clone() for name, value in self.model.named_parameters()}
        mean = {"loss": sum(self.losses) / len(self.losses)} if self.losses else {}
        self.losses = []
        self.model.load_state_dict(self.average.values if self.average else own)
        self.model.draws = None
        found = Evaluated(statistics | mean, self.task.evaluated(self.model, "valid"), self.task.evaluated(self.model, "test"),
                          {name: value.detach().clone() for name, value in self.model.named_parameters()})
        self.model.load_state_dict(own)
        return found
