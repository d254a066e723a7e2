"""Tasks about a sentence or one of its words: classify, word-sense, coreference, tagging."""
import math

import torch
from torch.nn import functional as F

from task import Task, lines_of, macro_f1, padded, split_lines


class OneAnswer(Task):
    """An example is (ids, index of the word that is asked about or -1, answer)."""

    def read(self, folder):
        found = {split: [self.example(line) for line in lines]
                 for split, lines in split_lines(self.config, folder, lines_of).items()}
        self.keep_labels_in_training(found)
        labels = [answer for _, _, answer in found["train"]]
        counts = [max(labels.count(i), 1) for i in range(len(self.vocabulary.get("labels", [])))]
        self.weights = torch.tensor([1 / n for n in counts]) if self.config["task.class_weights"] == "balanced" else None
        self.drops = self.drop_probabilities(found["train"])
        return {split: [example for example in examples if example[2] is not None] for split, examples in found.items()}

    def keep_labels_in_training(self, found):
        """Examples that a fraction of the file has drawn train where no training example has their label."""
        known = {answer for _, _, answer in found["train"]}
        if self.config["task.valid_share"] is not None:
            found["train"] += [example for example in found["valid"] if example[2] not in known]
            found["valid"] = [example for example in found["valid"] if example[2] in known]

    def example(self, line):
        *answer, text = line.split("\t")
        label, index = answer[0], int(answer[1]) if len(answer) > 1 else -1
        ids, begin = self.cropped(self.encoded(text), index)
        if self.config["train.init"] == "bert":
            ids, begin = [self.ids["[CLS]"], *ids, self.ids["[SEP]"]], -1
        if self.config["task.kind"] != "coreference":
            return ids, index - begin if index >= 0 else -1, self.vocabulary["labels"].index(label)
        antecedent = int(label) - begin
        return ids, index - begin, antecedent if 0 <= antecedent < len(ids) else None

    def cropped(self, ids, index):
        """The part of a long sentence around the word, and how many tokens are left out before."""
        longest = self.config["model.max_length"]
        begin = min(max(index - longest // 2, 0), max(len(ids) - longest, 0)) if index >= 0 else 0
        return ids[begin:begin + longest], begin

    def tokens(self, example):
        return len(example[0])

    def drop_probabilities(self, examples):
        """a / (a + n) for each token of frequency n in the training data; special tokens are no words."""
        a = self.config["task.word_dropout"]
        counts = [0] * len(self.ids)
        for ids, _, _ in examples:
            for i in ids:
                counts[i] += 1
        special = [self.ids.get(token) for token in ("[CLS]", "[SEP]", "[PAD]")]
        return [0 if i == 0 or i in special or not a else a / (a + n) for i, n in enumerate(counts)]

    def with_word_dropout(self, ids, indices, random):
        """Each word but the one that is asked about is read as if it were not listed, with its probability."""
        for b, row in enumerate(ids):
            for t, token in enumerate(row.tolist()):
                if t != indices[b] and random.uniform(b * len(row) + t) < self.drops[token]:
                    row[t] = 1

    def scores(self, model, examples, draws):
        ids, lengths = padded([ids for ids, _, _ in examples])
        indices = [index for _, index, _ in examples]
        if draws and self.config["task.word_dropout"]:
            self.with_word_dropout(ids, indices, draws.next())
        model.draws = draws
        return model(ids, lengths, None if indices[0] < 0 else indices), torch.tensor([answer for _, _, answer in examples])

    def joined(self, parts):
        longest = max(scores.shape[1] for scores, _ in parts)
        return super().joined([(F.pad(scores, (0, longest - scores.shape[1]), value=-math.inf), targets)
                               for scores, targets in parts])

    def loss(self, scores, targets, training):
        """In training sum(w l) / sum(w) with the weights of the labels."""
        if not training:
            return F.cross_entropy(scores, targets)
        weights = None if self.weights is None else self.weights.to(scores)
        return F.cross_entropy(scores, targets, weights, label_smoothing=self.config["task.label_smoothing"])

    def metrics(self, scores, targets, loss):
        of_labels = {"macro_f1": macro_f1(scores, targets)} if self.config["task.kind"] != "coreference" else {}
        return super().metrics(scores, targets, loss) | of_labels


class Tagging(Task):
    """An example is (ids, labels)."""

    def read(self, folder):
        return {split: [self.example(block) for block in (folder / f"{split}.txt").read_text().strip().split("\n\n")]
                for split in ("train", "valid", "test")}

    def example(self, block):
        longest = self.config["model.max_length"]
        words, labels = zip(*(line.split() for line in block.splitlines()))
        return [self.id(word) for word in words][:longest], [self.vocabulary["labels"].index(l) for l in labels][:longest]

    def tokens(self, example):
        return len(example[0])

    def scores(self, model, examples, draws):
        ids, lengths = padded([ids for ids, _ in examples])
        model.draws = draws
        rows = torch.arange(ids.shape[1]) < lengths[:, None]
        return model(ids, lengths)[rows], padded([labels for _, labels in examples])[0][rows]

    def metrics(self, scores, targets, loss):
        found = super().metrics(scores, targets, loss) | {"macro_f1": macro_f1(scores, targets)}
        lengths = [len(labels) for _, labels in self.evaluates]
        given, chosen = (self.spans(labels.split(lengths)) for labels in (targets, scores.argmax(-1)))
        return found | {"span_f1": 2 * len(given & chosen) / max(len(given) + len(chosen), 1)}

    def evaluated(self, model, split):
        self.evaluates = self.examples[split]
        return super().evaluated(model, split)

    def spans(self, sentences):
        """{(sentence, first, last, type)} of B- and I- labels, as conlleval finds them."""
        found = set()
        for number, labels in enumerate(sentences):
            begin = 0
            names = [self.vocabulary["labels"][label] for label in labels] + ["O"]
            for i, name in enumerate(names):
                before = names[i - 1] if i else "O"
                if name[0] == "I" and before[1:] == name[1:]:
                    continue
                if before != "O":
                    found.add((number, begin, i, before[2:]))
                begin = i
        return found
