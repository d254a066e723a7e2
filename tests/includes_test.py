"""Includes point one way: cli -> inspect -> train -> datasets, layers, optim -> core, and so do the folders of train."""
import pathlib
import re

ALLOWED = {
    "core": {"core"},
    "layers": {"layers", "core"},
    "optim": {"optim", "core"},
    "datasets": {"datasets", "core"},
    "train": {"train", "datasets", "layers", "optim", "core"},
    "inspect": {"inspect", "train", "datasets", "layers", "optim", "core"},
    "cli": {"cli", "inspect", "train", "datasets", "layers", "optim", "core"},
}
# What stands in train itself goes by the folder's name.
ALLOWED_IN_TRAIN = {
    "config": {"config"},
    "storage": {"storage"},
    "tasks": {"tasks", "config"},
    "train": {"train", "tasks", "storage", "config"},
}

root = pathlib.Path(__file__).parents[1]


def check(files, allowed, folder_of):
    return [f"{file.relative_to(root)} includes {target}"
            for file in files
            for target in re.findall(r'#include "([^"]+)"', file.read_text())
            if folder_of(target) not in allowed | {None}]


def folder_in_train(target):
    parts = target.split("/")
    return None if parts[0] != "train" else parts[1] if len(parts) > 2 else "train"


wrong = []
for folder, allowed in ALLOWED.items():
    wrong += check(sorted((root / folder).rglob("*.[ch]*")), allowed, lambda target: target.split("/")[0])
for folder, allowed in ALLOWED_IN_TRAIN.items():
    files = (root / "train").glob("*.[ch]*") if folder == "train" else (root / "train" / folder).glob("*.[ch]*")
    wrong += check(sorted(files), allowed, folder_in_train)
assert not wrong, "\n".join(wrong)
