"""What the program reads: columns and CSV, tokenizers, unknown labels, long sentences, large texts.

Usage: text_test.py PROGRAM
"""
import shutil
import unittest

from report_page import ReportTest

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


class Text(ReportTest):
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
        self.assertIn("likes", str(self.data_of(self.report("runs/tags"))))

    def test_a_model_is_pretrained_on_sentences_and_fine_tuned(self):
        config = CONFIG.replace("max_length = 16", "max_length = 24")
        (self.folder / "general.toml").write_text(
            config.format(kind="masked-language-model", task='data = "train.tsv"\nmask_probability = 0.3', model=""))
        self.run_qkv("train", "general.toml", "--run", "runs/general")
        measured = self.json("eval", "runs/general")
        self.assertLessEqual({"count", "loss", "accuracy", "perplexity"}, set(measured))
        done = self.run_qkv("predict", "runs/general", "the [MASK] at the [MASK]")
        self.assertEqual(done.stderr, "")  # [MASK] is no unknown word
        self.assertNotIn("unknown", done.stdout.splitlines()[0])
        found = self.json("predict", "runs/general", "the [MASK] at the [MASK].")["predictions"]
        self.assertEqual([p["index"] for p in found], [1, 4])
        self.assertEqual(len(found[0]["probabilities"]), 10)
        self.assert_refused(["predict", "runs/general", "the bank"], '"the bank" has no [MASK]')
        bracketed = ["[MASK], the [MASK]", "[MASK]"]  # no list in brackets
        self.assertEqual([found["text"] for found in self.json("predict", "runs/general", *bracketed)["predictions"]],
                         [bracketed[0], *bracketed])
        self.assertEqual(len(self.json("attend", "runs/general", "the [MASK] grows")["tokens"]), 3)
        embedded = self.json("embed", "runs/general", "money bank grows", "river bank flows", "--word", "bank",
                             "--data", "test.tsv")
        self.assertLess(embedded["contextual_cosine"][0][1], 1)
        cosines = embedded["label_cosines"]
        self.assertAlmostEqual(cosines["static"]["different"], 1, places=6)
        self.assertLess(cosines["contextual"]["different"], 1)
        self.assertIn("different labels", self.run_qkv("embed", "runs/general", "--data", "test.tsv").stdout)
        self.assertIn(embedded["sentences"][0]["neighbours"][0]["label"], ("money", "river"))
        self.assertIn("W y_1 + b", self.run_qkv("explain", "runs/general", "the [MASK] grows").stdout)
        self.run_qkv("gradients", "runs/general", "--data", "test.tsv")
        self.run_qkv("report", "runs/general", "-o", "general.html")

        (self.folder / "senses.toml").write_text(
            config.format(kind="word-sense", task='data = "train.tsv"', model="") +
            'init = "runs/general"\nfreeze = ["embedding", "layers.0"]\n')
        done = self.run_qkv("train", "senses.toml")
        for note in ("starts from text, step ", "loaded: 19 parameters", "newly initialised: head.weight (tokens there, labels",
                     " frozen), "):
            self.assertIn(note, done.stderr)
        self.assertIn("starts from text", self.json("inspect", "runs/text")["init"])
        self.assertIn("starts from text", self.run_qkv("inspect", "runs/text").stdout)
        changes = self.json("inspect", "runs/text", "--diff", "runs/text/last.h5")["changes"]
        self.assertTrue(changes)
        shutil.rmtree(self.folder / "runs/general")
        self.assertGreater(self.json("eval", "runs/text")["count"], 0)
        self.run_qkv("resume", "runs/text", "--set", "train.steps=30")
        self.run_qkv("report", "runs/text", "-o", "text.html")
        self.assert_refused(["train", "senses.toml", "--run", "again"], "runs/general")

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

    def test_many_labels_have_scores_but_no_table(self):
        labels = [f"l{i}" for i in range(201)]
        self.train("many", "classify", 'train = "t.tsv"\ntest = "t.tsv"', t_tsv="".join(f"{l}\tword {l}\n" for l in labels))
        found = self.json("eval", "runs/many")
        self.assertEqual(set(found["recall"]), set(labels))
        self.assertNotIn("confusion", found)
        lines = self.run_qkv("eval", "runs/many").stdout.splitlines()
        self.assertEqual(lines[1:3], ["201 labels, of which --json gives the scores", ""])
        self.assertFalse([line for line in lines if line.startswith("l200 ")])

    def test_a_language_model_of_byte_pairs_generates_any_text_and_resumes(self):
        text = "the bank of the river, the bank of the town\n" * 40
        task = 'data = "t.txt"\ntokenizer = "bpe"\nmerges = 30'
        self.train("whole", "language-model", task, 'kind = "decoder"', t_txt=text)
        generated = self.json("generate", "runs/whole", "--prompt", "The Fluß 川", "--tokens", "30")
        self.assertEqual(generated["tokens"], 30)
        exact, rounded = (self.json("eval", "runs/whole", *options)["loss"] for options in ((), ("--int8",)))
        self.assertAlmostEqual(rounded, exact, delta=.01)
        self.assertNotEqual(rounded, exact)
        self.assertEqual(self.json("eval", "runs/whole", "--int8", "--threads", 3)["loss"], rounded)
        self.assertEqual(self.json("generate", "runs/whole", "--tokens", "30", "--int8")["tokens"], 30)
        checkpoints = self.folder / "runs/whole/checkpoints"
        self.assertIn("step-00000014.h5", [path.name for path in checkpoints.iterdir()])
        (checkpoints / "step-00000020.h5").unlink()
        (self.folder / "runs/whole/last.h5").rename(self.folder / "end.h5")
        self.run_qkv("resume", "runs/whole")
        self.assert_same_checkpoints("end.h5", "runs/whole/last.h5")

    def test_a_language_model_of_words_continues_a_prompt_to_the_end_of_the_text(self):
        (self.folder / "t.txt").write_text("the dog ran home </s> " * 100)
        config = CONFIG.format(kind="language-model", task='data = "t.txt"\ntokenizer = "word"', model='kind = "decoder"')
        (self.folder / "words.toml").write_text(config.replace("steps = 20", "steps = 60") + "[optimizer]\nlr = 0.03\n")
        self.run_qkv("train", "words.toml", "--run", "runs/words")

        def written(prompt, *options):
            return self.run_qkv("generate", "runs/words", "--temperature", 0, "--prompt", prompt, *options)
        self.assertEqual(written("the dog").stdout, "the dog ran home\n")
        self.assertEqual(written("the dog ").stdout, "the dog ran home\n")
        self.assertEqual(written("the", "--tokens", 2).stdout, "the dog ran\n")
        found = self.json("generate", "runs/words", "--temperature", 0, "--prompt", "the dog")
        self.assertEqual((found["prompt"] + found["text"], found["tokens"]), ("the dog ran home", 2))
        long = "the dog ran home </s> " * 5 + "the dog"
        done = written(long)
        self.assertEqual(done.stdout, long + " ran home\n")
        self.assertIn("the prompt has 27 tokens; the model reads the last model.max_length = 16", done.stderr)
        for prompt in ("\n", " "):
            self.assert_refused(["generate", "runs/words", "--prompt", prompt], "the prompt has no token", "give it a word")
        self.assert_refused(["generate", "runs/words", "--prompt", "the", "--top-p", "0"],
                            "--top-p: must be in (0, 1], got 0")
        self.assertEqual(written("the", "--top-p", "1").stdout, "the dog ran home\n")

    def test_prompts_of_a_file_are_continued_as_each_alone(self):
        self.train("lines", "language-model", 'data = "t.txt"', 'kind = "decoder"', t_txt="the bank of the river\n" * 40)
        lines = ["the bank", "of", "", "the town", "t", "the bank of the river, the bank"]
        (self.folder / "p.txt").write_text("\n".join(lines))
        options = ("--tokens", 20, "--seed", 5)
        found = self.json("generate", "runs/lines", "--file", "p.txt", *options)["continuations"]
        prompts = [line for line in lines if line]
        alone = [self.json("generate", "runs/lines", "--prompt", prompt, *options) for prompt in prompts]
        self.assertEqual(found, [{key: text[key] for key in ("prompt", "text", "tokens")} for text in alone])
        done = self.run_qkv("generate", "runs/lines", "--file", "p.txt", *options)
        self.assertEqual(done.stdout, "\n".join(text["prompt"] + text["text"] + "\n" for text in alone))
        self.assertIn("p.txt:3: blank line skipped", done.stderr)
        self.assertIn("p.txt:6: the prompt has 31 tokens; the model reads the last model.max_length = 16", done.stderr)
        self.assert_refused(["generate", "runs/lines", "--file", "p.txt", "--prompt", "t"], "--prompt or --file", "one of the two")
        self.assert_refused(["generate", "runs/lines", "--file", "no.txt"], "no.txt", "")


if __name__ == "__main__":
    unittest.main()
