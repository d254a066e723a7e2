"""What users run: the built program with good and bad input, in a terminal and in a pipe.

Usage: program_test.py PROGRAM
"""
import json
import math
import os
import pathlib
import pty
import re
import resource
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

import h5py

PROGRAM = os.path.abspath(sys.argv.pop(1))
PROJECT = pathlib.Path(__file__).parents[2]
CONFIG = """
name = "tiny"
[task]
train = "train.tsv"
valid = "valid.tsv"
test = "test.tsv"
[model]
width = 8
layers = 1
heads = 2
feed_forward = 16
dropout = 0.1
max_length = 24
[train]
steps = 40
batch = 16
eval_every = 10
checkpoint_every = 10
"""


def qkv(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, **options)


def qkv_with_file_limit(limit, *arguments, **options):
    """Where no file may have more than `limit` bytes; those of a build for coverage, which do, are not written."""
    unwritten = {"GCOV_PREFIX": "/dev/null", "GCOV_ERROR_FILE": "/dev/null"}
    return qkv(*arguments, env=os.environ | unwritten,
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)), **options)


class ProgramTest(unittest.TestCase):
    """Every test works in a folder of its own with a small config, data and, once asked for, a trained run."""

    @classmethod
    def setUpClass(cls):
        cls.template = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.template.name)
        (folder / "tiny.toml").write_text(CONFIG)
        for split, lines in (("train", 200), ("valid", 40), ("test", 40)):
            text = (PROJECT / f"datasets/bank-twins/{split}.tsv").read_text().splitlines(keepends=True)[:lines]
            (folder / f"{split}.tsv").write_text("".join(text))
        done = qkv("train", "tiny.toml", cwd=folder)
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.template.cleanup()

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name) / "work"
        shutil.copytree(self.template.name, self.folder)
        self.addCleanup(self.temporary.cleanup)

    def run_qkv(self, *arguments, code=0, **options):
        done = qkv(*arguments, cwd=self.folder, **options)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stderr)
        return done

    def json(self, *arguments):
        return json.loads(self.run_qkv(*arguments, "--json").stdout)

    def in_terminal(self, *arguments, **environment):
        """What the program writes to a terminal.

        Its end of the terminal stays open here until all is read: on Linux a read that meets the last close can
        miss what was written just before.
        """
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"this machine lends no terminal (is /dev/pts mounted?): {error}")
        process = subprocess.Popen([PROGRAM, *arguments], cwd=self.folder, stdout=theirs, stderr=theirs,
                                   env={**os.environ, "TERM": "xterm-256color", **environment})
        output = b""
        ended = False
        while not ended:
            ended = process.poll() is not None
            while select.select([ours], [], [], 0 if ended else 0.02)[0]:
                output += os.read(ours, 1 << 16)
        os.close(ours)
        os.close(theirs)
        self.assertEqual(process.returncode, 0, output)
        return output.decode()

    def assert_refused(self, arguments, *parts, code=2):
        """An exit code, one line of error that contains all parts, nothing printed and nothing written."""
        before = sorted(self.folder.rglob("*"))
        done = self.run_qkv(*arguments, code=code)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def assert_same_checkpoints(self, a, b):
        done = subprocess.run(["h5diff", a, b], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


class Training(ProgramTest):
    def test_a_run_folder_holds_what_users_rely_on(self):
        run = self.folder / "runs/tiny"
        names = sorted(str(path.relative_to(run)) for path in run.rglob("*"))
        steps = [f"checkpoints/step-{step:08}.h5" for step in (20, 30, 40)]
        self.assertEqual(names, sorted(["best.h5", "checkpoints", "config.toml", "last.h5", "metrics.jsonl", *steps]))
        events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        for event in events:
            self.assertLessEqual({"step", "split", "loss", "seconds", "tokens_per_second"}, set(event))
        self.assertEqual(events[-1]["split"], "test")

    def test_the_written_config_repeats_the_run(self):
        self.run_qkv("train", "runs/tiny/config.toml", "--run", "again")
        self.assert_same_checkpoints("runs/tiny/last.h5", "again/last.h5")

    def test_results_do_not_depend_on_the_number_of_threads(self):
        self.run_qkv("train", "tiny.toml", "--run", "other", "--threads", 3)
        self.assert_same_checkpoints("runs/tiny/last.h5", "other/last.h5")

    def test_a_shorter_run_resumed_equals_the_uninterrupted_one(self):
        self.run_qkv("train", "tiny.toml", "--run", "half", "--set", "train.steps=20")
        self.run_qkv("resume", "half", "--set", "train.steps=40", "--threads", 1)
        self.assert_same_checkpoints("runs/tiny/last.h5", "half/last.h5")

    def test_an_averaged_run_resumed_equals_the_uninterrupted_one_and_keeps_the_average(self):
        averaged = ["--set", "train.ema=0.9", "--set", "train.accumulate=2"]
        self.run_qkv("train", "tiny.toml", "--run", "whole", *averaged)
        self.run_qkv("train", "tiny.toml", "--run", "half", "--set", "train.steps=20", *averaged)
        self.run_qkv("resume", "half", "--set", "train.steps=40")
        self.assert_same_checkpoints("whole/last.h5", "half/last.h5")
        with h5py.File(self.folder / "whole/last.h5") as file:
            average, own = file["model/head/weight"][()], file["optimizer/live/head/weight"][()]
        self.assertGreater(abs(average - own).max(), 0)
        before = self.json("eval", "whole")
        self.assertEqual(before["loss"], self.json("eval", "half")["loss"])

    def test_accumulated_micro_batches_make_the_step_of_one_batch(self):
        for run, batch, micro_batches in (("one", 16, 1), ("four", 4, 4)):
            self.run_qkv("train", "tiny.toml", "--run", run, "--set", "model.dropout=0", "--set", "train.steps=10",
                         "--set", f"train.batch={batch}", "--set", f"train.accumulate={micro_batches}")
        with h5py.File(self.folder / "one/last.h5") as one, h5py.File(self.folder / "four/last.h5") as four:
            difference = abs(one["model/head/weight"][()] - four["model/head/weight"][()]).max()
        self.assertLess(difference, 1e-5)

    def test_anomaly_detection_names_the_op_that_breaks_a_run(self):
        done = self.run_qkv("train", "tiny.toml", "--set", "optimizer.kind=sgd", "--set", "optimizer.lr=1e30", "--set",
                            "train.clip=0", "--set", "train.on_divergence=detect", "--run", "hot", code=1)
        self.assertRegex(done.stderr, r"\[\w+\] produced (a NaN|an infinity) in its output of shape \(.*\), from inputs")

    def test_without_validation_data_the_last_checkpoint_is_the_best(self):
        done = self.run_qkv("train", "tiny.toml", "--run", "new", "--set", "task.valid=", "--set", "train.keep=9")
        self.assertIn("no validation data: the best checkpoint is the last", done.stderr)
        self.assertIn("(checkpoint of step 40)", done.stderr)
        self.assertEqual([file["step"] for file in self.json("verify", "new")["files"] if file["file"].endswith("best.h5")],
                         [40])
        self.assert_same_checkpoints("new/best.h5", "new/last.h5")
        last = self.json("eval", "new/last.h5")
        self.assertEqual(self.json("eval", "new"), last)
        events = [json.loads(line) for line in (self.folder / "new/metrics.jsonl").read_text().splitlines()]
        self.assertEqual(events[-1]["loss"], last["loss"])
        self.assertEqual({event["split"] for event in events}, {"train", "test"})

    def test_task_data_is_cut_into_training_and_validation_beside_a_file_of_test_data(self):
        done = self.run_qkv("train", "tiny.toml", "--run", "new", "--set", "task.data=train.tsv", "--set",
                            "task.test=test.tsv", "--set", "task.valid_share=0.2")
        self.assertIn("160 training examples (40 valid, 40 test)", done.stderr)

    def test_a_finished_run_that_is_resumed_measures_no_speed(self):
        self.run_qkv("resume", "runs/tiny")
        events = [json.loads(line) for line in (self.folder / "runs/tiny/metrics.jsonl").read_text().splitlines()]
        self.assertEqual(events[-1]["split"], "test")
        self.assertNotIn("tokens_per_second", events[-1])
        for event in events[:-1]:
            self.assertGreater(event["tokens_per_second"], 0)

    def test_data_is_found_from_any_folder(self):
        elsewhere = pathlib.Path(self.temporary.name)
        done = qkv("train", "work/tiny.toml", "--set", "train.steps=1", cwd=elsewhere)
        self.assertEqual(done.returncode, 0, done.stderr)


class Looking(ProgramTest):
    def test_eval(self):
        result = self.json("eval", "runs/tiny")
        self.assertEqual(result["count"], 40)
        self.assertLessEqual({"loss", "accuracy", "macro_f1", "recall"}, set(result))
        self.assertEqual(self.json("eval", "runs/tiny", "--data", "test.tsv"), result)

    def test_eval_measures_how_good_the_probabilities_are(self):
        result = self.json("eval", "runs/tiny")
        labels = [line.split("\t")[0] for line in (self.folder / "test.tsv").read_text().splitlines()]
        found = self.json("predict", "runs/tiny", "--data", "test.tsv")["predictions"]
        self.assertAlmostEqual(result["log_loss"], -statistics.mean(math.log(p["probabilities"][label])
                                                                     for label, p in zip(labels, found)), places=5)
        gaps = [0.0] * 15
        for label, p in zip(labels, found):
            gaps[math.ceil(p["probability"] * 15) - 1] += (p["label"] == label) - p["probability"]
        self.assertAlmostEqual(result["calibration_error"], sum(map(abs, gaps)) / len(labels), places=5)
        shown = self.run_qkv("eval", "runs/tiny").stdout
        self.assertIn(f"  log_loss {result['log_loss']:.4f}  calibration_error {result['calibration_error']:.4f}\n", shown)

    def test_a_checkpoint_is_selected_by_its_calibration(self):
        self.run_qkv("train", "tiny.toml", "--set", "train.select=calibration_error", "--run", "runs/calibrated")
        *lines, test = map(json.loads, (self.folder / "runs/calibrated/metrics.jsonl").read_text().splitlines())
        best = min((line for line in lines if line["split"] == "valid"), key=lambda line: (line["calibration_error"], line["loss"]))
        self.assertEqual(test["step"], best["step"])

    def test_eval_shows_every_label_and_what_it_was_taken_for(self):
        result = self.json("eval", "runs/tiny")
        labels = result["labels"]
        for i, label in enumerate(labels):
            row = result["confusion"][i]
            self.assertEqual(sum(row), result["support"][label])
            self.assertAlmostEqual(result["recall"][label], row[i] / sum(row))
            column = sum(other[i] for other in result["confusion"])
            self.assertAlmostEqual(result["f1"][label], 2 * row[i] / (sum(row) + column))
        shown = self.run_qkv("eval", "runs/tiny").stdout
        self.assertIn("precision", shown)
        for label in labels:
            self.assertEqual(len(re.findall(rf"^{label}", shown, re.MULTILINE)), 2, shown)

    def test_predict(self):
        result = self.json("predict", "runs/tiny", "Money bank grows.", "river bank flows")["predictions"]
        self.assertEqual([p["text"] for p in result], ["Money bank grows.", "river bank flows"])
        for prediction in result:
            self.assertIn(prediction["label"], ("money", "river"))
            self.assertGreaterEqual(prediction["probability"], 0.5)
        (self.folder / "texts").write_text("money bank grows\n")
        self.assertEqual(self.json("predict", "runs/tiny", "--file", "texts")["predictions"][0]["label"],
                         result[0]["label"])

    def test_predict_takes_the_texts_of_a_data_file(self):
        found = self.json("predict", "runs/tiny", "--data", "test.tsv")["predictions"]
        rows = [line.split("\t") for line in (self.folder / "test.tsv").read_text().splitlines()]
        self.assertEqual([(p["line"], p["text"]) for p in found], [(i + 1, row[-1]) for i, row in enumerate(rows)])
        right = sum(p["label"] == row[0] for p, row in zip(found, rows))
        self.assertEqual(right / len(rows), self.json("eval", "runs/tiny")["accuracy"])
        self.assert_refused(["predict", "runs/tiny", "money bank", "--data", "test.tsv"], "give texts, --data or --file")

    def test_a_text_without_an_answer_does_not_silence_the_others(self):
        done = self.run_qkv("predict", "runs/tiny", "money bank grows", "no such word", "river bank flows", "--json", code=2)
        self.assertEqual([p["text"] for p in json.loads(done.stdout)["predictions"]], ["money bank grows", "river bank flows"])
        self.assertIn('text 2: "no such word" has none of the words', done.stderr)
        self.assert_refused(["predict", "runs/tiny", "no such word"], '"no such word" has none of the words')

    def test_the_probabilities_of_several_models_are_averaged(self):
        self.run_qkv("train", "tiny.toml", "--set", "seed=2", "--run", "runs/other")
        both = "runs/tiny", "runs/other"
        alone = [self.json("predict", run, "money bank grows")["predictions"][0] for run in both]
        together = self.json("predict", *both, "money bank grows")["predictions"]
        self.assertEqual([p["text"] for p in together], ["money bank grows"])
        for label, probability in together[0]["probabilities"].items():
            mean = sum(p["probabilities"][label] for p in alone) / 2
            self.assertAlmostEqual(probability, mean, places=5)
        losses = [self.json("eval", run)["loss"] for run in both]
        result = self.json("eval", *both)
        self.assertEqual(result["count"], 40)
        self.assertLessEqual(result["loss"], sum(losses) / 2)
        self.assertIn("test split, 2 models averaged: 40 examples", self.run_qkv("eval", *both).stdout)

    def test_embed(self):
        result = self.json("embed", "runs/tiny", "money bank grows", "river bank flows", "--word", "bank")
        self.assertEqual(result["static_cosine"], [[1, 1], [1, 1]])
        self.assertLess(result["contextual_cosine"][0][1], 1)
        self.assertEqual([s["index"] for s in result["sentences"]], [1, 1])
        again = self.json("embed", "runs/tiny", "Money, Bank!", "--word", "Bank,")
        self.assertEqual(again["sentences"][0]["index"], 2)
        self.assertEqual([len(s["contextual"]) for s in result["sentences"]], [8, 8])

    def test_attend(self):
        result = self.json("attend", "runs/tiny", "money bank grows")
        self.assertEqual(result["tokens"], ["money", "bank", "grows"])
        self.assertEqual(len(result["layers"]), 1)
        for head in result["layers"][0]["heads"]:
            for row in head:
                self.assertAlmostEqual(sum(row), 1, places=5)
        self.assertEqual(len(result["layers"][0]["entropy"]), 2)
        for row in result["rollout"]:
            self.assertAlmostEqual(sum(row), 1, places=5)

    def test_inspect(self):
        parameters = self.json("inspect", "runs/tiny")["parameters"]
        shapes = {p["path"]: p["shape"] for p in parameters}
        self.assertEqual(shapes["encoder.layers.0.attention.w_q.weight"], [8, 8])
        self.assertIn("zeros", parameters[0])
        text = self.run_qkv("inspect", "runs/tiny").stdout
        for part in ("w_q.weight", "█", "singular values of W_q W_k^T", "singular values of W_v W_o"):
            self.assertIn(part, text)
        path = "encoder.layers.0.attention.w_q.weight"
        self.assertEqual(len(self.json("inspect", "runs/tiny", path)["values"]), 8)

    def test_h5py_reads_a_checkpoint(self):
        try:
            import h5py
        except ImportError:
            self.skipTest("python3-h5py is not installed")
        with h5py.File(self.folder / "runs/tiny/best.h5") as file:
            self.assertEqual(file.attrs["format"], b"qkv-checkpoint")
            self.assertEqual(file["model/encoder/layers/0/attention/w_q/weight"].shape, (8, 8))
            self.assertIn(b"bank", list(file["vocabulary/tokens"]))

    def test_an_unknown_word_is_said_once(self):
        done = self.run_qkv("predict", "runs/tiny", "the zebra bank and the zebra")
        self.assertEqual(done.stderr, "not in the vocabulary, read as <unk>: zebra\n")

    def test_predict_says_how_many_words_are_unknown(self):
        texts = "The zebra, bank and; the Zebra!", "the bank and, the."
        done = self.run_qkv("predict", "runs/tiny", *texts)
        head, _, zebra, known = done.stdout.splitlines()
        self.assertRegex(head, "probability  unknown$")
        self.assertRegex(zebra, r"\d  2 of 6$")  # a mark is no word
        self.assertRegex(known, r"\d  0 of 4$")
        self.assertEqual(len(done.stderr.splitlines()), 1)
        zebra, known = self.json("predict", "runs/tiny", *texts)["predictions"]
        self.assertEqual((zebra["words"], zebra["unknown_words"]), (6, ["zebra", "zebra"]))
        self.assertEqual((known["words"], known["unknown_words"]), (4, []))
        self.assertNotIn("unknown", self.run_qkv("predict", "runs/tiny", texts[1]).stdout)

    def test_compare(self):
        variants = '[[variant]]\nname = "a"\nmodel.kind = "static"\n[[variant]]\nname = "b, 1 head"\nmodel.heads = 1\n'
        (self.folder / "two.toml").write_text(CONFIG + variants)
        result = self.json("compare", "two.toml")["variants"]
        self.assertEqual([v["name"] for v in result], ["a", "b, 1 head"])
        self.assertLessEqual({"name", "parameters", "seconds", "test"}, set(result[0]))
        self.assertEqual([v["name"] for v in self.json("compare", "two.toml", "--only", "a")["variants"]], ["a"])


    def test_without_test_data_there_are_no_test_results(self):
        self.assertNotIn("test", self.json("train", "tiny.toml", "--run", "new", "--set", "task.test="))
        variants = '[[variant]]\nname = "a"\ntask.test = ""\n[[variant]]\nname = "b"\n'
        (self.folder / "two.toml").write_text(CONFIG.replace("steps = 40", "steps = 2") + variants)
        a, b = self.json("compare", "two.toml")["variants"]
        self.assertNotIn("test", a)
        self.assertEqual(b["test"]["count"], 40)
        head, _, a, b = self.run_qkv("compare", "two.toml").stdout.splitlines()
        self.assertRegex(head, "seconds +test accuracy +test loss +test macro_f1 +test calibration_error$")
        self.assertEqual(a.split()[3:], ["-"] * 4)
        self.assertRegex(b, r"b +\d+ +\S+ +0\.\d{4} +\d\.\d{4} +0\.\d{4} +0\.\d{4}$")


class Output(ProgramTest):
    def test_a_pipe_gets_no_escape_codes(self):
        for arguments in (["attend", "runs/tiny", "money bank grows"], ["explain", "runs/tiny", "money bank grows"],
                          ["inspect", "runs/tiny"], ["eval", "runs/tiny"],
                          ["train", "tiny.toml", "--run", "again"]):
            done = self.run_qkv(*arguments)
            self.assertNotIn("\033", done.stdout + done.stderr)

    def test_a_terminal_gets_a_progress_bar_and_colours(self):
        self.assertIn("━", self.in_terminal("train", "tiny.toml", "--run", "again"))
        attend = ["attend", "runs/tiny", "money bank grows"]
        self.assertIn("\033[48;2;", self.in_terminal(*attend, COLORTERM="truecolor"))
        self.assertIn("\033[48;5;", self.in_terminal(*attend, COLORTERM=""))
        self.assertRegex(self.in_terminal(*attend, COLORTERM="", TERM="linux"), "\033\\[(4|10)\\d;")
        self.assertNotIn("\033", self.in_terminal(*attend, NO_COLOR="1"))
        self.assertNotIn("\033", self.in_terminal(*attend, TERM="dumb"))
        one = ["inspect", "runs/tiny", "encoder.layers.0.attention.w_q.weight"]
        self.assertIn("▀", self.in_terminal(*one, COLORTERM="truecolor"))
        self.assertNotIn("▀", self.run_qkv(*one).stdout)

    def test_results_that_cannot_be_printed_are_a_failure(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "inspect", "runs/tiny"], cwd=self.folder, stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write", done.stderr)


class BadInput(ProgramTest):
    def test_an_unknown_option_or_command_names_the_nearest(self):
        for arguments, message in ((["trian", "tiny.toml"], "unknown command trian; did you mean train?"),
                                   (["dance"], "unknown command dance; see qkv --help"),
                                   (["train", "tiny.toml", "--sett", "seed=2"], "unknown option --sett of qkv train; did you mean --set?"),
                                   (["compare", "tiny.toml", "--seed=2"], "unknown option --seed of qkv compare; did you mean --seeds?"),
                                   (["eval", "runs/tiny", "--zebra"], "unknown option --zebra of qkv eval; see qkv eval --help")):
            self.assert_refused(arguments, f"qkv: {message}\n")

    def test_options(self):
        self.assert_refused(["train"], "CONFIG is required")
        self.assert_refused(["train", "tiny.toml", "--colour"], "--colour")
        self.assert_refused(["train", "tiny.toml", "--threads", "0"], "--threads")
        self.assert_refused(["fly"], "fly")

    def test_configs(self):
        self.assert_refused(["train", "none.toml"], "none.toml: there is no such file")
        for change, complaint in ((("width", "wdith"), 'unknown key "model.wdith" (did you mean "model.width"?)'),
                                  (("steps = 40", "steps = 'many'"), "train.steps must be an integer"),
                                  (("dropout = 0.1", "dropout = 1"), "model.dropout must be in [0, 1), got 1")):
            (self.folder / "bad.toml").write_text(CONFIG.replace(*change))
            line = 1 + CONFIG[:CONFIG.index(change[0])].count("\n")
            self.assert_refused(["train", "bad.toml"], f"bad.toml:{line}: ", complaint)
        self.assert_refused(["train", "tiny.toml", "--set", "model.heads=3"], "--set model.heads=3", "divide")

    def test_data(self):
        train = ["train", "tiny.toml", "--run", "new"]
        self.assert_refused([*train, "--set", "task.train=none.tsv"], "none.tsv: cannot be read")
        (self.folder / "bad.tsv").write_text("money\t0\tbank\nriver bank\n")
        self.assert_refused([*train, "--set", "task.train=bad.tsv"], "bad.tsv:2: must be label<TAB>index<TAB>sentence")
        self.assert_refused([*train, "--set", "model.max_length=5"], "train.tsv:", "model.max_length = 5")
        (self.folder / "bad.tsv").write_text("money\t0\tbank\nmoney\t0\tbank\n")
        self.assert_refused([*train, "--set", "task.train=bad.tsv"], "bad.tsv: ", "only the label money")
        self.assert_refused(["eval", "runs/tiny", "--data", "none.tsv"], "none.tsv: cannot be read")
        (self.folder / "bad.tsv").write_text("fish\t0\tbank\n")
        self.assert_refused(["eval", "runs/tiny", "--data", "bad.tsv"], "bad.tsv:1: ", 'unknown label "fish"', "money, river")

    def test_sentences(self):
        self.assert_refused(["predict", "runs/tiny", " "], "the sentence is empty")
        self.assert_refused(["predict", "runs/tiny", "bank " * 25], "the sentence has 25 words", "model.max_length = 24")
        self.assert_refused(["predict", "runs/tiny", "money grows"], "bank")
        self.assert_refused(["predict", "runs/tiny", b"bank \xff".decode(errors="surrogateescape")], "UTF-8")
        self.assert_refused(["embed", "runs/tiny", "money bank grows", "--word", "pays"], "pays")
        self.assert_refused(["attend", "runs/tiny", "money bank grows", "--head", "2"], "--head 2")
        self.assert_refused(["attend", "runs/tiny"], "--data")
        self.assert_refused(["embed", "runs/tiny", "money bank grows", "--layer", "1"], "--layer 1")
        (self.folder / "bad.tsv").write_text("money\t9\tmoney bank\n")
        self.assert_refused(["attend", "runs/tiny", "--data", "bad.tsv"], "bad.tsv:1: ", "less than the sentence's 2 words, got 9")
        self.assert_refused(["explain", "runs/tiny", "money bank grows", "--word", "pays"], "pays")
        self.assert_refused(["inspect", "runs/tiny", "head.wieght"], "head.wieght")

    def test_runs_and_checkpoints(self):
        self.assert_refused(["train", "tiny.toml"], "runs/tiny already holds a run", "qkv resume runs/tiny")
        self.assert_refused(["resume", "none"], "none is not a run folder")
        self.assert_refused(["eval", "none.h5"], "none.h5: cannot read: No such file or directory")
        self.assert_refused(["eval", "tiny.toml"], "tiny.toml: is not a qkv checkpoint")
        self.assert_refused(["eval", "."], "holds no checkpoint")
        whole = (self.folder / "runs/tiny/best.h5").read_bytes()
        (self.folder / "cut.h5").write_bytes(whole[:5000])
        self.assert_refused(["predict", "cut.h5", "money bank grows"], "cut.h5: is truncated", code=1)
        self.assert_refused(["resume", "runs/tiny", "--set", "model.width=16"], "model.width", "from the checkpoint")

    def test_only_some_options_change_when_a_run_resumes(self):
        for change in ("seed=2", "train.batch=8", "train.accumulate=2", "train.ema=0.5", "optimizer.kind=sgd", "optimizer.beta1=0.5",
                       "optimizer.weight_decay=0.1", "task.min_count=2", "task.test=", "name=other"):
            self.assert_refused(["resume", "runs/tiny", "--set", change], change.split("=")[0] + " = ",
                                "it may change optimizer.lr, ")
        for change in ("train.steps=41", "optimizer.lr=0.1", "schedule.warmup=1", "train.clip=2", "train.eval_every=3",
                       "train.checkpoint_every=3", "train.keep=5", "train.on_divergence=detect", "train.on_divergence=skip",
                       "train.tensorboard=true"):
            self.run_qkv("resume", "runs/tiny", "--set", change)
        shutil.copy(self.folder / "train.tsv", self.folder / "moved.tsv")
        self.run_qkv("resume", "runs/tiny", "--set", "task.train=moved.tsv")

    def test_other_labels_in_the_training_data(self):
        text = (self.folder / "train.tsv").read_text()
        swapped = [line.replace("money\t", "X\t", 1).replace("river\t", "money\t", 1).replace("X\t", "river\t", 1)
                   for line in text.splitlines(keepends=True)]
        (self.folder / "train.tsv").write_text("".join(swapped))
        self.assert_refused(["resume", "runs/tiny", "--set", "train.steps=80"], "the training data", "train.tsv has changed")
        (self.folder / "train.tsv").write_text(text)
        self.run_qkv("resume", "runs/tiny", "--set", "train.steps=80")

    def test_checkpoints_that_cannot_be_read_are_not_missing(self):
        run = self.folder / "runs/tiny"
        shutil.rmtree(run / "checkpoints")
        (run / "checkpoints").write_text("")
        for names in (["best.h5", "last.h5"], []):
            for command in ("verify", "resume", "eval"):
                self.assert_refused([command, "runs/tiny"], "runs/tiny/checkpoints: the folder cannot be read: Not a directory",
                                    code=1)
            for name in names:
                (run / name).unlink()

    def test_a_checkpoint_of_another_step_than_its_name_says(self):
        steps = self.folder / "runs/tiny/checkpoints"
        shutil.copy(steps / "step-00000040.h5", steps / "step-00000099.h5")
        self.assertIn("step-00000099.h5: holds the checkpoint of step 40", self.run_qkv("verify", "runs/tiny", code=1).stderr)
        done = self.run_qkv("resume", "runs/tiny")
        self.assertIn("step-00000099.h5: holds the checkpoint of step 40", done.stderr)
        self.assertIn("resuming at step 40", done.stderr)

    def test_changed_training_data(self):
        with open(self.folder / "train.tsv", "a") as data:
            data.write("money\t1\tnew bank words\n")
        self.assert_refused(["resume", "runs/tiny", "--set", "train.steps=80"], "other words or labels")


if __name__ == "__main__":
    unittest.main()
