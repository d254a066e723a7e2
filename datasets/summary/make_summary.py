#!/usr/bin/env python3
"""Writes train.tsv, valid.tsv and test.tsv beside this file; running it again gives the same bytes.

Short made-up reports and a line that says what happened, where, when and how it ended. The sentences of a report stand in
any order after the first, and one of them is beside the point, with a town and often a day of its own.
"""
import itertools
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from data_files import SPLITS, split, write  # noqa: E402

TOWNS = ["arden", "brill", "corby", "dale", "elmton", "fenby", "grange", "holt", "ilby", "kirkby"]
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
EVENTS = [  # as the report tells it and as the summary names it; how it may have ended: in the report, in the summary
    ("a fire broke out in the old mill of {town}", "mill fire in {town}",
     [("nobody was hurt", "no injuries"), ("two people were taken to hospital", "two injured"),
      ("the whole building burned down", "mill destroyed")]),
    ("the river of {town} rose over its banks", "flood in {town}",
     [("by the evening the water had gone", "water gone"), ("many families had to leave their homes", "families homeless"),
      ("the bridge was swept away", "bridge lost")]),
    ("thieves broke into the museum of {town}", "museum theft in {town}",
     [("the police caught them at the border", "thieves caught"), ("they got away with three paintings", "paintings gone"),
      ("a guard dog drove them off", "nothing stolen")]),
    ("the bus drivers of {town} stopped work", "bus strike in {town}",
     [("they got more pay in the end", "drivers win"), ("there is no end in sight", "no end in sight"),
      ("after a few hours they gave up", "strike over")]),
    ("the team of {town} played the last match of the season", "football in {town}",
     [("they won by one goal", "home win"), ("they lost after a bad start", "home defeat"),
      ("neither side scored", "draw without goals")]),
    ("a new school was to be opened in {town}", "school opening in {town}",
     [("three hundred guests came to the feast", "big feast"), ("the rain spoiled the feast", "feast in the rain"),
      ("the mayor put it off until spring", "put off")]),
]
OPENINGS = ["on {day} {event}", "{event} on {day}", "last {day} {event}"]
ASIDES = ["people in {town} had expected it", "on {day} the mayor of {town} will visit", "in {town} it was quiet",
          "the last time was on a {day} in {town}", "reporters from {town} came to see it"]
MIDDLES = ["it was a long day for everyone", "the weather was fine", "many came to watch", "the radio told of it"]
SIZES = {"train": 1100, "valid": 80, "test": 160}


def report(source, event, town, day):
    told, named, endings = event
    outcome, short = source.choice(endings)
    elsewhere, other_day = source.choice([t for t in TOWNS if t != town]), source.choice([d for d in DAYS if d != day])
    first = source.choice(OPENINGS).format(day=day, event=told.format(town=town))
    rest = [outcome, source.choice(ASIDES).format(town=elsewhere, day=other_day), source.choice(MIDDLES)]
    source.shuffle(rest)
    return f"{' . '.join([first, *rest])} .\t{named.format(town=town)} on {day} : {short}"


def files():
    source = random.Random(1)
    happenings = split(source, itertools.product(EVENTS, TOWNS, DAYS))
    result = {}
    for name in SPLITS:
        lines = {}
        while len(lines) < SIZES[name]:
            lines[report(source, *source.choice(happenings[name]))] = True
        result[f"{name}.tsv"] = list(lines)
    return result


if __name__ == "__main__":
    write(__file__, files())
