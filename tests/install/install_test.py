"""A program of its own builds against qkv, by find_package, by pkg-config, by add_subdirectory and by FetchContent, and learns
XOR; the installed program trains with the installed configs.

Usage: install_test.py BUILD GENERATOR COMPILER    (the build folder of qkv, and what CMake built it with)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import examples

source = pathlib.Path(__file__).parent
project = source.parents[1]
qkv_build, generator, compiler = sys.argv[1:]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


def built(folder, *options):
    run("cmake", "-G", generator, "-S", source, "-B", folder, f"-DCMAKE_CXX_COMPILER={compiler}",
        "-DCMAKE_BUILD_TYPE=Release", *options)
    run("cmake", "--build", folder)
    return folder


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    prefix = folder / "installed"
    run("cmake", "--install", qkv_build, "--prefix", prefix)
    assert "qkv" in run(prefix / "bin/qkv", "--help")
    # No header gives a warning to a project with strict flags.
    include = prefix / "include"
    headers = sorted((include / "qkv").rglob("*.h"))
    (folder / "headers.cpp").write_text("".join(f'#include "{header.relative_to(include)}"\n' for header in headers))
    run(compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", "-I", include,
        folder / "headers.cpp")
    programs = built(folder / "package", f"-DCMAKE_PREFIX_PATH={prefix}")
    assert run(programs / "xor").startswith("loss 0.0")
    assert run(programs / "softsign") == "gradient right\n"
    assert run(programs / "resume", cwd=folder) == "resumed exactly\n"
    rows = [(i % 7, i % 5, i % 3) for i in range(200)]
    (folder / "table.csv").write_text("a,b,c,y\n" + "".join(f"{a},{b},{c},{a - b + c * c}\n" for a, b, c in rows))
    assert run(programs / "table", folder / "table.csv", cwd=folder).startswith("error 0.")
    assert run(programs / "tagger", project / "datasets/tagging/train.conll").startswith("victoria/B-PER took/O the/O ")
    assert run(programs / "text_classifier").startswith(("good: 0.9", "good: 1.0"))
    # Its training is finished at the second call.
    said = run(programs / "trainer", folder / "square")
    assert said.startswith("step 100: loss 0.") and said.splitlines()[-1].startswith("test loss 0.0")
    assert run(programs / "trainer", folder / "square") == said.splitlines(keepends=True)[-1]
    refused = subprocess.run([prefix / "bin/qkv", "predict", folder / "square", "a"], text=True, capture_output=True)
    assert "module of its own" in refused.stderr, refused.stderr

    # A config in the installed tree finds its data there; the run goes to the working folder.
    share = prefix / "share/qkv"
    installed = sorted(share.rglob("*"))
    run(prefix / "bin/qkv", "train", share / "configs/bank.toml", "--set", "train.steps=2", cwd=folder)
    assert (folder / "runs/bank/last.h5").exists() and sorted(share.rglob("*")) == installed

    # A program loads what was trained, and says of it what qkv's commands say.
    def said(run_folder, *command):
        return json.loads(run(prefix / "bin/qkv", command[0], run_folder, *command[1:], "--json", cwd=folder))

    def flat(x):
        return [y for row in x for y in flat(row)] if isinstance(x, list) else [x]

    (folder / "play.txt").write_text("To be, or not to be, that is the question.\n" * 50)
    assert run(programs / "char_gpt", folder / "play.txt", "200", cwd=folder).endswith(", or not to be, that is the question.\nTo")
    play = f"task.data={folder}/play.txt"
    for name, text, steps, *options in (("bank", "the boat lay on the bank", 150),
                                        ("idiom", "ravi let the cat out of the bag .", 40),
                                        ("shakespeare", "To be", 40, "--set", play, "--set", "train.batch=2")):
        trained = f"runs/used-{name}"
        run(prefix / "bin/qkv", "train", share / f"configs/{name}.toml", "--set", f"train.steps={steps}", "--run", trained,
            *options, cwd=folder)
        used = run(programs / "use", folder / trained, text)
        if name == "shakespeare":
            assert used == said(trained, "generate", "--prompt", text, "--tokens", "20", "--temperature", "0")["text"]
            continue
        used = json.loads(used)
        for (label, probability, each), expected in zip(used["predictions"], said(trained, "predict", text)["predictions"], strict=True):
            assert (label, probability) == (expected.get("label", expected.get("output")), expected["probability"]), expected
            assert each == list(expected.get("probabilities", {}).values()), expected
        attention = said(trained, "attend", text)
        for layers, key in (used["layers"], "layers"), (used["cross"], "cross"):
            assert layers == [flat(layer["heads"]) for layer in attention.get(key, [])], key

    package, = prefix.glob("**/pkgconfig")
    for program, name, *arguments in ("xor", "qkv"), ("resume", "qkv-storage"), ("use", "qkv-inference", "runs/used-bank", "the bank"):
        flags = run("pkg-config", "--cflags", "--libs", name, env={**os.environ, "PKG_CONFIG_PATH": str(package)}).split()
        own = os.environ.get("CXXFLAGS", "").split()  # such as -stdlib=libc++, which the library was built with
        run(compiler, *own, source / f"{program}.cpp", "-o", folder / f"{program}-by-pkg-config", *flags)
        said = run(folder / f"{program}-by-pkg-config", *arguments, cwd=folder)
        assert said.startswith(("loss 0.0", "resumed exactly", '{"predictions":')), said

    # The examples of docs/libtorch.md, tutorial.md and how-to.md print what the pages show; one that prints otherwise is found.
    reader = folder / "reader"
    (reader / "runs").mkdir(parents=True)
    (reader / "runs/bank").symlink_to(folder / "runs/used-bank")
    run(prefix / "bin/qkv", "export", "runs/bank", "--cpp", "bank.h", cwd=reader)
    (reader / "examples.cpp").write_text(examples.source())
    flags = run("pkg-config", "--cflags", "--libs", "qkv-inference", env={**os.environ, "PKG_CONFIG_PATH": package}).split()
    run(compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", *own, reader / "examples.cpp",
        "-o", reader / "examples", *flags)
    output, pages = run(reader / "examples", cwd=reader), examples.pages()
    count, wrong = examples.differences(output, pages)
    assert not wrong, "\n".join(wrong)
    assert len(examples.differences(output, {**pages, "tutorial.md": pages["tutorial.md"].replace("row sums", "sums")})[1]) == 1
    assert count >= 60, count
    print(f"{count} examples of the documentation compiled, run, and their output compared")

    # The library needs none of what only the program needs. Configuring shows it, and one source that its headers serve;
    # building it all again would not show more.
    without = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("HDF5", "tomlplusplus", "CLI11", "doctest", "BLAS",
                                                                    "xtensor-blas")]
    for way in "SUBDIRECTORY", "FETCHED":
        run("cmake", "-G", generator, "-S", source, "-B", folder / way, f"-DCMAKE_CXX_COMPILER={compiler}",
            f"-DQKV_{way}={project}", *without)
        rules = run("cmake", "--build", folder / way, "--target", "help")
        assert "qkv_layers" in rules and "qkv_train" not in rules, rules
    if generator == "Ninja":
        run("cmake", "--build", folder / "FETCHED", "--target", "CMakeFiles/xor.dir/xor.cpp.o")
