"""The built program, and a base class of the test cases that run it.

The program is the first argument of the test that imports this module, which takes it from the arguments.
"""
import json
import os
import pathlib
import pty
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
PROJECT = pathlib.Path(__file__).parents[2]
CONFIG = """
name = "tiny"
[task]
train = "train.tsv"
valid = "valid.tsv"
test = "test.tsv"
[model]
width = 8
layers = 1
heads = 2
feed_forward = 16
dropout = 0.1
max_length = 24
[train]
steps = 40
batch = 16
eval_every = 10
checkpoint_every = 10
"""


def qkv(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, **options)


def qkv_with_file_limit(limit, *arguments, **options):
    """Runs qkv with a limit of `limit` bytes for every file. A build for coverage writes none of its own, which are larger."""
    unwritten = {"GCOV_PREFIX": "/dev/null", "GCOV_ERROR_FILE": "/dev/null"}
    return qkv(*arguments, env=os.environ | unwritten,
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)), **options)


class ProgramTest(unittest.TestCase):
    """Every test works in a folder of its own with a small config, data and a trained run."""

    @classmethod
    def setUpClass(cls):
        cls.template = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.template.name)
        (folder / "tiny.toml").write_text(CONFIG)
        for split, lines in (("train", 200), ("valid", 40), ("test", 40)):
            text = (PROJECT / f"datasets/bank-twins/{split}.tsv").read_text().splitlines(keepends=True)[:lines]
            (folder / f"{split}.tsv").write_text("".join(text))
        done = qkv("train", "tiny.toml", cwd=folder)
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.template.cleanup()

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name) / "work"
        shutil.copytree(self.template.name, self.folder)
        self.addCleanup(self.temporary.cleanup)

    def run_qkv(self, *arguments, code=0, **options):
        done = qkv(*arguments, cwd=self.folder, **options)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stderr)
        return done

    def json(self, *arguments):
        return json.loads(self.run_qkv(*arguments, "--json").stdout)

    def in_terminal(self, *arguments, **environment):
        """Returns everything that the program writes to a terminal.

        The program's end of the terminal stays open here until all is read: on Linux a read that meets the last close can
        miss what was written just before.
        """
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"this machine lends no terminal (is /dev/pts mounted?): {error}")
        process = subprocess.Popen([PROGRAM, *arguments], cwd=self.folder, stdout=theirs, stderr=theirs,
                                   env={**os.environ, "TERM": "xterm-256color", **environment})
        output = b""
        ended = False
        while not ended:
            ended = process.poll() is not None
            while select.select([ours], [], [], 0 if ended else 0.02)[0]:
                output += os.read(ours, 1 << 16)
        os.close(ours)
        os.close(theirs)
        self.assertEqual(process.returncode, 0, output)
        return output.decode()

    def assert_refused(self, arguments, *parts, code=2):
        """Demands an exit code, one line of error that contains all parts, nothing printed and nothing written."""
        before = sorted(self.folder.rglob("*"))
        done = self.run_qkv(*arguments, code=code)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def assert_same_checkpoints(self, a, b):
        done = subprocess.run(["h5diff", a, b], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
