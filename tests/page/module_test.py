"""The engine of the page as the browser runs it: it trains as the program does, bit for bit where the program is built for x86-64-v2,
says what it says, and survives any call.

Usage: module_test.py PROGRAM
"""
import importlib.machinery
import importlib.util
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).parents[1]
PROJECT = TESTS.parent
sys.path.insert(0, str(TESTS / "support"))
import browser
from engine_page import Page
from stand_ins import write_stand_ins

def script(name):
    loader = importlib.machinery.SourceFileLoader(name, str(PROJECT / "script" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


PROGRAM = str(pathlib.Path(sys.argv.pop(1)).absolute())
CASES = 200
BANK = ["configs/bank.toml", "--set", "train.steps=12"]
# Five trainings, short and different in everything: tasks, layers, positions, optimizers, averages.
TRAININGS = {
    "word senses": [*BANK, "--set", "train.batch=16"],
    "two layers, rotary, accumulated": [*BANK, *(part for change in (
        "model.layers=2", "model.feed_forward=32", "model.position=rotary", "model.norm=pre", "train.ema=0", "train.accumulate=2", "train.batch=7",
        "optimizer.kind=adamw", "optimizer.weight_decay=0.1") for part in ("--set", change))],
    "characters": ["configs/shakespeare.toml", *(part for change in (
        "task.data=shakespeare.txt", "model.width=32", "model.layers=2", "model.heads=2", "model.feed_forward=64", "train.steps=6")
        for part in ("--set", change))],
    "tags": ["configs/tagging.toml", "--set", "train.steps=6"],
    "sequences": ["configs/sequences.toml", "--set", "train.steps=6"],
}


def program(*arguments, folder=None, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=folder)
    if code is not None:
        assert done.returncode == code, (arguments, done.stderr)
    return done


def without_variants(config):
    return config.split("[[variant]]")[0]


def damaged(content, draw):
    """Bytes in which some are changed, left out, doubled or moved."""
    for _ in range(draw.choice([0, 1, 2, 8])):
        begin, at = draw.randrange(len(content) + 1), draw.randrange(len(content) + 1)
        end = begin + draw.choice([1, 8, 4096])
        piece = content[begin:end]
        change = draw.choice(["change", "leave out", "double", "move"])
        if change == "change":
            content = content[:begin] + bytes([draw.choice(b"\0\t\n\"-.09a\xff")]) + content[begin + 1:]
        elif change == "leave out":
            content = content[:begin] + content[end:]
        elif change == "double":
            content = content[:begin] + piece + content[begin:]
        else:
            content = content[:at] + piece + content[at:]
    return content


@unittest.skipIf(browser.missing(), f"no browser: {browser.missing()}")
class ModuleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        write_stand_ins(cls.folder)
        for name in ("configs", "datasets"):
            (cls.folder / name).symlink_to(PROJECT / name)
        cls.page = Page(cls.folder)
        cls.addClassCleanup(cls.page.close)

    def setUp(self):
        self.page.run("restart()")

    def test_five_trainings_end_as_the_program_s_do(self):
        exact = "x86-64-v2" in program("--version").stdout
        for name, arguments in TRAININGS.items():
            with self.subTest(name):
                run = self.folder / "runs" / re.sub("[^a-z]+", "-", name)
                program("train", *arguments, "--run", run, folder=self.folder)
                config = self.page.config_of(run)
                started = self.page.ask(call="train", config=config)
                self.assertNotIn("error", started)
                steps = started["steps"]
                found = self.page.ask(call="step", count=steps)
                self.assertEqual(found["step"], steps)
                last = json.loads(program("verify", run / "last.h5", "--json").stdout)["files"][0]
                mine = self.page.ask(call="parameters")
                if exact:
                    self.assertEqual(mine["checksum"], last["parameters_checksum"])
                split = "valid" if started["examples"]["valid"] else "train"
                measured = self.page.ask(call="evaluate", split=split)["loss"]
                events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
                losses = [event["loss"] for event in events if event["step"] == steps and event["split"] == "valid"]
                for loss in losses:
                    self.assertAlmostEqual(measured / loss, 1, delta=1e-12 if exact else 1e-3)
                print(f"{name}: {steps} steps, checksum {mine['checksum']}, {'equal' if exact else 'not compared: ' + program('--version').stdout.strip()}")

    def test_a_config_that_the_program_refuses_is_refused_with_its_words(self):
        run = self.folder / "runs/refused"
        program("train", *BANK, "--run", run, folder=self.folder)
        good = self.page.config_of(run)
        for change in ("widht = 8", "heads = 3", "heads = -1", 'position = "sideways"'):
            key = change.split(" = ")[0]
            bad = re.sub(rf"^{key} = .*$", change, good, flags=re.M) if re.search(rf"^{key} =", good, re.M) else good.replace("[model]", f"[model]\n{change}")
            (self.folder / "bad.toml").write_text(bad)
            said = program("train", "bad.toml", "--run", "runs/bad", folder=self.folder, code=None).stderr.strip().splitlines()[-1]
            error = self.page.ask(call="train", config=bad)["error"]
            self.assertEqual(error.replace("page", "bad.toml", 1), said.removeprefix("qkv: ").replace(str(self.folder) + "/", ""), change)

    def test_calls_drawn_at_random_are_answered_or_refused(self):
        draw = random.Random(7)
        calls = ["load", "read", "predict", "attend", "explain", "embed", "nearest", "ablate", "generate", "map", "train", "step", "evaluate",
                 "parameters", "export", "", "x" * 1000]
        values = [None, True, -1, 0, 1, 2**31, 2**53, -2**63, 0.5, 1e300, "", "a", "\0", "é" * 300, "\ud800", [], [[]], {}, {"a": 1},
                  "name = \"x\"\n[task]\ntrain = \"train.tsv\"", "[" * 5000, {"tokens": ["a"]}, {"tokens": [1]}]
        fields = ["model", "text", "index", "count", "config", "vocabulary", "step", "changes", "points", "split", "seed", "tokens", "output"]
        for case in range(400):
            request = {field: draw.choice(values) for field in draw.sample(fields, draw.randint(0, 6))} | {"call": draw.choice(calls)}
            answer = self.page.ask(**request)
            self.assertTrue("error" not in answer or answer["error"], request)
            self.assertFalse(self.page.run("engine.failure"), request)
        self.assertFalse(self.page.complaints)

    def test_files_of_hostile_sizes_are_refused(self):
        run = self.folder / "runs/data"
        program("train", *BANK, "--run", run, folder=self.folder)
        config = self.page.config_of(run)
        for data in (b"", b"\0", b"\xff\xfe", b"money\t1\n", b"money\t99\tbank bank\n", b"a\t" * 10000, b"x" * 3_000_000, "money\t1\tbank \u00c5\u0300\n".encode() * 3):
            self.page.put("datasets/bank/train.tsv", data)
            answer = self.page.ask(call="train", config=config)
            self.assertTrue(answer.get("error") or answer.get("parameters"), data[:20])
            self.assertFalse(self.page.run("engine.failure"), data[:20])

    def test_what_the_fuzzers_begin_with_is_read_or_refused_whole_or_damaged(self):
        seeds, draw = script("fuzz").seeds(), random.Random(11)
        for name in {name for config in seeds["config"] for name in re.findall(r'"(datasets/[^"]*)"', config)}:
            self.page.put(name, b"".join((PROJECT / name).read_bytes().splitlines(keepends=True)[:100]))
        readers = {"conll": ("tagging", "data.conll"), "csv": ("sentiment", "data.csv"), "text": ("shakespeare", "data.txt"), "tsv": ("bank", "data.tsv")}
        counts = {reader: [0, 0] for reader in ["config", *readers]}
        for _ in range(CASES):
            reader = draw.choice(list(counts))
            content = damaged(without_variants(draw.choice(seeds[reader])).encode(), draw)
            if reader in readers:
                config, name = readers[reader]
                self.page.put(name, content)
                given = without_variants((PROJECT / f"configs/{config}.toml").read_text())
                given = re.sub(r'(?m)^(train|valid|test|data) = "[^"]*"\n', "", given)
                given = given.replace("[task]\n", f'[task]\ndata = "{name}"\n')
            else:
                given = content.decode(errors="replace")
            answer = self.page.ask(call="train", config=given)
            self.assertTrue(answer.get("error") or answer.get("parameters"), (given, content))
            self.assertFalse(self.page.run("engine.failure"), (given, content))
            counts[reader]["error" in answer] += 1
        print("read and refused:", counts)
        self.assertFalse(self.page.complaints)


if __name__ == "__main__":
    unittest.main()
