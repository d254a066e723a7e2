"""Every test that docs/guarantees.md names exists."""
import pathlib
import re

PROJECT = pathlib.Path(__file__).parents[1]
TEXT = r'"((?:[^"\\]|\\.)*)"'


def tests_in(file):
    """The names of a file's tests; of a script, its functions."""
    text = file.read_text()
    if file.suffix == ".cpp":
        cases = re.findall(rf"TEST_CASE\(\s*((?:{TEXT}\s*)+)\)", text)
        return {"".join(re.findall(TEXT, case[0])) for case in cases}
    return set(re.findall(r"def (\w+)\(", text))


named = re.findall(r"`((?:tests|script)/[^`:]+): ([^`]+)`", (PROJECT / "docs/guarantees.md").read_text())
assert len(named) > 50, named
missing = [f"{file}: {test}" for file, test in named
           if not (PROJECT / file).is_file() or test not in tests_in(PROJECT / file)]
assert not missing, "docs/guarantees.md names tests that do not exist:\n" + "\n".join(missing)
