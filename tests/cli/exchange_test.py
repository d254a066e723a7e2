"""Models that leave and come back: export and import.

Usage: exchange_test.py PROGRAM
"""
import json
import pathlib
import struct
import sys
import unittest

import h5py
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import ProgramTest, qkv_with_file_limit

KINDS = {"F32": "<f4", "F64": "<f8"}


def read(file):
    """What safetensors.numpy.load_file reads, and the metadata."""
    data = file.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header, data = json.loads(data[8:8 + length]), data[8 + length:]
    metadata = header.pop("__metadata__", {})
    return {name: numpy.frombuffer(data[slice(*entry["data_offsets"])], KINDS[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()}, metadata


def write(file, tensors, metadata):
    """What safetensors.numpy.save_file writes."""
    header, data = {"__metadata__": metadata}, b""
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Safetensors(ProgramTest):
    def exported(self, *arguments):
        found = self.json("export", "runs/tiny", "--safetensors", "tiny.safetensors", *arguments)
        size = (self.folder / "tiny.safetensors").stat().st_size
        self.assertEqual(found["files"], [{"file": "tiny.safetensors", "bytes": size}])
        return read(self.folder / "tiny.safetensors")

    def test_an_export_holds_the_parameters_and_what_using_them_needs(self):
        tensors, metadata = self.exported()
        with h5py.File(self.folder / "runs/tiny/best.h5") as file:
            for name, values in tensors.items():
                self.assertTrue((values == file["model/" + name.replace(".", "/")][()]).all(), name)
            self.assertEqual(int(metadata["qkv.step"]), file.attrs["step"])
            self.assertEqual(json.loads(metadata["qkv.vocabulary"])["tokens"],
                             [text.decode() for text in file["vocabulary/tokens"][()]])
        self.assertEqual(len(tensors), len(self.json("inspect", "runs/tiny")["parameters"]))
        self.assertEqual(metadata["format"], "pt")
        self.assertIn("width = 8", metadata["qkv.config"])

    def test_an_imported_run_gives_the_same_figures(self):
        for names in ("qkv", "torch"):
            self.exported("--names", names)
            self.assertEqual(self.json("import", "tiny.safetensors", "--run", f"runs/{names}")["run"], f"runs/{names}")
            for command in (["eval"], ["predict", "money bank grows"], ["attend", "money bank grows"]):
                self.assertEqual(self.json(command[0], f"runs/{names}", *command[1:]),
                                 self.json(command[0], "runs/tiny", *command[1:]))
            self.run_qkv("report", f"runs/{names}")
            self.run_qkv("verify", f"runs/{names}")
        self.run_qkv("export", "runs/torch", "--safetensors", "again.safetensors", "--names", "torch")
        before, after = read(self.folder / "tiny.safetensors")[0], read(self.folder / "again.safetensors")[0]
        self.assertEqual(before.keys(), after.keys())
        for name in before:
            self.assertTrue((before[name] == after[name]).all(), name)

    def test_an_imported_run_is_named_as_its_config_and_can_be_trained(self):
        self.exported()
        (self.folder / "runs/tiny").rename(self.folder / "runs/first")
        done = self.run_qkv("import", "tiny.safetensors")
        self.assertEqual(done.stderr, "wrote runs/tiny\n")
        with h5py.File(self.folder / "runs/tiny/last.h5") as file:
            self.assertEqual(file.attrs["step"], 0)
        self.run_qkv("resume", "runs/tiny")
        with h5py.File(self.folder / "runs/tiny/last.h5") as file:
            self.assertEqual(file.attrs["step"], 40)
        better, before = (self.json("eval", run, "--data", "train.tsv")["loss"] for run in ("runs/tiny", "runs/first"))
        self.assertLess(better, before)

    def test_parameters_that_another_program_changed_come_back(self):
        tensors, metadata = self.exported()
        tensors = {name: values * 0 if name == "head.weight" else values for name, values in tensors.items()}
        write(self.folder / "changed.safetensors", tensors, metadata)
        self.run_qkv("import", "changed.safetensors", "--run", "runs/changed")
        a, b = self.json("predict", "runs/changed", "money bank grows", "river bank flows")["predictions"]
        self.assertEqual(a["logits"], b["logits"])
        self.assertEqual(a["logits"], tensors["head.bias"].tolist())

    def test_an_export_and_an_import_overwrite_nothing_else(self):
        self.exported()
        self.exported()  # a file of its kind may be
        kept = (self.folder / "train.tsv").read_bytes()
        self.assert_refused(["export", "runs/tiny", "--safetensors", "train.tsv"],
                            "train.tsv: exists and is not safetensors that qkv export wrote")
        self.assertEqual((self.folder / "train.tsv").read_bytes(), kept)
        self.assert_refused(["import", "tiny.safetensors"], "runs/tiny already holds a run", "--run")

    def test_what_cannot_be_exported_or_imported_is_refused(self):
        self.assert_refused(["export", "runs/tiny"], "--safetensors FILE")
        self.assert_refused(["export", "runs/tiny", "--safetensors", "x", "--names", "jax"], "must be qkv or torch")
        self.assert_refused(["import", "train.tsv"], "train.tsv: is not a safetensors file")
        self.assert_refused(["import", "none"], "none: cannot read")
        tensors, metadata = self.exported()
        write(self.folder / "bare.safetensors", tensors, {})
        self.assert_refused(["import", "bare.safetensors", "--run", "runs/new"], "bare.safetensors: its metadata have no qkv.config")
        write(self.folder / "part.safetensors", {"head.bias": tensors["head.bias"]}, metadata)
        self.assert_refused(["import", "part.safetensors", "--run", "runs/new"], "head.weight is missing", code=1)
        whole = (self.folder / "tiny.safetensors").read_bytes()
        (self.folder / "cut.safetensors").write_bytes(whole[:-1])
        self.assert_refused(["import", "cut.safetensors", "--run", "runs/new"], "ends at byte", code=1)
        self.assertFalse((self.folder / "runs/new").exists())

    def test_torch_names_are_those_of_a_transformer_encoder(self):
        tensors, _ = self.exported("--names", "torch")
        block = "encoder.layers.0."
        self.assertEqual(tensors[block + "self_attn.in_proj_weight"].shape, (24, 8))
        with h5py.File(self.folder / "runs/tiny/best.h5") as file:
            parts = [file[f"model/encoder/layers/0/attention/w_{name}/weight"][()] for name in "qkv"]
        self.assertTrue((tensors[block + "self_attn.in_proj_weight"] == numpy.concatenate(parts)).all())
        try:
            from torch import nn
        except ImportError:
            self.skipTest("python3-torch is not installed")
        layer = nn.TransformerEncoderLayer(8, 2, 16, norm_first=True)
        expected = nn.TransformerEncoder(layer, 1, nn.LayerNorm(8)).state_dict()
        self.assertEqual({name.removeprefix("encoder."): values.shape for name, values in tensors.items()
                          if name.startswith("encoder.")}, {name: tuple(value.shape) for name, value in expected.items()})

    def test_torch_names_are_refused_for_what_pytorch_has_not(self):
        self.run_qkv("train", "tiny.toml", "--run", "rotary", "--set", "model.position=rotary", "--set", "train.steps=1")
        self.assert_refused(["export", "rotary", "--safetensors", "x", "--names", "torch"], 'model.position = "rotary"')


class Activations(ProgramTest):
    def test_each_sentence_has_its_tokens_label_and_every_value(self):
        self.assertEqual(self.json("activations", "runs/tiny", "--data", "test.tsv", "-o", "a.h5"),
                         {"file": "a.h5", "sentences": 40})
        lines = [line.split("\t") for line in (self.folder / "test.tsv").read_text().splitlines()]
        with h5py.File(self.folder / "a.h5") as file:
            self.assertEqual(file.attrs["format"], b"qkv-activations")
            self.assertEqual(len(file), 40)
            for (label, index, text), group in zip(lines, file.values()):
                self.assertEqual((group.attrs["label"].decode(), group.attrs["index"]), (label, int(index)))
                self.assertEqual(list(group["tokens"].asstr()), text.split())
            first = file["00000000"]
            attended = self.json("attend", "runs/tiny", lines[0][2])
            weights = numpy.array(attended["layers"][0]["heads"])
            numpy.testing.assert_allclose(first["encoder/layers/0/attention/weights"][()], weights, atol=1e-6)
            embedded = self.json("embed", "runs/tiny", lines[0][2])["sentences"][0]
            numpy.testing.assert_allclose(first["contextual"][embedded["index"]], embedded["contextual"], atol=1e-6)
            time = len(embedded["tokens"])
            shapes = {path: first[f"encoder/layers/0/{path}"].shape for path in
                      ("attention/q", "attention/k", "attention/v", "norm_1/output", "attended", "output")}
            self.assertEqual(set(shapes.values()), {(time, 8)})
            self.assertEqual(first["ids"].shape, (time,))

    def test_a_file_that_exists_stays_and_an_error_leaves_none(self):
        command = ["activations", "runs/tiny", "--data", "test.tsv", "-o"]
        self.assert_refused([*command, "train.tsv"], "train.tsv: exists")
        self.assert_refused([*command, "none/a.h5"], "none/a.h5: cannot be created: No such file or directory", code=1)
        (self.folder / "bad.tsv").write_text("money\t9\tmoney bank\n")
        self.assert_refused(["activations", "runs/tiny", "--data", "bad.tsv", "-o", "a.h5"], "bad.tsv:1: ")
        done = qkv_with_file_limit(65536, "activations", "runs/tiny", "--data", "test.tsv", "-o", "a.h5", cwd=self.folder)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("a.h5: ", done.stderr)
        self.assertFalse((self.folder / "a.h5").exists())


if __name__ == "__main__":
    unittest.main()
