"""The options that are drawn: their values, and the configs in which each has an effect.

A config is a dictionary by dotted key that holds what differs from BASE. Keys of "data." say what the files hold.
"""
from typing import Callable, NamedTuple

# Small sizes, so that a training takes a moment; the program's defaults of what is drawn.
BASE = {
    "seed": 1, "data.seed": 1, "data.examples": 25, "data.words": 20, "data.longest": 9,
    "task.kind": "classify", "task.objective": "skip-gram", "task.class_weights": "none", "task.label_smoothing": 0.0,
    "task.word_dropout": 0.0, "task.truncate": False, "task.tokenizer": "word", "task.min_count": 1, "task.ngrams": 1,
    "task.stride": 1, "task.mask_probability": 0.15, "task.window": 5, "task.negatives": 5, "task.valid_share": None,
    "model.width": 12, "model.layers": 1, "model.heads": 2, "model.kv_heads": 0, "model.attention": "learned",
    "model.scale": True, "model.position": "sinusoidal", "model.max_distance": 8, "model.feed_forward": 16,
    "model.activation": "gelu-tanh", "model.norm": "pre", "model.bias": True, "model.tied": False,
    "model.embedding_std": 0.5, "model.cell": "lstm", "model.bidirectional": False,
    "model.dropout": 0.0, "model.max_length": 10,
    "optimizer.kind": "sgd", "optimizer.lr": None, "optimizer.momentum": 0.0, "optimizer.nesterov": False,
    "optimizer.beta1": 0.9, "optimizer.beta2": 0.999, "optimizer.amsgrad": False, "optimizer.epsilon": 1e-8,
    "optimizer.weight_decay": 0.0,
    "schedule.kind": "constant", "schedule.warmup": 0, "schedule.floor": 0.0,
    "train.steps": 8, "train.epochs": 0.0, "train.batch": 8, "train.accumulate": 1, "train.clip": 1.0,
    "train.clip_value": 0.0, "train.ema": 0.0, "train.eval_every": 1, "train.patience": 0, "train.select": "",
    "train.freeze": [], "train.on_divergence": "stop", "train.init": "",
}
RATES = {"sgd": 0.1, "adam": 0.01, "adamw": 0.01, "rmsprop": 0.003, "adagrad": 0.05, "muon": 0.01}
MODELS = {"language-model": ["decoder", "recurrent", "static"], "translate": ["encoder-decoder"],
          "static-embedding": ["static"], "masked-language-model": ["encoder", "bert", "convolution", "feed-forward"]}
ANY_MODEL = ["encoder", "bert", "decoder", "recurrent", "convolution", "feed-forward", "static"]


class Config(dict):
    def __missing__(self, key):
        if key == "model.kind":
            return models(self)[0]
        if key == "optimizer.lr":
            return RATES[self["optimizer.kind"]]
        return BASE[key]


class Option(NamedTuple):
    key: str
    values: list
    suits: Callable = lambda c: True  # whether the value in `c` has an effect there


def models(c):
    return MODELS.get(c["task.kind"], ANY_MODEL)


def task_is(*kinds):
    return lambda c: c["task.kind"] in kinds


def model_is(*kinds):
    return lambda c: c["model.kind"] in kinds


def optimizer_is(*kinds):
    return lambda c: c["optimizer.kind"] in kinds


def attends(c):
    return c["model.kind"].endswith("coder") or c["model.kind"] == "bert"


def has_blocks(c):
    """Residual blocks; a decoder that attends to another text has them always."""
    return attends(c) and (c["model.attention"] != "parameter-free" or c["model.kind"] == "encoder-decoder")


def has_scores(c):
    return attends(c) and c["model.attention"] != "uniform"


def has_heads(c):
    return has_blocks(c) and (c["model.attention"] != "uniform" or c["model.kv_heads"] > 0)


def learns_scores(c):
    return has_scores(c) and has_blocks(c)


def has_hidden(c):
    return has_blocks(c) or c["model.kind"] == "feed-forward"


def is_activated(c):
    return has_hidden(c) and c["model.feed_forward"] > 0 or c["model.kind"] == "bert" and c["model.tied"]


def has_bias(c):
    """A bias that can be left out; those of recurrent and convolutional layers cannot."""
    return c["task.kind"] != "static-embedding" and (not c["model.tied"] or has_hidden(c) or c["model.kind"] == "bert")


def suits_heads(c):
    return has_heads(c) and c["model.width"] % c["model.heads"] == 0 and c["model.heads"] % max(c["model.kv_heads"], 1) == 0


def suits_position(c):
    if c["model.position"] == "rotary":
        heads = c["model.heads"] if has_blocks(c) else 1
        return has_scores(c) and c["model.width"] // heads % 2 == 0
    return learns_scores(c) if c["model.position"] == "relative" else attends(c)


def suits_width(c):
    return not attends(c) or c["model.width"] % (c["model.heads"] if has_heads(c) else 4) == 0


def has_one_label(c):
    return c["task.kind"] in ("classify", "word-sense")


def reads_words(c):
    return c["task.tokenizer"] == "word" and c["task.kind"] != "language-model"


def is_bag_of_words(c):
    return c["task.kind"] == "classify" and c["model.kind"] == "static" and reads_words(c)


def drops_words(c):
    return has_one_label(c) and not (c["task.kind"] == "word-sense" and c["model.kind"] == "static")


def counts_passes(c):
    """Some are inexact: 2.24 * 25 / 8 is 7.000000000000001."""
    steps = c["train.epochs"] * c["data.examples"] / (c["train.batch"] * c["train.accumulate"])
    return c["task.kind"] in ("classify", "word-sense", "translate") and steps <= 25 and "train.steps" not in c


def can_overflow(c):
    """Whether a word whose vectors sum to infinity is read as it is, its vector reaches the logits, and it trains in few of the
    batches."""
    changes = ("task.word_dropout", "task.ngrams", "task.valid_share", "data.examples", "train.batch", "train.accumulate", "train.steps", "train.epochs")
    return is_bag_of_words(c) and not any(key in c for key in changes)


def can_be_bert(c):
    return has_one_label(c) and not any(key.startswith("model.") or key in ("task.min_count", "task.truncate",
                                                                            "task.tokenizer") for key in c)


OPTIONS = [
    Option("task.kind", ["word-sense", "tagging", "language-model", "static-embedding", "masked-language-model", "coreference",
                         "translate"]),
    Option("task.objective", ["cbow", "glove"], task_is("static-embedding")),
    Option("model.kind", ANY_MODEL, lambda c: c["model.kind"] in models(c)),
    Option("seed", [7, 2**40 + 3]),
    Option("data.examples", [10, 20, 50]),
    Option("data.words", [2, 5, 60]),
    Option("model.width", [8, 16, 14], suits_width),
    Option("model.layers", [2], lambda c: c["model.kind"] not in ("static", "feed-forward")),
    Option("model.attention", ["uniform", "parameter-free"], attends),
    Option("model.heads", [1, 4], suits_heads),
    Option("model.kv_heads", [1, 2], lambda c: has_blocks(c) and suits_heads(c) and c["model.kv_heads"] < c["model.heads"]),
    Option("model.scale", [False], has_scores),
    Option("model.position", ["learned", "rotary", "relative", "none"], suits_position),
    Option("model.max_distance", [2], lambda c: suits_position(c) and c["model.position"] == "relative"),
    Option("model.feed_forward", [8, 0], lambda c: has_hidden(c) and (c["model.feed_forward"] > 0 or has_blocks(c))),
    Option("model.activation", ["gelu", "relu", "relu-squared"], is_activated),
    Option("model.norm", ["post", "none"], has_blocks),
    Option("model.bias", [False], has_bias),
    Option("model.tied", [True], task_is("language-model", "masked-language-model", "translate")),
    Option("model.embedding_std", [0.1, 1.0], lambda c: c["model.kind"] != "decoder" and c["train.on_divergence"] == "stop"),
    Option("model.cell", ["rnn", "gru"], model_is("recurrent")),
    Option("model.bidirectional", [True], lambda c: c["model.kind"] == "recurrent" and c["task.kind"] != "language-model"),
    Option("model.dropout", [0.1, 0.5], lambda c: c["model.kind"] != "static" and
           (c["model.kind"] != "recurrent" or c["model.layers"] == 1)),
    Option("model.max_length", [6], lambda c: c["task.truncate"] or c["task.kind"].endswith("language-model")),
    Option("task.truncate", [True], task_is("classify", "word-sense", "coreference", "tagging", "translate")),
    Option("task.tokenizer", ["char"], task_is("classify")),
    Option("task.min_count", [2], lambda c: reads_words(c) and c["data.words"] <= 20),
    Option("task.ngrams", [2, 3], lambda c: is_bag_of_words(c) and c["task.truncate"]),
    Option("task.word_dropout", [1.0, 20.0], drops_words),
    Option("task.label_smoothing", [0.1, 0.5], has_one_label),
    Option("task.class_weights", ["balanced"], has_one_label),
    Option("task.stride", [3, 6], task_is("language-model")),
    Option("task.mask_probability", [0.5, 1.0], task_is("masked-language-model")),
    Option("task.window", [1, 2], task_is("static-embedding")),
    Option("task.negatives", [1, 15], lambda c: c["task.kind"] == "static-embedding" and c["task.objective"] != "glove"),
    Option("task.valid_share", [0.29, 0.3], task_is("language-model", "classify", "translate")),
    Option("optimizer.kind", ["adam", "adamw", "rmsprop", "adagrad", "muon"]),
    Option("optimizer.momentum", [0.5, 0.9], optimizer_is("sgd", "rmsprop")),
    Option("optimizer.nesterov", [True], lambda c: c["optimizer.kind"] == "sgd" and c["optimizer.momentum"] > 0),
    Option("optimizer.beta1", [0.5], optimizer_is("adam", "adamw", "muon")),
    Option("optimizer.beta2", [0.9], optimizer_is("adam", "adamw", "muon", "rmsprop")),
    Option("optimizer.amsgrad", [True], optimizer_is("adam", "adamw", "muon")),
    Option("optimizer.epsilon", [1e-3], lambda c: c["optimizer.kind"] != "sgd"),
    Option("optimizer.weight_decay", [0.1, 0.5]),
    Option("schedule.kind", ["linear", "cosine", "inverse-sqrt", "one-cycle"]),
    Option("schedule.warmup", [1, 3, 20]),
    Option("schedule.floor", [0.1], lambda c: c["schedule.kind"] in ("linear", "cosine", "one-cycle")),
    Option("train.batch", [1, 2, 5, 40]),
    Option("train.accumulate", [2, 3]),
    Option("train.steps", [1, 20], lambda c: c["train.epochs"] == 0),
    Option("train.epochs", [2.24, 0.56, 1.3], counts_passes),
    Option("train.clip", [0.0, 0.05]),
    Option("train.clip_value", [0.01]),
    Option("train.ema", [0.5, 0.9]),
    Option("train.eval_every", [2, 5]),
    Option("train.patience", [1, 2]),
    Option("train.select", ["loss"]),
    Option("train.freeze", [["embedding"], ["head"]], lambda c: not c["model.tied"]),
    Option("train.on_divergence", ["skip"], can_overflow),
    Option("train.init", ["bert"], can_be_bert),
]

# Options that are drawn together as well, whose interplay matters.
TOGETHER = [
    {"task.class_weights": "balanced", "train.batch": 1, "train.accumulate": 3},
    {"task.class_weights": "balanced", "task.label_smoothing": 0.1},
    {"task.word_dropout": 20.0, "train.init": "bert"},
    {"task.ngrams": 3, "task.truncate": True, "model.kind": "static"},
    {"task.kind": "static-embedding", "data.words": 2},
    {"task.objective": "cbow", "data.words": 2},
    {"model.kind": "feed-forward", "model.activation": "gelu"},
    {"task.kind": "masked-language-model", "model.kind": "bert", "model.tied": True, "model.activation": "gelu"},
    {"task.kind": "masked-language-model", "model.kind": "bert", "model.tied": True, "model.activation": "gelu", "model.feed_forward": 0},
    {"train.on_divergence": "skip", "optimizer.kind": "adam"},
    {"train.ema": 0.9, "train.accumulate": 2, "optimizer.kind": "adamw", "optimizer.weight_decay": 0.5},
]

# Options that nothing reads in a config that has the second: refused, or they have an effect after all.
IDLE = [
    ({"model.bias": False}, {"task.kind": "static-embedding"}),
    ({"model.activation": "gelu"}, {"model.feed_forward": 0}),
    ({"task.word_dropout": 5.0}, {"task.kind": "word-sense", "model.kind": "static"}),
    ({"model.heads": 3}, {"model.attention": "uniform"}),
    ({"model.max_distance": 2}, {"model.attention": "uniform", "model.position": "relative"}),
    ({"model.position": "relative"}, {"model.attention": "uniform"}),
    ({"model.position": "rotary"}, {"model.attention": "uniform"}),
    ({"model.position": "relative"}, {"model.attention": "parameter-free"}),
    ({"model.position": "rotary"}, {"model.width": 14}),
    ({"model.embedding_std": 2.0}, {"model.kind": "decoder"}),
    ({"task.tokenizer": "char"}, {"task.kind": "translate"}),
    ({"model.cell": "gru"}, {}),
    ({"task.stride": 2}, {}),
    ({"task.ngrams": 2}, {"model.kind": "encoder"}),
    ({"optimizer.beta1": 0.5}, {}),
    ({"schedule.floor": 0.1}, {}),
]
BY_KEY = {option.key: option for option in OPTIONS}
# The value that an idle option is compared with, where its default is yet another.
NEUTRAL = {"model.position": "none"}


def unsuited(config):
    """The keys whose value has no effect, or cannot be."""
    return [key for key in config if key in BY_KEY and not BY_KEY[key].suits(config)]


def proper(config):
    """The config without what does not suit it."""
    config = Config(config)
    while keys := unsuited(config):
        for key in keys:
            del config[key]
    return config
