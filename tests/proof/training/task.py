"""What the tasks have in common: an example's scores, their mean loss and metrics."""
import torch
from torch.nn import functional as F

from streams import Random

UNCERTAIN = 1e-4  # between the two best scores: rounding may exchange them


def padded(sequences, filler=0):
    """[batch, time] and the lengths."""
    longest = max(map(len, sequences))
    return (torch.tensor([[*sequence, *[filler] * (longest - len(sequence))] for sequence in sequences]),
            torch.tensor([len(sequence) for sequence in sequences]))


def lines_of(path):
    return path.read_text().splitlines()


def split_lines(config, folder, lines):
    """The lines of train, valid and test data: from files, or a fraction drawn from the training file becomes valid."""
    found = {split: lines(folder / f"{split}.txt") for split in ("train", "valid", "test")}
    if config["task.valid_share"] is not None:
        every = found["train"]
        order = Random(config["seed"], "shuffling").permutation(len(every))
        cut = nearest(config["task.valid_share"] * len(every))
        found |= {"valid": [every[i] for i in order[:cut]], "train": [every[i] for i in order[cut:]]}
    return found


def nearest(value):
    """The nearest integer, halves away from 0; 28.999999999999996 is 29."""
    return int(value + 0.5)


class Task:
    """A task of a config: examples of each split, and what a model makes of them.

    examples    {"train" | "valid" | "test": [example, ...]}
    tokens      of an example, as the batch's division into chunks counts them
    scores      (scores, targets) of some examples; `draws` is the stream of their chunk, in evaluation None
    """

    def __init__(self, config, vocabulary, folder):
        self.config, self.vocabulary = config, vocabulary
        self.ids = {token: i for i, token in enumerate(vocabulary["tokens"])}
        self.examples = self.read(folder)

    def id(self, token):
        return self.ids.get(token, 1)

    def encoded(self, text):
        words = list(text) if self.config["task.tokenizer"] == "char" else text.split()
        ngrams = [" ".join(words[i:i + n]) for n in range(2, self.config["task.ngrams"] + 1) for i in range(len(words) - n + 1)]
        return [self.id(token) for token in words + ngrams]

    def joined(self, parts):
        """Scores and targets of several chunks as one."""
        scores, targets = zip(*parts)
        return torch.cat(scores), torch.cat(targets)

    def loss(self, scores, targets, training):
        """The mean over all targets."""
        return F.cross_entropy(scores, targets, ignore_index=-1)

    def metrics(self, scores, targets, loss):
        return {"accuracy": (scores.argmax(-1) == targets).double().mean().item()}

    def compared(self, scores):
        """The two scores of each row that decide a metric."""
        return scores.topk(2).values.unbind(-1)

    def evaluated(self, model, split):
        """{"loss": ..., metric: ...}; without metrics where rounding may decide."""
        with torch.no_grad():
            scores, targets = self.scores(model, self.examples[split], None)
            loss = self.loss(scores, targets, False).item()
        best, others = self.compared(scores)
        if ((best - others).abs() < UNCERTAIN * best.abs().clamp(min=1)).any():
            return {"loss": loss}
        return {"loss": loss, **self.metrics(scores, targets, loss)}


def macro_f1(scores, targets):
    """The mean F1 of the labels that are given or predicted."""
    predicted = scores.argmax(-1)
    found = []
    for label in range(scores.shape[-1]):
        given, chosen = targets == label, predicted == label
        if (given | chosen).any():
            found.append(2 * (given & chosen).sum().item() / (given.sum() + chosen.sum()).item())
    return sum(found) / len(found)
