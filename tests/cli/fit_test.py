"""qkv fit: the model for a file of labelled texts.

Usage: fit_test.py PROGRAM
"""
import json
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import PROGRAM, PROJECT, ProgramTest
from search_pages import SearchPage

FILMS = ("films.tsv", "--test", "test.tsv")


def lines(file, count):
    return (PROJECT / "datasets" / file).read_text().splitlines(keepends=True)[:count]


class Fit(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = pathlib.Path(cls.template.name)
        (folder / "films.tsv").write_text("".join(lines("sentiment/train.tsv", 30)))
        (folder / "test.tsv").write_text("".join(lines("sentiment/test.tsv", 40)))
        cls.done = subprocess.run([PROGRAM, "fit", *FILMS, "--json"], cwd=folder, capture_output=True, text=True)
        assert cls.done.returncode == 0, cls.done.stderr

    def checksum(self, run):
        return self.json("verify", run)["files"][-1]["parameters_checksum"]

    def test_the_winner_is_an_ordinary_run_with_a_card(self):
        found = json.loads(self.done.stdout)
        self.assertEqual(found["run"], "runs/films")
        self.assertEqual((found["folds"], found["repeats"]), (10, 3))
        means = [candidate["mean"] for candidate in found["candidates"]]
        self.assertEqual(means, sorted(means, reverse=True))
        self.assertEqual(found["winner"], found["candidates"][0]["name"])
        for candidate in found["candidates"]:
            self.assertEqual(len(candidate["scores"]), 30)
        self.assertLess(found["expected"]["low"], found["expected"]["mean"])
        self.assertEqual(found["test"], self.json("eval", "runs/films"))
        self.run_qkv("predict", "runs/films", "a warm and funny film")
        again = self.run_qkv("train", "runs/films/config.toml", "--run", "again")
        self.assertIn("30 training examples (0 valid, 40 test)", again.stderr)
        self.assert_same_checkpoints("runs/films/last.h5", "again/last.h5")
        card = (self.folder / "runs/films/card.md").read_text()
        for part in ("films.tsv: 30 training examples for classify", "2 labels: ", "tokens a text", "40 test examples", found["winner"],
                     f"{found['expected']['mean']:.4f}", f"{found['test']['accuracy']:.4f} on 40 test examples"):
            self.assertIn(part, card)

    def test_the_page_shows_the_scores_of_each_fold(self):
        self.assertIn("wrote runs/films/fit.html\n", self.done.stderr)
        found, page = json.loads(self.done.stdout)["candidates"], SearchPage(self.folder / "runs/films/fit.html")
        self.assertEqual([row[0] for row in page.rows()], [candidate["name"] for candidate in found])
        self.assertEqual(sorted(page.marks("Scores", "circle")),
                         sorted(f"{candidate['name']}: {score:.4f}" for candidate in found for score in candidate["scores"]))
        self.assertNotIn("Learning curves", page.headings())  # ten steps are measured once
        self.run_qkv("fit", *FILMS, "--run", "runs/curves", "--set", "train.eval_every=3", "--time", "2s")
        curves = SearchPage(self.folder / "runs/curves/fit.html").marks("Learning curves", "polyline")
        self.assertTrue(any(title.startswith("bag of words and pairs, seed 1, fold 2: ") for title in curves))

    def test_the_expected_score_is_the_mean_of_cross_validation(self):
        found = self.json("fit", "films.tsv", "--metric", "macro_f1", "--run", "runs/f1")
        config = (self.folder / "runs/f1/config.toml").read_text()
        (self.folder / "winner.toml").write_text(config)
        compared = self.json("compare", "winner.toml", "--folds", "10")["variants"][0]
        alone = next(one for one in found["candidates"] if one["name"] == found["members"][0])
        self.assertEqual(alone["scores"][:10], [fold["test"]["macro_f1"] for fold in compared["folds"]])
        repeated = self.json("compare", "winner.toml", "--folds", "10", "--set", "seed=2", "--set", "name=repeated")["variants"][0]
        self.assertEqual(alone["scores"][10:20], [fold["test"]["macro_f1"] for fold in repeated["folds"]])
        self.assertNotEqual(alone["scores"][:10], alone["scores"][10:20])

    def test_an_ensemble_is_measured_on_the_folds_and_trained_together(self):
        found = self.json("fit", "films.tsv", "--metric", "log_loss", "--run", "runs/loss")
        self.assertGreater(len(found["members"]), 1)
        self.assertEqual(found["winner"], " + ".join(found["members"]))
        folders = [re.sub("[^A-Za-z0-9]+", "-", name) for name in found["members"]]
        models = {f"{name}{seed}" for name in folders for seed in ("", "-seed-2", "-seed-3")}
        self.assertEqual({run.name for run in (self.folder / "runs/loss/ensemble").iterdir()}, models - {folders[0]})
        for fold in (1, 10):
            together = self.json("eval", *(f"runs/loss-fit/{name}-fold-{fold}" for name in folders))
            self.assertEqual(together["log_loss"], found["candidates"][0]["scores"][fold - 1])

    def test_progress_says_who_is_ahead(self):
        progress = [line for line in self.done.stderr.splitlines() if "; ahead: " in line]
        self.assertEqual(len(progress), 10 * 7 * 3)
        self.assertRegex(progress[-1], r"^210/210  .*, seed \d, fold \d+: accuracy \d\.\d{4}; ahead: .* \d\.\d{4}$")

    def test_a_pretrained_model_is_one_more_candidate(self):
        self.run_qkv("train", PROJECT / "configs/pretrain.toml", "--run", "general", "--set", "train.steps=20", "--set", "model.width=24",
                     "--set", "task.data=films.tsv")
        found = self.json("fit", "films.tsv", "--pretrained", "general", "--run", "runs/tuned")
        self.assertIn("fine-tuned", [candidate["name"] for candidate in found["candidates"]])
        config = (self.folder / "runs/tuned-fit/fine-tuned-fold-1/config.toml").read_text()
        self.assertRegex(config, r"(?m)^width = 24\b")
        self.assertIn("starts from pretrain, step 20", self.run_qkv("inspect", "runs/tuned-fit/fine-tuned-fold-1").stdout)

    def test_little_time_means_fewer_trainings(self):
        found = self.json("fit", "films.tsv", "--time", "0.05s", "--run", "runs/quick")
        self.assertLess(sum(len(candidate["scores"]) for candidate in found["candidates"]), 60)

    def test_candidates_with_too_many_ngrams_for_the_time_are_left_out(self):
        done = self.run_qkv("fit", "films.tsv", "--time", "1s", "--run", "runs/long", "--set", "train.epochs=1000000")
        self.assertIn("bag of words and pairs left out: up to ", done.stderr)

    def test_a_search_that_is_killed_ends_as_one_that_is_not(self):
        draw = random.Random(1)
        command = [PROGRAM, "fit", *FILMS, "--run", "killed"]
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
            process = subprocess.Popen([*command, "--threads", str(draw.randint(1, 3))], cwd=self.folder, stderr=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, text=True)
            for line in process.stderr:  # until something was trained
                if "; ahead: " in line:
                    break
            time.sleep(draw.random() / 4)
            process.send_signal(how)
            process.communicate()
        found, whole = self.json(*command[1:]), json.loads(self.done.stdout)
        for run in ("", *(f"/{run.relative_to(self.folder / 'runs/films')}" for run in (self.folder / "runs/films/ensemble").iterdir())):
            self.assertEqual(self.checksum("killed" + run), self.checksum("runs/films" + run))
        for result in (found, whole):
            for candidate in result["candidates"]:
                del candidate["seconds"]
        self.assertEqual(found["candidates"], whole["candidates"])
        pages = [(self.folder / run / "fit.html").read_text().replace(run, "") for run in ("killed", "runs/films")]
        self.assertEqual(*pages)

    def test_other_tasks_are_recognised(self):
        (self.folder / "bank.tsv").write_text("".join(lines("bank-twins/train.tsv", 60)))
        (self.folder / "spring.tsv").write_text("".join(f"{season}\tthe spring {verb} today\n" * 4 for season, verb in
                                                        (("water", "dried"), ("season", "began"))))
        (self.folder / "names.conll").write_text("".join(lines("tagging/train.conll", 200)))
        for file, word, task in (("bank.tsv", (), "word-sense"), ("spring.tsv", ("--word", "spring"), "word-sense"),
                                 ("names.conll", (), "tagging")):
            with self.subTest(file):
                self.json("fit", file, *word, "--time", "2s")
                run = self.json("runs")["runs"]
                self.assertEqual(*{row["task"] for row in run if row["run"] == f"runs/{file.split('.')[0]}"}, task)

    def test_what_fit_cannot_do_is_said_before_anything_is_written(self):
        (self.folder / "one.tsv").write_text("good\ta\ngood\tb\n")
        (self.folder / "two.tsv").write_text("good\ta\nbad\tb\n")
        (self.folder / "text.tsv").write_text("nothing but text\nand more of it\n")
        for arguments, *parts in ((["none.tsv"], "none.tsv"), (["one.tsv"], "there is only the label good"),
                                  (["two.tsv"], "one label needs two examples"), (["text.tsv"], "text.tsv:1"),
                                  (["films.tsv", "--run", "new", "--time", "5"], "--time 5: must be a duration, such as 90s, 5m or 1h"),
                                  (["films.tsv", "--run", "new", "--time", "-1m"], "must be a duration"),
                                  (["films.tsv", "--run", "new", "--metric", "f2"], "--metric f2: this task has accuracy, macro_f1"),
                                  (["films.tsv", "--run", "new", "--pretrained", "no-run"], "no-run"),
                                  (["films.tsv", "--run", "runs/tiny"], "runs/tiny holds a run of another command")):
            with self.subTest(arguments):
                self.assert_refused(["fit", *arguments], *parts)

    def test_a_search_is_resumed_with_its_own_options_alone(self):
        self.assert_refused(["fit", *FILMS, "--time", "4s"], "`qkv fit films.tsv --test test.tsv --time 5m`", "--restart")
        again = self.run_qkv("fit", *FILMS, "--json")
        self.assertEqual(json.loads(again.stdout)["candidates"][0]["scores"],
                         json.loads(self.done.stdout)["candidates"][0]["scores"])
        (self.folder / "runs/films-fit/fit.json").write_text("{")
        self.assert_refused(["fit", *FILMS], "fit.json", "--restart searches again")
        self.run_qkv("fit", *FILMS, "--time", "2s", "--restart")
        self.assert_refused(["fit", "films.tsv", "--run", "runs/tiny", "--restart"], "runs/tiny holds a run of another command")


if __name__ == "__main__":
    unittest.main()
