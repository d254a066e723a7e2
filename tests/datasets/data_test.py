"""The data of the experiments is what its generators write, clean, balanced, and has no sentence or filling of a
template in two splits."""
import collections
import importlib.util
import pathlib
import re
import sys
import unicodedata

folder = pathlib.Path(__file__).parents[2] / "datasets"
sys.dont_write_bytecode = True
SPLITS = ("train", "valid", "test")
REORDERED = {"copy": list, "reverse": lambda letters: letters[::-1], "sort": sorted}


def rows(name):
    return [line.split("\t") for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def splits(name, pattern="{}"):
    return {part: rows(f"{name}/{pattern.format(part)}.tsv") for part in SPLITS}


def check_files(name):
    """Running the generator again gives these bytes: UTF-8 in NFC, lines that end in a line feed, not too large."""
    script = folder / name / f"make_{name.replace('-', '_')}.py"
    spec = importlib.util.spec_from_file_location(script.stem, script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files = module.files()
    data = [*(folder / name).rglob("*.tsv"), *(folder / name).rglob("*.conll"), *(folder / name).rglob("*.txt")]
    assert {file.relative_to(folder / name).as_posix() for file in data} == set(files), name
    size = collections.Counter()
    for file, lines in files.items():
        text = (folder / name / file).read_bytes().decode()
        assert text == unicodedata.normalize("NFC", "\n".join(lines) + "\n"), f"{name}/{file}"
        at_ends = r"^[ \t]|[ \t]$" if file.endswith(".conll") else r"^\s|\s$"
        assert "\r" not in text and "  " not in text and not re.search(at_ends, text[:-1], re.M), f"{name}/{file}"
        size[pathlib.PurePath(file).parent] += len(text.encode())
    assert max(size.values()) < 400_000, size


def check_sentences(name, parts, column):
    """Each split is large enough, has sentences of its own made of words of the training split, each the way the
    program reads a typed text."""
    seen = {}
    known = {word for row in parts["train"] for word in row[column].split()}
    for part, lines in parts.items():
        assert len(lines) >= 40, (name, part)
        assert len({tuple(row) for row in lines}) == len(lines), (name, part)
        for row in lines:
            assert seen.setdefault(row[column], part) == part, f"{name}: in {seen[row[column]]} and {part}: {row}"
            typed = re.sub(r'([.,;:!?()\[\]"])', r" \1 ", row[column].lower())
            assert typed.split() == row[column].split(" "), f"{name}: {row}"
            assert known.issuperset(row[column].split()), f"{name}: a new word in {row}"
            assert column != 2 or int(row[1]) < len(row[2].split()), f"{name}: {row}"


def check_apart(parts, column, find):
    """`find` gives what fills a sentence's template, or None; none of that is in two splits."""
    seen = {}
    for part, lines in parts.items():
        for row in lines:
            filling = find(row[column])
            assert filling is None or seen.setdefault(filling, part) == part, (filling, seen[filling], part)
    assert len(seen) >= 40, len(seen)


def check_even(lines):
    counts = collections.Counter(row[0] for row in lines)
    assert len(set(counts.values())) == 1, counts


def words_at(row, *columns):
    words = row[2].split()
    return [words[int(row[column])] for column in columns]


def best_share(lines, key):
    """The largest fraction of labels that `key` alone predicts."""
    labels = collections.defaultdict(collections.Counter)
    for row in lines:
        labels[key(row)][row[0]] += 1
    return sum(max(counts.values()) for counts in labels.values()) / len(lines)


def bag(sentence):
    return tuple(sorted(sentence.split()))


def both_of(*lists):
    """Which entry of each list is in a sentence."""
    def find(sentence):
        found = [[entry for entry in entries if re.search(rf"\b{entry}\b", sentence)] for entries in lists]
        return tuple(max(entries, key=len) for entries in found) if all(found) else None
    return find


def check_apple_twins():
    parts = splits("apple-twins")
    check_sentences("apple-twins", parts, 2)
    assert all(words_at(row, 1) == ["apple"] for lines in parts.values() for row in lines)
    labels = collections.Counter(row[0] for row in parts["train"])
    assert labels["fruit"] == 4 * labels["company"], labels
    for part in ("valid", "test"):
        check_even(parts[part])
        assert best_share(parts[part], lambda row: bag(row[2])) < 0.65
    senses = collections.defaultdict(set)
    for row in parts["test"]:
        senses[row[2]].add(row[0])
    doubles = [sentence for sentence in senses if sentence.count("apple") == 2]
    assert len(doubles) >= 60 and all(len(senses[sentence]) == 2 for sentence in doubles)
    assert any(s.startswith("apple launched a new phone while i was eating an apple") for s in doubles)

    def neighbours(row):
        words, i = ["", *row[2].split(), ""], int(row[1]) + 1
        return words[i - 1], words[i + 1]
    assert best_share(parts["test"], neighbours) < 0.65
    fruit = ["peeled", "baked", "ate", "picked from", "squeezed", "sliced", "dipped", "fed", "dried", "washed", "mashed",
             "kept", "chewed", "grated", "cooked", "found"]
    company = ["shares", "software", "chips", "screens", "patent", "billion", "laptop from", "phones", "adverts",
               "invoice", "business", "blog", "office", "password", "manuals", "trade"]
    check_apart(parts, 2, both_of(fruit, company))


def check_pronoun():
    parts = splits("pronoun")
    check_sentences("pronoun", parts, 2)
    for part, lines in parts.items():
        nouns = {words_at(row, 0)[0] for row in lines}
        groups = collections.defaultdict(list)
        order = collections.Counter()
        for row in lines:
            assert words_at(row, 1) == ["it"] and int(row[0]) < int(row[1])
            named = [i for i, word in enumerate(row[2].split()) if word in nouns]
            assert len(named) in (2, 3) and int(row[0]) in named, row
            order[len(named), named.index(int(row[0]))] += 1
            groups[row[2].split(" it was too ")[0]].append((int(row[0]), named))
        # Up to the last words every noun is meant equally often, wherever it stands.
        for meant in groups.values():
            counts = collections.Counter(noun for noun, _ in meant)
            assert all(counts[noun] == counts[meant[0][1][0]] for noun in meant[0][1]), meant
        assert order[2, 0] == order[2, 1] and len({order[3, i] for i in range(3)}) == 1, order
    nouns = {words_at(row, 0)[0] for row in parts["train"]}

    def pair(sentence):
        found = sorted(word for word in sentence.split() if word in nouns)
        return tuple(found)
    check_apart(parts, 2, pair)
    animals = {"animal", "dog", "cat", "horse", "cow", "goat", "donkey", "fox", "sheep", "rabbit", "mule", "camel"}
    check_apart(parts, 2, both_of(sorted(animals), ["cross", "enter", "leave", "visit", "reach", "search"]))
    assert {f"the animal didn't cross the street because it was too {how}" for how in ("tired", "wide", "crowded")} <= {
        row[2].removesuffix(" .") for row in parts["test"]}


def check_word_order():
    parts = splits("word-order")
    check_sentences("word-order", parts, 2)
    nouns = {words_at(row, 1)[0] for row in parts["train"]}
    for lines in parts.values():
        assert best_share(lines, lambda row: (bag(row[2]), *words_at(row, 1))) == 0.5
    check_apart(parts, 2, lambda sentence: tuple(sorted(nouns.intersection(sentence.split()))))
    assert not any({"man", "boy"} <= set(row[2].split()) for row in parts["train"])


def check_heads():
    parts = splits("heads")
    check_sentences("heads", parts, 2)
    men = {"adam", "boris", "carlos", "david", "erik", "felix", "george", "henry", "ivan", "jack"}
    things = {words_at(row, 1)[0] for row in parts["train"]}
    for lines in parts.values():
        assert best_share(lines, lambda row: (bag(row[2]), *words_at(row, 1))) == 0.25
        for label, index, sentence in lines:
            clause = re.split(r" and | while | but ", sentence)
            thing = sentence.split()[int(index)]
            words = next(part for part in clause if thing in part.split()).split()
            people = [w for w in words if w not in things | {"gives", "gets", "goes", "the", "to", "from", "."}]
            getter_first = "gets" in words and words[0] != "from" or words[0] == "to"
            sexes = ["man" if person in men else "woman" for person in people]
            assert "-".join(sexes[::-1] if getter_first else sexes) == label, (label, sentence)
    women = {"anna", "bella", "clara", "diana", "emma", "fiona", "grace", "helen", "irene", "julia"}
    for names in (men, women):
        check_apart(parts, 2, lambda sentence: tuple(sorted(names.intersection(sentence.split()))))


def check_variable_length():
    parts = splits("variable-length")
    check_sentences("variable-length", parts, 1)
    for part, lines in parts.items():
        check_even(lines)
        lengths = {len(text.split()) for _, text in lines}
        assert lengths == set(range(13, 25) if part == "test" else range(4, 13)), lengths
        for label, text in lines:
            wanted = text.split()[0].removeprefix("find-")
            assert [word for word in text.split()[1:] if word.endswith(f"-{wanted}")] == [f"{label}-{wanted}"], text


def check_sentiment():
    parts = splits("sentiment")
    check_sentences("sentiment", parts, 1)
    for part, lines in parts.items():
        check_even(lines)
        assert best_share(lines, lambda row: bag(row[1])) < 0.75, part
    good = ["good", "great", "lovely", "clever", "funny", "moving", "charming", "brilliant", "fresh", "sharp"]
    bad = ["bad", "dull", "boring", "weak", "silly", "slow", "flat", "poor", "tired", "clumsy"]
    check_apart(parts, 1, both_of(good, bad))
    nouns = ["cast", "story", "music", "ending", "plot", "script", "acting", "pace", "humour", "dialogue"]
    simple = {part: [row for row in lines if not both_of(good, bad)(row[1])] for part, lines in parts.items()}
    check_apart(simple, 1, both_of(nouns, good + bad))


def check_idiom():
    parts = splits("idiom")
    check_sentences("idiom", parts, 0)
    meant = re.compile(unicodedata.normalize("NFC", "सरल काम|शुभकामनाएँ|राज़|चल बस|सोने|तबीयत|मुश्किल|घबरा"))
    kinds = {kind: rows(f"idiom/test-{kind}.tsv") for kind in ("idiomatic", "literal")}
    assert sorted(kinds["idiomatic"] + kinds["literal"]) == sorted(parts["test"])
    assert len(kinds["idiomatic"]) == len(kinds["literal"]) == 120
    assert all(meant.search(hindi) for _, hindi in kinds["idiomatic"])
    general = rows("idiom/general.tsv")
    assert not any(meant.search(hindi) for _, hindi in kinds["literal"] + general)
    known = {word for english, _ in general for word in english.split()}
    assert all(known.issuperset(english.split()) for english, _ in kinds["idiomatic"])
    check_apart(parts, 0, lambda english: re.sub(r"^(yesterday|last week|on sunday) | \.$", "", english))
    assert not {english for english, _ in general} & {english for english, _ in parts["test"]}


def check_sequences():
    for task, reorder in REORDERED.items():
        parts = splits(f"sequences/{task}")
        check_sentences(task, parts, 0)
        assert all(target.split() == list(reorder(source.split()))
                   for lines in parts.values() for source, target in lines)
    parts = splits("sequences/induction")
    check_sentences("induction", parts, 2)
    for label, index, sequence in (row for lines in parts.values() for row in lines):
        letters = sequence.split()
        assert int(index) == len(letters) - 1 and letters.count(letters[-1]) == 2
        assert letters[letters.index(letters[-1]) + 1] == label
    parts = splits("sequences/modular-addition")
    check_sentences("modular-addition", parts, 1)
    sums = {text: int(label) for lines in parts.values() for label, text in lines}
    assert sums == {f"{a} + {b}": (a + b) % 23 for a in range(23) for b in range(23)}


def check_long_range():
    for distance in (2, 4, 8, 16, 32, 64, 128, 256):
        parts = splits("long-range", f"{{}}-{distance}")
        check_sentences("long-range", parts, 2)
        for lines in parts.values():
            check_even(lines)
            for label, index, sentence in lines:
                words = sentence.split()
                assert int(index) == distance == len(words) - 1
                assert words[0] == label and words[-1] == "?" and not any(len(word) > 1 for word in words[1:])


def check_summary():
    parts = splits("summary")
    check_sentences("summary", parts, 0)
    check_apart(parts, 1, lambda summary: summary.split(" : ")[0])
    for report, summary in (row for lines in parts.values() for row in lines):
        town, day = re.search(r" in (\w+) on (\w+) : ", summary).groups()
        assert town in report.split(" . ")[0] and day in report.split(" . ")[0], report


def check_tagging():
    seen = set()
    labels = collections.defaultdict(collections.Counter)
    for part in SPLITS:
        for sentence in (folder / f"tagging/{part}.conll").read_text().strip().split("\n\n"):
            assert sentence not in seen, sentence
            seen.add(sentence)
            for word, label in map(str.split, sentence.splitlines()):
                labels[word][label[2:]] += label != "O"
    names = [counts for counts in labels.values() if counts["PER"] and counts["LOC"]]
    assert len(names) == 16 and all(0.6 < counts["PER"] / counts["LOC"] < 1.7 for counts in names)


def check_random():
    text = (folder / "random/text.txt").read_text()
    assert len(text) == 1 << 16 and len(set(text)) == 63  # as many characters as Shakespeare's plays have, for the speed


for check in (check_random, check_apple_twins, check_pronoun, check_word_order, check_heads, check_variable_length, check_sentiment,
              check_idiom, check_sequences, check_long_range, check_summary, check_tagging):
    check_files(check.__name__.removeprefix("check_").replace("_", "-"))
    check()
