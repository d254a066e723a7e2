#!/usr/bin/env python3
"""Writes train-D.tsv, valid-D.tsv and test-D.tsv beside this file for D = 2 to 256; the same bytes on every run.

A colour, a stretch of noise, and a question mark D words behind the colour: the label is the colour.
"""
import pathlib
import random
import string
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from data_files import write  # noqa: E402

DISTANCES = [2, 4, 8, 16, 32, 64, 128, 256]
COLOURS = ["red", "blue", "green", "white", "black", "pink", "grey", "gold"]
NOISE = "abcd"
NOISE_OF_ONE = string.ascii_lowercase + string.digits + "+-*/=%"  # so that D = 2 has lines enough
SIZES = {"train": 160, "valid": 40, "test": 120}


def files():
    source = random.Random(1)
    result = {}
    for distance in DISTANCES:
        seen = set()
        letters = NOISE_OF_ONE if distance == 2 else NOISE
        for name, count in SIZES.items():
            lines = []
            while len(lines) < count:
                colour = COLOURS[len(lines) % len(COLOURS)]
                noise = "".join(f"{letter} " for letter in source.choices(letters, k=distance - 1))
                line = f"{colour}\t{distance}\t{colour} {noise}?"
                if line not in seen:
                    seen.add(line)
                    lines.append(line)
            source.shuffle(lines)
            result[f"{name}-{distance}.tsv"] = lines
    return result


if __name__ == "__main__":
    write(__file__, files())
