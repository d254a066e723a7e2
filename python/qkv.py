"""qkv's runs in Python: config, metrics, vocabulary and parameters as arrays, and the model as a torch.nn.Module.

    import qkv
    run = qkv.run("runs/bank")
    run.config["model"]["width"], run.metrics["valid"]["loss"], run.vocabulary["labels"]
    run.parameters["encoder.layers.0.attention.w_q.weight"]
    run.attend("He swam to the bank.")["layers"][0]      # weights [head, query, key], by the program
    model = run.torch()                              # parameters named as above
    model(run.ids("He swam to the bank."), words=[4])    # logits [1, label]

Needs h5py and NumPy; `torch()` needs PyTorch. The program is $QKV, else `qkv` on the PATH, else the one that was built in
this checkout. docs/python.md shows more.
"""
import json
import math
import os
import pathlib
import shutil
import subprocess
import tomllib

import h5py
import numpy

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
    Module = nn.Module
except ImportError:
    torch, Module = None, object


def run(path):
    """The run in a folder, or a checkpoint file."""
    return Run(path)


def program():
    """The program's path."""
    built = pathlib.Path(__file__).resolve().parents[1] / "build/release/qkv"
    found = os.environ.get("QKV") or shutil.which("qkv") or (str(built) if built.exists() else None)
    if not found:
        raise FileNotFoundError(f"the program qkv is neither on the PATH nor {built}; name it in the environment variable QKV")
    return found


class Run:
    """A model with what it was trained with; of a run folder its best checkpoint, else the newest.

    step        updates done
    config      the options, {"model": {"width": 32, ...}, ...}
    vocabulary  {"tokens": [...], "labels": [...], ...}; a token's id is its position
    parameters  arrays by path, "encoder.layers.0.attention.w_q.weight"; weights are [out_features, in_features]
    metrics     {"train" | "valid" | "test": {"step": array, "loss": array, ...}}; NaN where a line has no value
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.checkpoint = _checkpoint(self.path)
        with h5py.File(self.checkpoint) as file:
            if file.attrs.get("format") != b"qkv-checkpoint":
                raise ValueError(f"{self.checkpoint} is not a qkv checkpoint")
            self.step = int(file.attrs["step"])
            self.config = tomllib.loads(_text(file.attrs["config"] if "config" in file.attrs else file["config"][()]))
            self.vocabulary = {name: _texts(item) for name, item in file["vocabulary"].items()}
            self.parameters = _arrays(file["model"])
            lines = _text(file["progress/metrics"][()])
        log = self.path / "metrics.jsonl"
        self.metrics = _metrics(log.read_text() if log.exists() else lines)

    def call(self, command, *arguments):
        """What `qkv COMMAND RUN ARGUMENTS... --json` says."""
        done = subprocess.run([program(), command, str(self.path), *map(str, arguments), "--json"], capture_output=True,
                              text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return json.loads(done.stdout)

    def predict(self, *texts):
        """Labels or outputs with their probabilities, and each choice's logits; see `qkv predict --help`."""
        return self.call("predict", *texts)["predictions"]

    def attend(self, sentence):
        """{"tokens": [...], "layers": [weights [head, query, key]]}"""
        found = self.call("attend", sentence)
        return {"tokens": found["tokens"], "layers": [numpy.array(layer["heads"]) for layer in found["layers"]]}

    def ids(self, text):
        """The token ids of a text as the program cuts it, [1, time]."""
        return numpy.array([self.predict(text)[0]["ids"]])

    def torch(self):
        """The model as a torch.nn.Module in evaluation mode; see `Model`."""
        if torch is None:
            raise ModuleNotFoundError("Run.torch needs PyTorch; Debian: apt-get install python3-torch")
        outputs = self.parameters["head.weight"].shape[0] if "head.weight" in self.parameters else None
        model = Model(self.config["model"], len(self.parameters["embedding.weight"]), outputs, self.config["task"]["kind"])
        model.load_state_dict({path: torch.from_numpy(value) for path, value in self.parameters.items()})
        return model.eval()


def _checkpoint(path):
    if path.is_file():
        return path
    steps = sorted((path / "checkpoints").glob("step-*.h5"), key=lambda file: int(file.stem[5:]))
    for file in (path / "best.h5", path / "last.h5", *reversed(steps)):
        if file.exists():
            return file
    raise FileNotFoundError(f"{path} is neither a checkpoint nor a folder that holds one")


def _text(value):
    return bytes(value).rstrip(b"\0").decode()


def _texts(item):
    """A list of texts: of fixed length, or one after the other with offsets."""
    if isinstance(item, h5py.Dataset):
        return [_text(text) for text in item[()]]
    data, offsets = bytes(item["data"][()]), item["offsets"][()]
    return [data[begin:end].decode() for begin, end in zip(offsets, offsets[1:])]


def _arrays(group):
    found = {}
    group.visititems(lambda name, item: found.update({name.replace("/", "."): item[()]})
                     if isinstance(item, h5py.Dataset) else None)
    return found


def _metrics(lines):
    events = {}
    for line in lines.splitlines():
        event = json.loads(line)
        events.setdefault(event.pop("split"), []).append(event)
    return {split: {name: numpy.array([math.nan if event.get(name) is None else event[name] for event in found])
                    for name in dict.fromkeys(name for event in found for name in event)}
            for split, found in events.items()}


# Values of options that a config leaves out (layers/options.h).
DEFAULTS = {"kind": "encoder", "width": 32, "layers": 1, "heads": 4, "kv_heads": 0, "attention": "learned", "scale": True,
            "position": "sinusoidal", "max_distance": 8, "feed_forward": 128, "norm": "pre", "bias": True, "cell": "lstm",
            "bidirectional": False, "max_length": 256, "activation": "gelu-tanh"}


class Model(Module):
    """A model of `options`, a config's [model], with parameters named as in a checkpoint.

    vocabulary  rows of the embedding table
    outputs     rows of the output layer; None: the output layer is the embedding table
    task        a config's task.kind, which says what `forward` computes
    """

    def __init__(self, options, vocabulary, outputs=None, task="language-model"):
        super().__init__()
        options = DEFAULTS | options
        self.kind, self.task, width = options["kind"], task, options["width"]
        self.embedding = nn.Embedding(vocabulary, width)
        if outputs is not None:
            self.head = nn.Linear(width, outputs, options["bias"])
        elif self.kind == "bert":
            self.output_transform = OutputTransform(options)
            if options["bias"]:
                self.output_bias = nn.Parameter(torch.zeros(vocabulary))
        if self.kind == "bert":
            self.token_types = nn.Embedding(2, width)
            self.input_norm = Norm(options)
            self.pooler = nn.Linear(width, width, options["bias"])
        if self.kind in ("encoder", "bert", "decoder", "encoder-decoder"):
            if options["position"] in ("sinusoidal", "learned"):
                self.positions = Positions(options)
            if self.kind != "decoder":
                self.encoder = Transformer(options)
            if self.kind.endswith("decoder"):
                # It cannot be parameter-free where it attends to the words of another vocabulary.
                free = self.kind == "encoder-decoder" and options["attention"] == "parameter-free"
                self.decoder = Transformer({**options, "attention": "learned"} if free else options,
                                           self.kind == "encoder-decoder")
        elif self.kind == "recurrent":
            directions = 2 if options["bidirectional"] else 1
            cell = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[options["cell"]]
            self.recurrent = cell(width, width // directions, options["layers"], batch_first=True, bidirectional=directions == 2)
        elif self.kind == "convolution":
            self.convolution = nn.Module()
            self.convolution.layers = nn.ModuleList(Convolution(width) for _ in range(options["layers"]))
        elif self.kind == "feed-forward":
            self.longest = options["max_length"]
            self.feed_forward = FeedForward(self.longest * width, options["feed_forward"], options)

    def forward(self, ids, lengths=None, words=None, outputs=None):
        """The logits that the task asks for.

            ids      [batch, time]
            lengths  [batch], tokens of each sequence; the rest is padding; None: all
            words    [batch], the position of the word that is asked about
            outputs  [batch, output time], a translation so far, which begins with <bos>

            word-sense                        [batch, label] of the word
            coreference                       [batch, time], -inf at padding and at the word itself
            classify                          [batch, label]
            tagging                           [batch, time, label]
            language-model, static-embedding  [batch, time, token]
            translate                         [batch, output time, token]
        """
        ids = self._indices(ids)
        lengths = self._lengths(ids, lengths)
        x = self.contextual(ids, lengths)
        if self.task == "translate":
            return self.logits(self.decode(outputs, x, lengths))
        if self.task == "classify":
            return self.logits(self.sentence(x, lengths))
        if self.task not in ("word-sense", "coreference"):
            return self.logits(x)
        rows, words = torch.arange(len(ids), device=ids.device), self._indices(words)
        y = self.logits(x[rows, words])
        if self.task == "word-sense":
            return y
        hidden = _padding(lengths, ids.shape[1])
        hidden[rows, words] = True
        return ((x @ y[..., None])[..., 0] / x.shape[-1]**0.5).masked_fill(hidden, -math.inf)

    def contextual(self, ids, lengths=None):
        """One vector for each token, [batch, time, width]; of an encoder-decoder, the encoder's."""
        ids = self._indices(ids)
        lengths = self._lengths(ids, lengths)
        padding = _padding(lengths, ids.shape[1])
        x = self._embedded(ids)
        if self.kind in ("encoder", "bert", "encoder-decoder"):
            return self.encoder(x, ~padding[:, None])
        if self.kind == "decoder":
            return self.decoder(x, ~padding[:, None] & _causal(ids))
        if self.kind == "recurrent":
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
            return nn.utils.rnn.pad_packed_sequence(self.recurrent(packed)[0], True, total_length=ids.shape[1])[0]
        if self.kind == "convolution":
            for layer in self.convolution.layers:
                x = layer(x.masked_fill(padding[..., None], 0))
        if self.kind == "feed-forward":
            x = F.pad(x.masked_fill(padding[..., None], 0), (0, 0, 0, self.longest - ids.shape[1]))
            x = self.feed_forward(x.flatten(1)).unflatten(1, (self.longest, -1))[:, :ids.shape[1]]
        return x

    def decode(self, ids, encoded, lengths=None):
        """Of an encoder-decoder, one vector for each output token, given the encoder's output."""
        ids = self._indices(ids)
        padding = _padding(self._lengths(encoded, lengths), encoded.shape[1])
        return self.decoder(self._embedded(ids), _causal(ids), encoded, ~padding[:, None])

    def sentence(self, x, lengths=None):
        """One vector for each sequence from those of its tokens: their mean, or what the kind of model has instead."""
        lengths = self._lengths(x, lengths)
        padding = _padding(lengths, x.shape[1])[..., None]
        if self.kind == "convolution":
            return x.masked_fill(padding, -math.inf).amax(1)
        if self.kind == "recurrent":
            last, half = x[torch.arange(len(x), device=x.device), lengths - 1], x.shape[-1] // 2
            return torch.cat([last[:, :half], x[:, 0, half:]], 1) if self.recurrent.bidirectional else last
        if hasattr(self, "pooler"):
            return self.pooler(x[:, 0]).tanh()
        return x.masked_fill(padding, 0).sum(1) / lengths[:, None]

    def logits(self, x):
        x = self.output_transform(x) if hasattr(self, "output_transform") else x
        return self.head(x) if hasattr(self, "head") else F.linear(x, self.embedding.weight, getattr(self, "output_bias", None))

    def _embedded(self, ids):
        x = self.embedding(ids)
        x = x + self.token_types.weight[0] if hasattr(self, "token_types") else x
        x = x + self.positions(ids.shape[1]).to(x) if hasattr(self, "positions") else x
        return self.input_norm(x) if hasattr(self, "input_norm") else x

    def _indices(self, values):
        return torch.as_tensor(values, dtype=torch.long, device=self.embedding.weight.device)

    def _lengths(self, sequences, lengths):
        return self._indices([sequences.shape[1]] * len(sequences) if lengths is None else lengths)


class Positions(Module):
    """Positional encodings [time, width] that are added to the embeddings (Vaswani et al. 2017, 3.5)."""

    def __init__(self, options):
        super().__init__()
        self.width = options["width"]
        if options["position"] == "learned":
            self.weight = nn.Parameter(torch.empty(options["max_length"], self.width))

    def forward(self, time):
        if hasattr(self, "weight"):
            return self.weight[:time]
        column = torch.arange(self.width)
        angles = torch.arange(time).double()[:, None] / 10000**((column - column % 2).double() / self.width)
        return torch.where(column % 2 == 0, angles.sin(), angles.cos())


class Transformer(Module):
    """A stack of blocks, which with norms before the sub-layers ends with one."""

    def __init__(self, options, cross=False):
        super().__init__()
        self.layers = nn.ModuleList(Block(options, cross) for _ in range(options["layers"]))
        if options["norm"] == "pre" and options["attention"] != "parameter-free":
            self.norm = Norm(options)

    def forward(self, x, visible, encoded=None, visible_encoded=None):
        for layer in self.layers:
            x = layer(x, visible, encoded, visible_encoded)
        return self.norm(x) if hasattr(self, "norm") else x


class Block(Module):
    """Self-attention, with `cross` cross-attention, and a feed-forward network, each with a residual connection."""

    def __init__(self, options, cross=False):
        super().__init__()
        self.order, self.free = options["norm"], options["attention"] == "parameter-free"
        self.attention = Attention(options)
        if self.free:
            return
        self.norm_1 = self._norm(options)
        if cross:
            self.norm_cross, self.cross_attention = self._norm(options), Attention(options, cross)
        if options["feed_forward"]:
            self.norm_2 = self._norm(options)
            self.feed_forward = FeedForward(options["width"], options["feed_forward"], options)

    def _norm(self, options):
        return Norm(options) if self.order != "none" else nn.Identity()

    def forward(self, x, visible, encoded=None, visible_encoded=None):
        if self.free:
            return self.attention(x, x, visible)
        x = self._with_residual(x, self.norm_1, lambda h: self.attention(h, h, visible))
        if hasattr(self, "cross_attention"):
            x = self._with_residual(x, self.norm_cross, lambda h: self.cross_attention(h, encoded, visible_encoded))
        return self._with_residual(x, self.norm_2, self.feed_forward) if hasattr(self, "feed_forward") else x

    def _with_residual(self, x, norm, sublayer):
        return norm(x + sublayer(x)) if self.order == "post" else x + sublayer(norm(x))


class Attention(Module):
    """softmax(q k^T / sqrt(d_k)) v by head, between projections that the kind of attention has or has not."""

    def __init__(self, options, cross=False):
        super().__init__()
        kind, width = options["attention"], options["width"]
        self.heads = 1 if kind == "parameter-free" else options["heads"]
        head_width = width // self.heads
        shared = head_width * (options["kv_heads"] if options["kv_heads"] and self.heads > 1 else self.heads)
        self.scale = 0 if kind == "uniform" else head_width**-0.5 if options["scale"] else 1
        self.rotates = options["position"] == "rotary" and not cross
        if kind == "learned":
            self.w_q, self.w_k = nn.Linear(width, width, options["bias"]), nn.Linear(width, shared, options["bias"])
            if options["position"] in ("relative", "windows") and not cross:
                self.positions = Distances(options)
        if kind != "parameter-free":
            self.w_v, self.w_o = nn.Linear(width, shared, options["bias"]), nn.Linear(width, width, options["bias"])

    def weights(self, query, source, visible):
        """[batch, head, query, key]; `visible` [batch or 1, query or 1, key] says which keys a query attends to."""
        q, k = self._heads("w_q", query), self._heads("w_k", source)
        if self.rotates:
            q, k = _rotated(q), _rotated(k)
        scores = q @ k.transpose(2, 3) * self.scale
        if hasattr(self, "positions"):
            scores = scores + self.positions(q.shape[2], k.shape[2])
        return scores.masked_fill(~visible[:, None], -math.inf).softmax(-1)

    def forward(self, query, source, visible):
        mixed = self.weights(query, source, visible) @ self._heads("w_v", source)
        mixed = mixed.transpose(1, 2).flatten(2)
        return self.w_o(mixed) if hasattr(self, "w_o") else mixed

    def _heads(self, projection, x):
        """[batch, head, time, d_k]; heads of queries share those of keys and values where these are fewer."""
        head_width = x.shape[-1] // self.heads
        x = getattr(self, projection)(x) if hasattr(self, projection) else x
        x = x.unflatten(-1, (-1, head_width)).transpose(1, 2)
        return x.repeat_interleave(self.heads // x.shape[1], 1)


class Distances(Module):
    """A bias of the scores for each head and distance of a key from its query, clipped."""

    def __init__(self, options):
        super().__init__()
        self.longest = options["max_distance"]
        self.weight = nn.Parameter(torch.empty(2 * self.longest + 1, options["heads"]))

    def forward(self, queries, keys):
        distance = torch.arange(keys) - torch.arange(keys - queries, keys)[:, None]
        return self.weight[distance.clamp(-self.longest, self.longest) + self.longest].permute(2, 0, 1)


class FeedForward(Module):
    def __init__(self, width, hidden, options):
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(width, hidden, options["bias"]), nn.Linear(hidden, width, options["bias"])
        self.activation = options["activation"]

    def forward(self, x):
        return self.w_2(_activated(self.w_1(x), self.activation))


class OutputTransform(Module):
    """A linear layer, activation and norm before the output layer."""

    def __init__(self, options):
        super().__init__()
        self.linear, self.norm = nn.Linear(options["width"], options["width"], options["bias"]), Norm(options)
        self.activation = options["activation"]

    def forward(self, x):
        return self.norm(_activated(self.linear(x), self.activation))


class Norm(Module):
    """nn.LayerNorm, whose bias may be left out."""

    def __init__(self, options):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(options["width"]))
        self.bias = nn.Parameter(torch.zeros(options["width"])) if options["bias"] else None
        self.epsilon = 1e-12 if options["kind"] == "bert" else 1e-5

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.epsilon)


class Convolution(Module):
    """Convolutions over 3, 4 and 5 tokens side by side, each with relu (Kim 2014)."""

    def __init__(self, width):
        super().__init__()
        self.kernels = nn.ModuleList(nn.Conv1d(width, width * (i + 1) // 3 - width * i // 3, 3 + i) for i in range(3))

    def forward(self, x):
        x = x.transpose(1, 2)
        parts = [kernel(F.pad(x, ((size - 1) // 2, size // 2))) for size, kernel in enumerate(self.kernels, 3)]
        return torch.cat(parts, 1).relu().transpose(1, 2)


def _activated(x, kind):
    if kind.startswith("relu"):
        return F.relu(x).square() if kind == "relu-squared" else F.relu(x)
    return F.gelu(x, approximate="none" if kind == "gelu" else "tanh")


def _rotated(x):
    """Elements i and i + half of each head are a complex number, rotated by position / 10000^(i / half)."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2]).double()[:, None] / 10000**(torch.arange(half).double() / half)
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def _padding(lengths, time):
    return torch.arange(time, device=lengths.device) >= lengths[:, None]


def _causal(ids):
    return torch.ones(1, ids.shape[1], ids.shape[1], device=ids.device).tril().bool()
