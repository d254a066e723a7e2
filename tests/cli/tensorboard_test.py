"""TensorBoard's files, read as TensorBoard reads them: TFRecords, events and scalars.

Nothing here comes from the program but its output: the checksum and the wire format are written again.

Usage: tensorboard_test.py PROGRAM
"""
import collections
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import PROGRAM, PROJECT, ProgramTest, qkv

EVENTS = "tensorboard/events.out.tfevents.qkv"
VECTORS = """
name = "vectors"
[task]
kind = "static-embedding"
objective = "glove"
train = "train.tsv"
valid = "valid.tsv"
[model]
kind = "static"
width = 8
[train]
steps = 40
eval_every = 10
"""
TASKS = {  # a run of each kind of metrics: its config and options
    "senses": ["tiny.toml"],
    "tags": ["tiny.toml", "--set", "task.kind=tagging", "--set", f"task.train={PROJECT}/datasets/tagging/train.conll",
             "--set", f"task.valid={PROJECT}/datasets/tagging/valid.conll", "--set", "task.test="],
    "copies": ["tiny.toml", "--set", "task.kind=translate", "--set", "model.kind=encoder-decoder",
               "--set", f"task.train={PROJECT}/datasets/sequences/copy/train.tsv",
               "--set", f"task.valid={PROJECT}/datasets/sequences/copy/valid.tsv", "--set", "task.test="],
    "text": ["tiny.toml", "--set", "task.kind=language-model", "--set", "model.kind=decoder", "--set", "task.train=",
             "--set", "task.valid=", "--set", "task.test=", "--set", "task.data=train.tsv"],
    "vectors": ["vectors.toml"],
}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """The records of a file, which must all be complete."""
    while data:
        length, check = struct.unpack("<QI", data[:12])
        assert check == masked(data[:8])
        event, rest = data[12:12 + length], data[12 + length:]
        assert struct.unpack("<I", rest[:4])[0] == masked(event)
        yield event
        data = rest[4:]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def message(data):
    """The fields of a message of Protocol Buffers by number: each a list of integers or bytes."""
    fields, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                assert key & 7 == 2, key
                size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        fields[key >> 3].append(value)
    return fields


def events(file):
    """(time, step, tag, float) of each value."""
    found = []
    for number, data in enumerate(records(file.read_bytes())):
        event = message(data)
        (seconds,) = struct.unpack("<d", event[1][0])
        if number == 0:
            assert event[3] == [b"brain.Event:2"], event
            continue
        for value in message(event[5][0])[1]:
            fields = message(value)
            found.append((seconds, event[2][0], fields[1][0].decode(), struct.unpack("<f", fields[2][0])[0]))
    return found


def scalars(file):
    return [(step, tag, value) for _, step, tag, value in events(file)]


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def scalars_of(metrics):
    """What metrics.jsonl says, in float32."""
    return [(line["step"], f"{name}/{line['split']}", struct.unpack("<f", struct.pack("<f", value))[0])
            for line in metrics for name, value in line.items() if name not in ("step", "split", "seconds")]


class Files(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (pathlib.Path(cls.template.name) / "vectors.toml").write_text(VECTORS)
        for name, options in TASKS.items():
            done = qkv("train", *options, "--run", name, "--set", "train.tensorboard=true", cwd=cls.template.name)
            assert done.returncode == 0, done.stderr

    def test_the_scalars_are_those_of_metrics_jsonl_in_float32_at_its_times(self):
        for name in TASKS:
            metrics = lines(self.folder / name / "metrics.jsonl")
            self.assertEqual(scalars(self.folder / name / EVENTS), scalars_of(metrics))
        points = {(step, tag): seconds for seconds, step, tag, _ in events(self.folder / "senses" / EVENTS)}
        metrics = lines(self.folder / "senses/metrics.jsonl")
        starts = [points[line["step"], f"loss/{line['split']}"] - line["seconds"] for line in metrics]
        self.assertLess(max(starts) - min(starts), 1e-3)
        self.assertLess(abs(time.time() - starts[0]), 3600)

    def test_a_run_without_the_option_has_no_such_files_and_the_same_bits(self):
        self.assertFalse((self.folder / "runs/tiny/tensorboard").exists())
        for line, other in zip(lines(self.folder / "runs/tiny/metrics.jsonl"), lines(self.folder / "senses/metrics.jsonl"),
                               strict=True):
            for timed in ("seconds", "tokens_per_second"):
                self.assertEqual(line.pop(timed, None) is None, other.pop(timed, None) is None)
            self.assertEqual(line, other)
        done = subprocess.run(["h5diff", "runs/tiny/last.h5", "senses/last.h5", "/model"], cwd=self.folder, capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (0, b""))

    def test_a_killed_run_resumes_without_a_point_twice(self):
        run = self.folder / "killed"
        long = ["--set", "train.tensorboard=true", "--set", "train.steps=100000", "--set", "train.checkpoint_every=15"]
        training = subprocess.Popen([PROGRAM, "train", "tiny.toml", "--run", "killed", *long], cwd=self.folder,
                                    stderr=subprocess.PIPE, text=True)
        evaluations = 0
        for line in training.stderr:
            evaluations += line.startswith("step")
            if evaluations == 5:
                break
        training.kill()
        training.communicate()
        with open(run / EVENTS, "ab") as file:
            file.write(b"\x18\0\0\0\0\0\0\0torn")  # as a kill between two bytes leaves it
        step = max(int(path.stem.removeprefix("step-")) for path in (run / "checkpoints").glob("step-*.h5"))
        self.run_qkv("resume", "killed", "--set", f"train.steps={step + 25}")
        found = events(run / EVENTS)  # the whole file is valid
        points = collections.Counter((at, tag) for _, at, tag, _ in found)
        self.assertEqual(set(points.values()), {1})
        self.assertEqual(sorted(scalars(run / EVENTS)), sorted(scalars_of(lines(run / "metrics.jsonl"))))
        times = [seconds for seconds, *_ in found]
        self.assertEqual(times, sorted(times))
        self.run_qkv("resume", "killed")  # a finished run has its test once, too
        self.assertEqual(sorted(scalars(run / EVENTS)), sorted(scalars_of(lines(run / "metrics.jsonl"))))

    def test_a_run_that_had_none_has_all_lines_once_it_resumes_with_the_option(self):
        self.run_qkv("resume", "runs/tiny", "--set", "train.tensorboard=true", "--set", "train.steps=60")
        run = self.folder / "runs/tiny"
        self.assertEqual(sorted(scalars(run / EVENTS)), sorted(scalars_of(lines(run / "metrics.jsonl"))))

    def test_files_that_cannot_be_written_are_said_once_and_stop_nothing(self):
        (self.folder / "blocked").mkdir()
        (self.folder / "blocked/tensorboard").write_text("")
        done = self.run_qkv("train", "tiny.toml", "--run", "blocked", "--set", "train.tensorboard=true")
        self.assertEqual(done.stderr.count("training continues without TensorBoard files"), 1, done.stderr)
        self.assert_same_model("blocked")

    def assert_same_model(self, run):
        done = subprocess.run(["h5diff", f"{run}/last.h5", "runs/tiny/last.h5", "/model"], cwd=self.folder, capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (0, b""))

    def test_files_that_cannot_be_written_from_some_step_on_stop_nothing(self):
        training = subprocess.Popen([PROGRAM, "train", "tiny.toml", "--run", "lost", "--set", "train.tensorboard=true",
                                     "--set", "train.steps=3000"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        text = ""
        for line in training.stderr:
            text += line
            if line.startswith("step") and "tensorboard" not in text:
                shutil.move(self.folder / "lost/tensorboard", self.folder / "elsewhere")
                (self.folder / "lost/tensorboard").write_text("")
                text += "moved tensorboard\n"
        self.assertEqual(training.wait(), 0, text)
        training.stderr.close()
        self.assertEqual(text.count("training continues without TensorBoard files"), 1, text)
        self.assertGreater(len(events(self.folder / "elsewhere" / pathlib.Path(EVENTS).name)), 0)

    def test_training_lines_have_the_learning_rate_and_the_gradient_norm_of_their_step(self):
        self.run_qkv("train", "tiny.toml", "--run", "warm", "--set", "schedule.warmup=40", "--set", "optimizer.lr=0.5",
                     "--set", "train.clip=1e-3", "--set", "train.steps=20")
        train = [line for line in lines(self.folder / "warm/metrics.jsonl") if line["split"] == "train"]
        self.assertEqual([(line["step"], line["learning_rate"]) for line in train], [(10, 0.5 * 10 / 40), (20, 0.5 * 20 / 40)])
        for line in train:
            self.assertGreater(line["gradient_norm"], 1e-3)  # before it is clipped

    def test_the_page_on_metrics_names_every_field_that_runs_write_and_no_other(self):
        fields = {name for run in TASKS for line in lines(self.folder / run / "metrics.jsonl") for name in line}
        page = (PROJECT / "docs/metrics.md").read_text()
        self.assertEqual(set(re.findall(r"^\| `(\w+)` \|", page, re.M)), fields)


if __name__ == "__main__":
    unittest.main()
