"""What the tests of documentation pages share: a folder as the reader of a page has it, and a shell in it."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).parents[2]


def indented_blocks(page):
    """The indented blocks of a page outside of fenced code, each as its lines."""
    block = []
    for line in [*re.sub(r"```.*?```", "", page, flags=re.DOTALL).splitlines(), ""]:
        if line.startswith("    "):
            block.append(line[4:])
        elif block:
            yield block
            block = []


def cells(line):
    """The cells of a line of a table, which two spaces part."""
    return re.split(r" {2,}", line.strip())


class PageTest(unittest.TestCase):
    """Runs commands in a temporary folder that has the configs, the datasets and the program.

    `program` is the path of the program. `quicker` maps the start of a command to options that make it quick, which the
    pages show as a user would give it.
    """
    program = ""
    quicker = {}

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        for name in ("configs", "datasets"):
            (cls.folder / name).symlink_to(PROJECT / name)
        (cls.folder / "build/release").mkdir(parents=True)
        (cls.folder / "build/release/qkv").symlink_to(cls.program)
        (cls.folder / "build/release/python3").symlink_to(sys.executable)

    @classmethod
    def quickly(cls, command):
        extra = [word for start, words in cls.quicker.items() if command.startswith(start) for word in words]
        return command + "".join(" " + shlex.quote(word) for word in extra)

    @classmethod
    def run_command(cls, command, code=0):
        """The finished process of a command that has to end with this exit code."""
        done = subprocess.run(["bash", "-c", cls.quickly(command)], cwd=cls.folder, capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{cls.folder / 'build/release'}:{os.environ['PATH']}"})
        assert done.returncode == code, f"{cls.quickly(command)}: exit code {done.returncode}\n{done.stderr}"
        return done
