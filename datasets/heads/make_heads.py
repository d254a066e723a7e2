#!/usr/bin/env python3
"""Writes train.tsv, valid.tsv and test.tsv beside this file; running it again gives the same bytes.

Two things change hands, between two men and two women. The label of a thing says who gives it and who gets it,
`man-woman` and so on: two relations that start at one word and end at words of the same sort. The four sentences of a
group exchange the people: the same words, and every label for either thing.
"""
import itertools
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from data_files import ENDS, SPLITS, places, split, write  # noqa: E402

MEN = ["adam", "boris", "carlos", "david", "erik", "felix", "george", "henry", "ivan", "jack"]
WOMEN = ["anna", "bella", "clara", "diana", "emma", "fiona", "grace", "helen", "irene", "julia"]
THINGS = ["ball", "book", "coin", "key", "lamp", "pen", "ring", "rope", "hat", "map", "cup", "bell"]
HANDING = ["{giver} gives {getter} the {thing}", "{giver} gives the {thing} to {getter}",
           "{getter} gets the {thing} from {giver}", "from {giver} {getter} gets the {thing}",
           "the {thing} goes from {giver} to {getter}", "to {getter} goes the {thing} from {giver}"]
JOINED = ["{first} and {second}", "{first} while {second}", "{first} but {second}"]
LABELS = [("man", "man"), ("man", "woman"), ("woman", "man"), ("woman", "woman")]  # giver and getter
SIZES = {"train": 300, "valid": 25, "test": 75}  # groups of four sentences, each with two lines


def group(source, men, women):
    """The lines of four sentences: for each label, the first thing has it and the second has the opposite one."""
    things = source.sample(THINGS, 2)
    clauses = source.choices(HANDING, k=2)
    joined = source.choice(JOINED) + source.choice(ENDS)
    for label in LABELS:
        opposite = tuple("woman" if sex == "man" else "man" for sex in label)
        people = {"man": source.sample(men, 2), "woman": source.sample(women, 2)}
        first, second = (clause.format(giver=people[sexes[0]].pop(), getter=people[sexes[1]].pop(), thing=thing)
                         for clause, sexes, thing in zip(clauses, (label, opposite), things))
        sentence = joined.format(first=first, second=second)
        for thing, sexes in zip(things, (label, opposite)):
            yield f"{'-'.join(sexes)}\t{places(sentence, thing)[0]}\t{sentence}"


def files():
    source = random.Random(1)
    men, women = (split(source, itertools.combinations(names, 2)) for names in (MEN, WOMEN))
    result = {}
    for name in SPLITS:
        lines = []
        for _ in range(SIZES[name]):
            lines += group(source, source.choice(men[name]), source.choice(women[name]))
        source.shuffle(lines)
        result[f"{name}.tsv"] = lines
    return result


if __name__ == "__main__":
    write(__file__, files())
