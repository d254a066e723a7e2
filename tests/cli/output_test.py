"""What commands print, with which exit code, and how it looks on a terminal of 80 columns.

Usage: output_test.py PROGRAM
"""
import csv
import io
import json
import math
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import CONFIG, PROJECT, ProgramTest

FAILS = """
[[probe]]
name = "never"
sentences = ["money bank grows", "river bank flows"]
word = "bank"
expect = 'contextual_cosine > 1'
"""
SENTENCE = "money bank grows"
TABLES = [  # every command that prints tables, in each of its ways
    ["ablate", "runs/tiny"],
    ["ablate", "runs/tiny", "--together", "0.0,0.1"],
    ["attend", "runs/tiny", "--data", "test.tsv"],
    ["bench", "tiny.toml"],
    ["compare", "variants.toml"],
    ["embed", "runs/tiny", SENTENCE, "river bank flows", "--data", "test.tsv"],
    ["eval", "runs/tiny"],
    ["explain", "runs/tiny", SENTENCE],
    ["find-lr", "tiny.toml"],
    ["fit", "train.tsv", "--time", "2s", "--run"],
    ["gradcheck", "tiny.toml"],
    ["gradients", "runs/tiny", SENTENCE],
    ["gradients", "runs/tiny", "--data", "test.tsv"],
    ["inspect", "runs/tiny"],
    ["inspect", "runs/tiny", "w_q"],
    ["inspect", "runs/tiny", "--diff", "runs/tiny/last.h5"],
    ["linear-probe", "runs/tiny"],
    ["predict", "runs/tiny", SENTENCE],
    ["probe", "probed"],
    ["resume", "probed"],
    ["runs", "runs"],
    ["sweep", "variants.toml"],
    ["train", "variants.toml", "--run"],
    ["verify-resume", "tiny.toml", "--steps", "10", "--kills", "1"],
]
NO_TABLES = {"activations", "export", "generate", "import", "page", "patch", "report", "verify"}
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")


class Formats(ProgramTest):
    def commands(self):
        return re.findall(r"^  ([a-z-]+) +[A-Z]", self.run_qkv("--help").stdout.split("Subcommands:")[1], re.M)

    def test_every_table_that_a_command_prints_is_csv_markdown_and_latex(self):
        self.assertEqual({arguments[0] for arguments in TABLES} | NO_TABLES, set(self.commands()))
        (self.folder / "variants.toml").write_text(CONFIG + FAILS + '[[variant]]\nname = "a"\n[[sweep]]\nmodel.heads = [1, 2]\n')
        self.run_qkv("train", "variants.toml", "--run", "probed", "--set", "train.steps=1")
        for arguments in TABLES:
            run = 0

            def printed(*flags):
                nonlocal run
                run += 1
                folder = [f"{arguments[0]}-{run}"] if arguments[-1] == "--run" else []
                return self.run_qkv(*arguments, *folder, *flags, code=None).stdout

            with self.subTest(arguments):
                lines = printed().splitlines()
                heads = [lines[i - 1].split() for i, line in enumerate(lines) if re.fullmatch("[─ ]+", line) and "─" in line]
                tables = [list(csv.reader(io.StringIO(part))) for part in printed("--csv").split("\n\n")]
                self.assertGreater(len(heads), 0)
                given = [" ".join(rows[0]).split() for rows in tables]
                self.assertEqual([head for head in given if head in heads], heads)
                for rows in tables:
                    self.assertGreater(len(rows), 1)
                    self.assertEqual({len(row) for row in rows}, {len(rows[0])})
                self.assertEqual(len(re.findall(r"^\|(?:---:?\|)+$", printed("--markdown"), re.M)), len(tables))
                self.assertEqual(printed("--latex").count(r"\begin{tabular}{"), len(tables))

    def test_every_command_has_the_flags(self):
        commands = self.commands()
        self.assertLessEqual({"generate", "verify-resume"}, set(commands))
        for command in commands:
            text = self.run_qkv(command, "--help").stdout
            for flag in ("--json", "--csv", "--markdown", "--latex"):
                self.assertIn(flag, text, command)

    def test_the_tables_of_a_result_are_read_by_others(self):
        found = self.json("eval", "runs/tiny")
        result, labels, confusion = (list(csv.reader(io.StringIO(part))) for part in
                                     self.run_qkv("eval", "runs/tiny", "--csv").stdout.split("\n\n"))
        values = dict(zip(*result))
        self.assertEqual((values["data"], values["examples"]), ("test split", str(found["count"])))
        for name in ("loss", "accuracy"):
            self.assertAlmostEqual(float(values[name]), found[name], places=4)
        self.assertEqual([row[0] for row in labels], ["label", "money", "river"])
        self.assertEqual(sum(int(cell) for row in confusion[1:] for cell in row[1:]), found["count"])
        self.assertIn("| label | precision | recall | F1 | examples |\n|---|---:|---:|---:|---:|\n",
                      self.run_qkv("eval", "runs/tiny", "--markdown").stdout)
        self.assertEqual(self.run_qkv("eval", "runs/tiny", "--latex").stdout.count(r"\begin{tabular}{"), 3)

    def test_a_result_without_a_table_says_so(self):
        done = self.run_qkv("verify", "runs/tiny", "--csv")
        self.assertEqual((done.stdout, done.stderr), ("", "this result has no table; --json prints it\n"))

    def test_one_format_at_a_time(self):
        self.assert_refused(["eval", "runs/tiny", "--csv", "--json"], "excludes")

    def test_train_and_resume_report_their_test_on_stdout(self):
        test = self.json("eval", "runs/tiny")
        line = f"test split: {test['count']} examples  loss {test['loss']:.4f}  accuracy {test['accuracy']:.4f}"
        done = self.run_qkv("train", "tiny.toml", "--run", "again")
        self.assertTrue(done.stdout.startswith(line), done.stdout)
        self.assertIn("wrote again\n", done.stderr)
        self.assertTrue(self.run_qkv("resume", "again").stdout.startswith(line))
        for command in (["train", "tiny.toml", "--run", "other"], ["resume", "other"]):
            document = self.json(*command)
            self.assertEqual((document["run"], document["step"], document["test"]), ("other", 40, test))

    def test_report_prints_one_document(self):
        document = self.json("report", "runs/tiny")
        self.assertEqual(document["file"], "runs/tiny/report.html")
        self.assertEqual(document["bytes"], (self.folder / "runs/tiny/report.html").stat().st_size)

    def test_predict_gives_every_label_s_probability_and_the_logits(self):
        (found,) = self.json("predict", "runs/tiny", "money bank grows")["predictions"]
        self.assertEqual(list(found["probabilities"]), ["money", "river"])
        self.assertEqual(found["probabilities"][found["label"]], found["probability"])
        total = sum(map(math.exp, found["logits"]))
        for logit, probability in zip(found["logits"], found["probabilities"].values()):
            self.assertAlmostEqual(math.exp(logit) / total, probability, places=6)

    def test_a_pronoun_s_choices_are_the_sentence_s_words_each_with_a_name_of_its_own(self):
        data = PROJECT / "datasets/pronoun/valid.tsv"
        (self.folder / "p.toml").write_text(
            f'name = "p"\n[task]\nkind = "coreference"\ntrain = "{data}"\n[model]\nwidth = 8\nheads = 2\n[train]\nsteps = 2\n')
        self.run_qkv("train", "p.toml")
        (found,) = self.json("predict", "runs/p", "the fox saw the dog because it ran")["predictions"]
        self.assertEqual(list(found["probabilities"])[:4], ["the (0)", "fox", "saw", "the (3)"])
        self.assertAlmostEqual(sum(found["probabilities"].values()), 1, places=5)
        self.assertIsNone(found["logits"][found["index"]])  # a pronoun does not stand for itself

    def test_embed_writes_the_words_of_a_data_file_without_a_sentence(self):
        lines = (self.folder / "test.tsv").read_text().splitlines()
        done = self.run_qkv("embed", "runs/tiny", "--data", "test.tsv", "--tsv", "v.tsv")
        self.assertEqual(done.stderr, "wrote v.tsv\nwrote v.metadata.tsv\n")
        metadata = [line.split("\t") for line in (self.folder / "v.metadata.tsv").read_text().splitlines()[1:]]
        self.assertEqual(len(metadata), 2 * len(lines))  # static and contextual
        self.assertEqual({row[0] for row in metadata}, {"bank"})
        self.run_qkv("embed", "runs/tiny", "--data", "test.tsv", "--tsv", "v.tsv", "--word", "the")
        metadata = [line.split("\t") for line in (self.folder / "v.metadata.tsv").read_text().splitlines()[1:]]
        self.assertEqual({row[0] for row in metadata}, {"the"})
        self.assert_refused(["embed", "runs/tiny", "--data", "test.tsv", "--tsv", "w.tsv", "--word", "zebra"], "zebra")
        self.assertIn("principal components", self.run_qkv("embed", "runs/tiny", "--data", "test.tsv", "--pca").stdout)

    def test_every_command_that_writes_says_what(self):
        done = self.run_qkv("embed", "runs/tiny", "--word2vec", "v.txt", "--json")
        self.assertEqual(done.stderr, "wrote v.txt\n")
        self.assertEqual(json.loads(done.stdout)["sentences"], [])

    def test_inspect_takes_the_end_of_a_path(self):
        self.run_qkv("train", "tiny.toml", "--run", "deep", "--set", "model.layers=2", "--set", "train.steps=1")
        paths = [p["path"] for p in self.json("inspect", "deep", "w_q")["parameters"]]
        layers = [f"encoder.layers.{i}.attention.w_q." for i in range(2)]
        self.assertEqual(paths, [layer + kind for layer in layers for kind in ("weight", "bias")])
        found = self.json("inspect", "deep", "w_q.weight")
        self.assertEqual([len(p["values"]) for p in found["parameters"]], [8, 8])
        text = self.run_qkv("inspect", "deep", "layers.1.attention.w_q").stdout
        self.assertIn("\nencoder.layers.1.attention.w_q.bias\n", text)
        self.assertNotIn("layers.0", text)
        self.assert_refused(["inspect", "deep", "_q"], "no parameter _q")

    def test_a_long_finding_is_abbreviated_in_the_table_and_whole_in_json(self):
        (self.folder / "p.toml").write_text(CONFIG + f'''
[[probe]]
name = "many"
sentences = {json.dumps(["money bank grows"] * 40)}
word = "bank"
expect = 'label = {json.dumps(["money"] * 40)}'
''')
        self.run_qkv("train", "p.toml", "--run", "p", "--set", "train.steps=1")
        (probe,) = json.loads(self.run_qkv("probe", "p", "--json", code=None).stdout)["probes"]
        self.assertEqual(probe["found"].count(","), 39)
        cell = self.run_qkv("probe", "p", code=None).stdout.splitlines()[-1].split("  ")[-2]
        self.assertEqual((len(cell), cell[:7], cell.count("…")), (72, probe["found"][:7], 1))


class ExitCodes(ProgramTest):
    def test_a_failed_probe_fails_only_a_check(self):
        (self.folder / "p.toml").write_text(CONFIG + FAILS + '[[variant]]\nname = "a"\n')
        for command in (["train", "p.toml", "--run", "p"], ["resume", "p"], ["compare", "p.toml"]):
            done = self.run_qkv(*command, "--json")
            self.assertIn("1 of 1 probes fail; with --check the exit code is 1 then\n", done.stderr)
            self.assertEqual(self.run_qkv(*(["resume", "p"] if command[0] == "train" else command), "--check", code=1).stderr
                             .splitlines()[-1], "1 of 1 probes fail")
            document = json.loads(done.stdout)
            (probe,) = document["variants"][0]["probes"] if command[0] == "compare" else document["probes"]
            self.assertIsInstance(probe["found"], float)
        self.run_qkv("probe", "p", code=1)
        self.run_qkv("train", "tiny.toml", "--run", "new", "--check")

    def test_damage_is_a_failure_and_a_wrong_file_is_wrong_use(self):
        whole = (self.folder / "runs/tiny/best.h5").read_bytes()
        for damaged in (b"", whole[:5], whole[:5000], whole[:-1], whole[:3000] + b"x" + whole[3001:]):
            (self.folder / "d.h5").write_bytes(damaged)
            self.assert_refused(["predict", "d.h5", "money bank grows"], "d.h5: is ", code=1)
            self.run_qkv("verify", "d.h5", code=1)
        self.assert_refused(["predict", "none.h5", "bank"], "none.h5: cannot read")
        self.assert_refused(["predict", "test.tsv", "bank"], "test.tsv: is not a qkv checkpoint")
        self.assert_refused(["verify", "none.h5"], "none.h5: there is no such file")

    def test_a_run_of_damaged_checkpoints_is_a_failure(self):
        for file in (self.folder / "runs/tiny").rglob("*.h5"):
            file.unlink()
            file.write_bytes(b"")
        done = self.run_qkv("resume", "runs/tiny", code=1)
        self.assertIn("runs/tiny holds no valid checkpoint", done.stderr)

    def test_what_cannot_be_written_is_a_failure(self):
        (self.folder / "file").write_text("")
        self.assert_refused(["embed", "runs/tiny", "--word2vec", "none/v.txt"], "none/v.txt: cannot", code=1)
        self.assert_refused(["report", "runs/tiny", "-o", "none/r.html"], "none/r.html: cannot", code=1)
        self.assert_refused(["train", "tiny.toml", "--run", "file/run"], "cannot create the run folder", code=1)


class Terminal(ProgramTest):
    LONG = "the international photographers misunderstood the bank"

    def lines(self, *arguments, **environment):
        """Without what stderr says of unknown words."""
        lines = self.in_terminal(*arguments, **environment).replace("\r", "").splitlines()
        return [line for line in lines if not line.startswith("not in the vocabulary")]

    def test_a_command_that_takes_more_than_a_second_shows_how_far_it_is(self):
        (self.folder / "large.tsv").write_text((self.folder / "test.tsv").read_text() * 800)
        self.assertRegex(self.in_terminal("attend", "runs/tiny", "--data", "large.tsv"), r"attending \d+ %")

    def test_heat_maps_have_no_gaps_beside_long_words(self):
        lines = self.lines("attend", "runs/tiny", self.LONG, "--head", "0", COLORTERM="truecolor")
        plain = [ESCAPE.sub("", line) for line in lines]
        self.assertLessEqual(max(map(len, plain[1:])), 80)
        header, rows = plain[1], lines[2:8]
        self.assertIn("misunderstood", header)
        names = [(m.start(), m.end()) for m in re.finditer(r"\S+", header)]
        for row in rows:
            ends = [m.end() for m in re.finditer(r"\d\.\d\d", ESCAPE.sub("", row))]
            self.assertEqual(ends, [end for _, end in names])  # values stand under the end of their words
            self.assertNotRegex(row, r"\x1b\[0m +\x1b\[48")  # shaded to the edges

    def test_words_too_long_for_the_terminal_are_abbreviated(self):
        lines = self.lines("attend", "runs/tiny", " ".join(["internationalisation"] * 6) + " bank", "--head", "0", NO_COLOR="1")
        self.assertIn("…", lines[1])
        self.assertLessEqual(max(map(len, lines[1:])), 80)
        self.assertRegex(lines[2], r"\d\.\d\d")  # still with two digits under named columns

    def test_the_asked_word_is_marked(self):
        self.assertIn("[bank]", self.run_qkv("attend", "runs/tiny", "money bank grows").stdout)
        self.assertIn("[bank]", self.run_qkv("gradients", "runs/tiny", "money bank grows").stdout)
        text = self.run_qkv("explain", "runs/tiny", "money bank grows", "--word", "grows").stdout
        self.assertIn("[grows]", text)
        self.assertNotIn("[bank]", text)

    def test_nothing_is_not_shaded_and_zero_is_grey(self):
        sentence = "money bank grows"
        self.run_qkv("train", "tiny.toml", "--run", "sharp", "--set", "optimizer.lr=0.05")
        text = self.in_terminal("attend", "sharp", sentence, COLORTERM="truecolor")
        shades = sorted((float(value), [int(part) for part in shade.split(";")]) for shade, value in
                        re.findall(r"\x1b\[48;2;(\d+;\d+;\d+);38;5;\d+m *(\d\.\d\d) ", text))
        self.assertGreaterEqual(shades[0][0], 0.02)
        colourfulness = [max(shade) - min(shade) for _, shade in shades]
        for before, now in zip(colourfulness, colourfulness[1:]):  # values are rounded
            self.assertGreaterEqual(now, before - 5)
        self.assertGreater(len(set(colourfulness)), 2)
        zeros = self.in_terminal("inspect", "runs/tiny", "encoder.norm.bias", COLORTERM="truecolor")
        self.assertNotIn("247;247;247", zeros)

    def test_tables_keep_within_eighty_columns(self):
        for command in (["inspect", "runs/tiny"], ["attend", "runs/tiny", "--data", "test.tsv"], ["embed", "runs/tiny",
                        "at the bank nobody bought shares but the clerk skimmed stones", "money bank grows"],
                        ["predict", "runs/tiny", "at the bank nobody bought shares but the clerk skimmed stones again and again bank"],
                        ["gradients", "runs/tiny", "money bank grows"], ["eval", "runs/tiny"]):
            with self.subTest(command[0]):
                lines = self.lines(*command, NO_COLOR="1")
                self.assertLessEqual(max(map(len, lines)), 80, lines)
                piped = self.run_qkv(*command).stdout
                self.assertNotIn("…", piped)  # a pipe gets everything

    def test_text_is_flush_left_and_numbers_flush_right(self):
        lines = self.run_qkv("predict", "runs/tiny", "money bank grows", "river bank flows fast").stdout.splitlines()
        self.assertRegex(lines[2], r"^money bank grows {7}bank  (money|river) +0\.\d{4}  \d of 3$")
        self.assertRegex(lines[0], r"^text +word  answer  probability  unknown$")

    def test_explain_shows_one_layer_or_head(self):
        self.run_qkv("train", "tiny.toml", "--run", "deep", "--set", "model.layers=2", "--set", "train.steps=1")
        text = self.run_qkv("explain", "deep", "money bank grows", "--layer", "1", "--head", "0").stdout
        self.assertIn("layers.1", text)
        self.assertIn("head 0 of 2", text)
        for part in ("layers.0", "head 1 of 2", "prediction", "feed-forward"):
            self.assertNotIn(part, text)
        text = self.run_qkv("explain", "deep", "money bank grows", "--layer", "0").stdout
        self.assertIn("head 1 of 2", text)
        self.assertIn("feed-forward", text)
        self.assertNotIn("layers.1", text)
        self.assert_refused(["explain", "deep", "money bank grows", "--layer", "2"], "--layer 2")
        self.assert_refused(["explain", "deep", "money bank grows", "--head", "2"], "--head 2")

    def test_spaces_of_character_models_are_visible(self):
        (self.folder / "text.txt").write_text("to be or not\n" * 40)
        (self.folder / "c.toml").write_text(
            'name = "c"\n[task]\nkind = "language-model"\ntrain = "text.txt"\n[model]\nkind = "decoder"\nwidth = 8\nheads = 2\n'
            "max_length = 16\n[train]\nsteps = 2\n")
        self.run_qkv("train", "c.toml")
        text = self.run_qkv("attend", "runs/c", "o b\n", "--head", "0", "--layer", "0").stdout
        rows = [line.split()[0] for line in text.splitlines()[2:6]]
        self.assertEqual(rows, ["o", "·", "b", "[↵]"])
        self.assertIn("0 ·", self.run_qkv("explain", "runs/c", " b").stdout)


if __name__ == "__main__":
    unittest.main()
