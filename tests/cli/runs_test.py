"""qkv runs: the table of the runs below a folder.

Usage: runs_test.py PROGRAM
"""
import fcntl
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import ProgramTest


class Runs(ProgramTest):
    def rows(self, *arguments):
        return {row["run"]: row for row in self.json("runs", *arguments)["runs"]}

    def evaluations(self, run):
        lines = map(json.loads, (self.folder / run / "metrics.jsonl").read_text().splitlines())
        return [line for line in lines if line["split"] == "valid"]

    def test_a_run_is_described_by_its_config_its_metrics_and_its_checkpoints(self):
        self.assertEqual(list(self.rows()), ["runs/tiny"])
        row = self.rows()["runs/tiny"]
        self.assertEqual(row["task"], "word-sense")
        self.assertTrue(row["data"].endswith("train.tsv"))
        self.assertEqual(row["model"], "encoder")
        self.assertEqual(row["score"], max(line[row["metric"]] for line in self.evaluations("runs/tiny")))
        self.assertEqual(row["step"], max(file["step"] for file in self.json("verify", "runs/tiny")["files"]))
        self.assertLess(row["age"], 3600)
        self.assertEqual(row["state"], "finished")

    def test_the_score_is_that_which_selects_the_checkpoint(self):
        self.run_qkv("train", "tiny.toml", "--run", "runs/loss", "--set", "train.select=loss")
        row = self.rows()["runs/loss"]
        self.assertEqual(row["metric"], "loss")
        self.assertEqual(row["score"], min(line["loss"] for line in self.evaluations("runs/loss")))

    def test_runs_are_found_in_folders_of_folders_but_not_behind_links(self):
        self.run_qkv("train", "tiny.toml", "--run", "all/a/b", "--set", "train.steps=2")
        (self.folder / "all/link").symlink_to(self.folder / "runs")
        self.assertEqual(list(self.rows("all")), ["all/a/b"])
        self.assertEqual(list(self.rows("all/a/b")), ["all/a/b"])

    def test_a_run_that_lacks_steps_is_stopped_and_one_that_is_locked_is_training(self):
        run = self.folder / "runs/tiny"
        metrics = [line for line in (run / "metrics.jsonl").read_text().splitlines(keepends=True) if '"test"' not in line]
        (run / "metrics.jsonl").write_text("".join(metrics))
        config = (run / "config.toml").read_text().splitlines()
        (run / "config.toml").write_text("\n".join("steps = 100000" if line.startswith("steps =") else line for line in config))
        self.assertEqual(self.rows()["runs/tiny"]["state"], "stopped")
        with open(run / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertEqual(self.rows()["runs/tiny"]["state"], "training")
        self.assertEqual(self.rows()["runs/tiny"]["state"], "stopped")

    def test_a_column_sorts_and_a_text_filters(self):
        self.run_qkv("train", "tiny.toml", "--run", "runs/a", "--set", "train.steps=2")
        self.assertEqual(list(self.rows()), ["runs/a", "runs/tiny"])
        self.assertEqual(list(self.rows("--sort", "step")), ["runs/tiny", "runs/a"])
        by_score = [row["score"] for row in self.rows("--sort", "score").values()]
        self.assertEqual(by_score, sorted(by_score, reverse=True))
        self.assertEqual(list(self.rows("--only", "tiny")), ["runs/tiny"])
        self.assertEqual(self.rows("--only", "no such text"), {})
        done = self.run_qkv("runs", "--sort", "size", code=2)
        self.assertIn('there is no column "size"; it must be one of run, task,', done.stderr)

    def test_a_run_that_cannot_be_read_is_named_and_the_others_are_listed(self):
        self.run_qkv("train", "tiny.toml", "--run", "runs/broken", "--set", "train.steps=2")
        (self.folder / "runs/broken/config.toml").write_text("[task\n")
        done = self.run_qkv("runs", "--json", code=1)
        self.assertEqual([row["run"] for row in json.loads(done.stdout)["runs"]], ["runs/tiny"])
        self.assertIn("runs/broken/config.toml:", done.stderr)
        with open(self.folder / "runs/tiny/metrics.jsonl", "a") as metrics:
            metrics.write("no JSON\n")
        self.assertRegex(self.run_qkv("runs", code=1).stderr, r"runs/tiny/metrics.jsonl:\d+: is not a line of metrics")

    def test_where_there_is_no_run_a_note_says_so(self):
        (self.folder / "empty").mkdir()
        self.assertEqual(self.run_qkv("runs", "empty").stderr, "empty: no run\n")
        self.assertIn("nowhere: is no folder", self.run_qkv("runs", "nowhere", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
