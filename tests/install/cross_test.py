"""Cross builds and portable builds ask the compiler for no other processor than theirs.

Usage: cross_test.py GENERATOR CXX_COMPILER
"""
import pathlib
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).parents[2]
GENERATOR, COMPILER = sys.argv[1:]
LEVELS = {"x86_64": "x86-64-v2", "aarch64": "armv8-a", "arm64": "armv8-a", "riscv64": "generic", "ppc64le": "generic"}


def level(processor, *options):
    """QKV_LEVEL of a configuration of the library; this machine's compiler stands in for the other's."""
    with tempfile.TemporaryDirectory() as build:
        subprocess.run(["cmake", "-S", PROJECT, "-B", build, "-G", GENERATOR, "-DCMAKE_SYSTEM_NAME=Linux",
                        f"-DCMAKE_SYSTEM_PROCESSOR={processor}", f"-DCMAKE_CXX_COMPILER={COMPILER}", "-DQKV_PROGRAM=OFF",
                        "-DQKV_TESTS=OFF", *options], check=True, capture_output=True)
        cache = pathlib.Path(build, "CMakeCache.txt").read_text()
    return cache.split("QKV_LEVEL:STRING=")[1].split("\n")[0]


for processor, expected in LEVELS.items():
    assert level(processor) == expected, (processor, level(processor))
assert level("x86_64", "-DQKV_PORTABLE=ON") == "x86-64-v2"
