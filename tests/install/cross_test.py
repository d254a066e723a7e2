"""Cross builds and portable builds ask the compiler for no other processor than theirs, and static ones for archives alone.

Usage: cross_test.py GENERATOR CXX_COMPILER
"""
import pathlib
import re
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).parents[2]
GENERATOR, COMPILER = sys.argv[1:]
LEVELS = {"x86_64": "x86-64-v2", "aarch64": "armv8-a", "arm64": "armv8-a", "riscv64": "generic", "ppc64le": "generic"}


def configured(*options):
    """CMakeCache.txt of a build, and its instructions."""
    with tempfile.TemporaryDirectory() as build:
        subprocess.run(["cmake", "-S", PROJECT, "-B", build, "-G", GENERATOR, f"-DCMAKE_CXX_COMPILER={COMPILER}", "-DQKV_TESTS=OFF",
                        *options], check=True, capture_output=True)
        links = [file.read_text() for file in pathlib.Path(build).rglob("*") if file.name in ("build.ninja", "link.txt")]
        return pathlib.Path(build, "CMakeCache.txt").read_text(), "\n".join(links)


def level(processor, *options):
    """QKV_LEVEL of a configuration of the library; this machine's compiler stands in for the other's."""
    cache, _ = configured("-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={processor}", "-DQKV_PROGRAM=OFF", *options)
    return cache.split("QKV_LEVEL:STRING=")[1].split("\n")[0]


for processor, expected in LEVELS.items():
    assert level(processor) == expected, (processor, level(processor))
assert level("x86_64", "-DQKV_PORTABLE=ON") == "x86-64-v2"
# script/release makes the static program on Debian 12, where each library has an archive that CMake finds.
release = pathlib.Path("/etc/os-release")
if release.exists() and 'VERSION_ID="12"' in release.read_text():
    assert not re.search(r"\S+\.so\b", configured("-DQKV_STATIC=ON")[1])
