"""Every command of the lessons in docs/course runs and prints what its page shows; every exercise fails until it is solved.

Usage: course_test.py PROGRAM

A page shows a part of the lines and columns that a command prints. On another processor a training ends with other values,
so numbers may differ by 0.05 or 5 %.
"""
import os
import pathlib
import re
import shutil
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
PROJECT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(PROJECT / "tests/support"))
from pages import PageTest, cells, indented_blocks

COURSE = PROJECT / "docs/course"
LESSONS = sorted(COURSE.glob("*-*.md"), key=lambda page: int(page.name.split("-")[0]))
SECTIONS = ["Answer first", "Run it", "Why", "Exercise"]
DECIMAL = re.compile(r"-?\d*\.\d+")

# A solution of each exercise: changes of its config.
SOLUTIONS = {
    1: [("contextual_cosine < 0.9", "contextual_cosine = 1")],
    2: [("The man in the bank saw a clerk.", "The duck on the bank saw a man.")],
    3: [('attention = "parameter-free"', 'attention = "learned"')],
    4: [('["money bank grows", "river bank flows"]',
         '["at the bank nobody skimmed stones but the clerk bought shares", '
         '"at the bank nobody bought shares but the clerk skimmed stones"]')],
    5: [("heads = 1", "heads = 8")],
    6: [('position = "none"', 'position = "sinusoidal"')],
    7: [("scale = false", "scale = true")],
    8: [("layers = 1", "layers = 2"), ('"?"', '"l"')],
    9: [("lr = 1e-6", "lr = 6e-3")],
    10: [('attends_to = "money"', 'attends_to = "the"')],
}


def number(page):
    return int(page.name.split("-")[0])


def same(shown, printed):
    """Whether two texts have the same words and, nearly, the same numbers."""
    words, others = shown.split(), printed.split()
    return len(words) == len(others) and all(
        abs(float(a) - float(b)) <= max(0.05, 0.05 * abs(float(a))) if DECIMAL.fullmatch(a) and DECIMAL.fullmatch(b) else a == b
        for a, b in zip(words, others))


def shows(line, printed):
    """Whether the cells of a page's line stand in this order in a printed one."""
    rest = iter(cells(printed))
    return all(any(same(cell, other) for other in rest) for cell in cells(line))


def parts(block):
    """The commands of a block, and the lines that it shows of their output."""
    commands = [line for line in block if line.startswith("qkv ")]
    return commands, [line for line in block if line not in commands and line.strip() and not line.startswith(("─", "..."))]


class Course(PageTest):
    program = PROGRAM

    def setUp(self):
        shutil.rmtree(self.folder / "runs", ignore_errors=True)
        (self.folder / "docs/course").mkdir(parents=True, exist_ok=True)
        for config in COURSE.glob("*.toml"):
            shutil.copy(config, self.folder / "docs/course")

    def run_block(self, block):
        """Runs a block's commands and compares what they print. An exercise, which is not solved yet, ends with exit code 1."""
        commands, shown = parts(block)
        printed = []
        for command in commands:
            done = self.run_command(command, code=1 if "--check" in command else 0)
            self.assertTrue(done.stdout, command)
            printed += (done.stdout + done.stderr).splitlines()
        rest = iter(printed)
        for line in shown:
            self.assertTrue(any(shows(line, now) for now in rest), f"{commands}: {line}\n" + "\n".join(printed))

    def solve(self, page):
        config = self.folder / "docs/course" / page.with_suffix(".toml").name
        text = config.read_text()
        for before, after in SOLUTIONS[number(page)]:
            self.assertIn(before, text)
            text = text.replace(before, after)
        config.write_text(text)

    def test_there_are_ten_lessons_in_one_form(self):
        self.assertEqual([number(page) for page in LESSONS], list(range(1, 11)))
        for page in LESSONS:
            text = page.read_text()
            self.assertEqual(re.findall(r"^## (.*)$", text, re.MULTILINE), SECTIONS, page.name)
            self.assertTrue(60 <= len(text.splitlines()) <= 110, f"{page.name}: {len(text.splitlines())} lines")
            self.assertIn(f"({page.name})", (COURSE / "README.md").read_text())
            exercise = text.split("## Exercise")[1]
            self.assertIn(f"qkv compare docs/course/{page.stem}.toml --restart --check", exercise)

    def test_figures_in_the_text_are_printed_on_the_page(self):
        experiments = (PROJECT / "docs/experiments.md").read_text()
        for page in LESSONS:
            prose = " ".join(line for line in page.read_text().splitlines() if not line.startswith("    "))
            shown = [float(value) for block in indented_blocks(page.read_text()) for line in parts(block)[1]
                     for value in DECIMAL.findall(line)]
            for value, spread in re.findall(r"(?<![\w.])(-?\d*\.\d+)( ± \d*\.\d+)?(?![\w.])", prose):
                digits = len(value.split(".")[1])
                rounded = not spread and any(round(abs(n), digits) == abs(float(value)) for n in shown)
                self.assertTrue(rounded or value + spread in experiments, f"{page.name}: {value}{spread}")


def lesson_test(page):
    def test(self):
        for block in indented_blocks(page.read_text()):
            if parts(block)[0]:
                self.run_block(block)
        self.solve(page)
        self.run_command(f"qkv compare docs/course/{page.stem}.toml --restart --check")
    return test


for lesson in LESSONS:
    setattr(Course, f"test_lesson_{lesson.stem.replace('-', '_')}", lesson_test(lesson))

if __name__ == "__main__":
    unittest.main()
