#!/usr/bin/env python3
"""Writes the .tsv files beside this file; running it again gives the same bytes.

English phrases that mean one thing as an idiom and another word by word, with simple Hindi translations. What the
phrase means is told by the words around it. general.tsv is for a model that never met the idioms: the phrases only
word by word, and the words around the idioms only in plain sentences.
"""
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from data_files import SPLITS, split, write  # noqa: E402

# English, Hindi, feminine
WHO = [("ravi", "रवि", False), ("mohan", "मोहन", False), ("arjun", "अर्जुन", False), ("vijay", "विजय", False),
       ("the king", "राजा", False), ("the farmer", "किसान", False), ("meena", "मीना", True), ("sita", "सीता", True),
       ("anita", "अनीता", True), ("radha", "राधा", True), ("the queen", "रानी", True), ("the girl", "लड़की", True)]
WHEN = [("", ""), ("yesterday ", "कल "), ("last week ", "पिछले हफ़्ते "), ("on sunday ", "रविवार को ")]
ENDS = [("", ""), (" .", " ।")]

# Frames in both languages. {who} did it and {where} tells what is meant. [masculine|feminine] follows the noun that the
# Hindi verb speaks of: {where} if a gender is given beside it, {who} otherwise.
TASKS = [("the exam", "परीक्षा", True), ("the lesson", "पाठ", False), ("the game", "खेल", False),
         ("the journey", "यात्रा", True), ("the question", "सवाल", False)]
PHRASES = [
    {"idiom": ("{where} was a piece of cake for {who}", "{who} के लिए {where} सरल काम [था|थी]"),
     "idiomatic": TASKS,
     "literally": ("{where} was a piece of cake for {who}", "{who} के लिए {where} केक का टुकड़ा [था|थी]"),
     "literal": [("the dessert", "मिठाई", True), ("the breakfast", "नाश्ता", False), ("the gift", "तोहफ़ा", False),
                 ("the prize", "इनाम", False), ("the lunch", "दोपहर का खाना", False)],
     "plain": ("{where} was a new thing for {who}", "{who} के लिए {where} नई चीज़ [था|थी]")},
    {"idiom": ("{who} found {where} a piece of cake", "{who} को {where} सरल काम [लगा|लगी]"),
     "idiomatic": TASKS,
     "literally": ("{who} put a piece of cake {where}", "{who} ने {where} केक का टुकड़ा रखा"),
     "literal": [("on the plate", "थाली में"), ("on the table", "मेज़ पर"), ("in the box", "डिब्बे में"),
                 ("in the bag", "थैले में"), ("in the bowl", "कटोरे में")],
     "plain": ("{who} found {where} a new thing", "{who} को {where} नई चीज़ [लगा|लगी]")},
    {"idiom": ("everyone told {who} to break a leg in {where}", "सबने {who} को {where} के लिए शुभकामनाएँ दीं"),
     "idiomatic": [("the play", "नाटक"), ("the concert", "संगीत सभा"), ("the exam", "परीक्षा"), ("the race", "दौड़"),
                   ("the interview", "साक्षात्कार")],
     "literally": ("everyone saw {who} break a leg {where}", "सबने {where} {who} की टाँग टूटते देखी"),
     "literal": [("on the stairs", "सीढ़ियों पर"), ("on the ice", "बर्फ़ पर"), ("on the road", "सड़क पर"),
                 ("on the mountain", "पहाड़ पर"), ("in the field", "मैदान में")],
     "plain": ("everyone told {who} to hurry in {where}", "सबने {who} को {where} में जल्दी करने को कहा")},
    {"idiom": ("{who} spilled the beans {where}", "{who} ने {where} राज़ खोल दिया"),
     "idiomatic": [("about the party", "पार्टी का"), ("about the plan", "योजना का"), ("about the trip", "यात्रा का"),
                   ("about the deal", "सौदे का"), ("about the wedding", "शादी का")],
     "literally": ("{who} spilled the beans {where}", "{who} ने {where} राजमा गिरा दिया"),
     "literal": [("on the floor", "फ़र्श पर"), ("on the table", "मेज़ पर"), ("on the stove", "चूल्हे पर"),
                 ("on the bed", "बिस्तर पर"), ("on the stairs", "सीढ़ियों पर")],
     "plain": ("{who} heard a story {where}", "{who} ने {where} किस्सा सुना")},
    {"idiom": ("{who} let the cat out of the bag {where}", "{who} ने {where} राज़ खोल दिया"),
     "idiomatic": [("about the gift", "तोहफ़े का"), ("about the plan", "योजना का"), ("about the trip", "यात्रा का"),
                   ("about the deal", "सौदे का"), ("about the wedding", "शादी का")],
     "literally": ("{who} let the cat out of the bag {where}", "{who} ने {where} बिल्ली को थैले से निकाला"),
     "literal": [("at the station", "स्टेशन पर"), ("in the house", "घर में"), ("on the train", "ट्रेन में"),
                 ("at the market", "बाज़ार में"), ("in the garden", "बगीचे में")],
     "plain": ("{who} heard a story {where}", "{who} ने {where} किस्सा सुना")},
    {"idiom": ("{who} kicked the bucket {where}", "{who} {where} चल [बसा|बसी]"),
     "idiomatic": [("in the hospital", "अस्पताल में"), ("in the war", "युद्ध में"),
                   ("after a long illness", "लंबी बीमारी के बाद"), ("at the age of ninety", "नब्बे साल की उम्र में"),
                   ("during sleep", "नींद में")],
     "literally": ("{who} kicked the bucket {where}", "{who} ने {where} बाल्टी को लात मारी"),
     "literal": [("in the garden", "बगीचे में"), ("near the well", "कुएँ के पास"), ("in the yard", "आँगन में"),
                 ("in the kitchen", "रसोई में"), ("at the market", "बाज़ार में")],
     "plain": ("{who} fell down {where}", "{who} {where} गिर [गया|गई]")},
    {"idiom": ("{who} hit the sack {where}", "{who} {where} सोने [चला गया|चली गई]"),
     "idiomatic": [("after dinner", "रात के खाने के बाद"), ("early", "जल्दी"), ("at ten", "दस बजे"),
                   ("after the play", "नाटक के बाद"), ("before midnight", "आधी रात से पहले")],
     "literally": ("{who} hit the sack {where}", "{who} ने {where} बोरे को मारा"),
     "literal": [("with a stick", "छड़ी से"), ("with a hammer", "हथौड़े से"), ("with a stone", "पत्थर से"),
                 ("with a rope", "रस्सी से"), ("with a shoe", "जूते से")],
     "plain": ("{who} came home {where}", "{who} {where} घर [आया|आई]")},
    {"idiom": ("{who} was under the weather {where}", "{who} की तबीयत {where} ठीक नहीं थी"),
     "idiomatic": [("after the trip", "यात्रा के बाद"), ("because of the heat", "गर्मी के कारण"),
                   ("all day", "दिन भर"), ("at school", "स्कूल में"), ("after the wedding", "शादी के बाद")],
     "literally": ("{who} was under the weather {where}", "{who} मौसम के {where} के नीचे [था|थी]"),
     "literal": [("map", "नक्शे"), ("board", "बोर्ड"), ("balloon", "गुब्बारे"), ("chart", "चार्ट"), ("flag", "झंडे")],
     "plain": ("{who} was happy {where}", "{who} {where} खुश [था|थी]")},
    {"idiom": ("{who} was on thin ice {where}", "{who} {where} मुश्किल में [था|थी]"),
     "idiomatic": [("with the boss", "मालिक के साथ"), ("with the bank", "बैंक के साथ"),
                   ("with the police", "पुलिस के साथ"), ("at work", "काम पर"), ("at school", "स्कूल में")],
     "literally": ("{who} was on thin ice {where}", "{who} {where} पतली बर्फ़ पर [था|थी]"),
     "literal": [("on the lake", "झील की"), ("on the river", "नदी की"), ("on the pond", "तालाब की"),
                 ("in the valley", "घाटी की"), ("in the field", "खेत की")],
     "plain": ("{who} was happy {where}", "{who} {where} खुश [था|थी]")},
    {"idiom": ("{who} got cold feet {where}", "{who} {where} घबरा [गया|गई]"),
     "idiomatic": [("before the wedding", "शादी से पहले"), ("before the speech", "भाषण से पहले"),
                   ("before the race", "दौड़ से पहले"), ("before the flight", "उड़ान से पहले"),
                   ("before the interview", "साक्षात्कार से पहले")],
     "literally": ("{who} got cold feet {where}", "{who} के पैर {where} ठंडे हो गए"),
     "literal": [("in the snow", "बर्फ़ में"), ("in the river", "नदी में"), ("in the rain", "बारिश में"),
                 ("in the wet shoes", "गीले जूतों में"), ("in the boat", "नाव में")],
     "plain": ("{who} got a letter {where}", "{who} को {where} चिट्ठी मिली")},
]
COPIES = {"train": 1, "valid": 1, "test": 1}  # of a phrase, its {who} and its {where}, at different times


def line(frames, who, where, when, end):
    of_where = len(where) == 3
    feminine = where[2] if of_where else who[2]
    english, hindi = (time + frame.format(who=a, where=b) + stop
                      for frame, a, b, time, stop in zip(frames, who, where, when, end))
    hindi = re.sub(r"\[(.*?)\|(.*?)\]", r"\2" if feminine else r"\1", hindi)
    return f"{english}\t{hindi}"


def lines(source, frames, uses, copies):
    for phrase, who, where in uses:
        for when in source.sample(WHEN, copies):
            yield line(phrase[frames], who, where, when, source.choice(ENDS))


def files():
    source = random.Random(1)
    uses = {kind: split(source, [(phrase, who, where) for phrase in PHRASES for where in phrase[kind] for who in WHO])
            for kind in ("idiomatic", "literal")}
    result = {}
    for name in SPLITS:
        idiomatic = list(lines(source, "idiom", uses["idiomatic"][name], COPIES[name]))
        literal = list(lines(source, "literally", uses["literal"][name], COPIES[name]))
        result[f"{name}.tsv"] = idiomatic + literal
        source.shuffle(result[f"{name}.tsv"])
        if name == "test":
            result |= {"test-idiomatic.tsv": idiomatic, "test-literal.tsv": literal}
    result["general.tsv"] = list(lines(source, "literally", uses["literal"]["train"], 1))
    result["general.tsv"] += lines(source, "plain", uses["idiomatic"]["train"], 1)
    source.shuffle(result["general.tsv"])
    return result


if __name__ == "__main__":
    write(__file__, files())
