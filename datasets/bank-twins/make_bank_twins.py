#!/usr/bin/env python3
"""Writes train.tsv, valid.tsv and test.tsv beside this file; running it again gives the same bytes.

Most sentences tell of two actions, one that belongs to money and one that belongs to a river, and the grammar alone
says which of them happened at the bank. Each of these has a twin in the same split with the actions exchanged: the
same words, the other sense. So no count of words can tell the twins apart, and the deciding words are often the far
ones. The rest are short and plain.
"""
import itertools
import pathlib
import random

PEOPLE = ["the clerk", "the farmer", "my sister", "an old man", "the teacher", "a tourist", "the captain", "her uncle",
          "the painter", "a young woman", "the doctor", "our neighbour"]
MONEY = ["took out a loan", "opened an account", "cashed a cheque", "paid the mortgage", "counted the coins",
         "changed some currency", "signed a contract", "asked about interest", "withdrew the wages", "bought shares",
         "deposited the savings", "spoke to the teller", "checked the balance", "transferred the money",
         "repaid the debt", "ordered a credit card"]
RIVER = ["caught a trout", "moored the boat", "cut the reeds", "fed the ducks", "watched the current", "built a raft",
         "collected pebbles", "swam with otters", "planted a willow", "dug in the mud", "cast a line",
         "paddled a canoe", "photographed a heron", "skimmed stones", "listened to the frogs", "washed in the river"]

# {who} did {here} at the bank; {there} happened elsewhere.
FRAMES = [
    "{who} {here} at the bank and later {there} somewhere else",
    "{who} {there} somewhere else and later {here} at the bank",
    "after a friend {there} at home {who} {here} at the bank",
    "{who} {here} at the bank after a friend {there} at home",
    "at the bank {who} {here} while a friend {there} far away",
    "while a friend {there} far away {who} {here} at the bank",
    "{who} who once {there} abroad has only {here} at the bank",
    "the bank where {who} {here} was far from the place where a cousin {there}",
    "far from the place where a cousin {there} was the bank where {who} {here}",
    "nobody {there} at the bank because {who} only {here} there",
    "{who} dreamed that a stranger {there} but really {here} at the bank",
    "{who} really {here} at the bank but dreamed that a stranger {there}",
    "at the bank nobody {there} but {who} {here}",
    "the story says that {who} {there} but at the bank {who} {here}",
]
PLAIN = ["{who} {here} at the bank", "at the bank {who} {here}", "yesterday {who} {here} at the bank again"]
SHORT = {"money": (["money", "savings", "credit", "loan", "mortgage", "wages"],
                   ["grows", "lends", "pays", "opens", "closes", "invests"]),
         "river": (["river", "reeds", "willow", "mud", "trout", "current"],
                   ["flows", "floods", "erodes", "bends", "slopes", "sinks"])}
SHORT_SEEN = [("money", "money", "grows"), ("river", "river", "flows")]

SIZES = {"train": (620, 360), "valid": (80, 40), "test": (160, 80)}  # pairs of twins, plain sentences


def split(random_source, items, kept=()):
    """Seven tenths for training, a tenth for validation, two tenths for the test."""
    items = [item for item in items if item not in kept]
    random_source.shuffle(items)
    a, b = len(items) * 7 // 10, len(items) * 8 // 10
    return {"train": list(kept) + items[:a], "valid": items[a:b], "test": items[b:]}


def line(label, sentence):
    return f"{label}\t{sentence.split().index('bank')}\t{sentence}"


def twins(random_source, pairs, count):
    """Two lines for each of `count` different choices of frame, person and pair of actions."""
    choices = list(itertools.product(FRAMES, PEOPLE, pairs))
    for frame, who, (money, river) in random_source.sample(choices, count):
        yield line("money", frame.format(who=who, here=money, there=river))
        yield line("river", frame.format(who=who, here=river, there=money))


def plain(random_source, doings, short, count):
    """Half of `count` lines for each sense; all of `short`."""
    for label in ("money", "river"):
        lines = [line(label, f"{what} bank {does}") for sense, what, does in short if sense == label]
        choices = [(frame, who, here) for frame in PLAIN for sense, who, here in doings if sense == label]
        for frame, who, here in random_source.sample(choices, count // 2 - len(lines)):
            lines.append(line(label, frame.format(who=who, here=here)))
        yield from lines


def main():
    folder = pathlib.Path(__file__).parent
    source = random.Random(1)
    pairs = split(source, itertools.product(MONEY, RIVER))
    doings = {name: [] for name in SIZES}
    short = {name: [] for name in SIZES}
    for label, actions in (("money", MONEY), ("river", RIVER)):
        for name, part in split(source, itertools.product(PEOPLE, actions)).items():
            doings[name] += [(label, who, here) for who, here in part]
        seen = [item for item in SHORT_SEEN if item[0] == label]
        for name, part in split(source, itertools.product([label], *SHORT[label]), seen).items():
            short[name] += part
    for name, (twin_count, plain_count) in SIZES.items():
        lines = list(twins(source, pairs[name], twin_count))
        lines += plain(source, doings[name], short[name], plain_count)
        source.shuffle(lines)
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
