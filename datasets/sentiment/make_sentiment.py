#!/usr/bin/env python3
"""Writes train.tsv, valid.tsv and test.tsv beside this file; running it again gives the same bytes.

Lines as reviews of films have them. In a contrast the main clause decides, and a `not` turns the adjective that it
stands before, so most sentences have a twin with the same words, differently placed, and the other label.
"""
import itertools
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from data_files import ENDS, SPLITS, split, write  # noqa: E402

NOUNS = ["cast", "story", "music", "ending", "plot", "script", "acting", "pace", "humour", "dialogue"]
GOOD = ["good", "great", "lovely", "clever", "funny", "moving", "charming", "brilliant", "fresh", "sharp"]
BAD = ["bad", "dull", "boring", "weak", "silly", "slow", "flat", "poor", "tired", "clumsy"]

CONTRASTS = [  # {main} decides
    "{aside} {noun} but {main} {other}", "although the {noun} was {aside} the {other} was {main}",
    "the {other} was {main} although the {noun} was {aside}", "despite its {aside} {noun} this is a {main} film",
    "a {main} film despite its {aside} {noun}", "the {noun} is {aside} but on the whole i found it {main}",
    "what you remember is the {main} {other} and not the {aside} {noun}",
    "the {aside} {noun} does not matter next to the {main} {other}"]
TURNED = [  # {said} holds and {turned} does not
    "the {noun} was {said} and the {other} was not {turned}", "the {noun} was not {turned} and the {other} was {said}",
    "i call the {noun} {said} and not {turned} at all", "not {turned} at all , i call the {noun} {said}",
    "the {noun} is {said} , nobody can call it {turned}", "nobody can call the {noun} {turned} , it is {said}"]
HOLDS = ["the {noun} was really {adjective}", "i thought the {noun} was {adjective}",
         "{adjective} {noun} and nothing else to say", "all in all {adjective} {noun}"]
DENIED = ["the {noun} was not {adjective} at all", "i never thought the {noun} was {adjective}",
          "nothing {adjective} about the {noun}", "the {noun} is anything but {adjective}"]
# Pairs of contrasts, of turned ones, of simple ones that hold and of simple ones that are denied
SIZES = {"train": (350, 250, 250, 200), "valid": (35, 25, 15, 15), "test": (80, 60, 20, 40)}


def twins(source, frames, roles, pairs, count):
    """`count` pairs of twins; of a pair of adjectives, the one in the first role decides."""
    for frame, adjectives in source.sample(list(itertools.product(frames, pairs)), count):
        noun, other = source.sample(NOUNS, 2)
        end = source.choice(ENDS)
        for label, filling in (("positive", adjectives), ("negative", adjectives[::-1])):
            yield f"{label}\t{frame.format(noun=noun, other=other, **dict(zip(roles, filling)))}{end}"


def simple(source, frames, described, count):
    """`count` pairs that differ in the adjective; a sentence with the first adjective is positive."""
    for frame, (noun, *adjectives) in source.sample(list(itertools.product(frames, described)), count):
        end = source.choice(ENDS)
        for label, adjective in zip(("positive", "negative"), adjectives):
            yield f"{label}\t{frame.format(noun=noun, adjective=adjective)}{end}"


def files():
    source = random.Random(1)
    pairs = split(source, itertools.product(GOOD, BAD))
    described = split(source, [(noun, *pair) for noun in NOUNS for pair in zip(GOOD, BAD)])
    result = {}
    for name in SPLITS:
        contrasts, turned, holding, denied = SIZES[name]
        lines = [*twins(source, CONTRASTS, ("main", "aside"), pairs[name], contrasts),
                 *twins(source, TURNED, ("said", "turned"), pairs[name], turned),
                 *simple(source, HOLDS, described[name], holding),
                 *simple(source, DENIED, [(noun, bad, good) for noun, good, bad in described[name]], denied)]
        source.shuffle(lines)
        result[f"{name}.tsv"] = lines
    return result


if __name__ == "__main__":
    write(__file__, files())
