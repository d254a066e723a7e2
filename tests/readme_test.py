"""Every command in README.md does what README says, and prints the values that README shows.

Usage: readme_test.py PROGRAM

The commands run in a folder of their own, in which the models are trained once. On another processor the last digits of
a trained model may differ, as README says.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
PROJECT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(PROJECT / "tests/support"))
from stand_ins import write_stand_ins

README = (PROJECT / "README.md").read_text()
LAST_DIGITS = 0.005
COMMAND = r"(?:qkv|script/[\w-]+|python3|tail|cmake) "

# What makes a command quick, which README shows as a user would give it.
QUICKER = {
    "qkv train configs/shakespeare.toml": ["--set", "train.steps=2", "--set", "train.batch=2"],
    "qkv train configs/coarsewsd.toml": ["--set", "train.steps=4"],
    "qkv train configs/classify.toml": ["--set", "train.steps=2"],
    "qkv train configs/pretrain.toml": ["--set", "train.steps=20"],
    "qkv generate": ["--tokens", "20"],
    "qkv bench": ["--seconds", "0.1"],
}
# They install packages, run all tests or take hours.
ONLY_THERE = {"script/demo", "script/experiments", "script/proof", "script/test"}


def blocks():
    """Indented blocks, each as its lines."""
    block = []
    for line in [*README.splitlines(), ""]:
        if line.startswith("    "):
            block.append(line[4:])
        elif block:
            yield block
            block = []


def commands():
    """Commands in blocks, and in the tables' cells."""
    for block in blocks():
        yield from (line for line in block if re.match(COMMAND, line + " "))
    for line in README.splitlines():
        if line.startswith("|"):
            yield from re.findall(rf"`({COMMAND}[^`]*)`", line)


def quickly(command):
    extra = [word for start, words in QUICKER.items() if command.startswith(start) for word in words]
    return command + "".join(" " + shlex.quote(word) for word in extra)


def block_with(text):
    return next(block for block in blocks() if any(text in line for line in block))


def cells(line):
    """The cells of a line of a table, which two spaces part."""
    return re.split(r" {2,}", line.strip())


class Readme(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        for name in ("configs", "datasets"):
            (cls.folder / name).symlink_to(PROJECT / name)
        (cls.folder / "build/release").mkdir(parents=True)
        (cls.folder / "build/release/qkv").symlink_to(PROGRAM)
        (cls.folder / "build/release/python3").symlink_to(sys.executable)
        cls.stand_ins()
        trains = [c for c in commands() if re.match("qkv (train|compare) ", c)]
        cls.outputs = {command: cls.run_command(command) for command in dict.fromkeys(trains)}

    @classmethod
    def stand_ins(cls):
        """Small data in place of what README says to download or to bring."""
        write_stand_ins(cls.folder)
        (cls.folder / "data.csv").write_text('good,"warm, funny"\nbad,dull\n')
        (cls.folder / "data.tsv").write_text("label\ttext\ngood\twarm\n")

    @classmethod
    def run_command(cls, command):
        done = subprocess.run(["bash", "-c", quickly(command)], cwd=cls.folder, capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{cls.folder / 'build/release'}:{os.environ['PATH']}"})
        assert done.returncode == 0, f"{quickly(command)}: exit code {done.returncode}\n{done.stderr}"
        return done.stdout

    def test_every_command_runs(self):
        found = list(dict.fromkeys(commands()))
        self.assertGreater(len(found), 20)
        for command in found:
            with self.subTest(command):
                if command.split()[0] in ONLY_THERE:
                    self.assertTrue(os.access(PROJECT / command.split()[0], os.X_OK))
                elif command not in self.outputs:
                    self.outputs[command] = self.run_command(command)

    def test_commands_in_the_text_exist(self):
        for name in re.findall(r"`qkv ([\w-]+)[^`]*`", README):
            if name.islower():
                self.run_command(f"qkv {name} --help")
        for script in re.findall(r"`(script/[\w-]+)", README):
            self.assertTrue(os.access(PROJECT / script, os.X_OK), script)

    def test_the_comparison_s_table_is_what_is_printed(self):
        first_table = self.outputs["qkv compare configs/bank.toml"].split("\n\n")[0]  # the other one is of the probes
        printed = {cells(line)[0]: cells(line) for line in first_table.splitlines()}
        head = printed["variant"]
        shown = [line for line in block_with("test accuracy") if not line.startswith("─")]
        rows = [cells(line) for line in shown]
        self.assertEqual(len(rows), 1 + 5)
        for row in rows[1:]:
            now = dict(zip(head, printed[row[0]]))
            self.assertEqual(row[1], now["parameters"])
            for column, value in list(zip(rows[0], row))[2:]:
                self.assertAlmostEqual(float(value), float(now[column]), delta=LAST_DIGITS, msg=f"{row[0]}, {column}")

    def test_the_cosines_are_what_is_printed(self):
        block = block_with('cosine of contextual "bank"')
        rows = [re.match(r"\(\d\) (.*?)  +(.*)", line).groups() for line in block if line.startswith("(")]
        self.assertEqual(len(rows), 4)
        sentences = [sentence for sentence, _ in rows]
        found = json.loads(self.run_command(
            f"qkv embed runs/bank-compare/learned-4-heads {shlex.join(sentences)} --word bank --json"))
        for (_, shown), now in zip(rows, found["contextual_cosine"]):
            for a, b in zip(map(float, shown.split()), now):
                self.assertAlmostEqual(a, b, delta=LAST_DIGITS)
        self.assertEqual(found["static_cosine"], [[1] * 4] * 4)  # as the text says

    def test_h5py_prints_the_shapes_that_are_shown(self):
        (command,) = block_with("h5py.File")
        shown = next(block for block in blocks() if block[0].startswith("/model/"))
        self.assertIn(shown[0], self.run_command(command).splitlines())


if __name__ == "__main__":
    unittest.main()
