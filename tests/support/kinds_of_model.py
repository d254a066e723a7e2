"""The kinds of model in configs/ and in other_kinds.toml, and texts for them."""
import pathlib
import tomllib

SENTENCES = 6
# Options that change the computation; sizes and data do not.
OPTIONS = ["kind", "attention", "position", "norm", "scale", "tied", "bias", "cell", "bidirectional", "embedding", "kv_heads",
           "activation"]
PROJECT = pathlib.Path(__file__).parents[2]
CONFIGS = [*sorted((PROJECT / "configs").glob("*.toml")), PROJECT / "tests/support/other_kinds.toml"]


def variants(config):
    """The names of a config's variants, "" where it has none, with what tells their kinds apart."""
    base = tomllib.loads(config.read_text())
    for variant in base.get("variant", [{}]):
        task, model = ({**base.get(table, {}), **variant.get(table, {})} for table in ("task", "model"))
        yield variant.get("name", ""), (task.get("kind", "word-sense"), task.get("objective"), min(model.get("heads", 4), 2),
                                        *(model.get(name) for name in OPTIONS))


def texts_of(task):
    """Some texts as the task's data have them, of different lengths."""
    if task["kind"] == "language-model":
        return [pathlib.Path(task["data"]).read_text()[i:i + 8 + 3 * i] for i in range(SENTENCES)]
    if task["kind"] == "tagging":
        blocks = pathlib.Path(task["train"]).read_text().split("\n\n")
        lines = [" ".join(line.split()[0] for line in block.splitlines() if line) for block in blocks]
    else:
        lines = pathlib.Path(task["train"]).read_text().splitlines()
    if task["kind"] == "translate":
        return lines[:SENTENCES]
    header = lines[0].split("\t")
    column = header.index("sentence") if "sentence" in header else -1
    if column >= 0:
        del lines[0]
    texts = [line.split("\t")[column] for line in lines[:50 * SENTENCES:50] + lines[:SENTENCES] if line][:SENTENCES]
    return [masked(text) for text in texts] if task["kind"] == "masked-language-model" else texts


def masked(text):
    """The text with its second word, and every third after it, to be predicted."""
    return " ".join("[MASK]" if i % 3 == 1 else word for i, word in enumerate(text.split()))
