"""Models as C++ headers: what a compiler makes of qkv export --cpp answers as the program and as PyTorch in float64.

Usage: cpp_export_test.py PROGRAM [SEED]

Models of drawn options learn hard texts in a few steps, and others have the tokens of a BERT or a GPT-2; one program includes
the headers of all.
"""
import functools
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
import header_program
import tokenizers
from built_program import ProgramTest, qkv
from options import BASE, OPTIONS, Config, proper
try:
    import bert_and_gpt2
    from float64_model import Float64Model
except ImportError:  # no PyTorch
    bert_and_gpt2 = None

SEED = int(sys.argv.pop(1)) if sys.argv[1:] and sys.argv[1].isdigit() else 1
TOLERANCE = 1e-6  # of probabilities
ROUNDING = 2e-6  # of logits, relative to the largest: the program computes in float32, the header in float64
EXACT = 1e-9  # likewise, and of probabilities, where both compute in float64
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


def hard_texts(seed):
    """Hard texts in a line each, in which fields and lines of data files end nowhere."""
    return [" ".join(text.split("\n")).replace("\t", " ").replace("\r", " ") for text in tokenizers.texts(seed=seed)]


def texts_of_any_characters(draw, count=40):
    """Texts with characters of all of Unicode, and among capital sigmas and accents."""
    def character():
        code = draw.choice((draw.randrange(0x20, 0x3000), draw.randrange(0xA000, 0xD800), draw.randrange(0xE000, 0x110000)))
        return draw.choice((chr(code), draw.choice("aZ 1'\u03a3\u0301\u0345\u4e2d\u00ad.")))
    return ["".join(character() for _ in range(draw.randint(1, 12))) for _ in range(count)]


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


def write_imported(folder):
    """Folders of a BERT that reads lower case, of one that does not, and of a GPT-2."""
    vocabulary = tokenizers.bert_vocabulary()
    shapes = bert_and_gpt2.bert_shapes(len(vocabulary), labels=2)
    for name, lower_case in (("bert", True), ("cased", False)):
        bert_and_gpt2.write_bert(folder / name, vocabulary, "BertForSequenceClassification", shapes, id2label={0: "a", 1: "b"})
        (folder / name / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower_case}))
    bert_and_gpt2.write_gpt2(folder / "gpt2", tokenizers.learned_merges(60))


def tuned():
    """Models with the tokens of an imported one: (task, kind, tokenizer), the imported model, and options."""
    bert = {"model.layers": bert_and_gpt2.LAYERS, "model.heads": bert_and_gpt2.HEADS, "model.norm": "post",
            "model.feed_forward": bert_and_gpt2.HIDDEN, "model.activation": "gelu", "model.position": "learned"}
    lower, cased, cut = {"task.lower_case": True}, {"task.lower_case": False}, {"task.truncate": True}
    return [(("tagging", "bert", "wordpiece"), "bert", {**bert, **lower, **cut}),
            (("word-sense", "convolution", "wordpiece"), "cased", {**cased, **cut}),
            (("language-model", "recurrent", "wordpiece"), "bert", lower),
            (("classify", "recurrent", "byte-level"), "gpt2", {**cased, **cut}),
            (("tagging", "static", "byte-level"), "gpt2", {**cased, **cut})]


class Headers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.models = []
        draw = random.Random(SEED)
        for model, config in zip(MODELS, drawn_of_every_value(draw)):
            cls.add_trained(model, config, draw)
        if bert_and_gpt2:
            cls.add_imported(draw)
        else:
            print("no PyTorch: no models with imported tokens", file=sys.stderr)
        (cls.folder / "main.cpp").write_text(header_program.source(cls.models))
        cls.compiled("g++", "-O1", "-o", "main")

    @classmethod
    def add_imported(cls, draw):
        write_imported(cls.folder)
        classifier, continuation = ("classify", "bert", "wordpiece"), ("language-model", "decoder", "byte-level")
        runs = {}
        for name, model in (("bert", classifier), ("cased", classifier), ("gpt2", continuation)):
            runs[name] = cls.add(model, "import", cls.folder / name)
        for (task, kind, tokenizer), name, options in tuned():
            config = {"task.kind": task, "model.kind": kind, "task.tokenizer": tokenizer, "train.init": str(runs[name]),
                      "model.width": bert_and_gpt2.WIDTH, "model.max_length": bert_and_gpt2.LONGEST, "train.steps": 3, **options}
            cls.add_trained((task, kind, tokenizer), config, draw)

    @classmethod
    def add_trained(cls, model, config, draw):
        """Trains a config on hard texts, as `add`."""
        folder = cls.folder / f"m{len(cls.models)}"
        folder.mkdir()
        write_data(folder, model[0], draw)
        data = "task.data" if model[0] == "language-model" else "task.train"
        config = {"name": folder.name, data: str(folder / "data"), **config}
        (folder / "config.toml").write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in config.items()))
        cls.add(model, "train", folder / "config.toml")

    @classmethod
    def add(cls, model, *command):
        """The run m0/run, m1/run, ... of a model that a command of the program writes, and its header m0.h, m1.h, ..."""
        name = f"m{len(cls.models)}"
        run = cls.folder / name / "run"
        for arguments in ([*command, "--run", run], ["export", run, "--cpp", cls.folder / f"{name}.h"]):
            done = qkv(*arguments)
            assert done.returncode == 0, f"{model}, {arguments}: {done.stderr}"
        cls.models.append(model)
        return run

    @classmethod
    def compiled(cls, compiler, *options):
        done = subprocess.run([compiler, *FLAGS, "main.cpp", *options], cwd=cls.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:4000]

    @classmethod
    def answers(cls, lines):
        """The lines that the program with the headers prints for each."""
        asked = "".join(line + "\n" for line in lines)
        done = subprocess.run(["./main"], cwd=cls.folder, input=asked, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [block.splitlines() for block in done.stdout.split("text\n")[1:]]

    @classmethod
    @functools.cache
    def predictions(cls, i):
        """The texts, the program's answers about each that model i takes, by number from 1, and the lines of its header's."""
        texts = [f"bank {text}" if n % 5 else text for n, text in enumerate(hard_texts(seed=SEED + 1)[::2]) if text.split()]
        texts += ["bank " + text for text in texts_of_any_characters(random.Random(SEED))]
        (cls.folder / "texts").write_text("\n".join(texts))
        done = qkv("predict", cls.folder / f"m{i}/run", "--file", cls.folder / "texts", "--json")
        answers = json.loads(done.stdout)["predictions"]
        expected = {number: list(group) for number, group in itertools.groupby(answers, lambda answer: answer["line"])}
        return texts, expected, cls.answers(f"m{i} x{text.encode().hex()}" for text in texts)

    def test_predictions_are_those_of_the_program(self):
        for i, (task, kind, tokenizer) in enumerate(self.models):
            with self.subTest(model=i, task=task, kind=kind, tokenizer=tokenizer):
                texts, expected, found = self.predictions(i)
                self.assertEqual(len(found), len(texts))
                self.assertGreater(len(expected), len(texts) / (4 if task == "language-model" else 2))
                for number, lines in enumerate(found, 1):
                    if number not in expected:
                        self.assertTrue(lines[0].startswith("error"), lines)
                        continue
                    self.assertEqual(len(lines), len(expected[number]), texts[number - 1])
                    for line, answer in zip(lines, expected[number]):
                        self.compare(line.split(), answer)

    def test_logits_are_those_of_a_float64_evaluation(self):
        """The program's rounding has no part in this: both compute in float64, about the ids that the program has."""
        if not bert_and_gpt2:
            self.skipTest("no PyTorch")
        for i, (task, kind, tokenizer) in enumerate(self.models):
            with self.subTest(model=i, task=task, kind=kind, tokenizer=tokenizer):
                model = Float64Model(self.folder / f"m{i}/run")
                _, expected, found = self.predictions(i)
                for number, answers in expected.items():
                    for line, answer in zip(found[number - 1], answers):
                        values = [float(value) for value in line.split()[2:]]
                        if task == "translate":
                            self.assertLess(abs(values[0] - model.probability_of_written(answer["ids"])), EXACT, answer)
                            continue
                        logits = model.logits(answer["ids"], answer.get("index"))
                        largest = max(1, *map(abs, logits))
                        for mine, its in zip(values[1 + len(logits):], logits, strict=True):
                            self.assertLess(abs(mine - its) / largest, EXACT, answer)

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
        for i, (task, kind, tokenizer) in enumerate(self.models):
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
