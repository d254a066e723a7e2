"""Public headers of core, layers and optim, but for core/xtensor.h, include nothing that takes long to compile.

Usage: public_headers_test.py COMPILER INCLUDE    (the folder of the public headers)
"""
import pathlib
import re
import subprocess
import sys

# Headers of the standard library that belong in .cpp files; <iosfwd> declares streams.
HEAVY = {
    "chrono", "condition_variable", "deque", "format", "fstream", "future", "iomanip", "iostream", "istream", "list", "locale",
    "mutex", "numeric", "ostream", "queue", "random", "ranges", "regex", "set", "sstream", "unordered_map", "unordered_set",
    "valarray", "variant",
}
# The only headers from elsewhere.
OTHERS = {"fmt/core.h", "emmintrin.h"}

compiler, include = sys.argv[1], pathlib.Path(sys.argv[2])


def direct_includes(headers):
    """Pairs of a public header and a header from elsewhere that was not included before: a second time costs nothing."""
    source = "".join(f"#include <{header}>\n" for header in headers)
    done = subprocess.run([compiler, "-std=c++20", "-E", "-H", "-I", include, "-x", "c++", "-"], input=source, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    stack = []
    for dots, name in re.findall(r"^(\.+) (.*)$", done.stderr, re.MULTILINE):
        path = pathlib.Path(name)
        stack[len(dots) - 1:] = [path]
        if len(stack) > 1 and stack[-2].is_relative_to(include) and not path.is_relative_to(include):
            yield stack[-2].relative_to(include), f"fmt/{path.name}" if path.parent.name == "fmt" else path.name


def is_heavy(name):
    return name in HEAVY or "." in name and name not in OTHERS


headers = [path.relative_to(include) for folder in ("core", "layers", "optim")
           for path in sorted((include / "qkv" / folder).rglob("*.h")) if path.name != "xtensor.h"]
found = list(direct_includes(headers))
assert found, "no includes were found"
heavy = [f"{header} includes <{name}>, which takes long to compile: declare what it needs, or move it to a .cpp file"
         for header, name in found if is_heavy(name)]
assert not heavy, "\n".join(heavy)
