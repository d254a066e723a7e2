"""A program starts the build for its processor that is installed beside it.

Usage: processor_test.py PROGRAM
"""
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import PROGRAM

LEVEL = "x86-64-v2"


@unittest.skipUnless(platform.machine() == "x86_64", "has no levels")
class Processor(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.prefix = pathlib.Path(temporary.name)
        (self.prefix / "bin").mkdir()
        shutil.copy(PROGRAM, self.prefix / "bin/qkv")

    def install(self, level):
        other = self.prefix / f"libexec/qkv/{level}/qkv"
        other.parent.mkdir(parents=True)
        other.write_text(f'#!/bin/sh\necho {level} "$@"\n')
        other.chmod(0o755)

    def run_qkv(self, *arguments, **environment):
        return subprocess.run([self.prefix / "bin/qkv", *arguments], capture_output=True, text=True,
                              env={**os.environ, **environment})

    def test_the_build_that_is_named_is_started_with_the_same_arguments(self):
        if f"({LEVEL})" in self.run_qkv("--version").stdout:
            self.skipTest(f"is itself the build for {LEVEL}")
        self.install(LEVEL)
        self.assertEqual(self.run_qkv("train", "a b", QKV_CPU=LEVEL).stdout, f"{LEVEL} train a b\n")

    def test_a_build_for_this_processor_does_not_give_way_to_others(self):
        self.install(LEVEL)
        if "(native)" in subprocess.run([PROGRAM, "--version"], capture_output=True, text=True).stdout:
            self.assertIn("(native)", self.run_qkv("--version").stdout)

    def test_a_build_alone_runs_itself_and_says_for_what_it_is(self):
        own = self.run_qkv("--version")
        self.assertRegex(own.stdout, r"^\d+\.\d+\.\d+ \((native|[a-z0-9_-]+)\)\n$")
        level = own.stdout.split("(")[1].rstrip(")\n")
        self.assertEqual(self.run_qkv("--version", QKV_CPU=level).stdout, own.stdout)

    def test_a_level_that_is_not_installed_is_refused(self):
        done = self.run_qkv("--version", QKV_CPU="x86-64-v9")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("QKV_CPU is x86-64-v9, and this processor and this installation have ", done.stderr)

    def under_qemu(self, processor, *arguments):
        qemu = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")
        if qemu is None:
            self.skipTest("needs qemu-x86_64-static (Debian's qemu-user-static)")
        if b"__sanitizer" in pathlib.Path(PROGRAM).read_bytes():
            self.skipTest("sanitizers do not run under qemu")
        done = subprocess.run([qemu, "-cpu", processor, PROGRAM, *arguments], capture_output=True, text=True)
        # qemu warns of what it does not emulate.
        errors = [line for line in done.stderr.splitlines(keepends=True) if not line.startswith("qemu-")]
        return done.returncode, done.stdout, "".join(errors)

    def test_an_older_processor_than_the_build_is_for_is_an_error_that_names_what_it_lacks(self):
        level = self.run_qkv("--version").stdout.split("(")[1].rstrip(")\n")
        older = {LEVEL: ["qemu64"], "x86-64-v4": ["qemu64", "Nehalem", "Haswell"]}
        for processor in older.get(level, ["qemu64", "Nehalem"]):
            code, output, error = self.under_qemu(processor, "--version")
            self.assertEqual((code, output), (1, ""), processor)
            self.assertRegex(error, r"^qkv: this build needs \w+(\.\d)?, which this processor does not have; build qkv on "
                             r"this machine, or with -DQKV_PORTABLE=ON for any x86-64-v2 processor\n$")

    def test_a_build_runs_on_the_oldest_processor_that_it_is_for(self):
        oldest = {"x86-64-v2": "Nehalem", "x86-64-v3": "Haswell"}
        level = self.run_qkv("--version").stdout.split("(")[1].rstrip(")\n")
        if level not in oldest:
            self.skipTest(f"qemu has no oldest processor for {level}")
        code, output, error = self.under_qemu(oldest[level], "--version")
        self.assertEqual((code, error), (0, ""))
        self.assertIn(level, output)


if __name__ == "__main__":
    unittest.main()
