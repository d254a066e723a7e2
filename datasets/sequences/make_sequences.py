#!/usr/bin/env python3
"""Writes a folder of train.tsv, valid.tsv and test.tsv for each task beside this file; the same bytes on every run.

copy, reverse and sort are translations of a sequence of letters. induction asks for the letter that followed the last
one when that stood there before. modular-addition has every pair of numbers once.
"""
import itertools
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from data_files import SPLITS, split, write  # noqa: E402

LETTERS = "abcdefghijkl"
LENGTHS = range(3, 9)
REORDERED = {"copy": list, "reverse": lambda letters: letters[::-1], "sort": sorted}
SIZES = {"train": 1500, "valid": 100, "test": 200}
RUNS = range(2, 11)  # letters before the one that induction asks about
INDUCTION_SIZES = {"train": 4000, "valid": 200, "test": 400}
MODULUS = 23


def distinct(source, make, sizes):
    """For each split as many different results of `make` as `sizes` says, none in two splits."""
    seen = {}
    while len(seen) < sum(sizes.values()):
        seen[make(source)] = True
    lines = iter(seen)
    return {name: list(itertools.islice(lines, count)) for name, count in sizes.items()}


def reordered(reorder):
    def make(source):
        letters = source.choices(LETTERS, k=source.choice(LENGTHS))
        return f"{' '.join(letters)}\t{' '.join(reorder(letters))}"
    return make


def induction(source):
    """label<TAB>index<TAB>sequence: the last letter stood there once before, and the label followed it."""
    letters = source.sample(LETTERS, source.choice(RUNS))
    where = source.randrange(len(letters) - 1)
    return f"{letters[where + 1]}\t{len(letters)}\t{' '.join(letters)} {letters[where]}"


def addition(a, b):
    return f"{(a + b) % MODULUS}\t{a} + {b}"


def files():
    source = random.Random(1)
    tasks = {task: distinct(source, reordered(reorder), SIZES) for task, reorder in REORDERED.items()}
    tasks["induction"] = distinct(source, induction, INDUCTION_SIZES)
    pairs = split(source, itertools.product(range(MODULUS), repeat=2))
    tasks["modular-addition"] = {name: [addition(*pair) for pair in pairs[name]] for name in SPLITS}
    return {f"{task}/{name}.tsv": parts[name] for task, parts in tasks.items() for name in SPLITS}


if __name__ == "__main__":
    write(__file__, files())
