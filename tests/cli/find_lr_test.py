"""The learning rate range test, its suggestions and its curve.

Usage: find_lr_test.py PROGRAM
"""
import math
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import PROGRAM, PROJECT, ProgramTest
from stand_ins import GIVEN, write_stand_ins


class FindLr(ProgramTest):
    def test_rates_grow_geometrically_and_the_suggestion_is_one_of_them(self):
        found = self.json("find-lr", "tiny.toml", "--from", "1e-5", "--to", "0.1", "--steps", "100")
        rates = [point["lr"] for point in found["points"]]
        self.assertEqual((len(rates), rates[0]), (100, 1e-5))
        for k, rate in enumerate(rates):
            self.assertAlmostEqual(math.log10(rate), -5 + 4 * k / 99)
        self.assertIn(found["suggestion"], rates)

    def test_the_smoothed_loss_is_a_mean_of_the_losses_so_far(self):
        mean = weight = 0
        for point in self.json("find-lr", "tiny.toml")["points"]:  # w = 25
            mean, weight = 0.96 * mean + 0.04 * point["loss"], 0.96 * weight + 0.04
            self.assertAlmostEqual(point["smoothed"], mean / weight)

    def test_a_training_at_the_suggested_rate_learns_more_than_at_a_hundredth_of_it(self):
        (command,) = re.findall(r"^train with: qkv (.*)$", self.run_qkv("find-lr", "tiny.toml").stdout, re.M)
        rate = float(command.split("optimizer.lr=")[1])
        losses = [self.json(*command.split(), "--set", f"optimizer.lr={lr}", "--run", f"at-{lr}")["test"]["loss"] for lr in (rate, rate / 100)]
        self.assertLess(losses[0], losses[1])

    def test_threads_schedule_and_rate_of_the_config_change_nothing_and_nothing_is_written(self):
        before = sorted(self.folder.rglob("*"))
        plain = self.json("find-lr", "tiny.toml")
        for arguments in (["--threads", "1"], ["--threads", "3"], ["--set", "optimizer.lr=5"],
                          ["--set", "schedule.kind=cosine", "--set", "schedule.warmup=20"]):
            with self.subTest(arguments):
                self.assertEqual(self.json("find-lr", "tiny.toml", *arguments), plain)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_batch_and_steps_follow_from_the_number_of_examples(self):
        found = self.json("find-lr", "tiny.toml", "--steps", "50")
        self.assertEqual([found[key] for key in ("examples", "batch", "epoch_steps", "steps")], [200, 16, 13, 300])

    def test_it_ends_early_where_the_loss_diverges(self):
        options = ["--set", "optimizer.kind=sgd", "--set", "train.clip=0", "--from", "1e-3", "--to", "1e6"]
        for policy in ("stop", "skip", "detect"):
            points = self.json("find-lr", "tiny.toml", *options, "--set", f"train.on_divergence={policy}")["points"]
            self.assertLess(len(points), 500)

    def test_without_a_descent_there_is_no_suggestion_but_advice(self):
        arguments = ["find-lr", "tiny.toml", "--from", "1e-12", "--to", "1e-11"]
        self.assertIsNone(self.json(*arguments)["suggestion"])
        self.assertIn("\nthe loss does not fall: give a ", self.run_qkv(*arguments).stdout)

    def test_it_works_for_every_config(self):
        write_stand_ins(self.folder)
        # Copies of the configs find vectors and runs above them, where other commands would have written them.
        configs = pathlib.Path(shutil.copytree(PROJECT / "configs", self.folder / "configs"))
        (self.folder / "datasets").symlink_to(PROJECT / "datasets")
        self.run_qkv("compare", "configs/pretrain.toml", "--set", "train.steps=2", "--only", "attention")
        for config in sorted(configs.glob("*.toml")):
            with self.subTest(config.name):
                points = self.json("find-lr", config, "--steps", "50", *GIVEN.get(config.stem, []))["points"]
                self.assertGreater(len(points), 20)
                self.assertTrue(all(math.isfinite(point["loss"]) for point in points))

    def test_a_signal_ends_it_at_once(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([PROGRAM, "find-lr", "tiny.toml", "--steps", "100000", "--from", "1e-12", "--to", "1e-11"],
                                       cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            process.stderr.readline()  # an estimate of the time
            process.send_signal(number)
            self.assertEqual((process.communicate(timeout=10)[0], process.returncode), ("", -number))

    def test_what_cannot_be_tested_is_refused(self):
        for arguments, *parts in ((["--from", "1", "--to", "0.1"], "--from 1 must be below --to 0.1"), (["--from", "0"], "--from", "got 0"),
                                  (["--steps", "10"], "--steps", "got 10"), (["--to", "nan"], "--to"), (["--set", "model.heads=3"], "model.heads")):
            with self.subTest(arguments):
                self.assert_refused(["find-lr", "tiny.toml", *arguments], *parts)
        self.assert_refused(["find-lr", "none.toml"], "none.toml: there is no such file")

    def test_it_fits_a_terminal_of_80_columns(self):
        lines = self.run_qkv("find-lr", "tiny.toml").stdout.splitlines()
        plot = lines[:lines.index("")]
        self.assertLessEqual(max(map(len, plot)), 80)
        self.assertEqual(sum("◆" in line for line in plot[:-1]), 1)


if __name__ == "__main__":
    unittest.main()
