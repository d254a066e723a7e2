"""python/qkv.py reads what the program wrote. Usage: qkv_test.py PROGRAM"""
import contextlib
import doctest
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import h5py
import numpy

PROJECT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(PROJECT / "python")]
import qkv

os.environ["QKV"] = os.path.abspath(sys.argv.pop(1))
CONFIG = """
name = "tiny"
[task]
train = "{datasets}/valid.tsv"
valid = "{datasets}/valid.tsv"
[model]
width = 8
layers = 2
heads = 2
[train]
steps = 20
eval_every = 10
checkpoint_every = 10
"""


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        (cls.folder / "tiny.toml").write_text(CONFIG.format(datasets=PROJECT / "datasets/bank-twins"))
        subprocess.run([os.environ["QKV"], "train", "tiny.toml"], cwd=cls.folder, check=True, capture_output=True)
        cls.run_folder = cls.folder / "runs/tiny"
        cls.tiny = qkv.run(cls.run_folder)

    def test_a_run_has_its_config_vocabulary_and_parameters(self):
        self.assertEqual((self.tiny.config["model"]["width"], self.tiny.config["task"]["kind"]), (8, "word-sense"))
        self.assertEqual(self.tiny.vocabulary["labels"], ["money", "river"])
        self.assertEqual(self.tiny.vocabulary["tokens"][:2], ["<pad>", "<unk>"])
        with h5py.File(self.run_folder / "best.h5") as file:
            self.assertEqual(self.tiny.step, file.attrs["step"])
            expected = file["model/encoder/layers/1/attention/w_q/weight"][()]
        numpy.testing.assert_array_equal(self.tiny.parameters["encoder.layers.1.attention.w_q.weight"], expected)
        self.assertEqual(len(self.tiny.parameters), len(self.tiny.call("inspect")["parameters"]))

    def test_metrics_are_arrays_by_split(self):
        valid = self.tiny.metrics["valid"]
        numpy.testing.assert_array_equal(valid["step"], [10, 20])
        self.assertEqual(valid["loss"].shape, valid["accuracy"].shape)
        self.assertNotIn("split", valid)

    def test_a_value_that_a_line_lacks_is_nan(self):
        copy = self.folder / "copy"
        shutil.copytree(self.run_folder, copy)
        (copy / "metrics.jsonl").write_text('{"step":1,"split":"train","loss":null}\n{"step":2,"split":"train","loss":2,"x":1}\n')
        train = qkv.run(copy).metrics["train"]
        numpy.testing.assert_array_equal(train["loss"], [numpy.nan, 2])
        numpy.testing.assert_array_equal(train["x"], [numpy.nan, 1])
        (copy / "metrics.jsonl").unlink()  # those in the checkpoint
        numpy.testing.assert_array_equal(qkv.run(copy).metrics["valid"]["step"], [10, 20][:qkv.run(copy).step // 10])

    def test_a_checkpoint_file_and_a_folder_without_a_best_one(self):
        copy = self.folder / "steps"
        shutil.copytree(self.run_folder, copy)
        self.assertEqual(qkv.run(copy / "checkpoints/step-00000010.h5").step, 10)
        for name in ("best.h5", "last.h5"):
            (copy / name).unlink()
        self.assertEqual(qkv.run(copy).step, 20)
        with self.assertRaisesRegex(FileNotFoundError, "neither a checkpoint nor a folder"):
            qkv.run(self.folder)
        with self.assertRaises(OSError):
            qkv.run(self.folder / "tiny.toml")

    def test_long_tokens_are_read_from_their_offsets(self):
        file = self.folder / "offsets.h5"
        shutil.copy(self.run_folder / "best.h5", file)
        with h5py.File(file, "r+") as changed:
            del changed["vocabulary/labels"]
            table = changed.create_group("vocabulary/labels")
            table["data"], table["offsets"] = numpy.bytes_("aकb".encode()), [0, 1, 4, 4, 5]
        self.assertEqual(qkv.run(file).vocabulary["labels"], ["a", "क", "", "b"])

    def test_the_program_answers(self):
        found = self.tiny.attend("money bank grows")
        self.assertEqual(found["tokens"], ["money", "bank", "grows"])
        self.assertEqual([layer.shape for layer in found["layers"]], [(2, 3, 3)] * 2)
        numpy.testing.assert_allclose(found["layers"][0].sum(-1), 1, atol=1e-6)
        self.assertIn(self.tiny.predict("money bank grows")[0]["label"], self.tiny.vocabulary["labels"])
        tokens = [self.tiny.vocabulary["tokens"][i] for i in self.tiny.ids("Money bank, zzz")[0]]
        self.assertEqual(tokens[:2] + tokens[-1:], ["money", "bank", "<unk>"])
        with self.assertRaisesRegex(RuntimeError, "has none of the words"):
            self.tiny.predict("zzz")

    def test_a_program_that_is_not_there_is_named(self):
        with unittest.mock.patch.dict(os.environ, {"QKV": "", "PATH": ""}), \
                unittest.mock.patch.object(pathlib.Path, "exists", return_value=False), \
                self.assertRaisesRegex(FileNotFoundError, "environment variable QKV"):
            qkv.program()

    def test_without_pytorch_all_but_the_model_works(self):
        code = ("import sys; sys.modules['torch'] = None; sys.path[:0] = sys.argv[1:2]; import qkv; run = qkv.run(sys.argv[2])\n"
                "assert run.vocabulary['labels'] and run.attend('money bank')['layers']\n"
                "try: run.torch()\nexcept ModuleNotFoundError as error: print(error)")
        done = subprocess.run([sys.executable, "-c", code, PROJECT / "python", self.run_folder], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "Run.torch needs PyTorch; Debian: apt-get install python3-torch\n"),
                         done.stderr)


class Walk(unittest.TestCase):
    def test_docs_python_md_prints_what_it_shows(self):
        try:
            import torch
        except ImportError:
            self.skipTest("python3-torch is not installed")
        with tempfile.TemporaryDirectory() as folder:
            for name in ("configs", "datasets"):
                (pathlib.Path(folder) / name).symlink_to(PROJECT / name)
            subprocess.run([os.environ["QKV"], "train", "configs/bank.toml"], cwd=folder, check=True, capture_output=True)
            with contextlib.chdir(folder):
                failed, tried = doctest.testfile(str(PROJECT / "docs/python.md"), module_relative=False)
        self.assertEqual(failed, 0)
        self.assertGreater(tried, 10)


if __name__ == "__main__":
    unittest.main()
