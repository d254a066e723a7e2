"""Includes point one way: train -> datasets, layers, optim -> core."""
import pathlib
import re

ALLOWED = {"core": {"core"}, "layers": {"layers", "core"}, "optim": {"optim", "core"}, "datasets": {"datasets", "core"},
           "train": {"train", "datasets", "layers", "optim", "core"}}

root = pathlib.Path(__file__).parents[1]
wrong = []
for folder, allowed in ALLOWED.items():
    for file in sorted((root / folder).rglob("*.[ch]*")):
        for target in re.findall(r'#include "([^/"]+)/', file.read_text()):
            if target not in allowed:
                wrong.append(f"{file.relative_to(root)} includes from {target}")
assert not wrong, "\n".join(wrong)
