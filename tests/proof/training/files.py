"""Random data files of a config's task."""
import random

import bert

LABELS = ("a", "b", "c")
TAGS = ("O", "B-X", "I-X", "B-Y")
STEMS = ("ab", "wxyz", "stones")
OVERFLOW = "3e38"  # twice as much is beyond float32
VALID, TEST = 70, 30  # examples; more than are evaluated at once
TRANSLATIONS = 12     # of either, as to write them takes long


def write_files(folder, config):
    """Writes the files that `paths` names."""
    writer = Writer(config)
    for split, count in (("train", config["data.examples"]), ("valid", VALID), ("test", TEST)):
        if split != "train" and config["task.kind"] == "translate":
            count = TRANSLATIONS
        lines = [writer.example() for _ in range(count)]
        if split == "train" and config["train.on_divergence"] == "skip":
            lines[::5] = [writer.overflowing() for _ in lines[::5]]
        (folder / f"{split}.txt").write_text(writer.text(lines))
    if config["train.on_divergence"] == "skip":
        (folder / "vectors.txt").write_text(writer.vectors())
    if config["train.init"] == "bert":
        bert.write_bert(folder / "bert", writer.words)


class Writer:
    def __init__(self, config):
        self.config, self.random = config, random.Random(config["data.seed"])
        self.words = [f"{STEMS[i % 3]}{i}" for i in range(config["data.words"])]
        self.labels = 0

    def example(self):
        """One example as the task's files have it."""
        return getattr(self, self.config["task.kind"].replace("-", "_"))()

    def text(self, examples):
        if self.config["task.kind"] == "language-model":
            return "".join(examples)[:-1] + "\n"
        return "".join(example + "\n" for example in examples)

    def sentence(self, shortest=1):
        count = self.random.randint(shortest, self.config["data.longest"])
        return self.random.choices(self.words, k=count)

    def label(self):
        """Unequally frequent; the first examples have one of each."""
        self.labels += 1
        return LABELS[self.labels - 1] if self.labels <= len(LABELS) else self.random.choices(LABELS, (6, 3, 1))[0]

    def classify(self):
        words = self.sentence()
        text = "".join(word[0] for word in words) if self.config["task.tokenizer"] == "char" else " ".join(words)
        return f"{self.label()}\t{text}"

    def word_sense(self):
        words = self.sentence()
        return f"{self.label()}\t{self.random.randrange(len(words))}\t{' '.join(words)}"

    def overflowing(self):
        """An example whose vectors sum to infinity."""
        return f"{self.label()}\thuge huge huge"

    def coreference(self):
        words = self.sentence(2)
        antecedent, index = self.random.sample(range(len(words)), 2)
        return f"{antecedent}\t{index}\t{' '.join(words)}"

    def translate(self):
        words = self.sentence()
        return f"{' '.join(words)}\t{' '.join('v' + word for word in words[1:] or words)}"

    def tagging(self):
        return "".join(f"{word} {self.random.choice(TAGS)}\n" for word in self.sentence())

    def masked_language_model(self):
        return " ".join(self.sentence())

    def static_embedding(self):
        return " ".join(self.sentence())

    def language_model(self):
        """Four characters, so that all examples are one text."""
        letters = "abcdefghijklmnop"[:max(self.config["data.words"] // 3, 2)]
        return "".join(self.random.choices(letters + " ", k=3)) + self.random.choice(letters)

    def vectors(self):
        """A table of initial embeddings, with a word whose sums overflow."""
        rows = {word: [self.random.gauss(0, 0.5) for _ in range(self.config["model.width"])] for word in self.words}
        lines = [f"{word} {' '.join(f'{value:.4f}' for value in row)}" for word, row in rows.items()]
        return "\n".join([*lines, "huge" + f" {OVERFLOW}" * self.config["model.width"]]) + "\n"
