#!/usr/bin/env python3
"""Writes train.tsv, valid.tsv and test.tsv beside this file; running it again gives the same bytes.

A line first names a thing to find and then lists things with their colours, `find-ball red-cube blue-ball green-cube`;
the label is the colour of that thing. Training has 4 to 12 words a line, the test 13 to 24.
"""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from data_files import write  # noqa: E402

COLOURS = ["red", "blue", "green", "white"]
THINGS = ["ball", "cube", "lamp", "ring", "vase", "kite"]
SIZES = {"train": (1600, range(4, 13)), "valid": (160, range(4, 13)), "test": (480, range(13, 25))}


def listing(source, colour, length):
    """A line of `length` words in which exactly one thing is the wanted one, and of that colour."""
    wanted = source.choice(THINGS)
    others = [thing for thing in THINGS if thing != wanted]
    things = [f"{source.choice(COLOURS)}-{source.choice(others)}" for _ in range(length - 2)]
    things.insert(source.randrange(length - 1), f"{colour}-{wanted}")
    return f"{colour}\tfind-{wanted} {' '.join(things)}"


def files():
    source = random.Random(1)
    seen = set()
    result = {}
    for name, (count, lengths) in SIZES.items():
        lines = []
        while len(lines) < count:
            line = listing(source, COLOURS[len(lines) % len(COLOURS)], source.choice(lengths))
            if line not in seen:
                lines.append(line)
                seen.add(line)
        source.shuffle(lines)
        result[f"{name}.tsv"] = lines
    return result


if __name__ == "__main__":
    write(__file__, files())
