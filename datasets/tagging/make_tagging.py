#!/usr/bin/env python3
"""Writes train.conll, valid.conll and test.conll beside this file; running it again gives the same bytes.

Every name is a person's as often as a place's, so the word alone does not say which: the words around it do.
"""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from data_files import ENDS, SPLITS, write  # noqa: E402

NAMES = ["jordan", "paris", "florence", "chelsea", "sydney", "austin", "georgia", "charlotte", "lincoln", "victoria",
         "madison", "carson", "dallas", "savannah", "verona", "troy"]
SURNAMES = ["miller", "baker", "weaver", "potter"]
PREFIXES = ["port", "new", "lake", "upper"]
SENTENCES = [  # p: a person, l: a place
    "p lives in l", "in l lives p", "l is where p lives", "p wrote to p from l", "from l p wrote to p",
    "the mayor of l thanked p", "p thanked the mayor of l", "we flew over l with p", "with p we flew over l",
    "p and p moved from l to l", "did p like l", "l , says p , is far away", "p , says p , is far from l",
    "nobody in l knows p", "nobody knows p in l", "the road to l is long , p told p", "p told p that l is small",
    "p took the night train to l", "the night train to l was late and p missed it"]
SIZES = {"train": 1200, "valid": 150, "test": 300}


def name(source, kind):
    """The words and labels of a person or place."""
    words = [source.choice(NAMES)]
    if source.random() < 0.3:
        words = words + [source.choice(SURNAMES)] if kind == "p" else [source.choice(PREFIXES)] + words
    label = {"p": "PER", "l": "LOC"}[kind]
    return [(word, ("I-" if i else "B-") + label) for i, word in enumerate(words)]


def sentence(source):
    tokens = []
    for word in (source.choice(SENTENCES) + source.choice(ENDS)).split():
        tokens += name(source, word) if word in ("p", "l") else [(word, "O")]
    return tuple(tokens)


def files():
    source = random.Random("tagging")
    seen = set()
    result = {}
    for split in SPLITS:
        lines = result[f"{split}.conll"] = []
        for _ in range(SIZES[split]):
            tokens = sentence(source)
            while tokens in seen:
                tokens = sentence(source)
            seen.add(tokens)
            lines += [f"{word} {label}" for word, label in tokens] + [""]
    return result


if __name__ == "__main__":
    write(__file__, files())
