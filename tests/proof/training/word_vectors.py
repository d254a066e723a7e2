"""Static embeddings: skip-gram and CBOW with negative samples (Mikolov et al. 2013), GloVe (Pennington et al. 2014)."""
import math
from collections import Counter

import numpy
import torch
from torch.nn import functional as F

from streams import evaluation_random
from task import Task, lines_of


class WordVectors(Task):
    """An example is (line, position), of GloVe (word, neighbour, count)."""

    def read(self, folder):
        self.glove = self.config["task.objective"] == "glove"
        lines = {split: [self.known(line) for line in lines_of(folder / f"{split}.txt")]
                 for split in ("train", "valid", "test")}
        counts = Counter(word for line in map(self.encoded, lines_of(folder / "train.txt")) for word in line)
        frequencies = numpy.array([counts[i] if i > 1 else 0 for i in range(len(self.ids))], float)**0.75
        self.cumulative = numpy.cumsum(frequencies)
        of_lines = self.co_occurrences if self.glove else self.places
        return {split: of_lines([line for line in found if len(line) > 1]) for split, found in lines.items()}

    def known(self, line):
        return [word for word in self.encoded(line) if word != 1]

    def places(self, lines):
        return [(line, position) for line in lines for position in range(len(line))]

    def co_occurrences(self, lines):
        """The words of a pair count by the inverse of their distance, up to the window."""
        counts = Counter()
        for line in lines:
            for i, word in enumerate(line):
                for j, neighbour in enumerate(line):
                    if 0 < abs(i - j) <= self.config["task.window"]:
                        counts[word, neighbour] += 1 / abs(i - j)
        return [(*pair, count) for pair, count in sorted(counts.items())]

    def tokens(self, example):
        return 1

    def samples(self, line, position, random):
        """(words read, word to predict, negative samples) of the words in a window of random reach."""
        reach = 1 + random.bit(0) % self.config["task.window"]
        near = [line[i] for i in range(max(position - reach, 0), min(position + reach + 1, len(line))) if i != position]
        is_cbow = self.config["task.objective"] == "cbow"
        pairs = [(near, line[position])] if is_cbow else [([line[position]], word) for word in near]
        count = self.config["task.negatives"]
        for i, (words, target) in enumerate(pairs):
            yield words, target, [self.negative(target, random.uniform(1 + count * i + j)) for j in range(count)]

    def window(self, line, position):
        """Where the word stands in its widest window, and the words of this."""
        reach = self.config["task.window"]
        begin = max(position - reach, 0)
        return [position - begin, *line[begin:position + reach + 1]]

    def negative(self, target, uniform):
        """A word other than the target, by its frequency to the power of 3/4."""
        before = self.cumulative[target - 1]
        weight = self.cumulative[target] - before
        at = uniform * (self.cumulative[-1] - weight)
        return int(numpy.searchsorted(self.cumulative, at if at < before else at + weight, side="right"))

    def scores(self, model, examples, draws):
        """Products of vectors, of the target first; of GloVe with both biases, and as targets the counts."""
        table, output = model.embedding.weight, model.head.weight
        if self.glove:
            words, neighbours = (torch.tensor([example[i] for example in examples]) for i in range(2))
            products = (table[words] * output[neighbours]).sum(-1)
            return products + model.head.bias[words] + model.head.bias[neighbours], torch.tensor([e[2] for e in examples])
        drawn = [sample for example in examples
                 for sample in self.samples(*example, draws.next() if draws else evaluation_random(self.window(*example)))]
        read = torch.stack([table[words].mean(0) for words, _, _ in drawn])
        choices = output[torch.tensor([[target, *negatives] for _, target, negatives in drawn])]
        return (choices @ read[..., None])[..., 0], torch.zeros(len(drawn), dtype=torch.long)

    def loss(self, scores, targets, training):
        if self.glove:
            weights = (targets / 100).pow(0.75).clamp(max=1)
            return (weights * (scores - targets.log())**2).mean()
        return -(F.logsigmoid(scores[:, 0]) + F.logsigmoid(-scores[:, 1:]).sum(1)).mean()

    def compared(self, scores):
        return (scores, scores + 1) if self.glove else (scores[:, 0], scores[:, 1:].amax(1))

    def metrics(self, scores, targets, loss):
        return {"error": math.sqrt(loss)} if self.glove else super().metrics(scores, targets, loss)
