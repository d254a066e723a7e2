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
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    prefix, build = pathlib.Path(folder, "installed"), pathlib.Path(folder, "build")
    run("cmake", "--install", sys.argv[1], "--prefix", prefix)
    assert "qkv" in run(prefix / "bin/qkv", "--help")

    run("cmake", "-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", build)
    assert run(build / "xor").startswith("loss 0.0")

    package, = prefix.glob("**/pkgconfig")
    flags = run("pkg-config", "--cflags", "--libs", "qkv", env={**os.environ, "PKG_CONFIG_PATH": str(package)}).split()
    run("c++", source / "xor.cpp", "-o", build / "xor-by-pkg-config", *flags)
    assert run(build / "xor-by-pkg-config").startswith("loss 0.0")
