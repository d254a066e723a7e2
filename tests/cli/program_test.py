"""The built program as users run it, with good and bad input, in a terminal and in a pipe.

Usage: program_test.py PROGRAM
"""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import CONFIG, PROGRAM, ProgramTest, qkv


class Training(ProgramTest):
    def test_a_run_folder_holds_what_users_rely_on(self):
        run = self.folder / "runs/tiny"
        names = sorted(str(path.relative_to(run)) for path in run.rglob("*"))
        steps = [f"checkpoints/step-{step:08}.h5" for step in (20, 30, 40)]
        self.assertEqual(names, sorted(["best.h5", "checkpoints", "config.toml", "last.h5", "metrics.jsonl", *steps]))
        events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        for event in events:
            self.assertLessEqual({"step", "split", "loss", "seconds", "tokens_per_second"}, set(event))
        self.assertEqual(events[-1]["split"], "test")

    def test_the_written_config_repeats_the_run(self):
        self.run_qkv("train", "runs/tiny/config.toml", "--run", "again")
        self.assert_same_checkpoints("runs/tiny/last.h5", "again/last.h5")

    def test_results_do_not_depend_on_the_number_of_threads(self):
        self.run_qkv("train", "tiny.toml", "--run", "other", "--threads", 3)
        self.assert_same_checkpoints("runs/tiny/last.h5", "other/last.h5")

    def test_a_shorter_run_resumed_equals_the_uninterrupted_one(self):
        self.run_qkv("train", "tiny.toml", "--run", "half", "--set", "train.steps=20")
        self.run_qkv("resume", "half", "--set", "train.steps=40", "--threads", 1)
        self.assert_same_checkpoints("runs/tiny/last.h5", "half/last.h5")

    def test_an_averaged_run_resumed_equals_the_uninterrupted_one_and_keeps_the_average(self):
        averaged = ["--set", "train.ema=0.9", "--set", "train.accumulate=2"]
        self.run_qkv("train", "tiny.toml", "--run", "whole", *averaged)
        self.run_qkv("train", "tiny.toml", "--run", "half", "--set", "train.steps=20", *averaged)
        self.run_qkv("resume", "half", "--set", "train.steps=40")
        self.assert_same_checkpoints("whole/last.h5", "half/last.h5")
        with h5py.File(self.folder / "whole/last.h5") as file:
            average, own = file["model/head/weight"][()], file["optimizer/live/head/weight"][()]
        self.assertGreater(abs(average - own).max(), 0)
        before = self.json("eval", "whole")
        self.assertEqual(before["loss"], self.json("eval", "half")["loss"])

    def test_accumulated_micro_batches_make_the_step_of_one_batch(self):
        for run, batch, micro_batches in (("one", 16, 1), ("four", 4, 4)):
            self.run_qkv("train", "tiny.toml", "--run", run, "--set", "model.dropout=0", "--set", "train.steps=10",
                         "--set", f"train.batch={batch}", "--set", f"train.accumulate={micro_batches}")
        with h5py.File(self.folder / "one/last.h5") as one, h5py.File(self.folder / "four/last.h5") as four:
            difference = abs(one["model/head/weight"][()] - four["model/head/weight"][()]).max()
        self.assertLess(difference, 1e-5)

    def test_anomaly_detection_names_the_op_that_breaks_a_run(self):
        done = self.run_qkv("train", "tiny.toml", "--set", "optimizer.kind=sgd", "--set", "optimizer.lr=1e30", "--set",
                            "train.clip=0", "--set", "train.on_divergence=detect", "--run", "hot", code=1)
        self.assertRegex(done.stderr, r"\[\w+\] produced (a NaN|an infinity) in its output of shape \(.*\), from inputs")

    def test_without_validation_data_the_last_checkpoint_is_the_best(self):
        done = self.run_qkv("train", "tiny.toml", "--run", "new", "--set", "task.valid=", "--set", "train.keep=9")
        self.assertIn("no validation data: the best checkpoint is the last", done.stderr)
        self.assertIn("(checkpoint of step 40)", done.stderr)
        self.assertEqual([file["step"] for file in self.json("verify", "new")["files"] if file["file"].endswith("best.h5")],
                         [40])
        self.assert_same_checkpoints("new/best.h5", "new/last.h5")
        last = self.json("eval", "new/last.h5")
        self.assertEqual(self.json("eval", "new"), last)
        events = [json.loads(line) for line in (self.folder / "new/metrics.jsonl").read_text().splitlines()]
        self.assertEqual(events[-1]["loss"], last["loss"])
        self.assertEqual({event["split"] for event in events}, {"train", "test"})

    def test_task_data_is_cut_into_training_and_validation_beside_a_file_of_test_data(self):
        done = self.run_qkv("train", "tiny.toml", "--run", "new", "--set", "task.data=train.tsv", "--set",
                            "task.test=test.tsv", "--set", "task.valid_share=0.2")
        self.assertIn("160 training examples (40 valid, 40 test)", done.stderr)

    def test_a_finished_run_that_is_resumed_measures_no_speed(self):
        self.run_qkv("resume", "runs/tiny")
        events = [json.loads(line) for line in (self.folder / "runs/tiny/metrics.jsonl").read_text().splitlines()]
        self.assertEqual(events[-1]["split"], "test")
        self.assertNotIn("tokens_per_second", events[-1])
        for event in events[:-1]:
            self.assertGreater(event["tokens_per_second"], 0)

    def test_data_is_found_from_any_folder(self):
        elsewhere = pathlib.Path(self.temporary.name)
        done = qkv("train", "work/tiny.toml", "--set", "train.steps=1", cwd=elsewhere)
        self.assertEqual(done.returncode, 0, done.stderr)


class Output(ProgramTest):
    def test_a_pipe_gets_no_escape_codes(self):
        for arguments in (["attend", "runs/tiny", "money bank grows"], ["explain", "runs/tiny", "money bank grows"],
                          ["inspect", "runs/tiny"], ["eval", "runs/tiny"],
                          ["train", "tiny.toml", "--run", "again"]):
            done = self.run_qkv(*arguments)
            self.assertNotIn("\033", done.stdout + done.stderr)

    def test_a_terminal_gets_a_progress_bar_and_colours(self):
        self.assertIn("━", self.in_terminal("train", "tiny.toml", "--run", "again"))
        attend = ["attend", "runs/tiny", "money bank grows"]
        self.assertIn("\033[48;2;", self.in_terminal(*attend, COLORTERM="truecolor"))
        self.assertIn("\033[48;5;", self.in_terminal(*attend, COLORTERM=""))
        self.assertRegex(self.in_terminal(*attend, COLORTERM="", TERM="linux"), "\033\\[(4|10)\\d;")
        self.assertNotIn("\033", self.in_terminal(*attend, NO_COLOR="1"))
        self.assertNotIn("\033", self.in_terminal(*attend, TERM="dumb"))
        one = ["inspect", "runs/tiny", "encoder.layers.0.attention.w_q.weight"]
        self.assertIn("▀", self.in_terminal(*one, COLORTERM="truecolor"))
        self.assertNotIn("▀", self.run_qkv(*one).stdout)

    def test_results_that_cannot_be_printed_are_a_failure(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "inspect", "runs/tiny"], cwd=self.folder, stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write", done.stderr)


class BadInput(ProgramTest):
    def test_an_unknown_option_or_command_names_the_nearest(self):
        for arguments, message in ((["trian", "tiny.toml"], "unknown command trian; did you mean train?"),
                                   (["dance"], "unknown command dance; see qkv --help"),
                                   (["train", "tiny.toml", "--sett", "seed=2"], "unknown option --sett of qkv train; did you mean --set?"),
                                   (["compare", "tiny.toml", "--seed=2"], "unknown option --seed of qkv compare; did you mean --seeds?"),
                                   (["eval", "runs/tiny", "--zebra"], "unknown option --zebra of qkv eval; see qkv eval --help")):
            self.assert_refused(arguments, f"qkv: {message}\n")

    def test_options(self):
        self.assert_refused(["train"], "CONFIG is required; see qkv train --help")
        self.assert_refused(["generate", "runs/tiny", "Once upon"], "not expected: Once upon; see qkv generate --help")
        self.assert_refused(["train", "tiny.toml", "--colour"], "--colour")
        self.assert_refused(["train", "tiny.toml", "--threads", "0"], "--threads")
        self.assert_refused(["fly"], "fly")

    def test_configs(self):
        self.assert_refused(["train", "none.toml"], "none.toml: there is no such file")
        for change, complaint in ((("width", "wdith"), 'unknown key "model.wdith" (did you mean "model.width"?)'),
                                  (("steps = 40", "steps = 'many'"), "train.steps must be an integer"),
                                  (("dropout = 0.1", "dropout = 1"), "model.dropout must be in [0, 1), got 1")):
            (self.folder / "bad.toml").write_text(CONFIG.replace(*change))
            line = 1 + CONFIG[:CONFIG.index(change[0])].count("\n")
            self.assert_refused(["train", "bad.toml"], f"bad.toml:{line}: ", complaint)
        self.assert_refused(["train", "tiny.toml", "--set", "model.heads=3"], "--set model.heads=3", "divide")

    def test_data(self):
        train = ["train", "tiny.toml", "--run", "new"]
        self.assert_refused([*train, "--set", "task.train=none.tsv"], "none.tsv: cannot be read")
        (self.folder / "bad.tsv").write_text("money\t0\tbank\nriver bank\n")
        self.assert_refused([*train, "--set", "task.train=bad.tsv"], "bad.tsv:2: must be label<TAB>index<TAB>sentence")
        self.assert_refused([*train, "--set", "model.max_length=5"], "train.tsv:", "model.max_length = 5")
        (self.folder / "bad.tsv").write_text("money\t0\tbank\nmoney\t0\tbank\n")
        self.assert_refused([*train, "--set", "task.train=bad.tsv"], "bad.tsv: ", "only the label money")
        self.assert_refused(["eval", "runs/tiny", "--data", "none.tsv"], "none.tsv: cannot be read")
        (self.folder / "bad.tsv").write_text("fish\t0\tbank\n")
        self.assert_refused(["eval", "runs/tiny", "--data", "bad.tsv"], "bad.tsv:1: ", 'unknown label "fish"', "money, river")

    def test_sentences(self):
        self.assert_refused(["predict", "runs/tiny", " "], "the sentence is empty")
        self.assert_refused(["predict", "runs/tiny", "bank " * 25], "the sentence has 25 words", "model.max_length = 24")
        self.assert_refused(["predict", "runs/tiny", "money grows"], "bank")
        self.assert_refused(["predict", "runs/tiny", b"bank \xff".decode(errors="surrogateescape")], "UTF-8")
        self.assert_refused(["embed", "runs/tiny", "money bank grows", "--word", "pays"], "pays")
        self.assert_refused(["attend", "runs/tiny", "money bank grows", "--head", "2"], "--head 2")
        self.assert_refused(["attend", "runs/tiny"], "--data")
        self.assert_refused(["embed", "runs/tiny", "money bank grows", "--layer", "1"], "--layer 1")
        (self.folder / "bad.tsv").write_text("money\t9\tmoney bank\n")
        self.assert_refused(["attend", "runs/tiny", "--data", "bad.tsv"], "bad.tsv:1: ", "less than the sentence's 2 words, got 9")
        self.assert_refused(["explain", "runs/tiny", "money bank grows", "--word", "pays"], "pays")
        self.assert_refused(["inspect", "runs/tiny", "head.wieght"], "head.wieght")

    def test_runs_and_checkpoints(self):
        self.assert_refused(["train", "tiny.toml"], "runs/tiny already holds a run", "qkv resume runs/tiny")
        self.assert_refused(["resume", "none"], "none is not a run folder")
        self.assert_refused(["eval", "none.h5"], "none.h5: cannot read: No such file or directory")
        self.assert_refused(["eval", "tiny.toml"], "tiny.toml: is not a qkv checkpoint")
        self.assert_refused(["eval", "."], "holds no checkpoint")
        whole = (self.folder / "runs/tiny/best.h5").read_bytes()
        (self.folder / "cut.h5").write_bytes(whole[:5000])
        self.assert_refused(["predict", "cut.h5", "money bank grows"], "cut.h5: is truncated", code=1)
        self.assert_refused(["resume", "runs/tiny", "--set", "model.width=16"], "model.width", "from the checkpoint")

    def test_only_some_options_change_when_a_run_resumes(self):
        for change in ("seed=2", "train.batch=8", "train.accumulate=2", "train.ema=0.5", "optimizer.kind=sgd", "optimizer.beta1=0.5",
                       "optimizer.weight_decay=0.1", "task.min_count=2", "task.test=", "name=other"):
            self.assert_refused(["resume", "runs/tiny", "--set", change], change.split("=")[0] + " = ",
                                "it may change optimizer.lr, ")
        for change in ("train.steps=41", "optimizer.lr=0.1", "schedule.warmup=1", "train.clip=2", "train.eval_every=3",
                       "train.checkpoint_every=3", "train.keep=5", "train.on_divergence=detect", "train.on_divergence=skip",
                       "train.tensorboard=true"):
            self.run_qkv("resume", "runs/tiny", "--set", change)
        shutil.copy(self.folder / "train.tsv", self.folder / "moved.tsv")
        self.run_qkv("resume", "runs/tiny", "--set", "task.train=moved.tsv")

    def test_other_labels_in_the_training_data(self):
        text = (self.folder / "train.tsv").read_text()
        swapped = [line.replace("money\t", "X\t", 1).replace("river\t", "money\t", 1).replace("X\t", "river\t", 1)
                   for line in text.splitlines(keepends=True)]
        (self.folder / "train.tsv").write_text("".join(swapped))
        self.assert_refused(["resume", "runs/tiny", "--set", "train.steps=80"], "the training data", "train.tsv has changed")
        (self.folder / "train.tsv").write_text(text)
        self.run_qkv("resume", "runs/tiny", "--set", "train.steps=80")

    def test_checkpoints_that_cannot_be_read_are_not_missing(self):
        run = self.folder / "runs/tiny"
        shutil.rmtree(run / "checkpoints")
        (run / "checkpoints").write_text("")
        for names in (["best.h5", "last.h5"], []):
            for command in ("verify", "resume", "eval"):
                self.assert_refused([command, "runs/tiny"], "runs/tiny/checkpoints: the folder cannot be read: Not a directory",
                                    code=1)
            for name in names:
                (run / name).unlink()

    def test_a_checkpoint_of_another_step_than_its_name_says(self):
        steps = self.folder / "runs/tiny/checkpoints"
        shutil.copy(steps / "step-00000040.h5", steps / "step-00000099.h5")
        self.assertIn("step-00000099.h5: holds the checkpoint of step 40", self.run_qkv("verify", "runs/tiny", code=1).stderr)
        done = self.run_qkv("resume", "runs/tiny")
        self.assertIn("step-00000099.h5: holds the checkpoint of step 40", done.stderr)
        self.assertIn("resuming at step 40", done.stderr)

    def test_changed_training_data(self):
        with open(self.folder / "train.tsv", "a") as data:
            data.write("money\t1\tnew bank words\n")
        self.assert_refused(["resume", "runs/tiny", "--set", "train.steps=80"], "other words or labels")


if __name__ == "__main__":
    unittest.main()
