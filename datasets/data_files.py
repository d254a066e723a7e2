"""What the scripts that write the data sets share. Standard library only; the same bytes on every run."""
import pathlib
import random
import unicodedata

SPLITS = ("train", "valid", "test")
ENDS = ("", " .")  # people write a full stop or leave it out


def split(source: random.Random, items, test=()):
    """Seven tenths for training, a tenth for validation, two tenths for the test; those of `test` only there."""
    items = [item for item in items if item not in test]
    source.shuffle(items)
    a, b = len(items) * 7 // 10, len(items) * 8 // 10
    return {"train": items[:a], "valid": items[a:b], "test": items[b:] + list(test)}


def swapped(sentence, a, b):
    """`sentence` with the words or phrases `a` and `b` exchanged."""
    return sentence.replace(a, "\0").replace(b, a).replace("\0", b)


def places(sentence, word):
    """Where `word` stands in `sentence`, counted in words from 0."""
    return [i for i, other in enumerate(sentence.split()) if other == word]


def write(script, files):
    """Writes {name: lines} beside `script`, as UTF-8 in NFC with a line feed after each line."""
    for name, lines in files.items():
        path = pathlib.Path(script).parent / name
        path.parent.mkdir(exist_ok=True)
        text = "".join(line + "\n" for line in lines)
        path.write_bytes(unicodedata.normalize("NFC", text).encode())
