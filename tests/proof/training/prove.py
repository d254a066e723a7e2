"""Draws configs and compares what qkv trains with a reference training in PyTorch, in float64, written from the definitions.

Usage: prove.py PROGRAM [--seconds N | --cases N] [--seed N]

Every option of options.py is drawn in turn, together with others. Of a config that differs, the options are reset one by one
while it differs, and the rest is printed with what differs; config and data are left in build/proof. A config is undecided where
it depends on the order of float32's sums whether an update is left out. Exits with 77 where PyTorch or h5py are not installed.
"""
import argparse
import os
import pathlib
import random
import sys
import tempfile
import time
from collections import Counter

os.environ.setdefault("OMP_NUM_THREADS", "1")
try:
    import h5py
    import torch
    import streams
except ImportError as error:
    print(f"skipped: the proof of trainings needs h5py and PyTorch ({error})")
    sys.exit(77)

import compare
from options import IDLE, OPTIONS, TOGETHER, Config, proper
from program import PROJECT, prepare
from reference import Undecided

CHANCE = 0.12  # of an option to be drawn besides the one whose turn it is


def draw(forced, chooser):
    """A config that has the options `forced`, and others."""
    for _ in range(10000):
        config = Config(forced) | {"data.seed": chooser.randrange(1000)}
        for option in OPTIONS:
            chance = 0.5 if option.key in ("task.kind", "model.kind") else CHANCE
            if option.key not in forced and chooser.random() < chance:
                config[option.key] = chooser.choice(option.values)
        config = proper(config)
        if forced.items() <= config.items():
            return config
    raise AssertionError(f"no config has {forced}")


def turns(chooser):
    """Every value of every option in a random order, again and again; in between options that are idle."""
    while True:
        forced = [{option.key: value} for option in OPTIONS for value in option.values] + TOGETHER
        every = [(options, None) for options in forced] + IDLE
        chooser.shuffle(every)
        yield from every


def same_kind(a, b):
    """Whether both differ, and both in values or in the same other way."""
    kinds = [{kind for kind, _ in found} - {"valid", "parameters", "test"} for found in (a, b)]
    return bool(a) and (kinds[0] == kinds[1] or all("train" in kind or not kind for kind in kinds))


class Proof:
    def __init__(self, folder):
        self.folder, self.kinds, self.failures, self.again, self.undecided = folder, Counter(), [], 0, 0

    def check(self, turn, chooser):
        """Draws one config and compares; a difference is shrunk and shown, unless its options are known to differ."""
        option, context = turn
        if context is None:
            config = draw(option, chooser)
            found = self.differences(config)
            self.kinds[config["task.kind"]] += 1
        else:
            config = Config(context | option)
            found = compare.idle_differences(option, context, self.folder)
        if found and any(known.items() <= config.items() for known in self.failures):
            self.again += 1
        elif found:
            self.show(*(self.shrunk(config, found) if context is None else (config, found)))

    def differences(self, config):
        try:
            return compare.differences(config, self.folder)
        except Undecided:
            self.undecided += 1
            return []

    def shrunk(self, config, found):
        """The config with as few options as still differ, and by values where values did."""
        for key in [*config, *config]:
            smaller = proper({k: v for k, v in config.items() if k != key})
            if smaller != config and same_kind(differs := self.differences(smaller), found):
                config, found = smaller, differs
        return config, found

    def show(self, config, found):
        self.failures.append({key: value for key, value in config.items() if key != "data.seed"})
        kept = PROJECT / f"build/proof/{len(self.failures)}"
        text = prepare(config, kept)
        print(f"\nDIFFERS: {config or 'the base'}")
        for kind, text in found[:5]:
            print(f"  {kind}: {text}")
        print(f"  {kept}/run.toml:\n" + "".join(f"    {line}\n" for line in text.splitlines() if line), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.environ["QKV"] = options.program
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False  # as in tests/ops/torch_side.py
    torch.set_default_dtype(torch.float64)
    chooser = random.Random(options.seed)
    begin, count = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        proof = Proof(pathlib.Path(folder) / "case")
        for turn in turns(chooser):
            if count >= options.cases if options.cases else time.monotonic() - begin >= options.seconds:
                break
            proof.check(turn, chooser)
            count += 1
    tasks = ", ".join(f"{number} {task}" for task, number in sorted(proof.kinds.items()))
    print(f"{count} configs ({tasks}), seed {options.seed}, {time.monotonic() - begin:.0f} s, {proof.undecided} undecided: "
          + (f"{len(proof.failures)} differences, {proof.again} configs with the same options" if proof.failures else
             "no difference beyond rounding"))
    return 1 if proof.failures else 0


if __name__ == "__main__":
    sys.exit(main())
