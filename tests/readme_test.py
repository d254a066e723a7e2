"""Every command in README.md and the pages that explain its commands runs, and prints the values that they show.

Usage: readme_test.py PROGRAM

The commands run in a folder of their own, in which the models are trained once. On another processor the last digits of
a trained model may differ, as README says. docs/your-own-data.md has a test of its own.
"""
import json
import os
import pathlib
import re
import shlex
import sys
import tomllib
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
PROJECT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(PROJECT / "tests/support"))
from pages import PageTest, cells, indented_blocks
from stand_ins import write_reviews, write_stand_ins

README = (PROJECT / "README.md").read_text()
PAGES = [README, *((PROJECT / f"docs/{name}.md").read_text() for name in ("commands", "configuration", "runs", "cpp", "how-to", "tutorial"))]
LAST_DIGITS = 0.005
COMMAND = r"(?:qkv|script/[\w-]+|python3|tail|cmake) "

# Options that make a command quick, which the pages show as a user would give it.
QUICKER = {
    "qkv train configs/shakespeare.toml": ["--set", "train.steps=2", "--set", "train.batch=2"],
    "qkv train configs/classify.toml": ["--set", "train.steps=2"],
    "qkv train configs/pretrain.toml": ["--set", "train.steps=20"],
    "qkv sweep configs/sweep.toml": ["--set", "train.steps=5"],
    "qkv find-lr": ["--steps", "50"],
    "qkv fit": ["--time", "3s"],
    "qkv generate": ["--tokens", "20"],
    "qkv bench": ["--seconds", "0.1"],
}
# They install packages, run all tests or take hours.
ONLY_THERE = {"script/demo", "script/experiments", "script/proof", "script/test"}


def blocks():
    for page in PAGES:
        yield from indented_blocks(page)


def commands():
    """Commands in blocks, and in the tables' cells."""
    for block in blocks():
        yield from (line for line in block if re.match(COMMAND, line + " "))
    for page in PAGES:
        for line in page.splitlines():
            if line.startswith("|"):
                yield from re.findall(rf"`({COMMAND}[^`]*)`", line)


def block_with(text):
    return next(block for block in blocks() if any(text in line for line in block))


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Readme(PageTest):
    program, quicker = PROGRAM, QUICKER

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.stand_ins()
        trains = [c for c in commands() if re.match("qkv (train|compare|fit) ", c)]
        cls.outputs = {command: cls.run_command(command).stdout for command in dict.fromkeys(trains)}

    @classmethod
    def stand_ins(cls):
        """Small data in place of what a user brings."""
        write_stand_ins(cls.folder)
        write_reviews(cls.folder)

    def test_every_command_runs(self):
        found = list(dict.fromkeys(commands()))
        self.assertGreater(len(found), 20)
        for command in found:
            with self.subTest(command):
                if command.split()[0] in ONLY_THERE:
                    self.assertTrue(os.access(PROJECT / command.split()[0], os.X_OK))
                elif command not in self.outputs:
                    self.outputs[command] = self.run_command(command).stdout

    def test_commands_in_the_text_exist(self):
        text = "\n".join(PAGES)
        for name in sorted(set(re.findall(r"`qkv ([\w-]+)[^`]*`", text))):
            if name.islower():
                self.run_command(f"qkv {name} --help")
        for script in re.findall(r"`(script/[\w-]+)", text):
            self.assertTrue(os.access(PROJECT / script, os.X_OK), script)

    def test_every_command_of_the_program_is_explained(self):
        help_text = self.run_command("qkv --help").stdout.split("Subcommands:")[1]
        for name in re.findall(r"^  ([a-z-]+) ", help_text, re.MULTILINE):
            self.assertIn(f"\n    qkv {name} ", (PROJECT / "docs/commands.md").read_text())

    def test_links_lead_to_pages_that_exist(self):
        for page in (PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *PROJECT.glob("docs/**/*.md")):
            for link in re.findall(r"\]\((?!https?:)([^)]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)):
                path, _, section = link.partition("#")
                target = page.parent / path if path else page
                self.assertTrue(target.exists(), f"{page.name}: {link}")
                self.assertTrue(not section or section in anchors(target), f"{page.name}: {link}")

    def test_files_that_a_page_names_exist(self):
        folders = "core|layers|optim|datasets|train|inspect|cli|python|configs|tests|bench|script|cmake|docs"
        for page in (PROJECT / "README.md", PROJECT / "CHANGELOG.md", PROJECT / "CONTRIBUTING.md", *PROJECT.glob("docs/**/*.md")):
            for name in re.findall(rf"`((?:{folders})/[\w./-]+)", page.read_text()):
                if "NAME" not in name:
                    self.assertTrue((PROJECT / name).exists(), f"{page.name}: {name}")

    def test_options_that_a_page_names_exist(self):
        config = tomllib.loads((self.folder / "runs/bank/config.toml").read_text())  # it lists all options
        known = {f"{table}.{key}" for table, options in config.items() if isinstance(options, dict) for key in options}
        for page in (PROJECT / "README.md", PROJECT / "CHANGELOG.md", *PROJECT.glob("docs/**/*.md")):
            for code in re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)):
                for option in re.findall(r"(?<![\w./])((?:task|model|optimizer|schedule|train)\.[a-z_]+)(?![\w(])", code):
                    if not option.endswith((".safetensors", ".tsv", ".txt")):
                        self.assertIn(option, known, page.name)

    def test_readme_is_short(self):
        self.assertLessEqual(len(README.splitlines()), 160)

    def test_the_code_is_that_of_a_program_that_is_built_and_run(self):
        code = re.search(r"```cpp\n(.*?)```", README, re.DOTALL).group(1)
        program = "".join((PROJECT / f"tests/install/{name}").read_text() for name in ("classifier.h", "xor.cpp"))
        written = {line.strip() for line in program.splitlines()}
        for line in code.splitlines():
            self.assertIn(line.strip(), written)

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
            f"qkv embed runs/bank-compare/learned-4-heads {shlex.join(sentences)} --word bank --json").stdout)
        for (_, shown), now in zip(rows, found["contextual_cosine"]):
            for a, b in zip(map(float, shown.split()), now):
                self.assertAlmostEqual(a, b, delta=LAST_DIGITS)
        self.assertEqual(found["static_cosine"], [[1] * 4] * 4)  # as the text says

    def test_h5py_prints_the_shapes_that_are_shown(self):
        (command,) = block_with("h5py.File")
        shown = next(block for block in blocks() if block[0].startswith("/model/"))
        self.assertIn(shown[0], self.run_command(command).stdout.splitlines())


if __name__ == "__main__":
    unittest.main()
