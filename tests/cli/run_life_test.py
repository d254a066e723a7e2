"""The life of a run: signals, kills, damaged files, full disks, divergence and a second process.

Usage: run_life_test.py PROGRAM
"""
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import PROGRAM, ProgramTest, qkv_with_file_limit


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
        self.assertRegex(done.stderr, "is not finite|has exploded")
        self.assertFalse((self.folder / "hot/last.h5").exists())
        self.assertIn("starting at step 0", self.run_qkv("resume", "hot", "--set", "optimizer.lr=0.01").stderr)
        self.run_qkv("verify", "hot")

    def test_a_run_that_explodes_in_its_only_step_has_failed(self):
        for optimizer in ("sgd", "adam"):
            done = self.run_qkv("train", "tiny.toml", "--run", "hot", "--set", f"optimizer.kind={optimizer}", "--set",
                                "optimizer.lr=1e38", "--set", "train.steps=1", code=1)
            self.assertEqual(done.stdout, "")
            self.assertIn("step 1: ", done.stderr)
            self.assertRegex(done.stderr, "is not finite|has exploded")

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

    def begun(self, *arguments, at="step"):
        """A process that trains, from its first line on stderr that begins so."""
        training = subprocess.Popen([PROGRAM, *arguments], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.addCleanup(training.kill)
        for line in training.stderr:
            if line.startswith(at):
                return training
        self.fail(f"no line begins with {at}")

    def test_a_terminal_that_closes_and_a_limit_of_time_stop_a_run_with_a_checkpoint(self):
        for number, code in ((signal.SIGHUP, 129), (signal.SIGXCPU, 152)):
            training = self.begun("train", "tiny.toml", "--run", f"stopped-{code}", "--set", "train.steps=100000")
            training.send_signal(number)
            training.send_signal(number)  # as a shell does that closes its terminal
            rest = training.communicate()[1]
            self.assertEqual(training.returncode, code, rest)
            self.assertIn(f"continue with: qkv resume stopped-{code}", rest)

    def test_the_command_to_continue_with_can_be_pasted_whatever_the_folder_is_called(self):
        name = "it's \x1b[31m\nred"
        training = subprocess.Popen([PROGRAM, "train", "tiny.toml", "--run", name, "--set", "train.steps=100000"],
                                    cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.addCleanup(training.kill)
        for line in training.stderr:
            if line.startswith("step"):
                break
        training.send_signal(signal.SIGTERM)
        command = training.communicate()[1].split("continue with: qkv resume ")[1].rstrip("\n")
        self.assertEqual(subprocess.run(["bash", "-c", f"printf %s {command}"], capture_output=True, text=True).stdout, name)

    def test_a_hangup_that_is_ignored_stays_so(self):
        training = subprocess.Popen(["nohup", PROGRAM, "train", "tiny.toml", "--run", "kept", "--set", "train.steps=400"],
                                    cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True)
        for line in training.stderr:
            if line.startswith("step"):
                break
        training.send_signal(signal.SIGHUP)
        self.assertIn("test", training.communicate()[1])
        self.assertEqual(training.returncode, 0)

    def test_a_signal_ends_the_program_at_once_while_it_reads_data(self):
        lines = (self.folder / "train.tsv").read_text().splitlines(keepends=True)
        (self.folder / "train.tsv").write_text("".join(lines * 5000))  # seconds of reading
        training = subprocess.Popen([PROGRAM, "train", "tiny.toml", "--run", "reading"], cwd=self.folder,
                                    stderr=subprocess.PIPE, text=True)
        self.addCleanup(training.kill)
        time.sleep(0.3)
        training.send_signal(signal.SIGTERM)
        self.assertEqual(training.communicate(timeout=60)[1], "")
        self.assertEqual(training.returncode, -signal.SIGTERM)

    def test_a_lock_that_is_a_link_is_refused_by_every_command_that_writes_a_run(self):
        notes = self.folder / "notes.txt"
        notes.write_text("mine\n")
        self.run_qkv("export", "runs/tiny", "--safetensors", "tiny.safetensors")
        (self.folder / "new").mkdir()
        for run in ("runs/tiny", "new"):
            (self.folder / run / "lock").symlink_to(notes)
        for command in (["resume", "runs/tiny"], ["resume", "runs/tiny", "--set", "model.width=8"],
                        ["train", "tiny.toml", "--run", "new"], ["import", "tiny.safetensors", "--run", "new"]):
            self.assert_refused(command, "/lock: is a link, which is not followed; remove it")
            self.assertEqual(notes.read_text(), "mine\n")

    def test_a_run_writes_through_no_link_in_its_folder(self):
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        run = self.folder / "runs/tiny"
        (run / "tensorboard").symlink_to(elsewhere)
        self.assert_refused(["resume", "runs/tiny", "--set", "train.steps=60"], "runs/tiny/tensorboard: is a link")
        (run / "tensorboard").unlink()
        (run / "checkpoints").rename(self.folder / "moved")
        (run / "checkpoints").symlink_to(self.folder / "moved")
        before = sorted((self.folder / "moved").iterdir())
        self.assert_refused(["resume", "runs/tiny", "--set", "train.steps=60"], "runs/tiny/checkpoints: is a link")
        self.assertEqual(sorted((self.folder / "moved").iterdir()), before)
        (run / "report.html").symlink_to(elsewhere / "page.html")
        self.run_qkv("report", "runs/tiny")
        self.assertEqual(list(elsewhere.iterdir()), [])
        self.assertTrue((run / "report.html").is_file() and not (run / "report.html").is_symlink())

    def test_a_run_whose_folder_is_another_s_now_stops_and_writes_nothing_there(self):
        rare = ["--run", "runs/again", "--set", "train.steps=1000000", "--set", "train.checkpoint_every=1000000",
                "--set", "task.valid="]
        first = self.begun("train", "tiny.toml", *rare)
        first.send_signal(signal.SIGSTOP)
        shutil.rmtree(self.folder / "runs/again")
        second = self.begun("train", "tiny.toml", *rare, "--set", "seed=2")
        first.send_signal(signal.SIGTERM)
        first.send_signal(signal.SIGCONT)
        rest = first.communicate()[1]
        self.assertEqual(first.returncode, 1, rest)
        self.assertIn("runs/again/lock: was removed or replaced", rest)
        self.assertIn(f"process {second.pid}", self.run_qkv("resume", "runs/again", code=2).stderr)
        second.send_signal(signal.SIGTERM)
        second.communicate()
        for name in ("best.h5", "last.h5"):
            with h5py.File(self.folder / "runs/again" / name) as file:
                self.assertIn(b"seed = 2 ", file.attrs["config"])

    def test_a_config_that_was_edited_is_obeyed_or_refused(self):
        config = self.folder / "runs/tiny/config.toml"
        text = config.read_text()
        config.write_text(text.replace("steps = 40 ", "steps = 60 "))
        done = self.run_qkv("resume", "runs/tiny")
        self.assertIn("runs/tiny/config.toml: changed since the last checkpoint: train.steps = 40 (now 60)", done.stderr)
        self.assertEqual(self.json("verify", "runs/tiny/last.h5")["files"][0]["step"], 60)
        text = config.read_text()
        for old, new, parts in (("width = 8 ", "width = 16 ", ["config.toml (remove it to resume with", "model.width = 8 (now 16)"]),
                                ("steps = 60 ", "steps = many ", ["config.toml:"])):
            self.assertIn(old, text)
            config.write_text(text.replace(old, new))
            self.assert_refused(["resume", "runs/tiny"], *parts)
            self.assertIn(new, config.read_text())
        config.unlink()
        self.run_qkv("resume", "runs/tiny")
        self.assertEqual(config.read_text(), text)

    def test_other_validation_data_are_refused(self):
        valid = self.folder / "valid.tsv"
        lines = valid.read_text().splitlines(keepends=True)
        for changed in (lines[: len(lines) // 2], lines[::-1]):
            valid.write_text("".join(changed))
            self.assert_refused(["resume", "runs/tiny", "--set", "train.steps=60"], "the validation data", "valid.tsv has changed")


if __name__ == "__main__":
    unittest.main()
