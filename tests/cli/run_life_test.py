"""The life of a run: signals, kills, damaged files, full disks, divergence and a second process.

Usage: run_life_test.py PROGRAM
"""
import json
import re
import shutil
import signal
import subprocess
import unittest

from program_test import PROGRAM, ProgramTest, qkv_with_file_limit


class RunLife(ProgramTest):
    def test_a_signal_finishes_the_step_and_leaves_a_checkpoint_to_resume_from(self):
        long = ["--set", "train.steps=600", "--set", "train.keep=1"]
        self.run_qkv("train", "tiny.toml", "--run", "whole", *long)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            run = f"stopped-{code}"
            training = subprocess.Popen([PROGRAM, "train", "tiny.toml", "--run", run, *long], cwd=self.folder,
                                        stderr=subprocess.PIPE, text=True)
            for line in training.stderr:
                if line.startswith("step"):
                    break
            training.send_signal(number)
            rest = training.communicate()[1]
            self.assertEqual(training.returncode, code, rest)
            self.assertIn(f"continue with: qkv resume {run}", rest)
            self.run_qkv("resume", run)
            self.assert_same_checkpoints("whole/last.h5", f"{run}/last.h5")

    def test_a_killed_run_resumes_to_the_same_end(self):
        long = ["--set", "train.steps=600", "--set", "train.keep=1"]
        self.run_qkv("train", "tiny.toml", "--run", "whole", *long)
        training = subprocess.Popen([PROGRAM, "train", "tiny.toml", "--run", "killed", *long], cwd=self.folder,
                                    stderr=subprocess.PIPE, text=True)
        for line in training.stderr:
            if line.startswith("step  50"):
                break
        training.kill()
        training.communicate()
        self.run_qkv("resume", "killed")
        self.assert_same_checkpoints("whole/last.h5", "killed/last.h5")

    def test_resume_passes_over_a_damaged_checkpoint(self):
        for name in ("best.h5", "last.h5", "checkpoints/step-00000040.h5"):
            path = self.folder / "runs/tiny" / name
            bytes_ = path.read_bytes()
            path.unlink()
            path.write_bytes(bytes_[: len(bytes_) // 2])
        done = self.run_qkv("resume", "runs/tiny")
        self.assertIn("step-00000040.h5: is truncated", done.stderr)
        self.assertIn("resuming at step 30", done.stderr)
        self.run_qkv("train", "tiny.toml", "--run", "whole")
        self.assert_same_checkpoints("whole/last.h5", "runs/tiny/last.h5")

    def test_a_full_disk_is_named_and_the_old_checkpoints_stay(self):
        before = (self.folder / "runs/tiny/last.h5").read_bytes()
        done = qkv_with_file_limit(20000, "resume", "runs/tiny", "--set", "train.steps=80", cwd=self.folder)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("step-00000050.h5: cannot write: File too large", done.stderr)
        self.assertEqual((self.folder / "runs/tiny/last.h5").read_bytes(), before)

    def test_numbers_that_explode_stop_the_run_before_they_are_saved(self):
        done = self.run_qkv("train", "tiny.toml", "--run", "hot", "--set", "optimizer.kind=sgd", "--set",
                            "optimizer.lr=1e30", "--set", "train.clip=0", code=1)
        self.assertRegex(done.stderr, "is no longer finite|has exploded")
        self.assertFalse((self.folder / "hot/last.h5").exists())
        self.assertIn("starting at step 0", self.run_qkv("resume", "hot", "--set", "optimizer.lr=0.01").stderr)
        self.run_qkv("verify", "hot")

    def test_a_run_that_explodes_in_its_only_step_has_failed(self):
        for optimizer in ("sgd", "adam"):
            done = self.run_qkv("train", "tiny.toml", "--run", "hot", "--set", f"optimizer.kind={optimizer}", "--set",
                                "optimizer.lr=1e38", "--set", "train.steps=1", code=1)
            self.assertEqual(done.stdout, "")
            self.assertIn("step 1: ", done.stderr)
            self.assertRegex(done.stderr, "is no longer finite|has exploded")

    def test_a_run_that_explodes_resumes_with_a_lower_learning_rate(self):
        self.run_qkv("resume", "runs/tiny", "--set", "train.steps=400", "--set", "optimizer.lr=1e30", "--set", "train.clip=0",
                     code=1)
        self.run_qkv("verify", "runs/tiny")
        self.run_qkv("resume", "runs/tiny", "--set", "train.steps=60", "--set", "optimizer.lr=1e-3", "--set", "train.clip=1")
        self.assertEqual({file["step"] for file in self.json("verify", "runs/tiny")["files"]} & {50, 60}, {50, 60})

    def test_a_second_process_is_refused_with_the_first_one_s_id(self):
        long = ["--set", "train.steps=100000"]
        first = subprocess.Popen([PROGRAM, "train", "tiny.toml", "--run", "long", *long], cwd=self.folder,
                                 stderr=subprocess.PIPE, text=True)
        self.addCleanup(first.kill)
        for line in first.stderr:
            if re.match("step +20 ", line):  # the checkpoint of step 10 is there
                break
        for command in (["train", "tiny.toml", "--run", "long"], ["resume", "long"]):
            done = self.run_qkv(*command, code=2)
            self.assertEqual(done.stderr, f"qkv: long is being trained by process {first.pid}; wait for it or stop it\n")
        self.json("eval", "long")  # reading goes on
        first.kill()
        first.communicate()
        self.assertTrue((self.folder / "long/lock").exists())
        self.run_qkv("resume", "long", "--set", "train.steps=10")
        self.assertFalse((self.folder / "long/lock").exists())

    def test_a_run_killed_before_its_first_checkpoint_leaves_no_trace_in_the_next(self):
        rare = ["--set", "train.checkpoint_every=100000", "--set", "task.valid="]
        self.run_qkv("train", "tiny.toml", "--run", "whole", *rare)
        whole = [json.loads(line) for line in (self.folder / "whole/metrics.jsonl").read_text().splitlines()]
        for command in (["train", "tiny.toml", "--run", "killed", *rare], ["resume", "killed", "--set", "train.steps=40"]):
            shutil.rmtree(self.folder / "killed", ignore_errors=True)
            training = subprocess.Popen([PROGRAM, "train", "tiny.toml", "--run", "killed", *rare, "--set",
                                         "train.steps=100000"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
            for line in training.stderr:
                if line.startswith("step"):
                    break
            training.kill()
            training.communicate()
            self.run_qkv(*command)
            events = [json.loads(line) for line in (self.folder / "killed/metrics.jsonl").read_text().splitlines()]
            for event in whole + events:
                event.pop("seconds", None), event.pop("tokens_per_second", None)
            self.assertEqual(events, whole)
            self.assert_same_checkpoints("whole/best.h5", "killed/best.h5")

    def test_what_a_killed_save_left_is_repaired(self):
        self.run_qkv("train", "tiny.toml", "--run", "whole", "--set", "train.keep=9")
        run = self.folder / "whole"
        steps = {path.name: path for path in (run / "checkpoints").iterdir()}
        names = {name: (run / name).read_bytes() for name in ("best.h5", "last.h5")}
        before = self.json("eval", "whole")
        for name in names:  # as they were after the first evaluation
            (run / name).unlink()
            (run / name).hardlink_to(steps["step-00000010.h5"])
        (run / "last.h5.tmp.4194304999.0").write_text("")
        self.run_qkv("resume", "whole")
        self.assertEqual({name: (run / name).read_bytes() for name in names}, names)
        self.assertEqual(list(run.rglob("*.tmp.*")), [])
        for name in names:
            (run / name).unlink()
        self.assertEqual(self.json("eval", "whole"), before)


if __name__ == "__main__":
    unittest.main()
