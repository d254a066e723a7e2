"""verify-resume and gradcheck: proofs about a user's own config.

Usage: proof_test.py PROGRAM
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import CONFIG, PROGRAM, PROJECT, ProgramTest

# A quick config of each kind of task, and of several kinds of model.
AS_BERT = 'kind = "bert"\nnorm = "post"\nposition = "learned"\nactivation = "gelu"\n'
KINDS = {
    "recurrent": ('kind = "classify"\ntrain = "datasets/sentiment/valid.tsv"', 'kind = "recurrent"'),
    "convolution": ('kind = "classify"\ndata = "datasets/sentiment/valid.tsv"\ntest_share = 0.2', 'kind = "convolution"'),
    "coreference": ('kind = "coreference"\ntrain = "datasets/pronoun/valid.tsv"\nvalid = "datasets/pronoun/valid.tsv"',
                    'position = "learned"'),
    "translate": ('kind = "translate"\ntrain = "datasets/idiom/valid.tsv"', 'kind = "encoder-decoder"'),
    "language-model": ('kind = "language-model"\ntrain = "datasets/bank-twins/valid.tsv"',
                       'kind = "decoder"\nposition = "rotary"\ntied = true\nmax_length = 16'),
    "masked-language-model": ('kind = "masked-language-model"\ntrain = "datasets/bank-twins/valid.tsv"', "dropout = 0.1"),
    "bert": ('kind = "classify"\ntrain = "datasets/sentiment/valid.tsv"', AS_BERT),
    "masked-bert": ('kind = "masked-language-model"\ntrain = "datasets/bank-twins/valid.tsv"', AS_BERT + "tied = true"),
    "static-embedding": ('kind = "static-embedding"\ntrain = "datasets/bank-twins/valid.tsv"', 'kind = "static"'),
}


def config_of(name, task, model):
    heads = "" if name in ("recurrent", "convolution", "static-embedding") else "heads = 2\nfeed_forward = 16\n"
    return f'name = "{name}"\n[task]\n{task}\n[model]\nwidth = 8\n{heads}{model}\n[train]\nbatch = 8\n[optimizer]\nlr = 0.01\n'


class Proof(ProgramTest):
    def setUp(self):
        super().setUp()
        self.scratch = self.folder / "scratch"
        self.scratch.mkdir()
        self.environment = {**os.environ, "TMPDIR": str(self.scratch)}

    def prove(self, *arguments, code=0):
        """Runs a command, which must leave nothing behind."""
        before = {path: path.stat().st_mtime_ns for path in self.folder.rglob("*")}
        done = self.run_qkv(*arguments, code=code, env=self.environment)
        after = {path: path.stat().st_mtime_ns for path in self.folder.rglob("*")}
        before.pop(self.scratch), after.pop(self.scratch)
        self.assertEqual(after, before)
        return done

    def replace(self, name, text):
        """At once, as another process may be reading the file."""
        (self.folder / "new").write_text(text)
        (self.folder / "new").rename(self.folder / name)

    def write_kinds(self):
        shutil.copytree(PROJECT / "datasets", self.folder / "datasets", ignore=shutil.ignore_patterns("*.h", "*.cpp", "*.py"))
        for name, (task, model) in KINDS.items():
            (self.folder / f"{name}.toml").write_text(config_of(name, task, model))
            yield f"{name}.toml"


class VerifyResume(Proof):
    def test_a_killed_run_ends_with_the_same_bits_and_nothing_is_left_behind(self):
        done = self.prove("verify-resume", "tiny.toml")
        self.assertTrue(done.stdout.endswith("\nevery bit agrees\n"), done.stdout)
        self.assertIn("uninterrupted: 1 thread, evaluated every 10 steps, saved every 5\n", done.stderr)
        self.assertIn("killed and resumed: process 2 of 4, 3 threads, from step ", done.stderr)

    def test_json_has_the_processes_and_what_was_compared(self):
        found = self.json_of("verify-resume", "tiny.toml", "--steps", 400, "--kills", 2, "--seed", 5)
        self.assertEqual((found["steps"], found["seed"], found["equal"]), (400, 5, True))
        kills = found["kills"]  # fewer than asked for where the run ended before
        self.assertIn(kills, (1, 2))
        self.assertEqual([process["killed"] for process in found["processes"]], [True] * kills + [False])
        self.assertEqual([process["threads"] for process in found["processes"]], [2, 3, 4][:kills + 1])
        starts = [process["from_step"] for process in found["processes"]]
        self.assertEqual(starts[0], 0)
        self.assertGreater(starts[1], 0)  # else nothing was resumed
        self.assertEqual(found["processes"][-1]["to_step"], 400)
        self.assertEqual([compared["equal"] for compared in found["compared"]], [True] * 4)
        self.assertNotIn("difference", found["compared"][0])

    def json_of(self, *arguments):
        return json.loads(self.prove(*arguments, "--json").stdout)

    def test_every_kind_of_task_resumes_exactly(self):
        for config in self.write_kinds():
            with self.subTest(config):
                self.assertTrue(self.json_of("verify-resume", config, "--steps", 200, "--kills", 2)["equal"])

    def test_a_difference_is_an_exit_code_and_is_named(self):
        process = subprocess.Popen([PROGRAM, "verify-resume", "tiny.toml", "--json"], cwd=self.folder, env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if line.startswith("test accuracy"):  # the end of the first run: the second gets other data to be evaluated on
                lines = (self.folder / "valid.tsv").read_text().splitlines(keepends=True)
                self.replace("valid.tsv", "".join(lines[:20]))
        printed, _ = process.communicate()
        found = json.loads(printed)
        self.assertEqual((process.returncode, found["equal"]), (1, False))
        last, _, metrics, _ = found["compared"]
        self.assertRegex(metrics["difference"]["place"], "^valid at step ")
        self.assertEqual(last["difference"]["place"], "/progress/metrics, " + metrics["difference"]["place"])
        self.assertNotEqual(metrics["difference"]["uninterrupted"], metrics["difference"]["resumed"])
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_a_run_that_cannot_resume_is_an_error_that_says_why(self):
        process = subprocess.Popen([PROGRAM, "verify-resume", "tiny.toml"], cwd=self.folder, env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        errors = ""
        for line in process.stderr:
            errors += line
            if "process 2 of 4" in line:
                self.replace("train.tsv", (self.folder / "valid.tsv").read_text())
        printed, _ = process.communicate()
        self.assertEqual((process.returncode, printed), (1, ""), errors)
        self.assertRegex(errors.splitlines()[-1], "^qkv: resumed at step .* the run failed with exit code 2: qkv: .*data")
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_wrong_use_is_refused_before_anything_is_trained(self):
        self.assert_refused(["verify-resume", "none.toml"], "none.toml: there is no such file")
        self.assert_refused(["verify-resume", "tiny.toml", "--steps", "9"], "--steps")
        self.assert_refused(["verify-resume", "tiny.toml", "--kills", "0"], "--kills")

    def test_a_signal_stops_it_and_nothing_is_left_behind(self):
        for moment, steps in (("step", "100000"), ("killed and resumed", "300")):
            process = subprocess.Popen([PROGRAM, "verify-resume", "tiny.toml", "--steps", steps], cwd=self.folder,
                                       env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for line in process.stderr:
                if line.startswith(moment):
                    break
            process.send_signal(signal.SIGTERM)
            printed, rest = process.communicate()
            self.assertEqual((process.returncode, printed), (143, ""))
            self.assertTrue(rest.endswith("stopped: nothing was compared\n"), rest)
            self.assertEqual(list(self.scratch.iterdir()), [])


class Gradcheck(Proof):
    def test_every_parameter_of_the_model_is_checked(self):
        found = self.json("gradcheck", "tiny.toml")
        self.assertTrue(found["passes"])
        self.assertEqual((found["examples"], found["tolerance"], found["frozen"]), (4, 1e-4, []))
        shapes = {p["path"]: p["shape"] for p in self.json("inspect", "runs/tiny")["parameters"]}
        self.assertEqual([p["path"] for p in found["parameters"]], list(shapes))
        for parameter in found["parameters"]:
            self.assertEqual(parameter["checked"], min(parameter["elements"], 32))
            self.assertLess(parameter["error"], found["tolerance"])
            self.assertLess(parameter["index"], parameter["elements"])

    def test_the_text_says_what_was_checked(self):
        done = self.prove("gradcheck", "tiny.toml")
        self.assertTrue(done.stdout.startswith(
            "4 of the training examples in float64; dropout 0.1, the same mask each time\n"), done.stdout)
        self.assertRegex(done.stdout, r"encoder\.layers\.0\.attention\.w_q\.weight +32 of 64 +\d\.\de-\d\d  \[\d, \d\]\n")
        self.assertRegex(done.stdout, r"encoder\.layers\.0\.attention\.w_q\.bias +all 8 +")
        self.assertIn("\nevery gradient agrees: the worst error is ", done.stdout)
        self.assertEqual(done.stdout, self.prove("gradcheck", "tiny.toml").stdout)

    def test_every_kind_of_task_and_frozen_parameters(self):
        for config in self.write_kinds():
            with self.subTest(config):
                self.assertTrue(self.json("gradcheck", config)["passes"])
        self.run_qkv("embed", "runs/tiny", "--word2vec", "v.txt")
        (self.folder / "frozen.toml").write_text(
            CONFIG.replace("width = 8", 'width = 8\nembedding = "v.txt"').replace("steps = 40", 'steps = 40\nfreeze = ["embedding"]'))
        found = self.json("gradcheck", "frozen.toml")
        self.assertEqual((found["passes"], found["frozen"]), (True, ["embedding.weight"]))

    def test_wrong_use_is_refused(self):
        self.assert_refused(["gradcheck", "none.toml"], "none.toml: there is no such file")


class Terminal(Proof):
    def test_the_tables_fit_80_columns(self):
        for command in (["gradcheck", "tiny.toml"], ["verify-resume", "tiny.toml"]):
            text = self.in_terminal(*command, TMPDIR=str(self.scratch))
            shown = [line.split("\r\033[K")[-1] for line in text.replace("\r\n", "\n").splitlines()]
            self.assertLessEqual(max(map(len, shown)), 80)


if __name__ == "__main__":
    unittest.main()
