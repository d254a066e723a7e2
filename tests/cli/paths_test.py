"""From where files are found, and what data files of users may look like.

Usage: paths_test.py PROGRAM
"""
import base64
import gzip
import json
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import CONFIG, ProgramTest, qkv


class Paths(ProgramTest):
    def at(self, folder, *arguments):
        done = qkv(*arguments, cwd=folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_a_config_means_the_same_from_three_folders(self):
        root = pathlib.Path(self.temporary.name)
        (self.folder / "configs").mkdir()
        shutil.copy(self.folder / "tiny.toml", self.folder / "configs/tiny.toml")
        (root / "test.tsv").write_text("money\t1\tmoney bank\n")  # counts for nothing, even in the working folder
        written = set()
        for i, folder in enumerate((root, self.folder, self.folder / "configs")):
            self.at(folder, "train", self.folder / "configs/tiny.toml", "--run", root / f"run-{i}", "--set", "train.steps=2")
            written.add((root / f"run-{i}/config.toml").read_text())
        self.assertEqual(len(written), 1)
        self.assertIn('test = "work/test.tsv"', written.pop())

    def test_the_config_s_own_folder_comes_first(self):
        (self.folder / "near").mkdir()
        shutil.copy(self.folder / "tiny.toml", self.folder / "near/tiny.toml")
        (self.folder / "near/test.tsv").write_text("money\t1\tmoney bank\n")
        self.run_qkv("train", "near/tiny.toml", "--run", "run", "--set", "train.steps=2")
        self.assertEqual(self.json("eval", "run")["count"], 1)

    def test_a_page_names_no_folder_outside(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm" if pathlib.Path("/dev/shm").is_dir() else "/var/tmp") as other:
            run = pathlib.Path(other) / "run"
            self.run_qkv("train", "tiny.toml", "--run", run, "--set", "train.steps=2")
            self.assertIn(f'train = "{self.folder}/train.tsv"', (run / "config.toml").read_text())  # a resume finds it
            self.run_qkv("report", run)
            page = (run / "report.html").read_text()
        page += gzip.decompress(base64.b64decode(re.search('id="data">([^<]*)<', page).group(1))).decode(errors="replace")
        self.assertIn(r'train = \"train.tsv\"', page)
        for folder in (self.folder.parent.name, run.parent.name):
            self.assertNotIn(folder, page)

    def test_a_path_after_set_leads_from_the_working_folder(self):
        (self.folder / "near").mkdir()
        shutil.copy(self.folder / "tiny.toml", self.folder / "near/tiny.toml")
        for folder, count in ((self.folder, 1), (self.folder / "near", 2)):
            (folder / "other.tsv").write_text("money\t1\tmoney bank\n" * count)
        self.run_qkv("train", "near/tiny.toml", "--run", "run", "--set", "train.steps=2", "--set", "task.test=other.tsv")
        self.assertEqual(self.json("eval", "run")["count"], 1)
        error = self.run_qkv("train", "near/tiny.toml", "--set", "task.test=tiny/none.tsv", code=2).stderr
        self.assertIn(f"{self.folder}/tiny/none.tsv: cannot be read", error)

    def test_a_run_that_was_moved_and_a_lone_checkpoint_need_no_training_data(self):
        elsewhere = pathlib.Path(self.temporary.name) / "elsewhere"
        elsewhere.mkdir()
        before = self.json("eval", "runs/tiny")
        shutil.copy(self.folder / "runs/tiny/best.h5", elsewhere / "lone.h5")
        (self.folder / "runs/tiny").rename(elsewhere / "moved")
        (self.folder / "test.tsv").rename(elsewhere / "kept.tsv")
        shutil.rmtree(self.folder)
        for model in ("moved", "lone.h5"):
            found = json.loads(self.at(elsewhere, "eval", model, "--data", "kept.tsv", "--json").stdout)
            self.assertEqual(found, before)
            self.at(elsewhere, "embed", model, "money bank grows", "river bank flows")
            self.at(elsewhere, "predict", model, "money bank grows")
            done = qkv("eval", model, cwd=elsewhere)
            self.assertEqual(done.returncode, 2)
            for part in (f"{model}: its data no longer exists", "test.tsv", "--data FILE"):
                self.assertIn(part, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        self.at(elsewhere, "report", "moved")
        done = qkv("resume", "moved", "--set", "train.steps=50", cwd=elsewhere)
        self.assertEqual(done.returncode, 2)
        self.assertIn("train.tsv; name other data with --set", done.stderr)

    def test_a_run_far_from_its_data_finds_it_and_so_does_a_tree_that_was_moved(self):
        root = pathlib.Path(self.temporary.name)
        with tempfile.TemporaryDirectory() as far:
            self.run_qkv("train", "tiny.toml", "--run", f"{far}/run", "--set", "train.steps=2")
            before = json.loads(self.at(far, "eval", "run", "--json").stdout)
            self.at(far, "resume", "run", "--set", "train.steps=3")
            shutil.copytree(f"{far}/run", self.folder / "runs/near")
        self.run_qkv("train", "runs/near/config.toml", "--run", "again", "--set", "train.steps=2")
        self.assertEqual(self.json("eval", "again"), before)
        self.folder.rename(root / "moved")
        self.assertEqual(json.loads(self.at(root, "eval", "moved/again", "--json").stdout), before)
        self.at(root, "resume", "moved/again", "--set", "train.steps=3")

    def test_a_split_drawn_from_data_that_is_gone_is_named(self):
        (self.folder / "all.tsv").write_text((self.folder / "train.tsv").read_text())
        (self.folder / "drawn.toml").write_text(
            CONFIG.replace('train = "train.tsv"\nvalid = "valid.tsv"\ntest = "test.tsv"', 'data = "all.tsv"\ntest_share = 0.2'))
        self.run_qkv("train", "drawn.toml", "--run", "drawn", "--set", "train.steps=2")
        self.assertEqual(self.json("eval", "drawn")["count"], 40)
        (self.folder / "all.tsv").unlink()
        self.assert_refused(["eval", "drawn"], "drawn: its data no longer exists", "all.tsv", "--data FILE")


class OwnData(ProgramTest):
    def with_blank_lines(self, name):
        lines = (self.folder / name).read_text().splitlines()
        (self.folder / name).write_text("\n" + "\n  \t\n".join(lines) + "\n\n")

    def test_blank_lines_change_nothing(self):
        before = self.json("eval", "runs/tiny")
        for name in ("train.tsv", "valid.tsv", "test.tsv"):
            self.with_blank_lines(name)
        self.assertEqual(self.json("eval", "runs/tiny", "--data", "test.tsv"), before)
        self.run_qkv("train", "tiny.toml", "--run", "again")
        self.assert_same_checkpoints("runs/tiny/last.h5", "again/last.h5")
        self.assertEqual(self.json("attend", "runs/tiny", "--data", "test.tsv")["sentences"], 40)

    def test_errors_behind_blank_lines_name_the_file_s_own_line(self):
        (self.folder / "bad.tsv").write_text("\nmoney\t1\tmoney bank\n \nfish\t1\tfish bank\n")
        self.assert_refused(["eval", "runs/tiny", "--data", "bad.tsv"], "bad.tsv:4: ", 'unknown label "fish"', "money, river")
        (self.folder / "bad.tsv").write_text("\nmoney\t9\tmoney bank\n")
        self.assert_refused(["attend", "runs/tiny", "--data", "bad.tsv"], "bad.tsv:2: ", "got 9")
        (self.folder / "bad.tsv").write_text("\n  \n")
        self.assert_refused(["eval", "runs/tiny", "--data", "bad.tsv"], "bad.tsv: all of its lines are blank")
        self.assert_refused(["predict", "runs/tiny", "--file", "bad.tsv"], "bad.tsv: all of its lines are blank")

    def test_vectors_in_a_file_with_blank_lines_are_read(self):
        (self.folder / "v.txt").write_text("\nbank " + "0.5 " * 8 + "\n\n")
        self.run_qkv("train", "tiny.toml", "--run", "new", "--set", "train.steps=1", "--set", "model.embedding=v.txt")
        (self.folder / "v.txt").write_text("\nbank 0.5\n")
        self.assert_refused(["train", "tiny.toml", "--run", "other", "--set", "model.embedding=v.txt"], "v.txt:2: ")

    def test_predict_answers_the_other_lines_of_a_file(self):
        (self.folder / "texts").write_text("money bank grows\n\nno such word\n" + "bank " * 25 + "\nriver bank flows\n")
        done = self.run_qkv("predict", "runs/tiny", "--file", "texts", "--json", code=2)
        found = json.loads(done.stdout)["predictions"]
        self.assertEqual([(p["line"], p["text"]) for p in found], [(1, "money bank grows"), (5, "river bank flows")])
        for part in ("texts:2: blank line skipped", 'texts:3: "no such word" has none of the words', "texts:4: the sentence has 25"):
            self.assertIn(part, done.stderr)
        (self.folder / "texts").write_text("money bank grows\n\nriver bank flows\n")
        self.assertIn("texts:2: blank line skipped\n", self.run_qkv("predict", "runs/tiny", "--file", "texts").stderr)


if __name__ == "__main__":
    unittest.main()
