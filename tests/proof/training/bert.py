"""A small BERT of random parameters, in Hugging Face's files."""
import json
import random
import struct

WIDTH, HIDDEN, HEADS, LONGEST = 12, 16, 2, 16
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CONFIG = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": WIDTH, "num_hidden_layers": 1,
          "num_attention_heads": HEADS, "intermediate_size": HIDDEN, "max_position_embeddings": LONGEST, "type_vocab_size": 2,
          "hidden_act": "gelu", "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
# Its options in a config.
MODEL = {"model.kind": "bert", "model.width": WIDTH, "model.layers": 1, "model.heads": HEADS, "model.feed_forward": HIDDEN,
         "model.max_length": LONGEST, "model.position": "learned", "model.norm": "post",
         "model.activation": "gelu", "task.tokenizer": "wordpiece"}


def write_bert(folder, words):
    """One layer, whose vocabulary has the words."""
    folder.mkdir(parents=True)
    vocabulary = SPECIAL + words
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    write_safetensors(folder / "model.safetensors", shapes(len(vocabulary)))


def shapes(vocabulary):
    norms = ("embeddings", "encoder.layer.0.attention.output", "encoder.layer.0.output")
    found = {"embeddings.word_embeddings.weight": (vocabulary, WIDTH), "pooler.dense.weight": (WIDTH, WIDTH),
             "embeddings.position_embeddings.weight": (LONGEST, WIDTH), "pooler.dense.bias": (WIDTH,),
             "embeddings.token_type_embeddings.weight": (2, WIDTH)}
    for name in norms:
        found |= {f"{name}.LayerNorm.weight": (WIDTH,), f"{name}.LayerNorm.bias": (WIDTH,)}
    square = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
    for name, out, inputs in [*((name, WIDTH, WIDTH) for name in square), ("intermediate.dense", HIDDEN, WIDTH),
                              ("output.dense", WIDTH, HIDDEN)]:
        found |= {f"encoder.layer.0.{name}.weight": (out, inputs), f"encoder.layer.0.{name}.bias": (out,)}
    return found


def write_safetensors(file, shapes):
    """Random tensors of the shapes, gains around 1."""
    chooser = random.Random(0)
    header, data = {}, b""
    for name, shape in shapes.items():
        size = shape[0] * (shape[1] if len(shape) > 1 else 1)
        mean = 1 if name.endswith("LayerNorm.weight") else 0
        values = struct.pack(f"<{size}f", *(chooser.gauss(mean, 0.3) for _ in range(size)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)
