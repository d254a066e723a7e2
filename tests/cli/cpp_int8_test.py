"""Headers of C++ whose weights are int8 with a scale for each row (qkv export --cpp --int8).

Usage: cpp_int8_test.py PROGRAM
"""
import pathlib
import subprocess
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import ProgramTest

MAIN = """
#include <iostream>
#include "float32.h"
#include "int8.h"

int main() {
  for (std::string line; std::getline(std::cin, line);)
    std::cout << qkv_float32::predict(line)[0].label << ' ' << qkv_int8::predict(line)[0].label << '\\n';
  for (const auto& parameter : qkv_int8::description().parameters) {
    const qkv_int8::Weights weights = qkv_int8::weights_of(parameter.path);
    std::cout << parameter.path;
    for (std::size_t i = 0; i < weights.rows * weights.columns; ++i) std::cout << ' ' << std::hexfloat << weights.values[i];
    std::cout << '\\n';
  }
}
"""


class Int8(ProgramTest):
    def setUp(self):
        super().setUp()
        for name, options in (("float32", []), ("int8", ["--int8"])):
            self.run_qkv("export", "runs/tiny", "--cpp", f"{name}.h", *options)

    def compiled(self):
        """What the program of both headers prints about the test texts, and the weights of the one with int8."""
        (self.folder / "main.cpp").write_text(MAIN)
        flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
        done = subprocess.run(["g++", *flags, "main.cpp", "-o", "main"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[:4000])
        texts = [line.split("\t")[-1] for line in (self.folder / "test.tsv").read_text().splitlines()]
        done = subprocess.run("./main", cwd=self.folder, input="\n".join(texts), capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        return [line.split() for line in lines[:len(texts)]], [line.split() for line in lines[len(texts):]]

    def test_weights_are_off_by_half_a_step_at_most_and_answers_stay(self):
        answers, weights = self.compiled()
        self.assertGreaterEqual(sum(a == b for a, b in answers), 0.95 * len(answers))
        with h5py.File(self.folder / "runs/tiny/best.h5") as file:
            for path, *values in weights:
                value = file["model/" + path.replace(".", "/")][()]
                found = [float.fromhex(text) for text in values]
                if value.ndim < 2:
                    self.assertEqual(found, value.tolist(), path)
                    continue
                columns = value.size // len(value)
                for i, row in enumerate(value.reshape(len(value), columns).tolist()):
                    step = max(map(abs, row)) / 127
                    for mine, its in zip(found[i * columns:(i + 1) * columns], row, strict=True):
                        self.assertLessEqual(abs(mine - its), step / 2 * (1 + 1e-5), f"{path} row {i}")

    def test_a_header_with_int8_is_smaller(self):
        self.assertLess((self.folder / "int8.h").stat().st_size, (self.folder / "float32.h").stat().st_size)

    def test_int8_without_a_header_is_refused(self):
        self.assert_refused(["export", "runs/tiny", "--int8", "--safetensors", "x.safetensors"], "--int8", "--cpp FILE")


if __name__ == "__main__":
    unittest.main()
