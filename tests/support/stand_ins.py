"""Small data in place of those that configs/ leave to the user."""
import pathlib

PROJECT = pathlib.Path(__file__).parents[2]
SENTENCES = 60


def write_stand_ins(folder):
    """Writes into a folder shakespeare.txt, the word "apple" as `script/coarsewsd` converts it, vectors as `qkv embed` would have written them,
    and the 400 sentences of finetune.toml."""
    (folder / "shakespeare.txt").write_text("ROMEO: to be, or not to be.\n" * 100)
    apple = folder / "apple"
    apple.mkdir(parents=True)
    for split in ("train", "test"):
        (apple / f"{split}.tsv").write_text("".join(f"{line}\n" for line in lines_of("apple", split)[:SENTENCES]))
    runs = folder / "runs"
    runs.mkdir(exist_ok=True)
    bank = lines_of("bank", "train")[:400]
    (runs / "bank-400.tsv").write_text("".join(f"{line}\n" for line in bank))
    words = sorted({word for line in bank for word in line.split("\t")[2].split()})
    for name in ("word2vec", "glove"):
        (runs / f"{name}.txt").write_text("".join(f"{word}{' 0.5' * 32}\n" for word in words))


def write_reviews(folder):
    """Writes into a folder reviews.csv, 300 lines of label,text under a header."""
    reviews = [line.split("\t") for line in lines_of("sentiment", "train")[:300]]
    (folder / "reviews.csv").write_text("label,text\n" + "".join(f'{label},"{text}"\n' for label, text in reviews))
    return reviews


def lines_of(data, split):
    return (PROJECT / f"datasets/{data}/{split}.tsv").read_text().splitlines()


# The options of a config that name what the user brings.
GIVEN = {"shakespeare": ["--set", "task.data=shakespeare.txt"], "coarsewsd": [part for split in ("train", "test") for part in ("--set", f"task.{split}=apple/{split}.tsv")]}
