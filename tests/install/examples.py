"""The C++ examples of the documentation as one program, whose output is what the pages show.

In docs/libtorch.md each row of a table is an example, after the declarations of the first block of C++. On the other pages a
section (##) is a program: a block of C++ with a block of text beneath it is an example, whose statements run in order and print
that text; a block without one declares what they use.

Usage: examples.py --write PROGRAM    (fills in what the program prints)
"""
import pathlib
import re
import subprocess
import sys

DOCS = pathlib.Path(__file__).parents[2] / "docs"
IDIOMS, PROGRAMS = "libtorch.md", ("tutorial.md", "how-to.md")
ROW = re.compile(r"^\| `(?P<libtorch>.*?)` \| `(?P<code>.*?)` \| `(?P<prints>.*?)` \|$", re.MULTILINE)
BLOCK = re.compile(r"```cpp\n(?P<code>.*?)```\n(?:\n```text\n(?P<prints>.*?)```\n)?", re.DOTALL)
INCLUDE = re.compile(r"^#include .*$", re.MULTILINE)
END = 'fmt::print("\\x1e");\n'
HEADERS = ("core/creation.h", "core/parallel.h", "layers/embedding.h", "layers/layer_norm.h", "layers/recurrent.h",
           "layers/transformer.h", "optim/clip.h", "optim/optimizer.h", "optim/schedule.h", "train/storage/module_file.h")


def examples(text):
    """The matches of a page's examples, in order."""
    return [match for pattern in (ROW, BLOCK) for match in pattern.finditer(text) if match["prints"] is not None]


def statement(code):
    """Code whose last expression is printed."""
    *first, last = code.split("; ")
    return f"[&] {{ {''.join(part + '; ' for part in first)}fmt::print(\"{{}}\\n\", {last}); }}();\n{END}"


def idioms(text):
    """The function `examples` of a page of idioms."""
    declarations = re.search(r"```cpp\n(.*?)```", text, re.DOTALL)[1]
    return f"void examples() {{\n{declarations}{''.join(statement(row['code']) for row in ROW.finditer(text))}}}\n"


def programs(name, text):
    """The function `examples` of a page whose sections are programs; the compiler names the lines of the page."""
    functions = []
    for section in re.finditer(r"^## .*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        declarations = statements = ""
        for block in BLOCK.finditer(text, section.start(), section.end()):
            line = text.count("\n", 0, block.start("code")) + 1
            code = f'#line {line} "docs/{name}"\n' + INCLUDE.sub("", block["code"])
            if block["prints"] is None:
                declarations += code
            else:
                statements += code + END
        functions.append(f"namespace section_{len(functions)} {{\n{declarations}void run() {{\n{statements}}}\n}}\n")
    calls = "".join(f"section_{i}::run();\n" for i in range(len(functions)))
    return f"{''.join(functions)}void examples() {{\n{calls}}}\n"


def source():
    """One program of all pages, in one translation unit."""
    pages = {name: (DOCS / name).read_text() for name in PROGRAMS}
    includes = [f"#include <{name}>" for name in ("fmt/format.h", "cmath", "filesystem", *(f"qkv/{name}" for name in HEADERS))]
    includes += [include for text in pages.values() for include in INCLUDE.findall(text)]
    functions = {IDIOMS: idioms((DOCS / IDIOMS).read_text()), **{name: programs(name, text) for name, text in pages.items()}}
    parts = [f"namespace page_{i} {{\n{function}}}\n" for i, function in enumerate(functions.values())]
    calls = "".join(f"page_{i}::examples();\n" for i in range(len(parts)))
    return "\n".join([*dict.fromkeys(includes), *parts]) + f"int main() {{\n{calls}}}\n"


def shown(name, prints):
    """What an example prints as its page shows it: in a row of a table as one line."""
    return " ".join(prints.split()) if name == IDIOMS else prints


def differences(output, texts):
    """(number of examples, what the program prints otherwise than the pages, given as their texts by name)."""
    printed = output.split("\x1e")[:-1]
    expected = [(name, example) for name, text in texts.items() for example in examples(text)]
    assert len(printed) == len(expected), f"{len(printed)} examples ran, the pages have {len(expected)}"
    return len(expected), [f"docs/{name}\n{example['code']}\nprints:\n{now}\nthe page says:\n{example['prints']}"
                           for now, (name, example) in zip(printed, expected) if shown(name, now) != example["prints"]]


def pages():
    """The texts of the pages, in the order in which the program runs their examples."""
    return {name: (DOCS / name).read_text() for name in (IDIOMS, *PROGRAMS)}


def rewrite(output):
    """Fills what the program prints into the pages."""
    printed = iter(output.split("\x1e"))
    for name, text in pages().items():
        for example, now in [(example, next(printed)) for example in examples(text)][::-1]:
            text = text[:example.start("prints")] + shown(name, now) + text[example.end("prints"):]
        (DOCS / name).write_text(text)


if __name__ == "__main__":
    rewrite(subprocess.run(sys.argv[2], capture_output=True, text=True, check=True).stdout)
