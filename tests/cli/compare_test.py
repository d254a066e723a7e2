"""qkv compare when it is run again, stopped and resumed.

Usage: compare_test.py PROGRAM
"""
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import CONFIG, PROGRAM, ProgramTest

VARIANTS = """
[[variant]]
name = "a"
model.kind = "static"
[[variant]]
name = "b, 1 head"
model.heads = 1
"""
PROBE = """
[[probe]]
name = "one vector"
sentences = ["money bank grows", "river bank flows"]
word = "bank"
expect = 'contextual_cosine = 1'
"""


def without_times(result):
    """The result without any "seconds"."""
    if isinstance(result, dict):
        return {key: without_times(value) for key, value in result.items() if key != "seconds"}
    return [without_times(value) for value in result] if isinstance(result, list) else result


class Compare(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "two.toml").write_text(CONFIG + VARIANTS)
        self.runs = self.folder / "runs/tiny-compare"

    def stamps(self):
        return {path: path.stat().st_mtime_ns for path in self.runs.rglob("*.h5")}

    def test_a_finished_comparison_is_told_again_and_not_trained(self):
        first = self.json("compare", "two.toml")
        stamps = self.stamps()
        (self.runs / "report.html").write_text("a page")
        done = self.run_qkv("compare", "two.toml", "--json")
        self.assertEqual(without_times(json.loads(done.stdout)), without_times(first))
        for before, now in zip(first["variants"], json.loads(done.stdout)["variants"]):
            self.assertAlmostEqual(before["seconds"], now["seconds"], delta=0.5)
        self.assertIn("tiny - a: finished at step 40; --restart trains it again", done.stderr)
        self.assertEqual(self.stamps(), stamps)
        self.assertTrue((self.runs / "report.html").exists())

    def test_variants_that_would_share_a_folder_are_refused_before_any_is_trained(self):
        for a, b in (("learned, 4 heads", "learned 4 heads"), ("+", "-")):
            (self.folder / "same.toml").write_text(CONFIG + VARIANTS.replace('"a"', f'"{a}"').replace('"b, 1 head"', f'"{b}"'))
            for only in ([], ["--only", a]):
                self.assert_refused(["compare", "same.toml", *only], f'"{a}"' if a == "+" else f'"{a}" and "{b}"')

    def test_variants_may_be_named_in_any_alphabet(self):
        (self.folder / "greek.toml").write_text(CONFIG + VARIANTS.replace('"a"', '"α"').replace('"b, 1 head"', '"β, γ"'))
        self.json("compare", "greek.toml")
        self.assertEqual(sorted(path.name for path in self.runs.iterdir()), ["α", "β, γ".replace(", ", "-")])

    def test_a_variant_that_is_named_twice_is_trained_once(self):
        done = self.run_qkv("compare", "two.toml", "--only", "a", "--only", "a", "--json")
        self.assertEqual([variant["name"] for variant in json.loads(done.stdout)["variants"]], ["a"])

    def test_restart_trains_anew_and_leaves_no_stale_page(self):
        self.run_qkv("compare", "two.toml", "--only", "a")
        stamps = self.stamps()
        for page in (self.runs / "report.html", self.runs / "a/report.html"):
            page.write_text("a page")
        done = self.run_qkv("compare", "two.toml", "--only", "a", "--restart")
        self.assertNotIn("finished at step", done.stderr)
        self.assertNotEqual(self.stamps(), stamps)
        self.assertEqual(list(self.runs.rglob("report.html")), [])

    def test_a_variant_more_is_trained_and_makes_the_page_stale(self):
        self.run_qkv("compare", "two.toml", "--only", "a")
        stamps = self.stamps()
        (self.runs / "report.html").write_text("a page")
        self.run_qkv("compare", "two.toml")
        self.assertEqual({path: self.stamps()[path] for path in stamps}, stamps)
        self.assertTrue((self.runs / "b-1-head/best.h5").exists())
        self.assertFalse((self.runs / "report.html").exists())

    def test_a_resumed_run_leaves_no_stale_page(self):
        page = self.folder / "runs/tiny/report.html"
        page.write_text("a page")
        self.run_qkv("resume", "runs/tiny")
        self.assertTrue(page.exists())  # nothing was trained
        self.run_qkv("resume", "runs/tiny", "--set", "train.steps=50")
        self.assertFalse(page.exists())

    def test_other_options_are_refused_before_anything_is_trained(self):
        self.run_qkv("compare", "two.toml", "--only", "b, 1 head")
        self.assert_refused(["compare", "two.toml", "--set", "train.steps=60", "--set", "optimizer.lr=0.1"],
                            "runs/tiny-compare/b-1-head was trained with other options: ", "train.steps = 40 (now 60)",
                            "optimizer.lr = 0.001 (now 0.1)", "--restart")

    def test_other_probes_are_asked_of_finished_models(self):
        self.run_qkv("compare", "two.toml", "--only", "a")
        (self.folder / "two.toml").write_text(CONFIG + VARIANTS + PROBE)
        (probe,) = self.json("compare", "two.toml", "--only", "a")["variants"][0]["probes"]
        self.assertEqual((probe["found"], probe["passes"]), (1, True))

    def test_a_stopped_comparison_continues_to_the_same_end(self):
        long = ["--set", "train.steps=600", "--set", "train.keep=1"]
        whole = self.json("compare", "two.toml", *long)
        bytes_ = (self.runs / "b-1-head/last.h5").read_bytes()
        stopped = subprocess.Popen([PROGRAM, "compare", "two.toml", "--restart", *long], cwd=self.folder,
                                   stderr=subprocess.PIPE, text=True)
        for line in stopped.stderr:
            if line.startswith("tiny - b, 1 head: step"):
                break
        stopped.send_signal(signal.SIGINT)
        rest = stopped.communicate()[1]
        self.assertEqual(stopped.returncode, 130, rest)
        self.assertIn("continue with: qkv compare two.toml --set train.steps=600 --set train.keep=1\n", rest)
        done = self.run_qkv("compare", "two.toml", *long, "--json")
        self.assertIn("resuming at step", done.stderr)
        self.assertEqual(without_times(json.loads(done.stdout)), without_times(whole))
        self.assertEqual((self.runs / "b-1-head/last.h5").read_bytes(), bytes_)

    def test_a_variant_that_another_process_trains_is_refused(self):
        first = subprocess.Popen([PROGRAM, "compare", "two.toml", "--set", "train.steps=100000"], cwd=self.folder,
                                 stderr=subprocess.PIPE, text=True)
        for line in first.stderr:
            if line.startswith("tiny - a: step"):
                break
        # Both variants are being trained; the one that is looked at first is named.
        either = "(a|b-1-head)"
        for command, variant in ((["compare", "two.toml", "--set", "train.steps=100000"], either),
                                 (["compare", "two.toml", "--restart"], either),
                                 (["resume", "runs/tiny-compare/a"], "a")):
            self.assertRegex(self.run_qkv(*command, code=2).stderr,
                             rf"^qkv: runs/tiny-compare/{variant} is being trained by process {first.pid}; "
                             r"wait for it or stop it\n$")
        first.kill()
        first.communicate()
        self.run_qkv("compare", "two.toml", "--restart", "--only", "a")

    def test_a_comparison_whose_last_test_is_missing_is_finished(self):
        first = self.json("compare", "two.toml", "--only", "a")
        metrics = self.runs / "a/metrics.jsonl"
        metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:-1]))
        self.assertEqual(without_times(self.json("compare", "two.toml", "--only", "a")), without_times(first))
        self.assertEqual(json.loads(metrics.read_text().splitlines()[-1])["split"], "test")

    def test_seeds_give_mean_and_standard_deviation_and_continue(self):
        first = self.json("compare", "two.toml")
        result = self.json("compare", "two.toml", "--seeds", 3)
        for before, variant in zip(first["variants"], result["variants"]):
            self.assertEqual(variant["test"], before["test"])  # the first seed's run was finished
            self.assertEqual([run["seed"] for run in variant["seeds"]], [1, 2, 3])
            accuracies = [run["test"]["accuracy"] for run in variant["seeds"]]
            self.assertAlmostEqual(variant["mean"]["accuracy"], statistics.mean(accuracies))
            self.assertAlmostEqual(variant["std"]["accuracy"], statistics.stdev(accuracies))
        shown = self.run_qkv("compare", "two.toml", "--seeds", 3).stdout
        mean, std = (result["variants"][1][name]["loss"] for name in ("mean", "std"))
        self.assertIn(f"{mean:.4f} ± {std:.4f}", shown)
        alone = self.json("train", "two.toml", "--set", "seed=3", "--set", "model.heads=1", "--run", "alone")
        self.assertEqual(result["variants"][1]["seeds"][2]["test"], alone["test"])

    def test_folds_are_tested_on_the_training_examples_alone(self):
        sentences = self.folder / "train.tsv"
        result = self.json("compare", "two.toml", "--only", "b, 1 head", "--folds", 3)
        folds = result["variants"][0]["folds"]
        self.assertEqual([run["fold"] for run in folds], [1, 2, 3])
        self.assertEqual({run["seed"] for run in folds}, {1})
        self.assertEqual(sum(run["test"]["count"] for run in folds), len(sentences.read_text().splitlines()))
        accuracies = [run["test"]["accuracy"] for run in folds]
        self.assertAlmostEqual(result["variants"][0]["std"]["accuracy"], statistics.stdev(accuracies))
        alone = self.json("train", "two.toml", "--set", "model.heads=1", "--set", "task.fold=2/3", "--run", "alone")
        self.assertEqual(alone["test"], folds[1]["test"])

    def test_without_test_data_the_validation_results_are_shown_and_named(self):
        untested = ["--set", "task.test=", "--only", "b, 1 head"]
        result = self.json("compare", "two.toml", *untested, "--seeds", 2)
        (variant,) = result["variants"]
        self.assertEqual(result["split"], "valid")
        self.assertNotIn("test", variant)
        self.assertEqual(variant["valid"], self.json("eval", self.runs / "b-1-head"))
        accuracies = [run["valid"]["accuracy"] for run in variant["seeds"]]
        self.assertAlmostEqual(variant["mean"]["accuracy"], statistics.mean(accuracies))
        shown = self.run_qkv("compare", "two.toml", *untested).stdout
        self.assertRegex(shown, "valid accuracy +valid loss")
        self.assertIn(f"{variant['valid']['loss']:.4f}", shown)
        self.assertNotIn("test", shown)

    def test_a_config_without_variants_is_compared_over_seeds_or_folds(self):
        self.assert_refused(["compare", "tiny.toml"], "tiny.toml has no [[variant]] to compare; give --seeds N or --folds K")
        result = self.json("compare", "tiny.toml", "--seeds", 2)
        (variant,) = result["variants"]
        self.assertEqual((variant["name"], [run["seed"] for run in variant["seeds"]]), ("tiny", [1, 2]))
        self.assertEqual(variant["test"], self.json("eval", "runs/tiny"))  # the first seed is the config's
        folds = self.json("compare", "tiny.toml", "--folds", 2, "--restart")["variants"][0]["folds"]
        self.assertEqual(sum(run["test"]["count"] for run in folds), 200)

    def test_other_data_take_the_place_of_the_config_s_and_probes_that_do_not_apply_are_left_out(self):
        (self.folder / "two.toml").write_text(CONFIG + VARIANTS + PROBE)
        (self.folder / "own.tsv").write_text("season\t1\tthe spring came\nwater\t1\tthe spring dried\n" * 20)
        own = ["--set", "task.data=own.tsv", "--set", "train.steps=2"]
        done = self.run_qkv("compare", "two.toml", *own, "--seeds", 2)
        self.assertRegex(done.stdout, "valid accuracy +valid loss")
        self.assertEqual(done.stderr.count('the probe "one vector" of the config is left out'), 1)
        done = self.run_qkv("train", "two.toml", *own, "--run", "runs/own")
        self.assertIn('the probe "one vector" of the config is left out, as it is not about these data: "money"', done.stderr)
        self.assertNotIn("probe", (self.folder / "runs/own/config.toml").read_text())
        self.run_qkv("resume", "runs/own", "--set", "train.steps=4")
        self.run_qkv("compare", "two.toml", *own, "--seeds", 2)

    def test_folds_that_cannot_be_are_refused(self):
        self.assert_refused(["compare", "two.toml", "--folds", 3, "--seeds", 2], "--folds and --seeds exclude each other")
        for fold in ("4/3", "0/3", "1/1", "2", "/3", "1/x"):
            self.assert_refused(["train", "two.toml", "--set", f"task.fold={fold}"],
                                f'task.fold must be "K/N", part K of N, with N from 2 to 1000, got the string "{fold}"')

    def test_runs_side_by_side_give_the_bits_of_runs_one_by_one(self):
        self.run_qkv("compare", "two.toml", "--threads", 4)
        side_by_side = {path: path.read_bytes() for path in self.runs.rglob("last.h5")}
        self.assertEqual(len(side_by_side), 2)
        self.run_qkv("compare", "two.toml", "--threads", 1, "--restart")
        self.assertEqual({path: path.read_bytes() for path in side_by_side}, side_by_side)

    def test_a_probe_is_asked_in_every_seed(self):
        (self.folder / "two.toml").write_text(CONFIG + VARIANTS + PROBE)
        done = self.run_qkv("compare", "two.toml", "--only", "a", "--seeds", 2)
        self.assertRegex(done.stdout, r"a +one vector +training +contextual_cosine = 1 +2 of 2 seeds")

    def test_a_comparison_s_folder_where_one_model_is_meant_names_its_runs(self):
        self.run_qkv("compare", "two.toml")
        for command in (["eval"], ["predict"], ["probe"], ["verify"], ["attend"], ["embed"], ["explain"], ["inspect"],
                        ["gradients"], ["resume"]):
            text = ["money bank grows"] if command[0] in ("predict", "attend", "embed", "explain", "gradients") else []
            self.assert_refused([*command, "runs/tiny-compare", *text], "runs/tiny-compare holds several runs",
                                "runs/tiny-compare/a, runs/tiny-compare/b-1-head")


if __name__ == "__main__":
    unittest.main()
