"""qkv sweep: the points of a config's [[sweep]], the best first.

Usage: sweep_test.py PROGRAM
"""
import json
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import CONFIG, PROGRAM, ProgramTest

GRID = """
[[sweep]]
model.heads = [1, 2]
optimizer.lr = [1e-4, 1e-2]
"""
RANGES = """
[[sweep]]
optimizer.lr = { log_range = [1e-4, 1e-1] }
model.dropout = { range = [0, 0.5] }
"""


def without_seconds(candidates):
    return [{key: value for key, value in candidate.items() if key != "seconds"} for candidate in candidates]


class Sweep(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "grid.toml").write_text(CONFIG + GRID)
        (self.folder / "ranges.toml").write_text(CONFIG + RANGES)
        self.runs = self.folder / "runs/tiny-sweep"

    def sweep(self, *arguments):
        return self.json("sweep", *arguments)["candidates"]

    def checksum(self, run):
        return self.json("verify", run)["files"][-1]["parameters_checksum"]

    def test_every_point_of_the_grid_is_trained_and_the_best_on_the_validation_data_is_first(self):
        found = self.json("sweep", "grid.toml")
        means = [candidate["mean"] for candidate in found["candidates"]]
        self.assertEqual(found["metric"], "accuracy")
        self.assertEqual(means, sorted(means, reverse=True))
        self.assertEqual({(c["options"]["model.heads"], c["options"]["optimizer.lr"]) for c in found["candidates"]},
                         {(1, 1e-4), (1, 1e-2), (2, 1e-4), (2, 1e-2)})
        for candidate in found["candidates"]:
            folder = self.runs / candidate["name"].replace(", ", "-").replace(" ", "-").replace(".", "-")
            valid = self.json("eval", folder, "--data", "valid.tsv")
            self.assertEqual(candidate["scores"], [valid["accuracy"]])

    def test_the_command_that_it_ends_with_trains_the_best(self):
        done = self.run_qkv("sweep", "grid.toml", "--set", "train.steps=20")
        (command,) = [line for line in done.stdout.splitlines() if line.startswith("the best: qkv train")]
        arguments = command.removeprefix("the best: qkv ").split()
        self.run_qkv(*arguments, "--run", "best")
        first = self.sweep("grid.toml", "--set", "train.steps=20")[0]
        folder = self.runs / first["name"].replace(", ", "-").replace(" ", "-").replace(".", "-")
        self.assertEqual(self.checksum(folder), self.checksum("best"))

    def test_more_trials_keep_the_first_ones(self):
        few = self.sweep("ranges.toml", "--trials", "3")
        stamps = {path: path.stat().st_mtime_ns for path in self.runs.rglob("*.h5")}
        more = self.sweep("ranges.toml", "--trials", "5")
        self.assertEqual((len(few), len(more)), (3, 5))
        self.assertLessEqual({c["name"] for c in few}, {c["name"] for c in more})
        self.assertEqual(stamps, {path: path.stat().st_mtime_ns for path in stamps})
        for candidate in more:
            self.assertTrue(1e-4 <= candidate["options"]["optimizer.lr"] <= 1e-1)

    def test_seeds_and_folds_are_averaged(self):
        for option, split in (("--seeds", "valid"), ("--folds", "test")):
            with self.subTest(option):
                for candidate in self.sweep("grid.toml", option, "2", "--restart"):
                    self.assertEqual(candidate["runs"], 2)
                    self.assertAlmostEqual(candidate["mean"], statistics.mean(candidate["scores"]))

    def test_halving_leaves_out_the_worse_half_after_each_seed(self):
        whole = {c["name"]: c for c in self.sweep("grid.toml", "--seeds", "3")}
        halved = self.sweep("grid.toml", "--seeds", "3", "--halve", "--restart")
        self.assertEqual([c["runs"] for c in halved], [3, 3, 1, 1])
        for candidate in halved:
            self.assertEqual(candidate["scores"], whole[candidate["name"]]["scores"][:candidate["runs"]])
        after_one = sorted((c["scores"][0] for c in whole.values()), reverse=True)
        self.assertEqual({c["scores"][0] for c in halved[:2]} | {c["scores"][0] for c in halved[2:]}, set(after_one))
        self.assertGreaterEqual(min(c["scores"][0] for c in halved[:2]), max(c["scores"][0] for c in halved[2:]))

    def test_train_select_ranks(self):
        found = self.json("sweep", "grid.toml", "--set", "train.select=loss")
        means = [candidate["mean"] for candidate in found["candidates"]]
        self.assertEqual((found["metric"], means), ("loss", sorted(means)))

    def test_a_sweep_that_is_killed_ends_as_one_that_is_not(self):
        arguments = ["sweep", "grid.toml", "--seeds", "3", "--halve", "--set", "train.steps=300"]
        whole = self.sweep(*arguments[1:])
        checksums = {path.name: self.checksum(path) for path in self.runs.iterdir()}
        draw, restart = random.Random(1), ["--restart"]
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
            process = subprocess.Popen([PROGRAM, *arguments, *restart, "--threads", str(draw.randint(1, 3))], cwd=self.folder,
                                       stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
            restart = []
            for line in process.stderr:
                if ": step" in line:
                    break
            time.sleep(draw.random() / 4)
            process.send_signal(how)
            rest = process.communicate()[1]
            if process.returncode == 128 + how and how != signal.SIGKILL:
                self.assertIn("continue with: qkv sweep grid.toml --set train.steps=300 --seeds 3 --halve\n", rest)
        self.assertEqual(without_seconds(self.sweep(*arguments[1:])), without_seconds(whole))
        self.assertEqual({path.name: self.checksum(path) for path in self.runs.iterdir()}, checksums)

    def test_what_cannot_be_swept_is_refused_before_anything_is_trained(self):
        (self.folder / "none.toml").write_text(CONFIG)
        (self.folder / "odd.toml").write_text(CONFIG + "[[sweep]]\nmodel.heads = [1, 3]\n")
        (self.folder / "blind.toml").write_text(CONFIG.replace('valid = "valid.tsv"\n', "") + GRID)
        for arguments, *parts in ((["none.toml"], "none.toml: has no [[sweep]]"), (["ranges.toml"], "has no grid", "--trials N"),
                                  (["odd.toml"], "model.heads must divide model.width"), (["blind.toml"], "needs validation data", "--folds K"),
                                  (["grid.toml", "--halve"], "give --seeds N or --folds K"),
                                  (["grid.toml", "--seeds", "2", "--folds", "2"], "exclude each other")):
            with self.subTest(arguments):
                self.assert_refused(["sweep", *arguments], *parts)


if __name__ == "__main__":
    unittest.main()
