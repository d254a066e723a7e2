"""Training and comparing on several ranks, each a process of its own: equal bits, kills, signals, ranks that do not fit together.

Usage: mpi_test.py PROGRAM [MPIRUN [KILLS]]; without MPIRUN the program was built without MPI.
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

KILLS = int(sys.argv.pop(3)) if len(sys.argv) > 3 else 3
MPIRUN = sys.argv.pop(2) if len(sys.argv) > 2 else ""
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import CONFIG, PROGRAM, ProgramTest, qkv  # noqa: E402, takes the program from the arguments
from compare_test import VARIANTS, without_times  # noqa: E402

# As root and with more ranks than cores, without the copies between processes that containers forbid.
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
               "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
RANDOM_TEXT = pathlib.Path(__file__).parents[2] / "datasets/random/text.txt"
FOUR_SHARDS = """
name = "four"
[task]
kind = "language-model"
data = "DATA"
[model]
kind = "decoder"
width = 48
layers = 2
heads = 2
feed_forward = 192
dropout = 0.2
max_length = 64
[train]
steps = 3
batch = 69
accumulate = 2
eval_every = 2
checkpoint_every = 2
"""
OPTIMIZERS = ("sgd", "adam", "adamw", "rmsprop", "adagrad")


def command(ranks, *arguments, program=PROGRAM):
    return ["-n", str(ranks), program, *map(str, arguments), "--threads", "1"]


def ranks_of(mpirun):
    """The processes of the ranks that a running mpirun started, by rank."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent != mpirun.pid:
                continue
            environment = dict(entry.partition("=")[::2] for entry in (folder / "environ").read_text().split("\0"))
            found[int(environment["OMPI_COMM_WORLD_RANK"])] = int(folder.name)
        except (OSError, KeyError):
            continue  # it has ended, or has not become a rank yet
    return found


class MpiTest(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "four.toml").write_text(FOUR_SHARDS.replace("DATA", str(RANDOM_TEXT)))

    def start(self, *commands):
        joined = [word for number, part in enumerate(commands) for word in ([":"] if number else []) + part]
        return subprocess.Popen([MPIRUN, *joined], cwd=self.folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def mpirun(self, *commands, code=0):
        process = self.start(*commands)
        stdout, stderr = process.communicate(timeout=120)
        self.assertEqual(process.returncode, code, stderr)
        return stdout, stderr

    def assert_same_bytes(self, a, b):
        for name in ("last.h5", "best.h5"):
            self.assertEqual((self.folder / a / name).read_bytes(), (self.folder / b / name).read_bytes(), (a, b, name))


class EqualBits(MpiTest):
    def test_any_number_of_ranks_writes_the_checkpoints_of_one_process(self):
        self.run_qkv("train", "four.toml", "--run", "one")
        for ranks in (1, 2, 3, 4):
            _, stderr = self.mpirun(command(ranks, "train", "four.toml", "--run", f"of-{ranks}"))
            self.assert_same_bytes("one", f"of-{ranks}")
            if ranks > 1:
                self.assertEqual(stderr.count(f"{ranks} ranks share 4 shards of each batch"), 1, stderr)
            self.assertEqual(stderr.count("wrote"), 1, stderr)

    def test_every_optimizer_has_equal_bits_on_three_ranks(self):
        for optimizer in OPTIMIZERS:
            options = ["--set", f"optimizer.kind={optimizer}", "--set", "train.ema=0.5", "--set", "train.steps=2"]
            self.run_qkv("train", "four.toml", "--run", f"one-{optimizer}", *options)
            self.mpirun(command(3, "train", "four.toml", "--run", f"three-{optimizer}", *options))
            self.assert_same_bytes(f"one-{optimizer}", f"three-{optimizer}")

    def test_sentences_of_any_length_and_idle_ranks_have_equal_bits(self):
        for ranks in (2, 4):
            self.mpirun(command(ranks, "train", "tiny.toml", "--run", f"of-{ranks}"))
            self.assert_same_bytes("runs/tiny", f"of-{ranks}")

    def test_a_checkpoint_of_three_ranks_resumes_on_one_and_on_four(self):
        self.run_qkv("train", "four.toml", "--run", "whole")
        self.mpirun(command(3, "train", "four.toml", "--run", "one", "--set", "train.steps=2"))
        shutil.copytree(self.folder / "one", self.folder / "four")
        self.run_qkv("resume", "one", "--set", "train.steps=3")
        self.mpirun(command(4, "resume", "four", "--set", "train.steps=3"))
        self.assert_same_bytes("whole", "one")
        self.assert_same_bytes("whole", "four")


class Ends(MpiTest):
    LONG = ("--set", "train.steps=600", "--set", "train.keep=1")

    def running(self, run, line):
        """A training on three ranks that has said a line beginning so, with the processes of its ranks."""
        mpirun = self.start(command(3, "train", "tiny.toml", "--run", run, *self.LONG))
        said = ""
        for said in mpirun.stderr:
            if said.startswith(line):
                break
        self.assertTrue(said.startswith(line))
        ranks = ranks_of(mpirun)
        self.assertEqual(len(ranks), 3)
        return mpirun, ranks

    def assert_ended(self, ranks, deadline):
        for process in ranks.values():
            while pathlib.Path(f"/proc/{process}").exists():
                self.assertLess(time.monotonic(), deadline, f"process {process} still runs")
                time.sleep(0.05)

    def test_a_killed_rank_ends_the_others_and_the_run_resumes_to_the_same_end(self):
        self.run_qkv("train", "tiny.toml", "--run", "whole", *self.LONG)
        dice = random.Random(1)
        for kill in range(KILLS):
            mpirun, ranks = self.running(f"killed-{kill}", "step ")
            time.sleep(dice.uniform(0, 0.3))  # of the second or more that the run takes
            victim = dice.randrange(3)
            begin = time.monotonic()
            os.kill(ranks[victim], signal.SIGKILL)
            stderr = mpirun.communicate(timeout=60)[1]
            self.assertNotEqual(mpirun.returncode, 0)
            self.assertRegex(stderr, rf"rank {victim} .*signal 9")
            self.assert_ended(ranks, begin + 10)
            self.mpirun(command(1 + kill % 3, "resume", f"killed-{kill}"))
            self.assert_same_bytes("whole", f"killed-{kill}")

    def test_a_signal_to_one_rank_stops_all_of_them_with_a_checkpoint(self):
        self.run_qkv("train", "tiny.toml", "--run", "whole", *self.LONG)
        mpirun, ranks = self.running("stopped", "step ")
        os.kill(ranks[2], signal.SIGTERM)
        stderr = mpirun.communicate(timeout=60)[1]
        self.assertEqual(mpirun.returncode, 143, stderr)
        self.assertEqual(stderr.count("continue with: qkv resume stopped"), 1, stderr)
        self.assert_ended(ranks, time.monotonic() + 10)
        self.run_qkv("resume", "stopped")
        self.assert_same_bytes("whole", "stopped")


class Comparing(MpiTest):
    """Two variants with three seeds, whose runs the ranks share."""

    LONG = ("--set", "train.steps=300", "--set", "train.keep=1")

    def setUp(self):
        super().setUp()
        (self.folder / "two.toml").write_text(CONFIG + VARIANTS)
        self.runs = self.folder / "runs/tiny-compare"
        self.arguments = ("compare", "two.toml", "--seeds", 3, *self.LONG, "--json")
        self.table = without_times(json.loads(self.run_qkv(*self.arguments).stdout))
        self.checkpoints = self.checkpoints_now()
        shutil.rmtree(self.runs)

    def checkpoints_now(self):
        return {path.relative_to(self.runs): path.read_bytes() for path in self.runs.rglob("last.h5")}

    def assert_compared(self, stdout):
        self.assertEqual(without_times(json.loads(stdout)), self.table)
        self.assertEqual(self.checkpoints_now(), self.checkpoints)

    def begun(self):
        """A comparison on three ranks, each of which has begun to train."""
        mpirun = self.start(command(3, *self.arguments))
        training = set()
        for said in mpirun.stderr:
            if ": step " in said:
                training.add(said.partition(": step ")[0])
            if len(training) == 3:
                break
        return mpirun, ranks_of(mpirun)

    def test_any_number_of_ranks_gives_the_table_and_checkpoints_of_one_process(self):
        for ranks in (2, 3, 7):
            stdout, stderr = self.mpirun(command(ranks, *self.arguments))
            self.assert_compared(stdout)
            self.assertEqual(len(re.findall(r"tiny - .*: step +300 ", stderr)), 6, stderr)
            shutil.rmtree(self.runs)

    def test_a_killed_rank_ends_the_others_and_the_same_command_continues(self):
        mpirun, ranks = self.begun()
        os.kill(ranks[1], signal.SIGKILL)
        self.assertRegex(mpirun.communicate(timeout=60)[1], "rank 1 .*signal 9")
        self.assertTrue(any(self.runs.rglob("*.h5")))
        self.assert_compared(self.mpirun(command(2, *self.arguments))[0])

    def test_a_signal_stops_all_runs_with_a_checkpoint_and_the_same_command_continues(self):
        mpirun, ranks = self.begun()
        for process in ranks.values():
            os.kill(process, signal.SIGTERM)
        stderr = mpirun.communicate(timeout=60)[1]
        self.assertEqual(mpirun.returncode, 143, stderr)
        self.assertEqual(stderr.count("continue with: qkv compare two.toml"), 1, stderr)
        stdout, stderr = self.mpirun(command(3, *self.arguments))
        self.assertIn("resuming at step", stderr)
        self.assert_compared(stdout)

    def test_ranks_with_other_runs_are_refused(self):
        stderr = self.mpirun(command(1, "compare", "two.toml"), command(1, "compare", "two.toml", "--seeds", 2), code=2)[1]
        self.assertIn("qkv: rank 1 has another config than rank 0", stderr)
        self.assertFalse(self.runs.exists())


class Sweeping(MpiTest):
    def test_ranks_halve_a_sweep_as_one_process_does_also_after_a_kill(self):
        (self.folder / "grid.toml").write_text(CONFIG + "[[sweep]]\nmodel.heads = [1, 2]\noptimizer.lr = [1e-4, 1e-2]\n")
        runs = self.folder / "runs/tiny-sweep"
        arguments = ("sweep", "grid.toml", "--seeds", 3, "--halve", "--set", "train.steps=300", "--json")
        table = without_times(json.loads(self.run_qkv(*arguments).stdout))
        checkpoints = {path: path.read_bytes() for path in runs.rglob("last.h5")}
        self.assertEqual(len(checkpoints), 4 + 2 + 2)
        for ranks, is_killed in ((2, False), (3, True)):
            shutil.rmtree(runs)
            if is_killed:
                mpirun = self.start(command(ranks, *arguments))
                for said in mpirun.stderr:
                    if ": step " in said:
                        break
                os.kill(ranks_of(mpirun)[1], signal.SIGKILL)
                mpirun.communicate(timeout=60)
            stdout = self.mpirun(command(ranks, *arguments))[0]
            self.assertEqual(without_times(json.loads(stdout)), table)
            self.assertEqual({path: path.read_bytes() for path in runs.rglob("last.h5")}, checkpoints)


class Refused(MpiTest):
    def assert_ranks_refused(self, commands, *parts, code=2):
        stderr = self.mpirun(*commands, code=code)[1]
        self.assertEqual(stderr.count("qkv: "), 1, stderr)
        for part in parts:
            self.assertIn(part, stderr)
        self.assertFalse((self.folder / "run").exists() and list((self.folder / "run").rglob("*.h5")))

    def test_ranks_with_other_configs_programs_or_data_are_refused(self):
        train = ("train", "tiny.toml", "--run", "run")
        self.assert_ranks_refused([command(1, *train), command(1, *train, "--set", "seed=2")],
                                  "qkv: rank 1 has another config than rank 0")
        other = self.folder / "other-qkv"
        other.write_bytes(pathlib.Path(PROGRAM).read_bytes() + b"\n")
        other.chmod(0o755)
        self.assert_ranks_refused([command(2, *train), command(1, *train, program=str(other))],
                                  "qkv: rank 2 has another qkv than rank 0")
        text = (self.folder / "train.tsv").read_text()
        (self.folder / "other.tsv").write_text(text[:text.rstrip().rindex("\n")] + "\n")
        self.assert_ranks_refused([command(1, *train), command(1, *train, "--set", "task.train=other.tsv")],
                                  "qkv: rank 1 has other data than rank 0")

    def test_an_error_of_all_ranks_is_said_once(self):
        self.assert_ranks_refused([command(3, "train", "tiny.toml", "--run", "run", "--set", "model.widht=8")],
                                  'qkv: --set model.widht=8: unknown key "model.widht"')

    def test_an_error_of_one_rank_names_it_and_ends_all(self):
        train = ("train", "tiny.toml", "--run", "run")
        self.assert_ranks_refused([command(1, *train), command(1, *train, "--set", "task.train=missing.tsv")],
                                  "qkv: rank 1: ", "missing.tsv")

    def test_a_folder_that_holds_a_run_is_left_alone(self):
        before = (self.folder / "runs/tiny/last.h5").read_bytes()
        self.assertIn("already holds a run", self.mpirun(command(2, "train", "tiny.toml"), code=2)[1])
        self.assertEqual((self.folder / "runs/tiny/last.h5").read_bytes(), before)


class WithoutMpi(ProgramTest):
    def test_a_program_without_mpi_that_is_one_of_several_is_refused(self):
        done = qkv("train", "tiny.toml", "--run", "run", cwd=self.folder, env={**os.environ, "OMPI_COMM_WORLD_SIZE": "3"})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("started as one of 3 processes, but built without MPI: build with -DQKV_MPI=ON", done.stderr)
        self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    tests = unittest.TestLoader()
    classes = (EqualBits, Ends, Comparing, Refused) if MPIRUN else (WithoutMpi,)
    result = unittest.TextTestRunner().run(unittest.TestSuite(map(tests.loadTestsFromTestCase, classes)))
    if result.wasSuccessful() and not MPIRUN:
        print("skipped: built without MPI (-DQKV_MPI=ON)")
        sys.exit(77)
    sys.exit(not result.wasSuccessful())
