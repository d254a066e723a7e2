"""Man pages and completions, which are written from --help.

Usage: manual_test.py PROGRAM
"""
import gzip
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import PROGRAM, PROJECT

COMPLETE = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _qkv 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"'


def written(folder):
    subprocess.run([sys.executable, PROJECT / "cli/manual.py", PROGRAM, folder, "/usr/share/qkv"], check=True)
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def help_of(*command):
    return subprocess.run([PROGRAM, *command, "--help"], check=True, capture_output=True, text=True).stdout


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.files = written(cls.folder / "share")
        cls.pages = {file.name.removesuffix(".1.gz"): gzip.decompress(content).decode().replace(r"\-", "-")
                     for file, content in cls.files.items() if file.suffix == ".gz"}
        cls.commands = re.findall(r"^  ([a-z-]+) ", help_of().split("Subcommands:")[1], re.M)

    def completed(self, *words):
        """What bash offers for the last of the words, in a folder with a config, a folder and another file."""
        here = self.folder / "here"
        (here / "a folder").mkdir(parents=True, exist_ok=True)
        for name in ("own.toml", "notes.txt"):
            (here / name).touch()
        done = subprocess.run(["bash", "-c", COMPLETE, "bash", self.folder / "share/bash-completion/completions/qkv", "qkv", *words],
                              cwd=here, text=True, capture_output=True, check=True)
        return sorted(done.stdout.split("\n")[:-1])

    def test_every_command_has_a_page_with_all_of_its_options(self):
        self.assertEqual(set(self.pages), {"qkv"} | {f"qkv-{command}" for command in self.commands})
        for command in self.commands:
            self.assertIn(f"qkv-{command}", self.pages["qkv"])
            for option in re.findall(r"^  (?:-\w,)?(--[a-z0-9-]+)", help_of(command), re.M):
                self.assertIn(option, self.pages[f"qkv-{command}"], command)

    def test_the_page_of_train_explains_every_option_of_a_config(self):
        keys = re.findall(r"^  ([a-z0-9_.]+) = ", help_of("train"), re.M)
        self.assertIn("optimizer.lr", keys)
        for key in keys:
            self.assertIn(rf"\fB{key} = ", self.pages["qkv-train"])

    @unittest.skipUnless(shutil.which("man"), "man is not installed")
    def test_man_formats_every_page_without_a_warning(self):
        for page in sorted((self.folder / "share/man/man1").iterdir()):
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)

    def test_equal_help_gives_equal_bytes(self):
        self.assertEqual(written(self.folder / "again"), self.files)

    def test_bash_completes_commands_and_options(self):
        self.assertEqual(self.completed("tr"), ["train"])
        self.assertEqual(self.completed("verify"), ["verify", "verify-resume"])
        self.assertEqual(self.completed("train", "--th"), ["--threads"])
        self.assertEqual(self.completed("report", "-"), sorted(["-h", "--help", "-o", "--output", "--sentence", "--threads", "--json",
                                                               "--csv", "--markdown", "--latex"]))

    def test_bash_completes_the_values_that_an_argument_or_option_takes(self):
        self.assertEqual(self.completed("train", ""), ["a folder", "own.toml"])
        self.assertEqual(self.completed("eval", ""), ["a folder", "notes.txt", "own.toml"])
        self.assertEqual(self.completed("resume", ""), ["a folder"])
        self.assertEqual(self.completed("train", "own.toml", "--run", ""), ["a folder"])
        self.assertEqual(self.completed("eval", "a folder", "--data", "no"), ["notes.txt"])
        self.assertEqual(self.completed("export", "a folder", "--names", "t"), ["torch"])
        self.assertEqual(self.completed("train", "own.toml", "--set", "optimizer.l"), ["optimizer.lr="])

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_reads_its_completion(self):
        subprocess.run(["zsh", "-n", self.folder / "share/zsh/vendor-completions/_qkv"], check=True)

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes_commands(self):
        file = self.folder / "share/fish/vendor_completions.d/qkv.fish"
        done = subprocess.run(["fish", "--no-config", "-c", f"source {file}; complete -C 'qkv tr'"], capture_output=True, text=True)
        self.assertEqual([line.split("\t")[0] for line in done.stdout.splitlines()], ["train"], done.stderr)


if __name__ == "__main__":
    unittest.main()
