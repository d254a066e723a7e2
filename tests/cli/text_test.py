"""What the program reads: columns and CSV, tokenizers, unknown labels, long sentences, large texts.

Usage: text_test.py PROGRAM
"""
import unittest

from program_test import ProgramTest

CONFIG = """
name = "text"
[task]
kind = "{kind}"
{task}
[model]
{model}
width = 16
layers = 1
heads = 2
feed_forward = 16
max_length = 16
[train]
steps = 20
batch = 8
eval_every = 10
checkpoint_every = 7
"""
SENTENCES = "Ann B-PER\nlives O\nin O\nNew B-LOC\nYork I-LOC\n\nRome B-LOC\nlikes O\nBob B-PER\n"


class Text(ProgramTest):
    def train(self, name, kind, task, model="", **files):
        for file, text in files.items():
            (self.folder / file.replace("_", ".")).write_text(text)
        (self.folder / f"{name}.toml").write_text(CONFIG.format(kind=kind, task=task, model=model))
        return self.run_qkv("train", f"{name}.toml", "--run", f"runs/{name}")

    def test_a_tagger_is_trained_and_inspected(self):
        self.train("tags", "tagging", 'train = "t.conll"\nvalid = "t.conll"\ntest = "t.conll"', t_conll=SENTENCES)
        measured = self.json("eval", "runs/tags")
        self.assertEqual(measured["count"], 8)
        self.assertLessEqual({"accuracy", "macro_f1", "span_f1", "recall"}, set(measured))
        found = self.json("predict", "runs/tags", "Bob lives in Rome")["predictions"]
        self.assertEqual([p["index"] for p in found], [0, 1, 2, 3])
        self.assertEqual(len(self.json("attend", "runs/tags", "Bob lives in Rome")["tokens"]), 4)
        self.assertIn("B-LOC", self.run_qkv("explain", "runs/tags", "Bob lives in Rome", "--word", "Rome").stdout)
        self.assertEqual(self.json("embed", "runs/tags", "Bob lives", "--word", "bob")["sentences"][0]["index"], 0)
        self.run_qkv("embed", "runs/tags", "--data", "t.conll", "--pca")
        self.run_qkv("report", "runs/tags", "-o", "tags.html")
        self.assertIn("likes", (self.folder / "tags.html").read_text())

    def test_csv_with_a_header_unknown_labels_and_long_sentences(self):
        done = self.train("csv", "classify",
                          'train = "t.csv"\ntest = "u.csv"\nunknown_labels = "skip"\ntruncate = true',
                          t_csv='label,text\ngood,"fine, ""really"" fine"\nbad,dull\n',
                          u_csv='good,' + "very " * 30 + 'fine\nmixed,so so\nmixed,well\n')
        for note in ("t.csv:1: skipped the header", "u.csv: 1 of 3 sentences cut to model.max_length = 16 tokens",
                     'u.csv: 2 of 3 examples left out: unknown label "mixed"'):
            self.assertIn(note, done.stderr)
        self.assertEqual(self.json("eval", "runs/csv")["count"], 1)
        (self.folder / "strict.toml").write_text((self.folder / "csv.toml").read_text().replace(
            'test = "u.csv"\nunknown_labels = "skip"\n', ""))
        self.run_qkv("train", "strict.toml", "--run", "runs/strict")
        self.assert_refused(["eval", "runs/strict", "--data", "u.csv"], "u.csv:2: ", 'unknown label "mixed"', "bad, good")
        done = self.run_qkv("eval", "runs/strict", "--data", "u.csv", "--skip-unknown-labels")
        self.assertIn('2 of 3 examples left out: unknown label "mixed"', done.stderr)

    def test_a_language_model_of_byte_pairs_generates_any_text_and_resumes(self):
        text = "the bank of the river, the bank of the town\n" * 40
        task = 'data = "t.txt"\ntokenizer = "bpe"\nmerges = 30'
        self.train("whole", "language-model", task, 'kind = "decoder"', t_txt=text)
        generated = self.json("generate", "runs/whole", "--prompt", "The Fluß 川", "--tokens", "30")
        self.assertEqual(generated["tokens"], 30)
        checkpoints = self.folder / "runs/whole/checkpoints"
        self.assertIn("step-00000014.h5", [path.name for path in checkpoints.iterdir()])
        (checkpoints / "step-00000020.h5").unlink()
        (self.folder / "runs/whole/last.h5").rename(self.folder / "end.h5")
        self.run_qkv("resume", "runs/whole")
        self.assert_same_checkpoints("end.h5", "runs/whole/last.h5")


if __name__ == "__main__":
    unittest.main()
