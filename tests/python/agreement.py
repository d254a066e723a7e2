"""How far the logits of PyTorch and of ONNX Runtime are from qkv's own, for every kind of model
in configs/ and in tests/support/other_kinds.toml.

Usage: agreement.py PROGRAM [CONFIG...]

Trains a model of each kind for some steps, exports it as safetensors and imports that, asks it about sentences of its data,
one by one and side by side with padding, and prints the largest difference, absolute where logits are below 1, else relative
to the largest; of translations, that of the loss. PyTorch runs qkv.run(...).torch(); ONNX Runtime runs what `qkv export
--onnx` writes, attention weights, too, where qkv was built with ONNX and build/onnxruntime has the runtime:

    npm install --ignore-scripts --prefix build/onnxruntime onnxruntime-node

Exits with 77 where PyTorch is not installed.
"""
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: needs NumPy and PyTorch ({error})")
    sys.exit(77)

PROJECT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(PROJECT / "python"), str(PROJECT / "tests/support")]
import qkv
from kinds_of_model import CONFIGS, texts_of, variants
from stand_ins import GIVEN, write_stand_ins

TOLERANCE = 1e-5
RUNTIME = pathlib.Path(__file__).with_suffix(".cjs").with_stem("onnx_runtime")
ONNX_RUNTIME = PROJECT / "build/onnxruntime/node_modules"
STEPS = 5


def difference(actual, expected):
    actual, expected = numpy.asarray(actual, float), numpy.array([-math.inf if v is None else v for v in expected], float)
    if actual.shape != expected.shape or (numpy.isfinite(actual) != numpy.isfinite(expected)).any():
        return math.inf
    finite = numpy.isfinite(expected)
    return (abs(actual - expected)[finite] / max(1, abs(expected[finite]).max())).max()


def padded(rows):
    longest = max(map(len, rows))
    return [list(row) + [0] * (longest - len(row)) for row in rows], [len(row) for row in rows]


class OnnxModel:
    """A model in ONNX Runtime, called as the one in PyTorch."""

    def __init__(self, file):
        self.process = subprocess.Popen(["node", RUNTIME, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "NODE_PATH": str(ONNX_RUNTIME)})

    def outputs(self, names, ids, lengths=None, words=None, outputs=None):
        inputs = {"ids": ids, "lengths": lengths or [len(row) for row in ids], "words": words, "output_ids": outputs}
        request = {"inputs": {name: value for name, value in inputs.items() if value is not None}, "outputs": names}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        found = json.loads(self.process.stdout.readline())
        return [torch.tensor([-math.inf if v is None else v for v in found[name]["data"]]).reshape(found[name]["dims"])
                for name in names]

    def __call__(self, *arguments, **options):
        return self.outputs(["logits"], *arguments, **options)[0]

    def contextual(self, ids):
        return self.outputs(["contextual"], ids)[0]

    def attention(self, run, ids):
        """The weights of each layer, [head, query, key]."""
        stack = "decoder" if run.config["model"]["kind"] == "decoder" else "encoder"
        names = [f"{stack}.layers.{i}.attention.weights" for i in range(run.config["model"]["layers"])]
        words = {"words": [0]} if run.config["task"]["kind"] in ("word-sense", "coreference") else {}
        outputs = {"outputs": [[0]]} if run.config["task"]["kind"] == "translate" else {}
        return [weights[0] for weights in self.outputs(names, [ids], **words, **outputs)]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def asked_logits(run, model, predictions):
    """The logits behind each prediction: of sentences side by side, and one by one."""
    kind = run.config["task"]["kind"]
    rows, words = [p["ids"] for p in predictions], [p.get("index") for p in predictions]
    about_a_word = {"words": words} if kind in ("word-sense", "coreference") else {}
    together = model(*padded(rows), **about_a_word)
    for i, (ids, word) in enumerate(zip(rows, words)):
        alone = model([ids], **{name: values[i:i + 1] for name, values in about_a_word.items()})
        for logits in (together[i], alone[0]):
            yield i, (logits[word, [vocabulary_id(run, token) for token in predictions[i]["probabilities"]]]
                      if kind == "masked-language-model" else
                      logits[word] if kind in ("tagging", "language-model") else
                      logits[:len(ids)] if kind == "coreference" else logits)


def translation_losses(run, model, line):
    """The loss of a line with source and target: the program's, and that of the other model's logits."""
    pathlib.Path("pair.tsv").write_text(line + "\n")
    expected = run.call("eval", "--data", "pair.tsv")["loss"]
    source, target = ([vocabulary_id(run, word) for word in text.split()] for text in line.split("\t"))
    begin, end = (vocabulary_id(run, token) for token in ("<bos>", "<eos>"))
    logits = model([source], outputs=[[begin, *target]])[0]
    return torch.nn.functional.cross_entropy(logits, torch.tensor([*target, end])), expected


def vocabulary_id(run, token):
    tokens = run.vocabulary["tokens"]
    return tokens.index(token if token in tokens else "<unk>")


def worst(run, model):
    """The largest difference between the program's model and another."""
    kind, texts = run.config["task"]["kind"], texts_of(located(run))
    if kind == "static-embedding":
        found = [run.call("embed", text, "--word", text.split()[0])["sentences"][0] for text in texts]
        return max(difference(model.contextual([[vocabulary_id(run, s["tokens"][s["index"]])]])[0, 0], s["contextual"])
                   for s in found)
    if kind == "translate":
        losses = [translation_losses(run, model, text) for text in texts]
        return max(difference([loss], [expected]) for loss, expected in losses)
    predictions = run.predict(*texts)
    return max(difference(logits, predictions[i]["logits"]) for i, logits in asked_logits(run, model, predictions))


def worst_onnx(run, file):
    """The same of ONNX Runtime, with the attention weights; None where it is not there."""
    if not ONNX_RUNTIME.exists():
        return None
    done = subprocess.run([qkv.program(), "export", run.path, "--onnx", file], capture_output=True, text=True)
    if "built without ONNX" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    model = OnnxModel(file)
    found = [worst(run, model)]
    if run.config["model"]["kind"] in ("encoder", "decoder", "encoder-decoder"):
        text = texts_of(located(run))[0].split("\t")[0]
        weights = model.attention(run, run.ids(text)[0].tolist())
        found += [difference(a.flatten(), b.flatten()) for a, b in zip(weights, run.attend(text)["layers"])]
    model.close()
    return max(found)


def located(run):
    """The config's [task] with the paths that it means."""
    def path(value):
        return next((str(above / value) for above in run.path.resolve().parents if value and (above / value).exists()), value)
    return {**run.config["task"], **{name: path(run.config["task"][name]) for name in ("train", "valid", "test", "data")}}


def checked(*command):
    done = subprocess.run([qkv.program(), *map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stderr}"


def trained(config, names):
    """The folders of short trainings of some variants, without evaluation where the config's base names its data."""
    splits = [f"task.{split}=" for split in ("valid", "test") if split in tomllib.loads(config.read_text())["task"]]
    options = [config.relative_to(PROJECT), *GIVEN.get(config.stem, []),
               *(word for option in (f"train.steps={STEPS}", *splits) for word in ("--set", option))]
    if names == [""]:
        checked("train", *options)
        return [pathlib.Path("runs") / config.stem]
    checked("compare", *options, *(word for name in names for word in ("--only", name)))
    return [pathlib.Path(f"runs/{config.stem}-compare") / re.sub("[^0-9A-Za-z]+", "-", name) for name in names]


def exchanged(path):
    """The run after a way through safetensors."""
    file = path.with_suffix(".safetensors")
    checked("export", path, "--safetensors", file)
    checked("import", file, "--run", path.with_name(path.name + "-imported"))
    return qkv.run(path.with_name(path.name + "-imported"))


def main(program, *configs):
    os.environ["QKV"] = os.path.abspath(program)
    configs = [pathlib.Path(config) for config in configs] or CONFIGS
    known, failed = set(), []
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        os.chdir(folder)
        for name in ("configs", "datasets", "tests"):
            pathlib.Path(name).symlink_to(PROJECT / name)
        write_stand_ins(pathlib.Path(folder))
        print(f"{'config and variant':<46}{'task':<23}{'model':<17}{'PyTorch':>9}{'ONNX':>9}")
        for config in configs:
            new = {kind: name for name, kind in variants(config) if kind not in known}
            known.update(new)
            for name, path in zip(new.values(), trained(config, list(new.values())) if new else []):
                label, run = f"{config.stem}: {name}" if name else config.stem, exchanged(path)
                differences = [worst(run, run.torch()), worst_onnx(run, "model.onnx")]
                print(f"{label:<46}{run.config['task']['kind']:<23}{run.config['model']['kind']:<17}"
                      + "".join(f"{'-' if d is None else format(d, '.1e'):>9}" for d in differences), flush=True)
                if not all(d is None or d <= TOLERANCE for d in differences):
                    failed.append(label)
    print(f"\n{len(known)} kinds of models within {TOLERANCE:g}: {'all' if not failed else 'not ' + ', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), *map(os.path.abspath, sys.argv[2:])))
