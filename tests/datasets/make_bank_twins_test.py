"""The bank data is what datasets/bank-twins/make_bank_twins.py writes, balanced, most sentences with a twin of
the same words and the other sense, and no pair of actions is in two splits."""
import collections
import pathlib
import shutil
import subprocess
import sys
import tempfile

folder = pathlib.Path(__file__).parents[2] / "datasets" / "bank-twins"
sys.path.insert(0, str(folder))
sys.dont_write_bytecode = True
import make_bank_twins  # noqa: E402

with tempfile.TemporaryDirectory() as copy:
    shutil.copy(folder / "make_bank_twins.py", copy)
    subprocess.run([sys.executable, f"{copy}/make_bank_twins.py"], check=True)
    for name in ("train.tsv", "valid.tsv", "test.tsv"):
        assert (folder / name).read_bytes() == (pathlib.Path(copy) / name).read_bytes(), name

seen = {}
for name in ("train", "valid", "test"):
    for line in (folder / f"{name}.tsv").read_text().splitlines():
        sentence = f" {line.split(chr(9))[2]} "
        money = [action for action in make_bank_twins.MONEY if f" {action} " in sentence]
        river = [action for action in make_bank_twins.RIVER if f" {action} " in sentence]
        if money and river:
            split = seen.setdefault((money[0], river[0]), name)
            assert split == name, f"{money[0]} and {river[0]} are in {split} and {name}"
assert len(seen) > 200, len(seen)

splits = {name: [line.split("\t") for line in (folder / f"{name}.tsv").read_text().splitlines()]
          for name in ("train", "valid", "test")}
sentences = [sentence for rows in splits.values() for _, _, sentence in rows]
assert len(set(sentences)) == len(sentences)
for rows in splits.values():
    senses = collections.Counter(label for label, _, _ in rows)
    assert senses["money"] == senses["river"], senses
    senses_of = collections.defaultdict(set)
    for label, _, sentence in rows:
        senses_of[tuple(sorted(sentence.split()))].add(label)
    assert sum(len(senses) == 2 for senses in senses_of.values()) >= 0.6 * len(senses_of)
