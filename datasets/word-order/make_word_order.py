#!/usr/bin/env python3
"""Writes train.tsv, valid.tsv and test.tsv beside this file; running it again gives the same bytes.

Who acts and who suffers? Each sentence stands with its twin, in which the two have changed places: the same words in
another order. Both nouns of both are asked for, so whatever does not know the order is right in exactly half.
"""
import itertools
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from data_files import ENDS, SPLITS, places, split, write  # noqa: E402

NOUNS = ["man", "boy", "woman", "girl", "king", "queen", "nurse", "baker", "clown", "judge", "sailor", "driver",
         "singer", "cook", "guard", "thief"]
VERBS = [("beats", "beaten"), ("sees", "seen"), ("follows", "followed"), ("helps", "helped"), ("pushes", "pushed"),
         ("calls", "called"), ("chases", "chased"), ("carries", "carried"), ("blames", "blamed"),
         ("thanks", "thanked"), ("teaches", "taught"), ("finds", "found")]
FRAMES = ["the {one} {verb} the {other}", "the {other} is {done} by the {one}", "it is the {one} who {verb} the {other}",
          "it is the {other} whom the {one} {verb}", "today the {one} {verb} the {other} again",
          "we know that the {one} {verb} the {other}", "by the {one} the {other} is {done}",
          "the {one} is the one who {verb} the {other}"]
SIZES = {"train": 500, "valid": 40, "test": 100}  # pairs of twins, four lines each


def files():
    source = random.Random(1)
    pairs = split(source, itertools.combinations(NOUNS, 2), [("man", "boy")])
    result = {}
    for name in SPLITS:
        lines = []
        for frame, pair, (verb, done) in source.sample(list(itertools.product(FRAMES, pairs[name], VERBS)), SIZES[name]):
            end = source.choice(ENDS)
            for one, other in (pair, pair[::-1]):
                sentence = frame.format(one=one, other=other, verb=verb, done=done) + end
                lines += [f"acts\t{places(sentence, one)[0]}\t{sentence}",
                          f"suffers\t{places(sentence, other)[0]}\t{sentence}"]
        source.shuffle(lines)
        result[f"{name}.tsv"] = lines
    return result


if __name__ == "__main__":
    write(__file__, files())
