"""Results of the commands that read a trained run, and of compare, each in JSON and as people see them.

Usage: commands_test.py PROGRAM
"""
import json
import math
import pathlib
import re
import shutil
import statistics
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import CONFIG, ProgramTest


class Commands(ProgramTest):
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

    def test_a_run_answers_together_with_its_ensemble(self):
        self.run_qkv("train", "tiny.toml", "--set", "seed=3", "--run", "runs/third")
        for run, copy in (("runs/tiny", "pair"), ("runs/third", "pair/ensemble/third")):
            shutil.copytree(self.folder / run, self.folder / copy)
        both = "runs/tiny", "runs/third"
        self.assertEqual(self.json("predict", "pair", "money bank grows"), self.json("predict", *both, "money bank grows"))
        self.assertEqual(self.json("eval", "pair"), self.json("eval", *both))
        self.assertIn("2 models averaged", self.run_qkv("eval", "pair").stdout)
        self.assertEqual(self.json("embed", "pair", "money bank grows"), self.json("embed", "runs/tiny", "money bank grows"))
        noted = self.run_qkv("export", "pair", "--cpp", "pair.h").stderr
        self.assertIn("pair is an ensemble of 2 models, of which the first is exported", noted)
        (self.folder / "new/ensemble").mkdir(parents=True)
        shutil.copytree(self.folder / "runs/third", self.folder / "new/ensemble/third")
        self.assert_refused(["train", "tiny.toml", "--run", "new"], "new holds an ensemble", "--run")

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

    def test_of_many_unknown_words_the_first_twenty_are_said(self):
        def words(first, end):
            return " ".join("z" * length for length in range(first, end))

        (self.folder / "unknown").write_text(f"the bank {words(1, 10)}\nthe bank {words(5, 23)}\n")
        done = self.run_qkv("predict", "runs/tiny", "--file", "unknown")
        self.assertEqual(done.stderr, f"not in the vocabulary, read as <unk>: {words(1, 21)} and 2 more\n")

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

if __name__ == "__main__":
    unittest.main()
