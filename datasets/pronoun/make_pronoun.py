#!/usr/bin/env python3
"""Writes train.tsv, valid.tsv and test.tsv beside this file; running it again gives the same bytes.

Each sentence ends with what *it* was, and that alone says which noun *it* means. In sentences of meaning an animal, a
place or a thing is named and the last adjective fits one of them; in sentences of roles two nouns of a kind are named,
and who did what to whom decides, also in the passive. The sentences of a group differ in the adjective only, and each
of their nouns is meant in one of them.
"""
import itertools
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from data_files import ENDS, SPLITS, places, split, write  # noqa: E402

ANIMALS = ["animal", "dog", "cat", "horse", "cow", "goat", "donkey", "fox", "sheep", "rabbit", "mule", "camel"]
PLACES = ["street", "road", "bridge", "river", "field", "square", "market", "tunnel", "park", "lane", "yard", "path"]
THINGS = ["bag", "box", "crate", "log", "basket", "chair", "lamp", "barrel", "sack", "trunk", "bucket", "case"]
FITTING = {"animal": ["tired", "hungry", "scared", "sick", "sleepy", "lazy", "nervous", "thirsty"],
           "place": ["wide", "crowded", "icy", "flooded", "noisy", "steep", "windy", "muddy"],
           "thing": ["fragile", "bulky", "slippery", "costly", "greasy", "sharp", "rusty", "brittle"]}

VERBS = [("cross", "crossed"), ("enter", "entered"), ("leave", "left"), ("use", "used"), ("visit", "visited"),
         ("reach", "reached"), ("pass", "passed"), ("search", "searched")]
TWO = [
    "the {animal} didn't {verb} the {place} because it was too",
    "the {place} wasn't {done} by the {animal} because it was too",
    "the {animal} wouldn't {verb} the {place} again because it was too",
    "the {place} is what the {animal} didn't {verb} because it was too",
    "the {animal} stood still and the {place} wasn't {done} because it was too",
    "the {place} was one that the {animal} wouldn't {verb} because it was too"]
BRINGING = [("bring", "brought"), ("drag", "dragged"), ("take", "taken"), ("pull", "pulled"), ("push", "pushed")]
THREE = [
    "the {animal} didn't {verb} the {thing} to the {place} because it was too",
    "the {thing} wasn't {done} to the {place} by the {animal} because it was too",
    "to the {place} the {animal} didn't {verb} the {thing} because it was too",
    "at the {place} the {thing} wasn't {done} by the {animal} because it was too",
    "the {thing} at the {place} wasn't {done} by the {animal} because it was too",
    "the {animal} at the {place} didn't {verb} the {thing} because it was too"]

# Two nouns of a kind, what the one didn't do to the other, and of which of the two the adjectives speak then.
ROLES = [
    (THINGS, ["the {one} didn't fit into the {other} because it was too",
              "into the {other} the {one} didn't fit because it was too",
              "the {other} couldn't hold the {one} because it was too",
              "the {one} couldn't be put into the {other} because it was too"],
     {"one": ["big", "large", "huge", "broad"], "other": ["small", "tiny", "little", "tight"]}),
    (ANIMALS, ["the {one} couldn't catch the {other} because it was too",
               "the {other} couldn't be caught by the {one} because it was too",
               "the {other} got away from the {one} because it was too",
               "the {one} lost the race against the {other} because it was too"],
     {"one": ["slow", "lame", "clumsy", "stiff"], "other": ["fast", "quick", "clever", "nimble"]}),
]
WELL_KNOWN = TWO[0].format(animal="animal", verb="cross", place="street")
SIZES = {"train": (420, 140, 240), "valid": (30, 15, 30), "test": (80, 30, 50)}  # groups of two, three and of roles


def group(sentence, nouns, adjectives, end):
    """For each of `nouns` the sentence in which *it* means that noun."""
    for noun, adjective in zip(nouns, adjectives):
        whole = f"{sentence} {adjective}{end}"
        yield f"{places(whole, noun)[0]}\t{places(whole, 'it')[-1]}\t{whole}"


def meaning(source, frames, verbs, kinds, nouns, doings, count):
    """`count` groups in which the kind of noun decides; of `nouns` and of `doings`, (animal, verb), only those given."""
    choices = [choice for choice in itertools.product(frames, nouns, verbs) if (choice[1][0], choice[2]) in doings]
    for frame, chosen, (verb, done) in source.sample(choices, count):
        sentence = frame.format(**dict(zip(kinds, chosen)), verb=verb, done=done)
        adjectives = [source.choice(FITTING[kind]) for kind in kinds]
        yield from group(sentence, chosen, adjectives, source.choice(ENDS))


def roles(source, pairs, count):
    """`count` groups in which the roles decide, and as many in which the two nouns have changed places."""
    for which, (_, frames, adjectives) in enumerate(ROLES):
        choices = list(itertools.product(frames, pairs[which]))
        for frame, (one, other) in source.sample(choices, count // 2):
            for first, second in ((one, other), (other, one)):
                sentence = frame.format(one=first, other=second)
                chosen = [source.choice(adjectives[role]) for role in ("one", "other")]
                yield from group(sentence, (first, second), chosen, source.choice(ENDS))


def files():
    source = random.Random(1)
    two = split(source, itertools.product(ANIMALS, PLACES), [("animal", "street")])
    three = split(source, itertools.product(ANIMALS, THINGS, PLACES))
    crossing = split(source, itertools.product(ANIMALS, VERBS), [("animal", VERBS[0])])
    bringing = split(source, itertools.product(ANIMALS, BRINGING))
    alike = [split(source, itertools.combinations(kind, 2)) for kind, _, _ in ROLES]
    result = {}
    for name in SPLITS:
        two_count, three_count, role_count = SIZES[name]
        lines = list(meaning(source, TWO, VERBS, ("animal", "place"), two[name], crossing[name], two_count))
        lines += meaning(source, THREE, BRINGING, ("animal", "thing", "place"), three[name], bringing[name],
                         three_count)
        lines += roles(source, [pairs[name] for pairs in alike], role_count)
        if name == "test":
            for place, end in zip(("wide", "crowded"), ENDS):
                lines += group(WELL_KNOWN, ("animal", "street"), ("tired", place), end)
        source.shuffle(lines)
        result[f"{name}.tsv"] = lines
    return result


if __name__ == "__main__":
    write(__file__, files())
