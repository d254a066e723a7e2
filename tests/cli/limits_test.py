"""What must not cost a run or a file: streams that cannot be written, limits of the system, and input that is too large.

Usage: limits_test.py PROGRAM
"""
import base64
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import CONFIG, PROGRAM, ProgramTest, qkv, qkv_with_file_limit

PROBE = """
[[probe]]
name = "probe {}, which stands for many others like it"
sentences = ["money bank grows", "river bank flows", "the river bank is far from the money bank in town"]
word = "bank"
expect = 'contextual_cosine < 2'
"""

CLASSIFY = """
name = "peak"
[task]
kind = "classify"
train = "words.tsv"
valid = "words.tsv"
test = "words.tsv"
[model]
kind = "convolution"
layers = 1
[optimizer]
kind = "adam"
[train]
batch = 8
steps = 4
ema = 0.9
eval_every = 2
checkpoint_every = 2
"""


def address_space(gibibytes, stack=None):
    """What limits a child's memory and the size of its threads' stacks."""
    def limit():
        if stack:
            resource.setrlimit(resource.RLIMIT_STACK, (stack << 30, stack << 30))
        resource.setrlimit(resource.RLIMIT_AS, (gibibytes << 30, gibibytes << 30))
    return limit


class Streams(ProgramTest):
    def shell(self, command):
        return subprocess.run(["bash", "-c", command, PROGRAM], cwd=self.folder, capture_output=True, text=True,
                              timeout=120)

    def assert_complete(self, run):
        self.assert_same_checkpoints("runs/tiny/last.h5", f"{run}/last.h5")
        self.assert_same_checkpoints("runs/tiny/best.h5", f"{run}/best.h5")

        def events(folder):
            lines = (self.folder / folder / "metrics.jsonl").read_text().splitlines()
            return [(event["step"], event["split"], event["loss"]) for event in map(json.loads, lines)]
        self.assertEqual(events(run), events("runs/tiny"))

    def test_a_training_whose_progress_cannot_be_written_ends_as_any_other(self):
        for run, streams in (("closed", "2>&-"), ("all", "<&- 2>&-"), ("full", "2>/dev/full")):
            done = self.shell(f'"$0" train tiny.toml --run {run} {streams}')
            self.assertEqual(done.returncode, 0, run)
            self.assertIn("test split", done.stdout)
            self.assert_complete(run)

    def test_a_training_whose_reader_has_gone_ends_as_any_other(self):
        done = self.shell('"$0" train tiny.toml --run piped 2>&1 | head -1; exit ${PIPESTATUS[0]}')
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.count("\n"), 1)
        self.assert_complete("piped")

    def test_results_that_cannot_be_written_are_a_failure_unless_nobody_reads_them(self):
        for streams, reason in ((">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")):
            for command in ("inspect runs/tiny", "eval runs/tiny --json", "--help"):
                done = self.shell(f'"$0" {command} {streams}')
                self.assertEqual((done.returncode, done.stderr),
                                 (1, f"qkv: cannot write the results to stdout: {reason}\n"))
        done = self.shell('"$0" inspect runs/tiny | head -1; exit ${PIPESTATUS[0]}')
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_no_control_character_of_the_data_reaches_a_terminal(self):
        (self.folder / "odd.tsv").write_text("mon\033[31mey\t1\tmoney \033bank\x9b grows\nriver\t1\triver bank\x7f flows\n",
                                             encoding="utf-8")
        self.run_qkv("train", "tiny.toml", "--run", "odd", "--set", "task.train=odd.tsv", "--set", "task.valid=",
                     "--set", "task.test=")
        for arguments in (["predict", "odd", "money \033bank\x9b"], ["eval", "odd", "--data", "odd.tsv"],
                          ["attend", "odd", "money \033bank\x9b"],
                          ["embed", "odd", "--data", "odd.tsv", "--word", "\033bank\x9b", "--pca"]):
            text = self.in_terminal(*arguments, NO_COLOR="1")
            self.assertIn("␛", text, arguments)
            self.assertFalse([c for c in text if ord(c) < 32 and c not in "\r\n" or 127 <= ord(c) < 160], text)
        done = self.run_qkv("eval", "odd", "--data", "test.tsv", code=2)
        self.assertIn('the training data has: mon␛[31mey, river', done.stderr)


class Limits(ProgramTest):
    def limited(self, *arguments, limit, code=0):
        done = qkv(*arguments, cwd=self.folder, preexec_fn=limit, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def in_group(self, controller, limits):
        """Makes a control group, of version 1 or 2, and returns what moves a process into it. Skips where none can be made.

        `limits`: contents by the name of a file, which only one of the versions has.
        """
        for root in (f"/sys/fs/cgroup/{controller}", "/sys/fs/cgroup"):
            group = pathlib.Path(root, f"qkv-test-{os.getpid()}")
            try:
                group.mkdir()
                self.addCleanup(group.rmdir)
                written = [(group / name).write_text(text) for name, text in limits.items() if (group / name).exists()]
            except OSError:
                continue
            if written:
                return lambda: (group / "cgroup.procs").write_text("0")
        self.skipTest("no control group with limits can be made here")

    def need_address_limits(self):
        if qkv("--version", preexec_fn=address_space(4)).returncode != 0:
            self.skipTest("this build needs a large address space")

    def test_threads_are_no_more_than_the_cores_that_the_process_may_use(self):
        one = {min(os.sched_getaffinity(0))}
        done = self.limited("train", "tiny.toml", "--run", "pinned", limit=lambda: os.sched_setaffinity(0, one))
        self.assertRegex(done.stderr, r"about .* for 40 steps on 1 thread\n")
        done = self.limited("train", "tiny.toml", "--run", "two", "--threads", "2",
                            limit=lambda: os.sched_setaffinity(0, one))
        self.assertRegex(done.stderr, r"about .* for 40 steps on 2 threads\n")

    def test_threads_are_no_more_than_a_quota_of_cpu_time_allows(self):
        limit = self.in_group("cpu", {"cpu.cfs_quota_us": "90000", "cpu.max": "90000 100000"})
        done = self.limited("train", "tiny.toml", "--run", "quota", limit=limit)
        self.assertRegex(done.stderr, r"about .* for 40 steps on 1 thread\n")

    def test_a_model_that_does_not_fit_the_control_group_is_refused(self):
        limit = self.in_group("memory", {"memory.limit_in_bytes": str(512 << 20), "memory.max": str(512 << 20)})
        done = self.limited("train", "tiny.toml", "--run", "new", "--set", "model.width=2048", "--set", "model.layers=8",
                            limit=limit, code=2)
        self.assertRegex(done.stderr, r"takes at least \d+\.\d GiB of memory, and the process can have 512\.0 MiB: ")

    def test_threads_that_cannot_be_started_are_done_without(self):
        self.need_address_limits()
        self.limited("train", "tiny.toml", "--run", "few", "--threads", "16", limit=address_space(3, stack=1))
        self.assert_same_checkpoints("runs/tiny/last.h5", "few/last.h5")

    def test_an_address_space_too_small_for_the_libraries_is_named(self):
        self.need_address_limits()
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))
        done = self.limited("--version", limit=limit, code=1)
        self.assertEqual(done.stderr, "qkv: needs at least 512 MiB of address space; raise the limit (ulimit -v)\n")

    def test_a_stack_too_small_is_named(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_STACK, (100 << 10, 100 << 10))
        done = self.limited("--version", limit=limit, code=1)
        self.assertEqual(done.stderr, "qkv: needs a stack of at least 128 KiB; raise the limit (ulimit -s)\n")

    def test_memory_at_its_peak_is_a_small_multiple_of_the_parameters(self):
        # The weights, Adam's two moments and the averages are 4 times the parameters, the gradients of two lanes 2 times,
        # and a checkpoint in memory 4 times.
        self.need_address_limits()
        words, width = 5000, 512
        with open(self.folder / "words.tsv", "w") as file:
            for first in range(0, words, 10):
                file.write(f"{'ab'[first % 20 // 10]}\t{' '.join(f'w{i}' for i in range(first, first + 10))}\n")

        def peak(width):
            run = subprocess.Popen(
                [PROGRAM, "train", "words.toml", "--run", f"runs/{width}", "--set", f"model.width={width}",
                 "--threads", "2"], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(run.pid, 0)
            run.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(run.returncode, 0)
            return usage.ru_maxrss * 1024
        (self.folder / "words.toml").write_text(CLASSIFY)
        parameters = 4 * (words * width + (3 + 4 + 5) * width * width // 3)  # bytes
        self.assertLess((peak(width) - peak(3)) / parameters, 10)

    def test_a_limit_of_file_sizes_is_named_and_leaves_no_temporary_file(self):
        done = qkv_with_file_limit(20000, "train", "tiny.toml", "--run", "new", cwd=self.folder)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"step-00000010.h5: cannot write: File too large \(\d+ bytes needed, see `ulimit -f`")
        self.assertEqual(list((self.folder / "new/checkpoints").iterdir()), [])

    def test_a_model_that_cannot_fit_is_refused_before_the_data_are_read(self):
        self.need_address_limits()
        train = ["train", "tiny.toml", "--run", "new", "--set", "task.train=none.tsv"]
        large = ["--set", "model.width=4096", "--set", "model.layers=64"]
        done = self.limited(*train, *large, limit=address_space(4), code=2)
        self.assertRegex(done.stderr, r"takes at least \d+\.\d GiB of memory, and the process can have 4.0 GiB: .*; lower model.width")
        many = ["--set", "train.batch=65536", "--set", "train.accumulate=65536"]
        done = self.limited(*train, *many, limit=address_space(4), code=2)
        self.assertIn("32.0 GiB for the order of examples; lower train.batch or train.accumulate", done.stderr)

    def test_byte_pairs_that_do_not_fit_name_what_to_lower(self):
        self.need_address_limits()
        (self.folder / "random.txt").write_bytes(base64.encodebytes(random.Random(1).randbytes(30 << 20)))
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (900 << 20, 900 << 20))
        done = self.limited("train", "tiny.toml", "--run", "new", "--threads", "1", "--set", "task.kind=language-model",
                            "--set", "model.kind=decoder", "--set", "task.train=random.txt", "--set", "task.valid=",
                            "--set", "task.test=", "--set", "task.tokenizer=bpe", limit=limit, code=1)
        self.assertRegex(done.stderr, r"not enough memory to learn byte pairs from \d+ distinct words; lower task.merges")

    def test_a_huge_file_that_is_no_checkpoint_is_not_read(self):
        self.need_address_limits()
        with open(self.folder / "huge.h5", "wb") as file:
            file.truncate(20 << 30)
        done = self.limited("eval", "huge.h5", limit=address_space(4), code=2)
        self.assertIn("huge.h5: is not a qkv checkpoint", done.stderr)
        with open(self.folder / "huge.h5", "r+b") as file:  # both ends as a checkpoint has them
            file.write((self.folder / "runs/tiny/last.h5").read_bytes()[:40] + (20 << 30).to_bytes(8, "little"))
            file.seek(20 << 30)
            file.write(f"qkv-seal bytes {20 << 30:020} xxh3-128 {0:032x}\n".encode())
        done = self.limited("eval", "huge.h5", limit=address_space(4), code=1)
        self.assertIn("huge.h5: holds 20.0 GiB; reading it takes 40.0 GiB, and the process can have 4.0 GiB", done.stderr)

    def test_a_named_pipe_or_a_device_is_no_data(self):
        os.mkfifo(self.folder / "pipe")
        for file in ("pipe", "/dev/zero"):
            for arguments in (["train", "tiny.toml", "--run", "new", "--set", f"task.train={file}"],
                              ["eval", "runs/tiny", "--data", file], ["predict", "runs/tiny", "--file", file],
                              ["train", file]):
                done = qkv(*arguments, cwd=self.folder, timeout=60)
                self.assertEqual(done.returncode, 2, arguments)
                self.assertIn(f"{file}: is a named pipe or a device", done.stderr)
        done = subprocess.run(["bash", "-c", '"$0" eval runs/tiny --data <(cat test.tsv)', PROGRAM], cwd=self.folder,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout.split(":")[1].split()[:2]), (0, ["40", "examples"]))

    def test_a_word_that_is_too_long_is_named_with_its_line(self):
        (self.folder / "long.tsv").write_text("money\t0\tmoney bank\nriver\t1\tthe " + "x" * 65537 + "\n")
        self.assert_refused(["train", "tiny.toml", "--run", "new", "--set", "task.train=long.tsv"], "long.tsv:2: ",
                            "at most 65536 bytes, got 65537")
        (self.folder / "long.tsv").write_text("a b " * 20000 + "\t0\tmoney bank\n")
        self.assert_refused(["eval", "runs/tiny", "--data", "long.tsv"], "long.tsv:1: ", "a label must have at most 65536 bytes")
        (self.folder / "text").write_text("river bank\n\n" + "y" * 65537 + "\n")
        (self.folder / "static.toml").write_text('name = "static"\n[task]\nkind = "static-embedding"\ntrain = "text"\n'
                                                 '[model]\nkind = "static"\nwidth = 4\n')
        self.assert_refused(["train", "static.toml"], "text:3: ", "at most 65536 bytes")

    def test_a_config_longer_than_an_attribute_trains_resumes_and_is_read(self):
        (self.folder / "long.toml").write_text(CONFIG + "".join(PROBE.format(i) for i in range(300)))
        self.run_qkv("train", "long.toml", "--run", "long", "--set", "train.steps=20")
        self.assertGreater((self.folder / "long/config.toml").stat().st_size, 1 << 16)
        self.run_qkv("resume", "long", "--set", "train.steps=40")
        self.assertEqual(self.json("eval", "long")["loss"], self.json("eval", "runs/tiny")["loss"])
        self.assertEqual(len(self.json("probe", "long")["probes"]), 300)


class Messages(ProgramTest):
    def test_what_the_system_refuses_is_said_in_one_line_with_the_path(self):
        gone = self.folder / "gone"
        gone.mkdir()
        done = subprocess.run(["bash", "-c", f'cd gone; rmdir ../gone; "$0" eval ../runs/tiny', PROGRAM], cwd=self.folder,
                              capture_output=True, text=True)
        self.assertNotIn("filesystem error", done.stderr)
        name = "n" * 300
        for arguments in (["eval", name], ["verify", name], ["report", name], ["resume", name],
                          ["eval", "runs/tiny", "--data", name], ["train", "tiny.toml", "--run", name]):
            done = qkv(*arguments, cwd=self.folder)
            self.assertIn(done.returncode, (1, 2), done.stderr)
            self.assertIn(name, done.stderr)
            self.assertIn("File name too long", done.stderr)
            for raw in ("filesystem error", "std::", "basic_"):
                self.assertNotIn(raw, done.stderr)


class Results(ProgramTest):
    def test_a_result_goes_through_links_and_into_devices(self):
        (self.folder / "link.html").symlink_to("page.html")
        for _ in range(2):  # the second time over the page itself
            self.run_qkv("report", "runs/tiny", "-o", "link.html")
            self.assertTrue((self.folder / "link.html").is_symlink())
            self.assertTrue((self.folder / "page.html").read_text().startswith("<!doctype html>"))
        device = self.folder / "full"
        device.symlink_to("/dev/full")
        self.assertIn("full: cannot write: No space left on device",
                      self.run_qkv("report", "runs/tiny", "-o", "full", code=1).stderr)
        self.assertTrue(device.is_symlink())
        self.run_qkv("report", "runs/tiny", "-o", "/dev/null")
        self.assertTrue(os.path.exists("/dev/null") and not os.path.isfile("/dev/null"))
        os.mkfifo(self.folder / "pipe")
        done = subprocess.run(["bash", "-c", 'cat pipe > copy & "$0" report runs/tiny -o pipe; wait', PROGRAM],
                              cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "copy").read_text(), (self.folder / "page.html").read_text())

    def test_a_result_replaces_nothing_but_a_result_of_its_kind(self):
        (self.folder / "mine.html").write_text("<!doctype html><title>mine</title>")
        (self.folder / "empty").write_text("")
        kept = ["runs/tiny/last.h5", "runs/tiny/config.toml", "runs/tiny/metrics.jsonl", "train.tsv", "mine.html"]
        before = {name: (self.folder / name).read_bytes() for name in kept}
        sentence = ["embed", "runs/tiny", "money bank grows"]
        for name in kept:
            self.assert_refused(["report", "runs/tiny", "-o", name], f"{name}: exists and is not a page of qkv report")
            self.assert_refused([*sentence, "--tsv", name], f"{name}: exists and is not vectors")
            self.assert_refused(["embed", "runs/tiny", "--word2vec", name], f"{name}: exists and is not vectors")
        (self.folder / "vectors.metadata.tsv").write_text("mine")
        done = self.run_qkv(*sentence, "--tsv", "vectors.tsv", code=2)
        self.assertIn("vectors.metadata.tsv: exists and is not a description", done.stderr)
        self.assertEqual(before, {name: (self.folder / name).read_bytes() for name in kept})
        for arguments in ([*sentence, "--tsv", "new.tsv"], ["embed", "runs/tiny", "--word2vec", "new.txt"],
                          ["report", "runs/tiny"], ["report", "runs/tiny", "-o", "empty"]):
            for _ in range(2):
                self.run_qkv(*arguments)


if __name__ == "__main__":
    unittest.main()
