"""Trains a config with the program, and reads what it wrote."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import NamedTuple

import h5py

PROJECT = pathlib.Path(__file__).parents[3]
sys.path.insert(0, str(PROJECT / "python"))
import qkv

import bert
from files import write_files
from options import BASE, BY_KEY, Config

# Options that a config always names, where they suit.
SIZES = ("task.kind", "model.kind", "model.width", "model.heads", "model.feed_forward", "model.max_length", "optimizer.kind",
         "optimizer.lr", "train.batch", "train.steps", "train.eval_every")


class Refused(Exception):
    """The program does not accept the config."""


class Failed(Exception):
    """The program fails in another way than by refusing the config."""


class Trained(NamedTuple):
    metrics: dict       # {split: [line, ...]}
    best: qkv.Run       # the chosen checkpoint
    last: qkv.Run       # after the last step


def toml_of(config, folder):
    """The config file's text; it names the files in the folder."""
    values = {key: config[key] for key in SIZES if key not in BY_KEY or BY_KEY[key].suits(config)} | config
    if config["train.epochs"]:
        values.pop("train.steps", None)
    if config["train.on_divergence"] == "skip":  # an interval without any update would be an error
        values["train.eval_every"] = 1000
        values["model.embedding"] = str(folder / "vectors.txt")
    if config["train.init"]:
        values |= bert.MODEL | {"train.init": str(folder / "imported")}
    data = "task.train" if config["task.valid_share"] is None else "task.data"
    values |= {data: str(folder / "train.txt"), "task.test": str(folder / "test.txt")}
    if data == "task.train":
        values["task.valid"] = str(folder / "valid.txt")
    sections = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        if section != "data":
            sections.setdefault(section, []).append(f"{name} = {json.dumps(value)}\n")
    text = 'name = "proof"\n' + "".join(sections.pop("", []))
    return text + "".join(f"\n[{section}]\n" + "".join(lines) for section, lines in sections.items())


def prepare(config, folder):
    """Writes data and config, the file run.toml, into the folder; returns the config's text."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_files(folder, config)
    if config["train.init"]:
        call("import", folder / "bert", "--run", folder / "imported")
    text = toml_of(config, folder)
    (folder / "run.toml").write_text(text)
    return text


def train(config, folder):
    """Prepares the folder and trains there. Raises Refused or Failed."""
    prepare(config, folder)
    return train_file(folder, "run")


def first_parameters(config, folder):
    """A checkpoint of the parameters before the first step, in whose folder the config was trained."""
    at_rest = Config({key: value for key, value in config.items()
                      if key.split(".")[0] in ("seed", "data", "task", "model") or key == "train.init"})
    at_rest |= {"optimizer.lr": 1e-30, "train.steps": 1}
    if config["train.on_divergence"] == "skip":
        at_rest |= {"train.on_divergence": "skip", "train.batch": 1}
    (folder / "start.toml").write_text(toml_of(at_rest, folder))
    return train_file(folder, "start").last


def call(*arguments):
    return subprocess.run([qkv.program(), *map(str, arguments)], capture_output=True, text=True, timeout=300)


def train_file(folder, name):
    run = folder / name
    done = call("train", folder / f"{name}.toml", "--run", run, "--threads", "1")
    if done.returncode == 2 and not run.exists():
        raise Refused(done.stderr.strip())
    if done.returncode:
        raise Failed(f"exit code {done.returncode}: {done.stderr.strip().splitlines()[-1]}")
    log = (run / "metrics.jsonl").read_text().splitlines()
    metrics = {"train": [], "valid": [], "test": []}
    for line in map(json.loads, log):
        for times in ("seconds", "tokens_per_second"):
            line.pop(times, None)
        metrics[line["split"]].append(line)
    return Trained(metrics, qkv.run(run / "best.h5"), qkv.run(run / "last.h5"))
