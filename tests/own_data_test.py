"""Every command in docs/your-own-data.md runs on files as its reader has them, and prints what the page says.

Usage: own_data_test.py PROGRAM
"""
import json
import os
import pathlib
import re
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
PROJECT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(PROJECT / "tests/support"))
from pages import PageTest
from stand_ins import write_reviews

PAGE = (PROJECT / "docs/your-own-data.md").read_text()
COMMANDS = re.findall(r"^    ((?:qkv|head) .*)$", PAGE, re.MULTILINE)

# Options that make a command quick; the page shows it as its reader would give it.
QUICKER = {"qkv find-lr": ["--steps", "50"], "qkv fit": ["--time", "3s"], "qkv train": ["--set", "train.steps=2"], "qkv train configs/shakespeare.toml": ["--set", "train.batch=2"],
           "qkv compare configs": ["--set", "train.steps=2"], "qkv compare grid.toml": ["--set", "train.epochs=0.1"]}


def write_data(folder):
    """A CSV of 300 reviews, 300 sentences with a word, labelled words, sentences, and a text."""
    reviews = write_reviews(folder)
    (folder / "shakespeare.txt").write_text("ROMEO: to be, or not to be.\n" * 100)
    (folder / "new.txt").write_text("".join(text + "\n" for _, text in reviews[:3]))
    senses = [line.split("\t") for line in (PROJECT / "datasets/bank-twins/train.tsv").read_text().splitlines()[:300]]
    (folder / "spring.tsv").write_text("".join(f"{label}\t{text.replace('bank', 'spring')}\n" for label, _, text in senses))
    (folder / "sentences.txt").write_text("".join(text + "\n" for _, _, text in senses))
    tagged = (PROJECT / "datasets/tagging/train.conll").read_text().split("\n\n")[:300]
    (folder / "names.conll").write_text("\n\n".join(tagged) + "\n")
    (folder / "grid.toml").write_text(re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL).group(1))


class OwnData(PageTest):
    program, quicker = PROGRAM, QUICKER

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        write_data(cls.folder)
        cls.outputs = {command: cls.run_command(command) for command in COMMANDS}

    def json(self, command):
        return json.loads(self.run_command(command + " --json").stdout)

    def test_from_a_csv_to_a_model_are_eight_lines(self):
        first = re.search(r"## From a CSV.*?\n\n((?:    .*\n)+)", PAGE).group(1)
        self.assertEqual(len(first.splitlines()), 8)

    def test_the_splits_are_a_tenth_for_validation_and_a_tenth_for_the_test(self):
        (train,) = [done.stderr for command, done in self.outputs.items() if "test_share" in command]
        self.assertIn("240 training examples (30 valid, 30 test)", train)
        self.assertIn("test split: 30 examples", self.outputs["qkv eval runs/reviews"].stdout)

    def test_a_run_without_test_split_is_measured_on_its_validation_split(self):
        self.assertIn("valid split: 60 examples", self.outputs["qkv eval runs/spring"].stdout)

    def test_folds_test_every_training_example_once(self):
        folds = self.json("qkv compare configs/classify.toml --set task.data=reviews.csv --folds 5")["variants"][0]["folds"]
        self.assertEqual([fold["test"]["count"] for fold in folds], [54] * 5)  # a tenth of the 300 is for validation

    def test_the_grid_names_what_it_is_measured_on(self):
        self.assertRegex(self.outputs["qkv compare grid.toml"].stdout, "valid accuracy +valid loss")
        table = self.outputs["qkv compare grid.toml --folds 5"].stdout
        self.assertRegex(table, "test accuracy +test loss")
        for variant in ("words alone", "convolution, 64 wide", "convolution, 128 wide", "attention"):
            self.assertRegex(table, rf"{variant} .*±")

    def test_probes_about_other_words_are_left_out_with_a_note(self):
        (tuned,) = [done.stderr for command, done in self.outputs.items() if command.startswith("qkv train configs/bank-twins.toml")]
        self.assertIn('the probe "who did what decides" of the config is left out', tuned)
        self.assertIn("starts from pretrain", tuned)

    def test_the_config_s_word_is_found_and_its_sense_answered(self):
        (prediction,) = self.json('qkv predict runs/spring "the spring dried up"')["predictions"]
        self.assertEqual(prediction["index"], 1)
        self.assertEqual(set(prediction["probabilities"]), {"money", "river"})

    def test_every_config_that_the_page_names_exists(self):
        for name in re.findall(r"configs/[\w-]+\.toml", PAGE):
            self.assertTrue((PROJECT / name).exists(), name)


if __name__ == "__main__":
    unittest.main()
