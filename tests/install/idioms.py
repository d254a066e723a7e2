"""The program of docs/libtorch.md: the declarations of its first block of C++, then what each row of its tables says.

Usage: idioms.py --write PROGRAM    (fills the last column with what the program prints)
"""
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).parents[2] / "docs/libtorch.md"
ROW = re.compile(r"^\| `(.*?)` \| `(.*?)` \| `(.*?)` \|$", re.MULTILINE)
HEADERS = ("core/creation.h", "core/parallel.h", "core/print.h", "layers/embedding.h", "layers/layer_norm.h", "layers/recurrent.h",
           "layers/transformer.h", "optim/clip.h", "optim/optimizer.h", "optim/schedule.h", "train/storage/module_file.h")


def statement(code):
    """Code whose last expression is printed."""
    *first, last = code.split("; ")
    return f"  [&] {{ {''.join(part + '; ' for part in first)}fmt::print(\"{{}}\\x1e\", {last}); }}();\n"


def source():
    text = PAGE.read_text()
    declarations = re.search(r"```cpp\n(.*?)```", text, re.DOTALL)[1]
    includes = "".join(f"#include <qkv/{header}>\n" for header in HEADERS)
    rows = "".join(statement(code) for _, code, _ in ROW.findall(text))
    return f"#include <fmt/format.h>\n#include <cmath>\n#include <filesystem>\n{includes}int main() {{\n{declarations}{rows}}}\n"


def expected():
    return [prints for _, _, prints in ROW.findall(PAGE.read_text())]


def printed(output):
    """What each row printed, in one line."""
    return [" ".join(part.split()) for part in output.split("\x1e") if part.strip()]


if __name__ == "__main__":
    said = iter(printed(subprocess.run(sys.argv[2], capture_output=True, text=True, check=True).stdout))
    PAGE.write_text(ROW.sub(lambda row: f"| `{row[1]}` | `{row[2]}` | `{next(said)}` |", PAGE.read_text()))
