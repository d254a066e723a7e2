"""qkv compare when it is run again, stopped and resumed.

Usage: compare_test.py PROGRAM
"""
import json
import signal
import subprocess
import unittest

from program_test import CONFIG, PROGRAM, ProgramTest

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
    return [{key: value for key, value in variant.items() if key != "seconds"} for variant in result["variants"]]


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
        variants = 0
        for line in stopped.stderr:
            variants += line.startswith("tiny - ")
            if variants == 2 and line.startswith("step"):
                break
        stopped.send_signal(signal.SIGINT)
        rest = stopped.communicate()[1]
        self.assertEqual(stopped.returncode, 130, rest)
        self.assertIn("continue with: qkv compare two.toml --set train.steps=600 --set train.keep=1\n", rest)
        done = self.run_qkv("compare", "two.toml", *long, "--json")
        self.assertIn("tiny - a: finished at step 600", done.stderr)
        self.assertIn("resuming at step", done.stderr)
        self.assertEqual(without_times(json.loads(done.stdout)), without_times(whole))
        self.assertEqual((self.runs / "b-1-head/last.h5").read_bytes(), bytes_)

    def test_a_variant_that_another_process_trains_is_refused(self):
        first = subprocess.Popen([PROGRAM, "compare", "two.toml", "--set", "train.steps=100000"], cwd=self.folder,
                                 stderr=subprocess.PIPE, text=True)
        for line in first.stderr:
            if line.startswith("step"):
                break
        for command in (["compare", "two.toml", "--set", "train.steps=100000"],
                        ["compare", "two.toml", "--restart"], ["resume", "runs/tiny-compare/a"]):
            self.assertEqual(self.run_qkv(*command, code=2).stderr,
                             f"qkv: runs/tiny-compare/a is being trained by process {first.pid}; wait for it or stop it\n")
        first.kill()
        first.communicate()
        self.run_qkv("compare", "two.toml", "--restart", "--only", "a")

    def test_a_comparison_whose_last_test_is_missing_is_finished(self):
        first = self.json("compare", "two.toml", "--only", "a")
        metrics = self.runs / "a/metrics.jsonl"
        metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:-1]))
        self.assertEqual(without_times(self.json("compare", "two.toml", "--only", "a")), without_times(first))
        self.assertEqual(json.loads(metrics.read_text().splitlines()[-1])["split"], "test")

    def test_a_comparison_s_folder_where_one_model_is_meant_names_its_runs(self):
        self.run_qkv("compare", "two.toml")
        for command in (["eval"], ["predict"], ["probe"], ["verify"], ["attend"], ["embed"], ["explain"], ["inspect"],
                        ["gradients"], ["resume"]):
            text = ["money bank grows"] if command[0] in ("predict", "attend", "embed", "explain", "gradients") else []
            self.assert_refused([*command, "runs/tiny-compare", *text], "runs/tiny-compare holds several runs",
                                "runs/tiny-compare/a, runs/tiny-compare/b-1-head")


if __name__ == "__main__":
    unittest.main()
