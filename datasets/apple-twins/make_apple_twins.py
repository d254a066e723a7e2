#!/usr/bin/env python3
"""Writes train.tsv, valid.tsv and test.tsv beside this file; running it again gives the same bytes.

One action belongs to the fruit, one to the company, and the grammar alone says which of them has to do with apple; the
other has to do with a word that is just as ambiguous, or with a second apple. In training fruit is four times as
frequent as company, in validation and test they are even.
"""
import itertools
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from data_files import ENDS, SPLITS, places, split, write  # noqa: E402

PEOPLE = ["the clerk", "the farmer", "my sister", "an old man", "the teacher", "a tourist", "the captain", "her uncle",
          "the painter", "a young woman", "the doctor", "our neighbour"]
OTHERS = ["orange", "blackberry", "mango"]  # each a fruit and a company, too
FRUIT = ["peeled with a knife", "baked in a pie", "ate for breakfast", "picked from a tree", "squeezed into a glass",
         "sliced into a salad", "dipped in honey", "fed to the horse", "dried in the sun", "washed under the tap",
         "mashed for the baby", "kept in the cellar", "chewed at lunch", "grated over the oats", "cooked with sugar",
         "found in the grass"]
COMPANY = ["bought shares in", "wrote software for", "sold chips to", "designed screens for", "sued over a patent",
           "lent a billion to", "ordered a laptop from", "tested phones for", "made adverts for", "sent an invoice to",
           "read about in the business news", "interviewed for a tech blog", "audited for the tax office",
           "hacked through a password", "translated manuals for", "praised at the trade fair"]

# {who} did {here} to apple or for it; {there} is what {friend} did to {other} or for it.
FRAMES = [
    "apple is what {who} {here} and {other} is what {friend} {there}",
    "{other} is what {friend} {there} and apple is what {who} {here}",
    "it was apple that {who} {here} and {other} that {friend} {there}",
    "it was {other} that {friend} {there} and apple that {who} {here}",
    "the apple that {who} {here} has nothing to do with the {other} that {friend} {there}",
    "the {other} that {friend} {there} has nothing to do with the apple that {who} {here}",
    "apple which {who} {here} is a better story than {other} which {friend} {there}",
    "{other} which {friend} {there} is a better story than apple which {who} {here}",
    "nobody asked about the apple that {who} {here} because of the {other} that {friend} {there}",
    "because of the {other} that {friend} {there} nobody asked about the apple that {who} {here}",
    "what {who} {here} was apple and what {friend} {there} was {other}",
    "what {friend} {there} was {other} and what {who} {here} was apple",
]
PLAIN = ["apple is what {who} {here}", "it was apple that {who} {here}", "what {who} {here} was apple",
         "this is the apple that {who} {here}", "they all know apple which {who} {here} yesterday"]

# Both senses in one sentence.
LAUNCHED = ["apple launched a new phone", "apple opened a shop", "apple hired an engineer", "apple sued a rival",
            "apple raised its prices", "apple showed a new watch", "apple paid a fine", "apple fixed a bug",
            "somebody hacked a server of apple", "they took an apple laptop apart", "an apple lawyer spoke on the radio",
            "the news said that apple had a new boss"]
EATING = ["{i} was eating an apple", "{i} was peeling an apple", "{i} bit into a sweet apple", "{i} had apple with cream",
          "an apple fell on {mine} head", "apple was boiling on {mine} stove", "{i} put apple into the cake",
          "{i} planted an apple tree", "the horse took an apple from {mine} hand", "{i} picked an apple",
          "the red apple in {mine} bag went bad", "{i} fried apple in butter"]
SELVES = [("i", "my"), ("she", "her"), ("he", "his"), ("we", "our")]
BOTH = ["{company} while {fruit}", "{fruit} while {company}", "{company} when {fruit}", "{fruit} when {company}",
        "{company} and {fruit}", "{fruit} and {company}", "while {fruit} {company}", "while {company} {fruit}"]
WELL_KNOWN = (BOTH[0], (LAUNCHED[0], EATING[0]), SELVES[0])

SIZES = {  # pairs of twins, sentences with both senses, single and plain ones for fruit, plain ones for company
    "train": (330, 170, 1220, 600, 80), "valid": (70, 30, 0, 30, 30), "test": (140, 60, 0, 60, 60)}


def line(label, sentence, which=0):
    return f"{label}\t{places(sentence, 'apple')[which]}\t{sentence}"


def framed(source, pairs, count, others):
    """`count` times an action for the fruit, one for the company, and a function that puts them into a sentence."""
    for frame, (fruit, company), other in source.sample(list(itertools.product(FRAMES, pairs, others)), count):
        who, friend = source.sample(PEOPLE, 2)
        sentence = frame + source.choice(ENDS)
        yield fruit, company, lambda here, there: sentence.format(who=who, friend=friend, other=other, here=here,
                                                                  there=there)


def with_both(source, actions, clauses, count, kept=()):
    """Two lines for each of `count` sentences, a quarter of which have the framed form; those of `kept` among them."""
    sentences = []
    for fruit, company, fill in framed(source, actions, count // 8, ["apple"]):
        sentences += [(fill(fruit, company), fruit, company), (fill(company, fruit), fruit, company)]
    choices = [choice for choice in itertools.product(BOTH, clauses, SELVES) if choice not in kept]
    for frame, (company, fruit), (i, mine) in list(kept) + source.sample(choices, count - len(sentences) - len(kept)):
        fruit = fruit.format(i=i, mine=mine)
        sentences.append((frame.format(company=company, fruit=fruit) + source.choice(ENDS), fruit, company))
    for sentence, fruit, company in sentences:
        senses = sorted([(sentence.index(fruit), "fruit"), (sentence.index(company), "company")])
        for which, (_, label) in enumerate(senses):
            yield line(label, sentence, which)


def lines(source, name, actions, clauses, doings):
    twins, both, single, plain_fruit, plain_company = SIZES[name]
    for fruit, company, fill in framed(source, actions, twins, OTHERS):
        yield line("fruit", fill(fruit, company))
        yield line("company", fill(company, fruit))
    yield from with_both(source, actions, clauses, both, [WELL_KNOWN] if name == "test" else [])
    for fruit, company, fill in framed(source, actions, single, OTHERS):
        yield line("fruit", fill(fruit, company))
    for label, count in (("fruit", plain_fruit), ("company", plain_company)):
        choices = [(frame, who, here) for frame in PLAIN for sense, who, here in doings if sense == label]
        for frame, who, here in source.sample(choices, min(count, len(choices))):
            yield line(label, frame.format(who=who, here=here) + source.choice(ENDS))


def files():
    source = random.Random(1)
    actions = split(source, itertools.product(FRUIT, COMPANY))
    clauses = split(source, itertools.product(LAUNCHED, EATING), [WELL_KNOWN[1]])
    by_sense = [split(source, itertools.product([label], PEOPLE, doings))
                for label, doings in (("fruit", FRUIT), ("company", COMPANY))]
    result = {}
    for name in SPLITS:
        doings = [doing for parts in by_sense for doing in parts[name]]
        result[f"{name}.tsv"] = list(dict.fromkeys(lines(source, name, actions[name], clauses[name], doings)))
        source.shuffle(result[f"{name}.tsv"])
    return result


if __name__ == "__main__":
    write(__file__, files())
