"""ablate, patch, and the logit lens and attribution of explain against the same computations by forward hooks in PyTorch.

Usage: causes_test.py PROGRAM

Every number must agree within 1e-4. Exits with 77 where PyTorch is not installed.
"""
import itertools
import pathlib
import sys
import unittest

try:
    import h5py
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as error:
    print(f"skipped: the comparison needs h5py and PyTorch ({error})")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import PROJECT, ProgramTest, qkv

TOLERANCE = 1e-4
WIDTH, HEADS, LAYERS = 8, 2, 2
# Cases: the options of a model, the task's data, and two texts with different answers.
MODELS = {
    "an encoder": ("sequences/induction", ["model.norm=pre"]),
    "norms after the residual sum": ("sequences/induction", ["model.norm=post", "model.position=learned"]),
    "no norms": ("sequences/induction", ["model.norm=none", "model.feed_forward=0"]),
    "uniform attention": ("sequences/induction", ["model.attention=uniform", "model.kv_heads=2", "model.bias=false"]),
    "a decoder": ("sentiment", ["task.kind=classify", "model.kind=decoder", "model.position=learned",
                                                                    "train.steps=600"]),
    "the mean over all words": ("sentiment", ["task.kind=classify", "train.steps=600"]),
}
worst = {}
torch.set_grad_enabled(False)


def sinusoidal(time):
    angles = torch.arange(time)[:, None] / 10000**(2 * (torch.arange(WIDTH) // 2) / WIDTH)
    return torch.where(torch.arange(WIDTH) % 2 == 1, angles.cos(), angles.sin())


class Affine(nn.Module):
    def __init__(self, parameters, path):
        super().__init__()
        self.weight, self.bias = parameters[path + ".weight"], parameters.get(path + ".bias")

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class Norm(Affine):
    def forward(self, x):
        return F.layer_norm(x, (WIDTH,), self.weight, self.bias)


class Attention(nn.Module):
    """`heads` is where hooks find the heads' weighted sums side by side."""

    def __init__(self, parameters, path, causal):
        super().__init__()
        self.w = nn.ModuleDict({n: Affine(parameters, f"{path}.w_{n}") for n in "qkvo"
                                if f"{path}.w_{n}.weight" in parameters})
        self.heads, self.causal = nn.Identity(), causal

    def forward(self, x):
        def split(y):
            return y.unflatten(-1, (HEADS, -1)).transpose(0, 1)

        scores = x.new_zeros(HEADS, len(x), len(x))
        if "q" in self.w:
            scores = split(self.w["q"](x)) @ split(self.w["k"](x)).mT / (WIDTH / HEADS)**0.5
        if self.causal:
            scores = scores.masked_fill(torch.ones(len(x), len(x)).triu(1).bool(), -torch.inf)
        return self.w["o"](self.heads((scores.softmax(-1) @ split(self.w["v"](x))).transpose(0, 1).flatten(1)))


class FeedForward(nn.Module):
    def __init__(self, parameters, path):
        super().__init__()
        self.w_1, self.w_2 = (Affine(parameters, f"{path}.w_{i}") for i in (1, 2))

    def forward(self, x):
        return self.w_2(F.gelu(self.w_1(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, parameters, path, kind, causal):
        super().__init__()
        self.kind, self.attention = kind, Attention(parameters, path + ".attention", causal)
        self.parts = nn.ModuleList([self.attention])
        if path + ".feed_forward.w_1.weight" in parameters:
            self.feed_forward = FeedForward(parameters, path + ".feed_forward")
            self.parts.append(self.feed_forward)
        self.norms = nn.ModuleList([Norm(parameters, f"{path}.norm_{i + 1}") if kind != "none" else nn.Identity()
                                    for i in range(len(self.parts))])

    def forward(self, x):
        for norm, part in zip(self.norms, self.parts):
            x = norm(x + part(x)) if self.kind == "post" else x + part(norm(x))
        return x


class Twin(nn.Module):
    """The model of a checkpoint, for one sentence at a time: ids [T] -> the contextual vectors [T, D]."""

    def __init__(self, file, changes):
        super().__init__()
        self.p = {}
        with h5py.File(file) as checkpoint:
            checkpoint["model"].visititems(
                lambda name, item: self.p.update({name.replace("/", "."): torch.from_numpy(item[()])})
                if isinstance(item, h5py.Dataset) else None)
            tokens, labels = (checkpoint["vocabulary"][name][()].tolist() for name in ("tokens", "labels"))
        self.ids = {token.decode().rstrip("\0"): i for i, token in enumerate(tokens)}
        self.labels = [label.decode().rstrip("\0") for label in labels]
        options = dict(change.removeprefix("model.").split("=") for change in changes)
        kind, self.pools = options.get("norm", "pre"), options.get("task.kind") == "classify"
        stack = options.get("kind", "encoder")
        self.input = nn.Identity()
        self.blocks = nn.ModuleList([Block(self.p, f"{stack}.layers.{i}", kind, stack == "decoder")
                                     for i in range(LAYERS)])
        self.norm = Norm(self.p, f"{stack}.norm") if kind == "pre" else nn.Identity()
        self.head = Affine(self.p, "head")

    def embedded(self, sentence):
        """Embeddings and positions."""
        e = self.p["embedding.weight"][[self.ids.get(word, 1) for word in sentence.split()]]
        return e, self.p["positions.weight"][:len(e)] if "positions.weight" in self.p else sinusoidal(len(e))

    def last(self, sentence):
        e, position = self.embedded(sentence)
        x = self.input(e + position)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def read_out(self, y, index):
        return y.mean(0) if self.pools else y[index]

    def forward(self, sentence, index):
        return self.head(self.read_out(self.last(sentence), index))

    def parts(self):
        """id -> the module whose output is a component's, and the columns of it."""
        part = WIDTH // HEADS
        for i, block in enumerate(self.blocks):
            for h in range(HEADS):
                yield f"{i}.{h}", block.attention.heads, slice(h * part, (h + 1) * part)
            if hasattr(block, "feed_forward"):
                yield f"{i}.ff", block.feed_forward, slice(0, WIDTH)

    def seen(self, module, sentence, index):
        """What a module gives for a sentence."""
        outputs = []
        handle = module.register_forward_hook(lambda _, __, output: outputs.append(output.clone()))
        self(sentence, index)
        handle.remove()
        return outputs[0]

    def replaced(self, module, value, columns=slice(0, WIDTH), positions=slice(None)):
        """A hook that replaces a part of a module's output by that of `value`."""
        def hook(_, __, output):
            output = output.clone()
            output[positions, columns] = value[positions, columns]
            return output
        return module.register_forward_hook(hook)


class Causes(ProgramTest):
    def agree(self, what, found, expected):
        difference = (torch.as_tensor(found, dtype=torch.float64) - torch.as_tensor(expected, dtype=torch.float64)).abs().max()
        worst[what] = max(worst.get(what, 0), float(difference))
        self.assertLess(float(difference), TOLERANCE, f"{self.name}: {what}")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = pathlib.Path(cls.template.name)
        for name, (data, changes) in MODELS.items():
            sets = [f"task.{split}={PROJECT}/datasets/{data}/{split}.tsv" for split in ("train", "valid")]
            sets += ["task.test=", f"model.layers={LAYERS}", "model.dropout=0", "model.max_length=64", "train.steps=100",
                     "train.eval_every=100", "optimizer.lr=0.005", *changes]
            done = qkv("train", "tiny.toml", "--run", name, "--threads", 1,
                       *(part for change in sets for part in ("--set", change)), cwd=folder)
            assert done.returncode == 0, done.stderr

    def each_model(self):
        for name, (data, changes) in MODELS.items():
            lines = (PROJECT / f"datasets/{data}/test.tsv").read_text().splitlines()[:40]
            (self.folder / "some.tsv").write_text("\n".join(lines) + "\n")
            rows = [line.split("\t") for line in lines]
            self.name = name
            yield Twin(self.folder / name / "best.h5", changes), name, [
                (row[0], int(row[1]) if len(row) > 2 else 0, row[-1]) for row in rows]

    def test_ablate_is_what_hooks_give(self):
        for twin, run, examples in self.each_model():
            def measured():
                logits = torch.stack([twin(text, index) for _, index, text in examples])
                answers = torch.tensor([twin.labels.index(label) for label, _, _ in examples])
                return (F.cross_entropy(logits, answers).item(),
                        (logits.argmax(-1) == answers).float().mean().item())

            found = self.json("ablate", run, "--data", "some.tsv", "--together", "0.0,1.1")
            self.agree("loss", found["whole"]["loss"], measured()[0])
            parts = {id: (module, columns) for id, module, columns in twin.parts()}
            means = {id: torch.cat([twin.seen(module, text, index) for _, index, text in examples]).mean(0, keepdim=True)
                     for id, (module, _) in parts.items()}
            self.assertEqual({c["id"] for c in found["components"]}, set(parts))
            for component in [*found["components"], *found["together"]]:
                ids = component.get("components", [component.get("id")])
                for kind in ("zero", "mean"):
                    values = {id: means[id] if kind == "mean" else torch.zeros(1, WIDTH) for id in ids}
                    handles = [twin.replaced(parts[id][0], value, parts[id][1]) for id, value in values.items()]
                    loss, accuracy = measured()
                    for handle in handles:
                        handle.remove()
                    self.agree("ablate", component[kind]["loss"], loss)
                    self.agree("ablate", component[kind]["accuracy"], accuracy)

    @staticmethod
    def pair(twin, examples):
        """The two texts of one length, asked about their first words, whose logits differ most."""
        logits = {text: twin(text, 0) for _, _, text in examples}

        def distance(texts):
            a, b = (logits[text] for text in texts)
            i, j = a.argmax(), b.argmax()
            return a[i] - a[j] - b[i] + b[j]

        return max((texts for texts in itertools.combinations(logits, 2) if len({len(t.split()) for t in texts}) == 1),
                   key=distance)

    def test_patch_is_what_hooks_give(self):
        for twin, run, examples in self.each_model():
            clean, corrupt = self.pair(twin, examples)
            found = self.json("patch", run, clean, corrupt)
            a, b = twin(clean, 0).argmax(), twin(corrupt, 0).argmax()

            def difference(logits):
                return (logits[a] - logits[b]).item()

            ends = difference(twin(clean, 0)), difference(twin(corrupt, 0))
            self.agree("patch", list(found["logit_difference"].values()), ends)
            part = WIDTH // HEADS
            modules = {"residual": [(module, slice(0, WIDTH)) for module in (twin.input, *twin.blocks)],
                       "attention": [(block.attention, slice(0, WIDTH)) for block in twin.blocks],
                       "feed_forward": [(block.feed_forward, slice(0, WIDTH)) for block in twin.blocks
                                        if hasattr(block, "feed_forward")],
                       "heads": [(block.attention.heads, slice(h * part, (h + 1) * part))
                                 for block in twin.blocks for h in range(HEADS)]}
            for name, rows in modules.items():
                self.assertEqual(len(found[name]), len(rows))
                for row, (module, columns) in zip(found[name], rows):
                    value = twin.seen(module, clean, 0)
                    time = len(clean.split())
                    expected = []
                    for positions in [*(slice(t, t + 1) for t in range(time)), slice(None)]:
                        handle = twin.replaced(module, value, columns, positions)
                        expected.append((difference(twin(corrupt, 0)) - ends[1]) / (ends[0] - ends[1]))
                        handle.remove()
                    self.agree("patch", [*row["positions"], row["all"]], expected)

    def test_the_logit_lens_is_the_output_layer_on_every_residual_state(self):
        for twin, run, examples in self.each_model():
            text = examples[0][-1]
            found = self.json("explain", run, text, "--word", text.split()[0])["logit_lens"]
            self.assertEqual([state["after"] for state in found], ["input", "layer 0", "layer 1"])
            for state, module in zip(found, (twin.input, *twin.blocks)):
                seen = twin.seen(module, text, 0)
                self.agree("lens", state["logits"], twin.head(twin.read_out(twin.norm(seen), 0)))

    def test_the_attribution_is_the_decomposition_that_hooks_give_and_sums_to_the_logit(self):
        for twin, run, examples in self.each_model():
            text = examples[0][-1]
            found = self.json("explain", run, text, "--word", text.split()[0])
            attribution = found["attribution"]
            answer, other = (found["labels"].index(attribution[name]) for name in ("answer", "runner_up"))
            self.assertEqual(answer, max(range(len(found["logits"])), key=found["logits"].__getitem__))
            parts = {part["component"]["id"] if "component" in part else part["label"]: part for part in attribution["parts"]}
            self.agree("sum of attributions", sum(part["logit"] for part in parts.values()), found["logits"][answer])
            self.agree("sum of attributions", sum(part["difference"] for part in parts.values()),
                       found["logits"][answer] - found["logits"][other])
            terms = self.terms(twin, text)
            self.assertEqual(set(parts), set(terms) | {"output layer, bias"} | {p for p in parts if "bias" in p})
            for id, value in terms.items():
                logits = F.linear(twin.read_out(value, 0), twin.head.weight)
                self.agree("attribution", parts[id]["logit"], logits[answer])
                self.agree("attribution", parts[id]["difference"], logits[answer] - logits[other])

    @staticmethod
    def terms(twin, text):
        """What the embedding, the positions and each component add to the contextual vectors: through each later norm,
        whose standard deviation stays that of the whole stream."""
        def through(norm, whole):
            if not isinstance(norm, Norm):
                return
            deviation = (whole.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
            for id, x in terms.items():
                terms[id] = (x - x.mean(-1, keepdim=True)) / deviation * norm.weight

        e, position = twin.embedded(text)
        terms = {"embedding": e, "position": position}
        part = WIDTH // HEADS
        x = e + position
        for i, block in enumerate(twin.blocks):
            post = block.kind == "post"
            z = twin.seen(block.attention.heads, text, 0)
            for h in range(HEADS):
                columns = slice(h * part, (h + 1) * part)
                terms[f"{i}.{h}"] = z[:, columns] @ block.attention.w["o"].weight[:, columns].T
            x = x + twin.seen(block.attention, text, 0)
            if post:
                through(block.norms[0], x)
                x = block.norms[0](x)
            if not hasattr(block, "feed_forward"):
                continue
            terms[f"{i}.ff"] = twin.seen(block.feed_forward, text, 0)
            x = x + terms[f"{i}.ff"]
            if post:
                through(block.norms[1], x)
                x = block.norms[1](x)
        through(twin.norm, x)
        return terms

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        print("worst differences from PyTorch:", ", ".join(f"{what} {value:.1e}" for what, value in sorted(worst.items())))


if __name__ == "__main__":
    unittest.main()
