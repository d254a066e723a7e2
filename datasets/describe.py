#!/usr/bin/env python3
"""What the written sentences of some data sets are like, as Markdown tables: their number, authors and words, how much of
each split training knows, and what repeats. Standard library only.

Usage: datasets/describe.py FOLDER...        such as datasets/bank datasets/apple
"""
import collections
import csv
import pathlib
import re
import sys

COMMON = 150  # words that make up a frame: grammar and the most frequent others


def rows_of(file):
    with open(file, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def words_of(sentence):
    return re.findall(r"[^\W_]+(?:['’][^\W_]+)*", sentence.lower())


def splits_of(folder):
    """split -> its rows, each with its `words`."""
    splits = {file.stem: rows_of(file) for file in sorted(pathlib.Path(folder).glob("*.tsv"))}
    for row in (row for rows in splits.values() for row in rows):
        row["words"] = words_of(row["sentence"])
    return splits


def ngrams(rows, n):
    return [tuple(row["words"][i:i + n]) for row in rows for i in range(len(row["words"]) - n + 1)]


def frames(rows):
    """How often each frame occurs, a sentence of four words or more with its less common words left open."""
    counts = collections.Counter(word for row in rows for word in row["words"])
    common = {word for word, _ in counts.most_common(COMMON)}
    return collections.Counter(" ".join(word if word in common else "_" for word in row["words"])
                               for row in rows if len(row["words"]) >= 4)


def percent(part, whole):
    return f"{100 * part / max(whole, 1):.1f} %"


def known(items, training):
    return percent(sum(item in training for item in items), len(items))


def split_row(name, rows, training):
    labels = collections.Counter(row["label"] for row in rows)
    cells = [name, len(rows), len({row["author"] for row in rows}), " / ".join(map(str, (labels[l] for l in sorted(labels)))),
             percent(sum(row["mixed"] == "yes" for row in rows), len(rows)),
             sum(len(row["words"]) for row in rows), len({word for row in rows for word in row["words"]})]
    others = rows if rows is not training else None
    cells += ["-" if others is None else known(ngrams(others, n), set(ngrams(training, n))) for n in (1, 2, 3, 5)]
    return cells


def describe(folder):
    splits = splits_of(folder)
    rows = [row for split in splits.values() for row in split]
    labels = " / ".join(sorted({row["label"] for row in rows}))
    head = ["split", "sentences", "authors", labels, "mixed", "words", "different", *(f"{n}-grams in train" for n in (1, 2, 3, 5))]
    print(f"## {pathlib.Path(folder).name}\n\n| " + " | ".join(head) + " |\n|---" + "|---:" * (len(head) - 1) + "|")
    for name in sorted(splits, key=lambda name: -len(splits[name])):
        print("| " + " | ".join(map(str, split_row(name, splits[name], splits["train"]))) + " |")
    met, growth = set(), []
    for i, row in enumerate(splits["train"], 1):
        met.update(row["words"])
        if i % 2000 == 0:
            growth.append(len(met))
    texts = collections.Counter(" ".join(row["words"]) for row in rows)
    print(f"\nDifferent words after each 2000 sentences of train: {', '.join(map(str, growth))}."
          f" Sentences that occur twice: {sum(n > 1 for n in texts.values())}."
          f" The most frequent frame occurs {max(frames(rows).values())} times.\n")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    for argument in sys.argv[1:]:
        describe(argument)
