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
from search_pages import SearchPage

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
        page = (self.runs / "sweep.html").read_bytes()
        checksums = {path.name: self.checksum(path) for path in self.runs.iterdir() if path.is_dir()}
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
        self.assertEqual({path.name: self.checksum(path) for path in self.runs.iterdir() if path.is_dir()}, checksums)
        self.assertEqual((self.runs / "sweep.html").read_bytes(), page)

    def test_its_page_shows_every_point(self):
        (self.folder / "ranges.toml").write_text(CONFIG + RANGES + "model.heads = [1, 2]\n")
        done = self.run_qkv("sweep", "ranges.toml", "--trials", "6", "--seeds", "2", "--json")
        self.assertIn("wrote runs/tiny-sweep/sweep.html\n", done.stderr)
        found, page = json.loads(done.stdout)["candidates"], SearchPage(self.runs / "sweep.html")
        self.assertEqual([row[-3:] for row in page.rows()],
                         [[f"{c['mean']:.4f} ± {statistics.stdev(c['scores']):.4f}", "2", str(c["parameters"])] for c in found])
        for row, candidate in zip(page.rows(), found):
            self.assertEqual(row[1:-3], [str(candidate["options"][key]) for key in ("optimizer.lr", "model.dropout", "model.heads")])
        names = sorted(c["name"] for c in found)
        self.assertEqual(sorted(mark.split(":")[0] for mark in page.marks("Options and score", "polyline")), names)
        self.assertEqual(sorted(mark.split(":")[0] for mark in page.marks("Score by option", "circle")), sorted(3 * names))
        self.assertEqual(sorted(mark.split(":")[0] for mark in page.marks("Learning curves", "polyline")),
                         sorted(f"{name}, seed {seed}" for name in names for seed in (1, 2)))
        self.assertLessEqual({"0.0002", "0.0005", "0.001"}, set(page.labels()))  # of the logarithmic axis
        self.assertIn("valid accuracy", page.labels())

    def test_a_page_of_results_that_are_gone_is_removed(self):
        self.run_qkv("sweep", "grid.toml", "--set", "train.steps=10")
        self.assertTrue((self.runs / "sweep.html").exists())
        process = subprocess.Popen([PROGRAM, "sweep", "grid.toml", "--restart", "--set", "train.steps=1000000"], cwd=self.folder,
                                   stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for line in process.stderr:
            if ": step" in line:
                break
        process.terminate()
        process.communicate()
        self.assertFalse((self.runs / "sweep.html").exists())

    def test_its_page_tells_points_that_were_left_out(self):
        found = self.sweep("grid.toml", "--seeds", "3", "--halve")
        page = SearchPage(self.runs / "sweep.html")
        self.assertEqual([row[-2] for row in page.rows()], ["3", "3", "1 of 3", "1 of 3"])
        early = [mark.split(":")[0] for mark in page.marks("Options and score", "polyline") if "left out early" in mark]
        self.assertEqual(sorted(early), sorted(c["name"] for c in found[2:]))
        self.assertEqual(len(page.marks("Learning curves", "polyline")), 3 + 3 + 1 + 1)

    def test_its_page_has_variants_as_an_axis_and_names_as_text(self):
        names = ["<script>x, one", "two & <b> \"{{title}}\""]
        variants = "".join(f"[[variant]]\nname = '{name}'\nmodel.layers = {i + 1}\n" for i, name in enumerate(names))
        config = CONFIG.replace('name = "tiny"', "name = 'a <i>&'")
        self.assertNotEqual(config, CONFIG)
        (self.folder / "odd.toml").write_text(config + variants + GRID)
        found = self.sweep("odd.toml")
        page = SearchPage(self.folder / "runs/a <i>&-sweep/sweep.html")
        self.assertEqual(page.root.findtext(".//h1"), "runs/a <i>&-sweep")
        self.assertEqual([row[1] for row in page.rows()],
                         [next(name for name in names if candidate["name"].startswith(name)) for candidate in found])
        self.assertIn("variant", page.labels())
        self.assertIn(names[0], page.labels())

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
