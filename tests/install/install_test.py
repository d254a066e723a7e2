"""A program of its own builds against the installed package, by find_package and by pkg-config, and learns XOR.

Usage: install_test.py BUILD    (the build folder of qkv)
"""
import os
import pathlib
import subprocess
import sys
import tempfile

source = pathlib.Path(__file__).parent


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, text=True, capture_output=True, **options).stdout


with tempfile.TemporaryDirectory() as folder:
    prefix, build = pathlib.Path(folder, "installed"), pathlib.Path(folder, "build")
    run("cmake", "--install", sys.argv[1], "--prefix", prefix)
    assert "qkv" in run(prefix / "bin/qkv", "--help")

    run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", build)
    assert run(build / "xor").startswith("loss 0.0")

    package, = prefix.glob("**/pkgconfig")
    flags = run("pkg-config", "--cflags", "--libs", "qkv", env={**os.environ, "PKG_CONFIG_PATH": str(package)}).split()
    run("c++", source / "xor.cpp", "-o", build / "xor-by-pkg-config", *flags)
    assert run(build / "xor-by-pkg-config").startswith("loss 0.0")
