"""Includes point one way: cli, page -> inspect -> train -> datasets, layers, optim -> core, and so do the folders of train."""
import pathlib
import re

ALLOWED = {
    "core": {"core"},
    "layers": {"layers", "core"},
    "optim": {"optim", "core"},
    "datasets": {"datasets", "core"},
    "train": {"train", "datasets", "layers", "optim", "core"},
    "inspect": {"inspect", "train", "datasets", "layers", "optim", "core"},
    "page": {"page", "inspect", "train", "datasets", "layers", "optim", "core"},
    "cli": {"cli", "inspect", "train", "datasets", "layers", "optim", "core"},
}
# loop -> run -> tasks, memory, metrics; nothing stands in train itself.
ALLOWED_IN_TRAIN = {
    "config": {"config"},
    "storage": {"storage"},
    "ranks": {"ranks"},
    "metrics": {"metrics", "storage"},
    "memory": {"memory", "tasks", "config"},
    "tasks": {"tasks", "config"},
    "start": {"start", "tasks", "config"},
    "run": {"run", "start", "tasks", "memory", "metrics", "storage", "config"},
    "fit": {"fit", "tasks", "storage", "config"},
    "inference": {"inference", "run", "tasks", "config"},
    "exchange": {"exchange", "run", "tasks", "storage", "config"},
    "loop": {"loop", "run", "ranks", "tasks", "memory", "metrics", "storage", "config"},
}

root = pathlib.Path(__file__).parents[1]


def check(files, allowed, folder_of):
    return [f"{file.relative_to(root)} includes {target}"
            for file in files
            for target in re.findall(r'#include "([^"]+)"', file.read_text())
            if folder_of(target) not in allowed | {None}]


def folder_in_train(target):
    parts = target.split("/")
    return None if parts[0] != "train" else parts[1]


wrong = []
for folder, allowed in ALLOWED.items():
    wrong += check(sorted((root / folder).rglob("*.[ch]*")), allowed, lambda target: target.split("/")[0])
folders = {path.name for path in (root / "train").iterdir() if path.is_dir()}
assert folders == set(ALLOWED_IN_TRAIN), f"folders of train: {folders}"
for folder, allowed in ALLOWED_IN_TRAIN.items():
    wrong += check(sorted((root / "train" / folder).glob("*.[ch]*")), allowed, folder_in_train)
assert not wrong, "\n".join(wrong)
