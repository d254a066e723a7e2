"""Models as C++ headers: what a compiler makes of qkv export --cpp answers as the program does.

Usage: cpp_export_test.py PROGRAM [SEED]

Models of drawn options learn hard texts in a few steps; one program includes the headers of all.
"""
import itertools
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).parents[1]
sys.path += [str(TESTS / "support"), str(TESTS / "proof/training")]
import tokenizers
from built_program import ProgramTest, qkv
from options import BASE, OPTIONS, Config, proper

SEED = int(sys.argv.pop(1)) if sys.argv[1:] and sys.argv[1].isdigit() else 1
TOLERANCE = 1e-6  # of probabilities
ROUNDING = 2e-6  # of logits, relative to the largest: the program computes in float32, the header in double
FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wshadow", "-Wconversion", "-I."]
# Task, kind of model, tokenizer; further options are drawn.
MODELS = [
    ("word-sense", "encoder", "word"), ("word-sense", "bert", "bpe"), ("word-sense", "decoder", "word"), ("classify", "encoder", "char"),
    ("classify", "recurrent", "word"), ("classify", "convolution", "bpe"), ("classify", "feed-forward", "word"),
    ("classify", "static", "word"), ("tagging", "static", "word"), ("tagging", "recurrent", "bpe"), ("translate", "encoder-decoder", "word"),
    ("translate", "encoder-decoder", "bpe"), ("language-model", "decoder", "char"), ("language-model", "decoder", "bpe"),
    ("language-model", "recurrent", "word"),
]
LABELS = ['a"b\\??=', "né", "%d{}"]
CHANGED = [option for option in OPTIONS if option.key in (
    "model.layers", "model.attention", "model.heads", "model.kv_heads", "model.scale", "model.position", "model.feed_forward",
    "model.activation", "model.norm", "model.bias", "model.tied", "model.cell", "model.bidirectional")]
VALUES = {option.key: [BASE[option.key], *option.values] for option in CHANGED}
VALUES["model.position"].append("windows")
PROGRAM = r"""
#include <cstdio>
#include <iostream>
#include <sstream>

static std::string from_hex(const std::string& digits) {
  std::string text;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) text += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return text;
}
static void print_hex(const std::string& text) {
  std::printf(" x");
  for (const char c : text) std::printf("%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
}
template <class Prediction>
void print(const Prediction& answer) {
  std::printf("%ld", answer.index ? static_cast<long>(*answer.index) : -1L);
  print_hex(answer.label);
  std::printf(" %.17g", answer.probability);
  for (const double value : answer.probabilities) std::printf(" %.17g", value);
  for (const double value : answer.logits) std::printf(" %.17g", value);
  std::printf("\n");
}
template <class Prediction>
void print(const std::vector<Prediction>& answers) {
  for (const Prediction& answer : answers) print(answer);
}
static void print(const std::string& text) {
  print_hex(text);
  std::printf("\n");
}

int main() {
  for (std::string line; std::getline(std::cin, line);) try {
      std::istringstream words(line);
      std::string model, digits;
      words >> model >> digits;
      const std::string text = from_hex(digits.substr(1));
      std::printf("text\n");
      @CALLS@
    } catch (const std::invalid_argument& error) {
      std::printf("error");
      print(std::string(error.what()));
    }
}
"""
PREDICT = 'if (model == "{0}") print(qkv_{0}::{1}(text));'
GENERATE = """if (model == "{0}") {{
        std::size_t tokens = 0;
        qkv_{0}::Sampling sampling;
        words >> tokens >> sampling.temperature >> sampling.top_k >> sampling.top_p >> sampling.seed;
        print(qkv_{0}::generate(text, tokens, sampling));
      }}"""


def hard_texts(seed):
    """Hard texts in a line each, in which fields and lines of data files end nowhere."""
    return [" ".join(text.split("\n")).replace("\t", " ").replace("\r", " ") for text in tokenizers.texts(seed=seed)]


def drawn(task, kind, tokenizer, draw):
    """A config with the options that have an effect there."""
    config = Config({"task.kind": task, "model.kind": kind})
    for option in draw.sample(CHANGED, len(CHANGED)):
        changed = Config(config | {option.key: draw.choice([BASE[option.key], *option.values])})
        config = changed if option.suits(changed) else config
    config = proper(config)
    if config["model.position"] == "relative" and draw.random() < 0.5:
        config["model.position"] = "windows"
    if task != "language-model":
        config |= {"task.truncate": True}
    if (task, kind) == ("classify", "static"):
        config |= {"task.ngrams": 3}
    return Config({"train.steps": 3, "model.width": 12, "model.max_length": 24, **config, "task.tokenizer": tokenizer})


def drawn_of_every_value(draw):
    """Configs of `MODELS`: of 200 draws of each the one with the most values that the models before it do not have."""
    def values_of(config):
        return {(key, str(config[key])) for key in VALUES}
    configs, seen = [], set()
    for model in MODELS:
        configs.append(max((drawn(*model, draw) for _ in range(200)), key=lambda config: len(values_of(config) - seen)))
        seen |= values_of(configs[-1])
    missing = {(key, str(value)) for key, values in VALUES.items() for value in values} - seen
    assert not missing, missing
    return configs


def write_data(folder, task, draw):
    texts = [text for text in hard_texts(seed=1) if text.split()]
    if task == "language-model":
        (folder / "data").write_text("\n".join(texts))
        return
    lines = []
    for i, text in enumerate(texts):
        label = LABELS[i % len(LABELS)]
        if task == "word-sense":
            lines.append(f"{label}\t0\tbank {text}")
        elif task == "tagging":
            lines += [f"{word}\t{draw.choice(LABELS)}" for word in text.split() if word[0] not in "#-"] + [f"end\t{label}", ""]
        elif task == "translate":
            lines.append(f"so {text}\t{' '.join(reversed(text.split()))} end")
        else:
            lines.append(f"{label}\tso {text}")
    (folder / "data").write_text("\n".join(lines) + "\n")


class Headers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        draw = random.Random(SEED)
        for i, ((task, _, _), config) in enumerate(zip(MODELS, drawn_of_every_value(draw))):
            run = cls.folder / f"m{i}"
            run.mkdir()
            write_data(run, task, draw)
            config |= {"name": f"m{i}", "task.data" if task == "language-model" else "task.train": str(run / "data")}
            (run / "config.toml").write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in config.items()))
            done = qkv("train", run / "config.toml", "--run", run / "run")
            assert done.returncode == 0, f"{config}: {done.stderr}"
            done = qkv("export", run / "run", "--cpp", cls.folder / f"m{i}.h")
            assert done.returncode == 0, done.stderr
        functions = {"translate": "translate"}
        calls = "\n      else ".join((GENERATE if task == "language-model" else PREDICT).format(f"m{i}", functions.get(task, "predict"))
                                    for i, (task, _, _) in enumerate(MODELS))
        includes = "".join(f'#include "m{i}.h"\n' for i in range(len(MODELS)))
        (cls.folder / "main.cpp").write_text(includes + PROGRAM.replace("@CALLS@", calls))
        cls.compiled("g++", "-O1", "-o", "main")

    @classmethod
    def compiled(cls, compiler, *options):
        done = subprocess.run([compiler, *FLAGS, "main.cpp", *options], cwd=cls.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:4000]

    def answers(self, lines):
        """The lines that the program with the headers prints for each."""
        done = subprocess.run(["./main"], cwd=self.folder, input="".join(line + "\n" for line in lines), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [block.splitlines() for block in done.stdout.split("text\n")[1:]]

    def test_predictions_are_those_of_the_program(self):
        texts = [f"bank {text}" if i % 5 else text for i, text in enumerate(hard_texts(seed=SEED + 1)[::2]) if text.split()]
        (self.folder / "texts").write_text("\n".join(texts))
        for i, (task, kind, tokenizer) in enumerate(MODELS):
            if task == "language-model":
                continue
            with self.subTest(model=i, task=task, kind=kind, tokenizer=tokenizer):
                done = qkv("predict", self.folder / f"m{i}/run", "--file", self.folder / "texts", "--json")
                expected = {number: list(group) for number, group in
                            itertools.groupby(json.loads(done.stdout)["predictions"], lambda p: p["line"])}
                found = self.answers(f"m{i} x{text.encode().hex()}" for text in texts)
                self.assertEqual(len(found), len(texts))
                self.assertGreater(len(expected), len(texts) / 2)
                for number, lines in enumerate(found, 1):
                    if number not in expected:
                        self.assertTrue(lines[0].startswith("error"), lines)
                        continue
                    self.assertEqual(len(lines), len(expected[number]), texts[number - 1])
                    for line, answer in zip(lines, expected[number]):
                        self.compare(line.split(), answer)

    def compare(self, found, answer):
        if "output" in answer:
            self.assertEqual(bytes.fromhex(found[1][1:]).decode(errors="replace"), answer["output"])
            self.assertLess(abs(float(found[2]) - answer["probability"]), 24 * TOLERANCE)  # a product over at most 24 tokens
            return
        self.assertEqual(int(found[0]), answer.get("index", -1))
        self.assertEqual(bytes.fromhex(found[1][1:]).decode(), answer["label"], answer)
        values = [float(value) for value in found[3:]]
        largest = max(1, *map(abs, answer["logits"]))
        for mine, its in zip(values, answer["probabilities"].values()):
            self.assertLess(abs(mine - its), TOLERANCE, answer)
        for mine, its in zip(values[len(values) // 2:], answer["logits"]):
            self.assertLess(abs(mine - its) / largest, ROUNDING, answer)

    def test_texts_are_continued_as_by_the_program(self):
        ways = [(40, 0, 0, 1, 1), (40, 1, 0, 1, 7), (20, 0.7, 5, 1, 2**40 + 3), (20, 1.5, 0, 0.8, 9)]
        prompts = ["the bank ", "cafe\u0301 don't", "x" * 30, "so"]
        for i, (task, kind, tokenizer) in enumerate(MODELS):
            if task != "language-model":
                continue
            for (tokens, temperature, top_k, top_p, seed), prompt in zip(ways, prompts):
                with self.subTest(model=i, kind=kind, tokenizer=tokenizer, temperature=temperature):
                    done = qkv("generate", self.folder / f"m{i}/run", "--prompt", prompt, "--tokens", tokens, "--temperature", temperature,
                               "--top-k", top_k, "--top-p", top_p, "--seed", seed, "--json")
                    line, = self.answers([f"m{i} x{prompt.encode().hex()} {tokens} {temperature} {top_k} {top_p} {seed}"])[0]
                    self.assertEqual(bytes.fromhex(line.strip()[1:]).decode(errors="replace"), json.loads(done.stdout)["text"])

    def test_texts_that_are_no_utf8_or_have_no_word_are_refused(self):
        for text, message in ((b"bank \xc0\x80", "not valid UTF-8"), (b"\xed\xa0\x80", "not valid UTF-8"), (b"\xf4\x90\x80\x80", "not valid UTF-8"),
                              (b"bank\xe2\x82", "not valid UTF-8"), (b" ", "empty"), (b"river", "none of the words")):
            line, = self.answers([f"m0 x{text.hex()}"])[0]
            self.assertIn(message, bytes.fromhex(line.split(" x")[1]).decode(errors="replace"))

    def test_clang_compiles_the_headers_without_a_warning(self):
        compiler = next(filter(shutil.which, ("clang++", "clang++-19", "clang++-16", "clang++-14")), None)
        if not compiler:
            self.skipTest("no clang++")
        self.compiled(compiler, "-fsyntax-only")


class Export(ProgramTest):
    def test_a_header_names_its_namespace_after_its_file_and_overwrites_nothing_else(self):
        found = self.json("export", "runs/tiny", "--cpp", "the-bank 2.h")
        text = (self.folder / "the-bank 2.h").read_text()
        self.assertEqual(found["files"], [{"file": "the-bank 2.h", "bytes": len(text)}])
        self.assertIn("namespace qkv_the_bank_2 {", text)
        self.run_qkv("export", "runs/tiny", "--cpp", "the-bank 2.h")
        self.assert_refused(["export", "runs/tiny", "--cpp", "train.tsv"], "train.tsv: exists and is not a C++ header that qkv export wrote")

    def test_a_task_without_a_header_is_refused(self):
        self.run_qkv("train", "tiny.toml", "--run", "runs/masked", "--set", "task.kind=masked-language-model", "--set", "train.steps=1")
        self.assert_refused(["export", "runs/masked", "--cpp", "x.h"], 'task.kind "masked-language-model"', "--onnx")


if __name__ == "__main__":
    unittest.main()
