"""Small BERTs and GPT-2s in PyTorch, written from their papers, with the parameter names and configs of Hugging Face's folders."""
import json
import re
import struct

import tokenizers
import torch
from torch.nn import functional as F

WIDTH, HEADS, LAYERS, HIDDEN, LONGEST = 12, 3, 2, 20, 32
BERT_CONFIG = {"model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
               "intermediate_size": HIDDEN, "max_position_embeddings": LONGEST, "type_vocab_size": 2, "hidden_act": "gelu",
               "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
GPT2_CONFIG = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS,
               "n_inner": HIDDEN, "n_positions": LONGEST, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
               "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}


def write_safetensors(file, tensors):
    """Writes tensors by name as float32 in the safetensors format."""
    header, data = {}, b""
    for name, value in tensors.items():
        values = value.numpy().astype("<f4")
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def drawn(shapes, seed=3):
    """Parameters around 0, of norms around 1, large enough that each matters; with this seed the classifier gives both labels."""
    generator = torch.Generator().manual_seed(seed)
    is_gain = lambda name: re.search(r"(LayerNorm|ln_\w)\.weight$", name)
    return {name: torch.randn(shape, generator=generator) * 0.4 + (1 if is_gain(name) else 0) for name, shape in shapes.items()}


def bert_shapes(rows, labels=0, masked=False):
    shapes = {"embeddings.word_embeddings.weight": (rows, WIDTH), "embeddings.position_embeddings.weight": (LONGEST, WIDTH),
              "embeddings.token_type_embeddings.weight": (2, WIDTH), "embeddings.LayerNorm.weight": (WIDTH,),
              "embeddings.LayerNorm.bias": (WIDTH,), "pooler.dense.weight": (WIDTH, WIDTH), "pooler.dense.bias": (WIDTH,)}
    for i in range(LAYERS):
        for name, out, inputs in (("attention.self.query", WIDTH, WIDTH), ("attention.self.key", WIDTH, WIDTH),
                                  ("attention.self.value", WIDTH, WIDTH), ("attention.output.dense", WIDTH, WIDTH),
                                  ("intermediate.dense", HIDDEN, WIDTH), ("output.dense", WIDTH, HIDDEN)):
            shapes |= {f"encoder.layer.{i}.{name}.weight": (out, inputs), f"encoder.layer.{i}.{name}.bias": (out,)}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"encoder.layer.{i}.{name}.{part}": (WIDTH,) for part in ("weight", "bias")}
    shapes = {"bert." + name: shape for name, shape in shapes.items()}
    if labels:
        shapes |= {"classifier.weight": (labels, WIDTH), "classifier.bias": (labels,)}
    if masked:
        shapes |= {"cls.predictions.bias": (rows,), "cls.predictions.transform.dense.weight": (WIDTH, WIDTH),
                   **{f"cls.predictions.transform.{name}": (WIDTH,) for name in ("dense.bias", "LayerNorm.weight", "LayerNorm.bias")}}
    return shapes


def gpt2_shapes(rows):
    shapes = {"wte.weight": (rows, WIDTH), "wpe.weight": (LONGEST, WIDTH), "ln_f.weight": (WIDTH,), "ln_f.bias": (WIDTH,)}
    for i in range(LAYERS):
        for name, inputs, out in (("attn.c_attn", WIDTH, 3 * WIDTH), ("attn.c_proj", WIDTH, WIDTH),
                                  ("mlp.c_fc", WIDTH, HIDDEN), ("mlp.c_proj", HIDDEN, WIDTH)):
            shapes |= {f"h.{i}.{name}.weight": (inputs, out), f"h.{i}.{name}.bias": (out,)}
        shapes |= {f"h.{i}.{name}.{part}": (WIDTH,) for name in ("ln_1", "ln_2") for part in ("weight", "bias")}
    return {"transformer." + name: shape for name, shape in shapes.items()}


def write_bert(folder, vocabulary, architecture, shapes, **options):
    """Writes a folder as Hugging Face's of drawn parameters, which are returned; `options` are those of config.json besides."""
    folder.mkdir()
    parameters = drawn(shapes)
    write_safetensors(folder / "model.safetensors", parameters)
    (folder / "config.json").write_text(json.dumps({**BERT_CONFIG, "architectures": [architecture], **options}))
    (folder / "vocab.txt").write_text("".join(token + "\n" for token in vocabulary))
    return parameters


def write_gpt2(folder, merges):
    """Writes a folder as `write_bert`, with tokens of bytes and of `merges`; returns the parameters and the tokens."""
    tokens = [*tokenizers.byte_alphabet().values(), *("".join(pair) for pair in merges), "<|endoftext|>"]
    folder.mkdir()
    parameters = drawn(gpt2_shapes(len(tokens)))
    write_safetensors(folder / "model.safetensors", parameters)
    (folder / "config.json").write_text(json.dumps(GPT2_CONFIG))
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(" ".join(pair) + "\n" for pair in merges))
    return parameters, tokens


def attention(q, k, v, visible):
    split = lambda x: x.unflatten(-1, (HEADS, -1)).transpose(0, 1)
    weights = (split(q) @ split(k).transpose(1, 2) / (WIDTH // HEADS)**0.5).masked_fill(~visible, -torch.inf).softmax(-1)
    return (weights @ split(v)).transpose(0, 1).flatten(1), weights


def norm(p, name, x, epsilon):
    return F.layer_norm(x, (WIDTH,), p[name + ".weight"], p[name + ".bias"], epsilon)


def bert(p, ids, activation=F.gelu):
    """The vectors [time, width] and attentions of one sequence (Devlin et al. 2019)."""
    p = {name.removeprefix("bert."): value for name, value in p.items()}
    dense = lambda name, x: F.linear(x, p[name + ".weight"], p[name + ".bias"])
    x = p["embeddings.word_embeddings.weight"][ids] + p["embeddings.position_embeddings.weight"][:len(ids)]
    x = norm(p, "embeddings.LayerNorm", x + p["embeddings.token_type_embeddings.weight"][0], 1e-12)
    found = []
    for i in range(LAYERS):
        at = f"encoder.layer.{i}."
        parts = [dense(f"{at}attention.self.{name}", x) for name in ("query", "key", "value")]
        mixed, weights = attention(*parts, torch.ones(len(ids), len(ids), dtype=torch.bool))
        found.append(weights)
        x = norm(p, at + "attention.output.LayerNorm", x + dense(at + "attention.output.dense", mixed), 1e-12)
        x = norm(p, at + "output.LayerNorm", x + dense(at + "output.dense", activation(dense(at + "intermediate.dense", x))), 1e-12)
    return x, found


def classified(p, ids, activation=F.gelu):
    x, found = bert(p, ids, activation)
    pooled = F.linear(x[0], p["bert.pooler.dense.weight"], p["bert.pooler.dense.bias"]).tanh()
    return F.linear(pooled, p["classifier.weight"], p["classifier.bias"]), found


def masked_logits(p, ids):
    x, found = bert(p, ids)
    name = "cls.predictions."
    x = F.gelu(F.linear(x, p[name + "transform.dense.weight"], p[name + "transform.dense.bias"]))
    x = norm(p, name + "transform.LayerNorm", x, 1e-12)
    return F.linear(x, p["bert.embeddings.word_embeddings.weight"], p[name + "bias"]), found


def gpt2(p, ids):
    """The logits [time, token] and attentions of one sequence (Radford et al. 2019)."""
    p = {name.removeprefix("transformer."): value for name, value in p.items()}
    dense = lambda name, x: x @ p[name + ".weight"] + p[name + ".bias"]
    x, found = p["wte.weight"][ids] + p["wpe.weight"][:len(ids)], []
    for i in range(LAYERS):
        at = f"h.{i}."
        q, k, v = dense(at + "attn.c_attn", norm(p, at + "ln_1", x, 1e-5)).chunk(3, -1)
        mixed, weights = attention(q, k, v, torch.ones(len(ids), len(ids)).tril().bool())
        found.append(weights)
        x = x + dense(at + "attn.c_proj", mixed)
        h = F.gelu(dense(at + "mlp.c_fc", norm(p, at + "ln_2", x, 1e-5)), approximate="tanh")
        x = x + dense(at + "mlp.c_proj", h)
    return F.linear(norm(p, "ln_f", x, 1e-5), p["wte.weight"]), found


def bert_gradients(parameters, ids, label, rows):
    """Gradients of the cross entropy of a sequence's label, by qkv's parameter paths.

    `rows`: the lines of the vocabulary in the order of the run's embeddings.
    """
    p = {name: value.clone().requires_grad_() for name, value in parameters.items()}
    F.cross_entropy(classified(p, ids)[0][None], torch.tensor([label])).backward()
    g = {name.removeprefix("bert."): value.grad for name, value in p.items()}
    expected = {"embedding.weight": g["embeddings.word_embeddings.weight"][rows],
                "positions.weight": g["embeddings.position_embeddings.weight"],
                "token_types.weight": g["embeddings.token_type_embeddings.weight"]}
    layers = {"input_norm": "embeddings.LayerNorm", "pooler": "pooler.dense", "head": "classifier"}
    for i in range(LAYERS):
        parts = {"attention.w_q": "attention.self.query", "attention.w_k": "attention.self.key", "attention.w_v": "attention.self.value",
                 "attention.w_o": "attention.output.dense", "norm_1": "attention.output.LayerNorm",
                 "feed_forward.w_1": "intermediate.dense", "feed_forward.w_2": "output.dense", "norm_2": "output.LayerNorm"}
        layers |= {f"encoder.layers.{i}.{ours}": f"encoder.layer.{i}.{theirs}" for ours, theirs in parts.items()}
    return expected | {f"{ours}.{part}": g[f"{theirs}.{part}"] for ours, theirs in layers.items() for part in ("weight", "bias")}


def gpt2_gradients(parameters, ids):
    """Gradients of the mean cross entropy of a sequence's next tokens, by qkv's parameter paths."""
    p = {name: value.clone().requires_grad_() for name, value in parameters.items()}
    F.cross_entropy(gpt2(p, ids[:-1])[0], ids[1:]).backward()
    g = {name.removeprefix("transformer."): value.grad for name, value in p.items()}
    expected = {"embedding.weight": g["wte.weight"], "positions.weight": g["wpe.weight"],
                "decoder.norm.weight": g["ln_f.weight"], "decoder.norm.bias": g["ln_f.bias"]}
    for i in range(LAYERS):
        ours, theirs = f"decoder.layers.{i}.", f"h.{i}."
        for part in ("weight", "bias"):
            for name, gradient in zip("qkv", g[f"{theirs}attn.c_attn.{part}"].chunk(3, -1)):
                expected[f"{ours}attention.w_{name}.{part}"] = gradient.T if part == "weight" else gradient
            for a, b in (("attention.w_o", "attn.c_proj"), ("feed_forward.w_1", "mlp.c_fc"), ("feed_forward.w_2", "mlp.c_proj")):
                gradient = g[f"{theirs}{b}.{part}"]
                expected[f"{ours}{a}.{part}"] = gradient.T if part == "weight" else gradient
            expected |= {f"{ours}norm_{k}.{part}": g[f"{theirs}ln_{k}.{part}"] for k in (1, 2)}
    return expected
