"""Models in Hugging Face's folders, of random weights: qkv import against PyTorch, and every command on the result.

Usage: foreign_model_test.py PROGRAM [TRIES]

TRIES hostile files are imported, 60 unless told.
"""
import itertools
import json
import os
import pathlib
import random
import shutil
import struct
import sys
import tempfile
import unittest

import h5py
import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import tokenizers
from bert_and_gpt2 import (GPT2_CONFIG, LAYERS, LONGEST, bert_gradients, bert_shapes, classified, drawn, gpt2, gpt2_gradients,
                           gpt2_shapes, masked_logits, write_bert, write_gpt2, write_safetensors)
from built_program import qkv

TRIES = int(sys.argv.pop(1)) if sys.argv[1:] and sys.argv[1].isdigit() else 60
TOLERANCE = 1e-4
TEXT = "the bank of the river"
LABELS = ["river", "money"]


class ForeignModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.template = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.template.name)
        cls.vocabulary = tokenizers.bert_vocabulary()
        cls.merges = tokenizers.learned_merges(60)
        rows = len(cls.vocabulary)
        cls.classifier = cls.write_bert("classifier", "BertForSequenceClassification", bert_shapes(rows, labels=2),
                                        id2label=dict(enumerate(LABELS)))
        cls.masked = cls.write_bert("masked", "BertForMaskedLM", bert_shapes(rows, masked=True))
        cls.gpt2, cls.bytes = write_gpt2(cls.folder / "gpt2", cls.merges)
        for name in ("classifier", "masked", "gpt2"):
            done = qkv("import", name, "--run", f"runs/{name}", cwd=cls.folder)
            assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.template.cleanup()

    @classmethod
    def write_bert(cls, name, architecture, shapes, **options):
        return write_bert(cls.folder / name, cls.vocabulary, architecture, shapes, **options)

    def run_qkv(self, *arguments):
        done = qkv(*arguments, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def json(self, command, *arguments):
        return json.loads(self.run_qkv(command, "--json", *arguments).stdout)

    def assert_refused(self, arguments, *texts):
        done = qkv(*arguments, cwd=self.folder)
        self.assertIn(done.returncode, (1, 2), done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)

    def bert_ids(self, text):
        tokens = ["[CLS]", *tokenizers.word_pieces(text, set(self.vocabulary)), "[SEP]"]
        return torch.tensor([self.vocabulary.index(token) for token in tokens])

    def gpt2_ids(self, text):
        return torch.tensor([self.bytes.index(token) for token in tokenizers.byte_pairs(text, self.merges)])

    def assert_attends(self, run, text, expected):
        layers = self.json("attend", run, text)["layers"]
        self.assertEqual(len(layers), LAYERS)
        for layer, weights in zip(layers, expected):
            numpy.testing.assert_allclose(numpy.array(layer["heads"]), weights.numpy(), atol=TOLERANCE)

    def assert_logits(self, prediction, expected, names):
        """`names`: of the choices in the order of the expected logits."""
        for choice, logit in zip(prediction["probabilities"], prediction["logits"], strict=True):
            self.assertAlmostEqual(logit, expected[names.index(choice)].item(), delta=TOLERANCE)

    def test_a_classifier_has_pytorchs_logits_and_attentions(self):
        logits, weights = classified(self.classifier, self.bert_ids(TEXT))
        prediction, = self.json("predict", "runs/classifier", TEXT)["predictions"]
        self.assert_logits(prediction, logits, LABELS)
        self.assert_attends("runs/classifier", TEXT, weights)

    def test_a_classifier_with_relu_has_pytorchs_logits(self):
        self.run_qkv(*self.broken("rectified", hidden_act="relu"))
        prediction, = self.json("predict", "runs/rectified", TEXT)["predictions"]
        self.assert_logits(prediction, classified(self.classifier, self.bert_ids(TEXT), torch.relu)[0], LABELS)

    def test_a_masked_language_model_has_pytorchs_logits_and_attentions(self):
        ids = self.bert_ids("the bank of the river")
        ids[2] = self.vocabulary.index("[MASK]")
        logits, weights = masked_logits(self.masked, ids)
        prediction, = self.json("predict", "runs/masked", "the [MASK] of the river")["predictions"]
        ours = {"[PAD]": "<pad>", "[UNK]": "<unk>"}
        self.assert_logits(prediction, logits[2], [ours.get(token, token) for token in self.vocabulary])
        self.assert_attends("runs/masked", "the [MASK] of the river", weights)

    def test_a_gpt2_has_pytorchs_logits_and_attentions_and_continues_a_text_as_it_does(self):
        ids = self.gpt2_ids(TEXT)
        logits, weights = gpt2(self.gpt2, ids)
        self.assert_attends("runs/gpt2", TEXT, weights)
        prediction, = self.json("predict", "runs/gpt2", TEXT)["predictions"]
        self.assert_logits(prediction, logits[-1], self.bytes)
        written = self.json("generate", "runs/gpt2", "--prompt", TEXT, "--tokens", 6, "--temperature", 0)["text"]
        expected = ids.tolist()
        for _ in range(6):
            expected.append(gpt2(self.gpt2, torch.tensor(expected))[0][-1].argmax().item())
        byte_of = {c: byte for byte, c in tokenizers.byte_alphabet().items()}
        data = bytes(byte_of[c] for i in expected[len(ids):] for c in self.bytes[i])
        self.assertEqual(written, data.decode(errors="replace"))

    def gradients(self, init, task, data, run):
        """The gradients of one SGD step with a learning rate of 1."""
        (self.folder / "step.txt").write_text(data)
        config = (self.folder / f"runs/{init}/config.toml").read_text()
        model = config[config.index("[model]"):config.index("[optimizer]")]
        (self.folder / "step.toml").write_text(
            f'name = "step"\n[task]\ntrain = "step.txt"\n{task}\n{model}\n[optimizer]\nkind = "sgd"\nlr = 1\nmomentum = 0\n'
            f'[schedule]\nkind = "constant"\nwarmup = 0\n[train]\ninit = "runs/{init}"\nsteps = 1\nbatch = 1\nclip = 0\n')
        self.run_qkv("train", "step.toml", "--run", run)
        before, after = self.parameters(f"runs/{init}"), self.parameters(run)
        return {name: before[name] - after[name] for name in before}

    def parameters(self, run):
        """By path; the rows of the output layer in the order of LABELS, which the data of a run can change."""
        found = {}
        with h5py.File(self.folder / run / "last.h5") as file:
            file["model"].visititems(lambda name, item: found.update({name.replace("/", "."): item[()]})
                                     if isinstance(item, h5py.Dataset) else None)
            if "labels" in file["vocabulary"]:
                labels = file["vocabulary/labels"].asstr()[()].tolist()
                found |= {name: found[name][[labels.index(label) for label in LABELS]] for name in ("head.weight", "head.bias")}
        return found

    def worst_difference(self, found, expected):
        self.assertEqual(found.keys(), expected.keys())
        return max(abs(found[name] - gradient.numpy()).max() for name, gradient in expected.items())

    def rows(self):
        """The lines of BERT's vocabulary in the order of the run's: the padding and the unknown token come first."""
        first = [self.vocabulary.index(token) for token in ("[PAD]", "[UNK]")]
        return first + [i for i in range(len(self.vocabulary)) if i not in first]

    def assert_bert_step(self, ids, text, run, task=""):
        found = self.gradients("classifier", f'kind = "classify"\ntokenizer = "wordpiece"\n{task}', f"river\t{text}\nmoney\t{text}\n", run)
        # The batch of one example is either; its label decides which gradients.
        expected = [bert_gradients(self.classifier, ids, label, self.rows()) for label in (0, 1)]
        self.assertLessEqual(min(self.worst_difference(found, gradients) for gradients in expected), TOLERANCE)

    def test_a_fine_tuning_step_of_a_bert_has_pytorchs_gradients(self):
        self.assert_bert_step(self.bert_ids(TEXT), TEXT, "runs/step")

    def test_a_fine_tuning_step_of_a_gpt2_has_pytorchs_gradients(self):
        # The text is one window of the longest inputs and what follows each of them.
        text = next(text for n in range(400) if len(self.gpt2_ids(text := ("the bank of the river " * 20)[:n])) == LONGEST + 1)
        found = self.gradients("gpt2", 'kind = "language-model"\ntokenizer = "byte-level"\nlower_case = false', text, "runs/gpt2-step")
        self.assertLessEqual(self.worst_difference(found, gpt2_gradients(self.gpt2, self.gpt2_ids(text))), TOLERANCE)

    def assert_tokens(self, run, texts, expected):
        """`expected`: the ids of a text. Texts that are files would be models."""
        texts = [text for text in texts if expected(text) and len(expected(text)) <= LONGEST and not os.path.exists(text)]
        self.assertGreaterEqual(len(texts), 200)
        predictions = self.json("predict", run, "--", *texts)["predictions"]
        for text, prediction in zip(texts, predictions, strict=True):
            self.assertEqual(prediction["ids"], expected(text), ascii(text))

    def test_tokens_of_a_bert_are_those_of_the_published_algorithm(self):
        order = [self.vocabulary[i] for i in self.rows()]
        # A text without words is none to classify.
        self.assert_tokens("runs/classifier", [text for text in tokenizers.texts(400) if len(self.bert_ids(text)) > 2],
                           lambda text: [order.index(self.vocabulary[i]) for i in self.bert_ids(text)])

    def test_tokens_of_a_gpt2_are_those_of_the_published_algorithm(self):
        self.assert_tokens("runs/gpt2", tokenizers.texts(400), lambda text: self.gpt2_ids(text).tolist())

    def test_a_text_that_is_too_long_keeps_its_ends(self):
        text = " ".join(["the bank of the river"] * 9)
        ids = self.bert_ids(text)
        cut = torch.cat([ids[:LONGEST - 1], ids[-1:]])
        done = qkv("predict", "runs/classifier", text, cwd=self.folder)
        self.assertIn("model.max_length = 32", done.stderr)
        self.assert_bert_step(cut, text, "runs/truncated", "truncate = true")

    def test_every_command_works(self):
        (self.folder / "data.tsv").write_text(f"river\t{TEXT}\nmoney\tbank\n")
        for name in ("classifier", "masked"):
            self.run_qkv("embed", f"runs/{name}", TEXT, "--word", "bank")
            self.run_qkv("explain", f"runs/{name}", TEXT, "--word", "bank")
        self.run_qkv("ablate", "runs/classifier", "--data", "data.tsv")
        words = [token for token in self.vocabulary if token.isascii() and token.isalpha()][-20:]
        texts = [" ".join(three) for three in itertools.product(words, repeat=3)]
        (self.folder / "texts.txt").write_text("\n".join(texts) + "\n")
        answers = self.json("predict", "runs/classifier", "--file", "texts.txt")["predictions"]
        said = {p["label"]: p["text"] for p in answers}
        self.run_qkv("patch", "runs/classifier", said["river"], said["money"])
        self.run_qkv("eval", "runs/classifier", "--data", "data.tsv")
        for name in ("classifier", "masked", "gpt2"):
            self.run_qkv("verify", f"runs/{name}")
            self.run_qkv("report", f"runs/{name}")
        self.run_qkv("explain", "runs/gpt2", TEXT)

    def broken(self, name, **options):
        """A copy of the classifier's folder whose config.json has other options."""
        folder = self.folder / name
        folder.mkdir()
        for file in (self.folder / "classifier").iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **options}))
        return ["import", name, "--run", f"runs/{name}"]

    def test_what_is_not_supported_is_named(self):
        self.assert_refused(self.broken("relative", position_embedding_type="relative_key"), "position_embedding_type", "absolute")
        self.assert_refused(self.broken("decodes", is_decoder=True), "is_decoder must be false")
        self.assert_refused(self.broken("silu", hidden_act="silu"), "hidden_act", "gelu")
        self.assert_refused(self.broken("other", architectures=["BertForQuestionAnswering"]), "architectures", "BertModel")
        self.assert_refused(self.broken("wide", hidden_size=16), "has the shape", "config.json describes")
        self.assert_refused(self.broken("deep", num_hidden_layers=3), "has no tensor encoder.layer.2.")
        self.assert_refused(self.broken("huge", hidden_size=2**63), "hidden_size must be an integer")
        self.assert_refused(self.broken("few", id2label={"0": "a"}), "id2label")

    def test_a_merge_that_does_not_fit_is_named_with_its_line(self):
        first = " ".join(self.merges[0])
        for i, (line, what) in enumerate(((f"{'x' * 99} a", "the vocabulary has no token"),
                                          ("".join(self.merges[1]) + " a", "has no token|before those that make"),
                                          (first, "an earlier one makes"))):
            folder = self.folder / f"merge-{i}"
            shutil.copytree(self.folder / "gpt2", folder)
            (folder / "merges.txt").write_text(f"#version: 0.2\n{first}\n\n{line}\n")
            done = qkv("import", folder.name, "--run", "runs/refused", cwd=self.folder)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, rf"^qkv: merge-{i}/merges.txt:4: .*({what})")

    def test_a_folder_with_a_name_that_no_run_can_have_is_imported(self):
        shutil.copytree(self.folder / "masked", self.folder / "line\nend")
        self.assertIn("wrote runs/imported", self.run_qkv("import", "line\nend").stderr)

    def assert_refused_with(self, name, file, options, *texts):
        """The classifier's folder with another JSON file."""
        arguments = self.broken(name)
        (self.folder / name / file).write_text(json.dumps(options))
        self.assert_refused(arguments, file, *texts)

    def test_another_tokenizer_is_refused_by_its_name(self):
        config = "tokenizer_config.json"
        self.assert_refused(self.broken("ja", tokenizer_class="BertJapaneseTokenizer"), "tokenizer_class", "BertJapaneseTokenizer")
        self.assert_refused_with("ja-2", config, {"tokenizer_class": "BertJapaneseTokenizer"}, "BertJapaneseTokenizer")
        self.assert_refused_with("mecab", config, {"word_tokenizer_type": "mecab"}, "word_tokenizer_type", "mecab")
        self.assert_refused_with("letters", config, {"subword_tokenizer_type": "character"}, "subword_tokenizer_type", "character")
        self.assert_refused_with("uncut", config, {"do_basic_tokenize": False}, "do_basic_tokenize must be true")
        self.assert_refused_with("kept", config, {"never_split": ["C++"]}, "never_split must be empty")
        self.assert_refused_with("unknown", config, {"unk_token": {"content": "<unk>"}}, "unk_token must be [UNK]")
        self.assert_refused_with("accents", config, {"do_lower_case": True, "strip_accents": False}, "strip_accents")
        for flag in ("add_bos_token", "add_eos_token", "add_prefix_space"):
            folder = self.copy("gpt2", flag)
            (folder / config).write_text(json.dumps({flag: True}))
            self.assert_refused(["import", flag], config, f"{flag} must be false")

    def test_a_head_of_another_kind_is_refused_by_its_name(self):
        for kind in ("multi_label_classification", "regression"):
            self.assert_refused(self.broken(kind, problem_type=kind), "problem_type must be single_label_classification", kind)
        self.assert_refused(self.broken("drops", classifier_dropout=0.3), "classifier_dropout", "0.3")

    def test_other_files_of_weights_and_tokenizers_are_refused_with_the_command_that_converts_them(self):
        def moved(name, source, old, new):
            folder = self.copy(source, name)
            (folder / old).rename(folder / new)
            return ["import", name, "--run", f"runs/{name}"]

        weights = "transformers.BertForSequenceClassification.from_pretrained('{0}').save_pretrained('{0}', max_shard_size="
        for name, file in (("pickle", "pytorch_model.bin"), ("pickles", "pytorch_model.bin.index.json"),
                           ("shards", "model.safetensors.index.json")):
            self.assert_refused(moved(name, "classifier", "model.safetensors", file), file, "no model.safetensors", weights.format(name))
        for name, source, file in (("json-1", "classifier", "vocab.txt"), ("json-2", "gpt2", "vocab.json"), ("json-3", "gpt2", "merges.txt")):
            self.assert_refused(moved(name, source, file, "tokenizer.json"), f"no {file}",
                                f"tokenizers.Tokenizer.from_file('{name}/tokenizer.json').model.save('{name}')")

    def copy(self, source, name):
        return pathlib.Path(shutil.copytree(self.folder / source, self.folder / name))

    def test_labels_without_names_are_called_as_transformers_calls_them(self):
        logits, _ = classified(self.classifier, self.bert_ids(TEXT))
        arguments = self.broken("nameless", id2label=None)
        self.run_qkv(*arguments)
        prediction, = self.json("predict", "runs/nameless", TEXT)["predictions"]
        self.assert_logits(prediction, logits, ["LABEL_0", "LABEL_1"])

    def test_rows_without_a_token_and_added_tokens_are_part_of_the_model(self):
        rows = len(self.vocabulary) + 3
        parameters = self.write_bert("padded", "BertForMaskedLM", bert_shapes(rows, masked=True), vocab_size=rows)
        added = {"[E1]": rows - 2, "[PAD]": self.vocabulary.index("[PAD]")}
        (self.folder / "padded/added_tokens.json").write_text(json.dumps(added))
        done = self.run_qkv("import", "padded", "--run", "runs/padded")
        self.assertIn("added tokens", done.stderr)
        self.assertIn("[E1]", done.stderr)
        ids = self.bert_ids(TEXT)
        ids[2] = self.vocabulary.index("[MASK]")
        logits, _ = masked_logits(parameters, ids)
        prediction, = self.json("predict", "runs/padded", "the [MASK] of the river")["predictions"]
        ours = {"[PAD]": "<pad>", "[UNK]": "<unk>"}
        last = len(self.vocabulary)
        names = [*(ours.get(token, token) for token in self.vocabulary), f"[no token {last}]", "[E1]", f"[no token {last + 2}]"]
        self.assert_logits(prediction, logits[2], names)

    def test_an_added_token_of_a_gpt2_is_part_of_the_model(self):
        folder = self.copy("gpt2", "with-padding")
        parameters = drawn(gpt2_shapes(len(self.bytes) + 1))
        write_safetensors(folder / "model.safetensors", parameters)
        (folder / "config.json").write_text(json.dumps({**GPT2_CONFIG, "vocab_size": len(self.bytes) + 1}))
        options = {"added_tokens_decoder": {str(len(self.bytes)): {"content": "[PAD]", "special": True}}}
        (folder / "tokenizer_config.json").write_text(json.dumps(options))
        self.run_qkv("import", "with-padding", "--run", "runs/with-padding")
        logits, _ = gpt2(parameters, self.gpt2_ids(TEXT))
        prediction, = self.json("predict", "runs/with-padding", TEXT)["predictions"]
        self.assert_logits(prediction, logits[-1], [*self.bytes, "[PAD]"])

    def test_tokens_that_do_not_fit_the_table_are_refused(self):
        self.assert_refused(self.broken("small", vocab_size=3), "vocab_size must be")
        for name, added in (("beyond", {"[E1]": len(self.vocabulary)}), ("taken", {"[E1]": 0}), ("negative", {"[E1]": -1})):
            self.assert_refused_with(name, "added_tokens.json", added)

    def test_hostile_safetensors_are_refused_with_a_clear_error(self):
        folder = self.folder / "hostile"
        folder.mkdir()
        for name in ("config.json", "vocab.txt"):
            (folder / name).write_bytes((self.folder / "classifier" / name).read_bytes())
        whole = (self.folder / "classifier/model.safetensors").read_bytes()
        length, = struct.unpack("<Q", whole[:8])
        header, data, draw = json.loads(whole[8:8 + length]), whole[8 + length:], random.Random(1)
        for attempt in range(TRIES):
            changed = {name: dict(entry) for name, entry in header.items()}
            name = draw.choice(list(changed))
            begin, end = changed[name]["data_offsets"]
            kind = attempt % 6
            if kind == 0:
                changed[name]["data_offsets"] = [begin - 4, end - 4] if begin else [begin + 4, end + 4]
            elif kind == 1:
                changed[name]["data_offsets"] = [begin, len(data) + draw.randrange(4, 2**40, 4)]
            elif kind == 2:
                changed[name]["shape"] = [draw.choice([2**63, 2**63 - 1, 2**62, -1])] + changed[name]["shape"]
            text = json.dumps(changed)
            if kind == 3:
                text = text[:-1] + ', "deep": ' + "[" * draw.randrange(4, 5000) + "}"
            elif kind == 4:
                text = text[:-1] + f', "{name}": {json.dumps(header[name])}}}'
            elif kind == 5:
                text = text[:draw.randrange(1, len(text))]
            (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text.encode() + data)
            done = qkv("import", "hostile", "--run", "runs/hostile", cwd=self.folder)
            self.assertIn(done.returncode, (1, 2), (kind, done.stderr))
            self.assertIn("model.safetensors", done.stderr)
        self.assertFalse((self.folder / "runs/hostile").exists())


if __name__ == "__main__":
    unittest.main()
