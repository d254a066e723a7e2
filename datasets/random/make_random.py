#!/usr/bin/env python3
"""Random characters, with line ends and two reserved tokens as many as Shakespeare's plays have, for measuring speed."""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from data_files import write  # noqa: E402

LINES, LENGTH = 1024, 63
CHARACTERS = [chr(code) for code in range(ord("!"), ord("!") + 62)]


def files():
    source = random.Random(1)
    return {"text.txt": ["".join(source.choices(CHARACTERS, k=LENGTH)) for _ in range(LINES)]}


if __name__ == "__main__":
    write(__file__, files())
