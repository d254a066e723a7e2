"""Each claim of docs/experiments.md, by a training as short as shows it; script/experiments runs the whole ones.

Usage: claims_test.py PROGRAM CLAIM
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
PROJECT = pathlib.Path(__file__).parents[2]


def qkv(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments), "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def trained(config, *variants, steps=None, changes=(), seeds=1):
    """Trains variants of a config; what `qkv compare` says of each."""
    changes = [*changes, *([f"train.steps={steps}", f"train.eval_every={max(steps // 2, 1)}"] if steps else [])]
    found = qkv("compare", PROJECT / f"configs/{config}.toml", "--threads", 1, "--seeds", seeds,
                *(a for v in variants for a in ("--only", v)), *(a for c in changes for a in ("--set", c)))["variants"]
    return found if len(found) > 1 else found[0]


def accuracy(entry):
    """The mean over the seeds."""
    tests = [run["test"] for run in entry["seeds"]]
    return statistics.mean(test["accuracy"] if "accuracy" in test else test["exact_match"] for test in tests)


def passes(entry):
    """Whether the probes of a variant hold, and fail under their interventions."""
    return entry["probes"] and all(probe["passes"] for probe in entry["probes"])


def learned_attention_leads(config):
    """On written sentences: a static vector is near chance, and learned attention ahead of uniform attention."""
    static, uniform, learned = trained(config, "static embedding", "uniform attention", "learned, 4 heads", steps=600)
    assert accuracy(static) <= 0.65, accuracy(static)
    assert accuracy(learned) >= 0.9, accuracy(learned)
    assert accuracy(learned) >= accuracy(uniform) + 0.03, (accuracy(learned), accuracy(uniform))
    assert passes(static) and passes(learned), learned["probes"]


def bank():
    learned_attention_leads("bank")


def apple():
    learned_attention_leads("apple")


def bank_twins():
    static, learned = trained("bank-twins", "static embedding", "learned, 4 heads", steps=300)
    assert accuracy(static) == 0.5
    assert accuracy(learned) >= 0.95, accuracy(learned)
    assert passes(static) and passes(learned), learned["probes"]


def general():
    static = trained("static", "skip-gram")
    assert passes(static)
    subprocess.run([PROGRAM, "embed", "runs/static-compare/skip-gram", "--word2vec", "runs/word2vec.txt"], check=True)
    static, learned = trained("general", "word2vec, static", "word2vec, learned attention",
                              changes=["model.embedding=runs/word2vec.txt"])
    assert accuracy(static) == 0.5
    assert accuracy(learned) >= 0.9, accuracy(learned)


def apple_twins():
    static, learned = trained("apple-twins", "static embedding", "learned attention", steps=500)
    assert accuracy(static) == 0.5
    assert static["test"]["recall"] == {"company": 0, "fruit": 1}
    assert accuracy(learned) >= 0.9, accuracy(learned)
    assert passes(learned), learned["probes"]


def pronoun():
    static, learned = trained("pronoun", "static embedding", "learned, 1 layer, 4 heads", steps=600)
    assert accuracy(static) <= 0.55, accuracy(static)
    assert accuracy(learned) >= 0.95, accuracy(learned)


def word_order():
    without, having = trained("word-order", "no positions", "sinusoidal positions", steps=200)
    assert accuracy(without) == 0.5
    assert accuracy(having) >= 0.99, accuracy(having)
    assert passes(without) and passes(having), having["probes"]


def long_range():
    rnn, attention = trained("long-range", "RNN, D = 256", "attention, D = 256", steps=100)
    assert accuracy(rnn) <= 0.25, accuracy(rnn)
    assert accuracy(attention) >= 0.99, accuracy(attention)
    far = {}
    for kind in ("RNN", "attention"):
        data = PROJECT / "datasets/long-range/valid-256.tsv"
        found = qkv("gradients", f"runs/long-range-compare/{kind}-D-256", "--untrained", "--data", data)
        assert found["distances"][-1]["distance"] == 256
        far[kind] = found["distances"][-1]["norm"]
    assert far["RNN"] < 1e-6 * far["attention"], far


def scale():
    measured = {}
    for d in (8, 512):
        for kind in ("scaled", "not scaled"):
            trained("scale", f"d_k = {d}, {kind}", steps=1)
            folder = f"runs/scale-compare/d-k-{d}-{kind.replace(' ', '-')}"
            head = qkv("attend", folder, "--untrained", "--data", PROJECT / "datasets/bank-twins/valid.tsv")
            measured[d, kind] = head["layers"][0]["heads"][0]
    spread = {at: head["score_variance"] for at, head in measured.items()}
    assert spread[512, "not scaled"] > 10 * spread[8, "not scaled"], spread
    assert spread[512, "scaled"] < 4 * spread[8, "scaled"], spread
    assert measured[512, "not scaled"]["entropy"] < measured[512, "scaled"]["entropy"] / 2


def variable_length():
    fixed, attention = trained("variable-length", "feed-forward, up to 24 words", "attention", steps=500)
    longer = trained("variable-length", "feed-forward, up to 48 words", steps=1)
    assert longer["parameters"] > 1.9 * fixed["parameters"]
    assert accuracy(fixed) <= 0.6, accuracy(fixed)
    assert accuracy(attention) >= 0.95, accuracy(attention)


def heads():
    one, eight = trained("heads", "1 head", "8 heads", steps=1200)
    assert accuracy(eight) >= 0.96, accuracy(eight)
    assert accuracy(one) <= 0.95, accuracy(one)
    assert passes(eight), eight["probes"]


def sentiment():
    static, attention = trained("sentiment", "static embedding", "attention")
    assert accuracy(static) <= 0.65, accuracy(static)
    assert accuracy(attention) >= 0.95, accuracy(attention)


def idiom():
    learned = trained("idiom", "learned encoder, the task's text", steps=600)
    assert accuracy(learned) >= 0.9, accuracy(learned)
    trained("idiom", "parameter-free encoder, general text", steps=600)
    folder = "runs/idiom-compare/parameter-free-encoder-general-text"
    halves = [qkv("eval", folder, "--data", PROJECT / f"datasets/idiom/test-{half}.tsv")["exact_match"]
              for half in ("idiomatic", "literal")]
    assert halves[0] == 0 and halves[1] >= 0.3, halves


def sequences():
    for entry in trained("sequences", "copy", "reverse", steps=600):
        assert accuracy(entry) >= 0.98, entry
    diagonal, reversed_diagonal = aligned("copy"), aligned("reverse")
    assert diagonal[0] >= max(0.4, 2 * diagonal[1]), diagonal
    assert reversed_diagonal[1] >= max(0.4, 2 * reversed_diagonal[0]), reversed_diagonal


def aligned(variant):
    """The mean cross-attention on the diagonal and on the anti-diagonal of texts of even length, where these share no cell."""
    on, across = [], []
    for letters in ("h d l b", "a c e g i k", "k a b j"):
        rows = qkv("attend", f"runs/sequences-compare/{variant}", letters)["alignment"]
        count = len(letters.split())
        for t in range(min(count, len(rows))):
            on.append(rows[t][t])
            across.append(rows[t][count - 1 - t])
    return sum(on) / len(on), sum(across) / len(across)


def induction():
    assert accuracy(trained("induction", "2 layers")) >= 0.99


def modular_addition():
    assert accuracy(trained("modular-addition", "weight decay 1")) >= 0.99


def summary():
    assert accuracy(trained("summary", "learned attention", steps=300)) >= 0.8


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    globals()[sys.argv[2].replace("-", "_")]()
