"""What the scripts do on machines unlike this one: programs that they call are replaced by small ones of our own."""
import json
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

PROJECT = pathlib.Path(__file__).parents[2]
SHELL_TOOLS = ("bash", "env", "dirname", "grep", "sed", "mkdir", "rm", "find", "sort", "xargs", "nproc", "tee", "cat",
               "sleep", "true", "chmod", "awk")


class ScriptTest(unittest.TestCase):
    """Every test has a copy of the scripts in a folder of its own, and a PATH with nothing but what it puts there."""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        shutil.copytree(PROJECT / "script", self.folder / "script")
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for tool in SHELL_TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.calls = self.folder / "calls"

    def program(self, name, body="", code=0):
        """A program that notes how it was called."""
        file = self.bin / name
        file.write_text(f'#!{shutil.which("bash")}\necho "{name} $*" >>"{self.calls}"\n{body}\nexit {code}\n')
        file.chmod(0o755)

    def run_script(self, *command, **options):
        return subprocess.run([self.bin / "bash", f"script/{command[0]}", *command[1:]], cwd=self.folder, text=True,
                              env={"PATH": str(self.bin)}, capture_output=True, timeout=30,
                              **({"stdin": subprocess.DEVNULL} | options))

    def called(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []


class Bootstrap(ScriptTest):
    def user(self, number):
        self.program("id", f"echo {number}")

    def test_installs_nothing_where_every_package_is_installed(self):
        self.program("dpkg-query", "echo -n installed")
        self.assertEqual(self.run_script("bootstrap", "--tests").returncode, 0)
        self.assertEqual({call.split()[0] for call in self.called()}, {"dpkg-query"})

    def test_goes_on_without_packages_where_cmake_finds_everything(self):
        self.user(1000)
        self.program("cmake")
        done = self.run_script("bootstrap")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_without_rights_names_the_packages_and_the_command_for_root(self):
        self.user(1000)
        self.program("apt-get")
        self.program("dpkg-query", '[[ $4 == cmake ]] && echo -n installed')
        done = self.run_script("bootstrap")
        self.assertEqual(done.returncode, 1)
        self.assertIn("as root, run: apt-get update && apt-get install --no-install-recommends g++ ninja-build",
                      done.stderr)
        self.assertNotIn("apt-get update", self.called())

    def test_a_sudo_that_needs_a_password_is_not_asked_without_a_terminal(self):
        self.user(1000)
        self.program("apt-get")
        self.program("sudo", code=1)
        done = self.run_script("bootstrap")
        self.assertEqual(done.returncode, 1)
        self.assertIn("as root, run:", done.stderr)
        self.assertEqual([call for call in self.called() if call.startswith("sudo")], ["sudo -n true"])

    def test_elsewhere_says_what_cmake_did_not_find(self):
        self.user(0)
        self.program("cmake", 'echo "CMake Error: Could NOT find HDF5"', code=1)
        done = self.run_script("bootstrap")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Could NOT find HDF5", done.stderr)
        self.assertIn("libhdf5-dev", done.stderr)

    def test_as_root_says_how_much_it_installs_before_it_does(self):
        self.user(0)
        self.program("apt-get", 'case "$*" in *--assume-no*) echo "Need to get 115 MB of archives."; exit 1;; esac')
        done = self.run_script("bootstrap")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Need to get 115 MB", done.stderr)
        steps = [call.split(" --no-install-recommends")[0] for call in self.called() if call.startswith("apt-get")]
        self.assertEqual(steps, ["apt-get update -q", "apt-get install", "apt-get install"])

    def test_leaves_out_packages_of_tests_that_a_release_lacks(self):
        """Ubuntu 24.04 has no python3-torch, and apt refuses a list with one name that it does not know."""
        self.user(0)
        self.program("apt-get")
        self.program("apt-cache", '[[ $2 != python3-torch ]] || exit 100')
        done = self.run_script("bootstrap", "--tests")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not in this release: python3-torch\n", done.stderr)
        installed = [call for call in self.called() if " install " in call][-1].split()
        self.assertIn("doctest-dev", installed)
        self.assertIn("chromium", installed)
        self.assertNotIn("python3-torch", installed)

    def test_without_rights_goes_on_when_only_optional_packages_are_missing(self):
        self.user(1000)
        self.program("dpkg-query", '[[ $4 == chromium ]] || echo -n installed')
        self.program("apt-get")
        self.assertEqual(self.run_script("bootstrap", "--tests").returncode, 0)
        self.assertNotIn("apt-get", " ".join(self.called()))


class Lint(ScriptTest):
    def setUp(self):
        super().setUp()
        for tool in ("clang-format", "clang-tidy"):
            self.program(tool)
        self.program("cmake", """mkdir -p build/lint; printf '  "file": "%s"\n' /q/core/a.cpp /q/build/page_files.cpp """
                              ">build/lint/compile_commands.json")
        (self.folder / ".red-line").touch()

    def test_lists_sources_without_git_and_passes_over_what_was_built(self):
        for name in ("core/a.cpp", "core/a.h", "tests/b.cpp", "build/release/c.cpp", "runs/d.cpp"):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).touch()
        self.assertEqual(self.run_script("lint").returncode, 0)
        calls = "\n".join(self.called())
        self.assertIn("clang-format --dry-run --Werror ./core/a.cpp ./core/a.h ./tests/b.cpp\n", calls)
        self.assertEqual(re.findall(r"^clang-tidy.* (\S+)$", calls, re.MULTILINE), ["/q/core/a.cpp"])

    def test_without_sources_fails(self):
        self.assertEqual(self.run_script("lint").returncode, 1)

    def lengths(self, lines, red_line):
        """What lint says of core/long.cpp with so many lines, and blank ones between them."""
        (self.folder / "core").mkdir(exist_ok=True)
        (self.folder / "core/long.cpp").write_text("int a;\n  \n" * lines)
        (self.folder / ".red-line").write_text("# path limit reason\n" + red_line)
        done = self.run_script("lint")
        return done.returncode, done.stdout.splitlines()[0]

    def test_a_file_of_more_than_300_lines_needs_a_reason(self):
        self.assertEqual(self.lengths(300, ""), (0, "lint: clean"))
        self.assertEqual(self.lengths(301, ""), (1, "core/long.cpp: 301 lines, at most 300 (.red-line)"))
        self.assertEqual(self.lengths(301, "core/long.cpp 301 a table, one row an option\n"), (0, "lint: clean"))
        self.assertEqual(self.lengths(301, "core/long.cpp 301\n"), (1, ".red-line: core/long.cpp has no reason"))

    def test_an_exception_does_not_grow_and_goes_when_it_is_none(self):
        self.assertEqual(self.lengths(302, "core/long.cpp 301 a table\n"), (1, "core/long.cpp: 302 lines, at most 301 (.red-line)"))
        self.assertEqual(self.lengths(200, "core/long.cpp 301 a table\n"),
                         (1, ".red-line: core/long.cpp is no exception any more; remove its line"))

    def test_shows_what_clang_tidy_says_when_it_fails(self):
        (self.folder / "a.cpp").touch()
        self.program("clang-tidy", 'echo "error: \'x.h\' file not found" >&2', code=1)
        done = self.run_script("lint")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("'x.h' file not found", done.stdout)


class Arm64(ScriptTest):
    def test_without_a_compiler_or_qemu_it_is_skipped_and_says_what_to_install(self):
        for tool in ("aarch64-linux-gnu-g++", "qemu-aarch64-static"):
            with self.subTest(tool):
                done = self.run_script("arm64")
                self.assertEqual((done.returncode, done.stderr), (77, ""))
                self.assertIn(f"no {tool}; on Debian: apt-get install g++-aarch64-linux-gnu qemu-user-static", done.stdout)
            self.program(tool)
        self.assertEqual(self.called(), [])


class Compilers(ScriptTest):
    def test_checks_every_source_and_shows_what_a_compiler_says(self):
        self.program("cmake", """[[ $1 != --build ]] || exit 0; while [[ $1 != -B ]]; do shift; done; mkdir -p "$2"
                              printf '  "command": "clang++-16 -O3 -c /q/%s",\n' a.cpp page_files.cpp >"$2"/compile_commands.json""")
        self.program("clang++-16")
        self.assertEqual(self.run_script("compilers", "--none").returncode, 2)
        for tool in ("tr", "bash"):
            if not (self.bin / tool).exists():
                (self.bin / tool).symlink_to(shutil.which(tool))
        done = self.run_script("compilers", "--all")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("skipped libc++: no clang++-19", done.stdout)
        self.assertEqual([call for call in self.called() if call.startswith("clang")], ['clang++-16 -O3 -c /q/a.cpp -fsyntax-only'])
        self.program("clang++-16", "echo 'a.cpp:1: error: no'", code=1)
        done = self.run_script("compilers", "--all")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("a.cpp:1: error: no", done.stdout)

    def test_without_a_compiler_is_skipped(self):
        self.assertEqual(self.run_script("compilers").returncode, 77)


class Everywhere(ScriptTest):
    def test_without_rights_or_debootstrap_is_skipped_and_says_what_to_install(self):
        for user in (1000, 0):
            self.program("id", f"echo {user}")
            done = self.run_script("everywhere")
            self.assertEqual(done.returncode, 77)
            self.assertIn("apt-get install debootstrap", done.stdout)


class Package(ScriptTest):
    def test_without_debian_s_tools_says_what_to_install(self):
        done = self.run_script("package")
        self.assertEqual((done.returncode, done.stderr), (77, ""))
        self.assertIn("there is no dpkg-buildpackage; as root, run: apt-get install dpkg-dev", done.stdout)

    def test_names_the_command_that_installs_what_is_missing_to_build(self):
        self.program("dpkg-buildpackage")
        self.program("dpkg-checkbuilddeps", code=1)
        done = self.run_script("package")
        self.assertEqual((done.returncode, done.stderr), (77, ""))
        self.assertIn("as root, run: apt-get build-dep .", done.stdout)

    def test_wrong_arguments_are_answered_by_the_usage(self):
        for script, *arguments in ("package", "--all"), ("release", "--all"), ("release", "--check", "v1", "v2"):
            with self.subTest(script):
                done = self.run_script(script, *arguments)
                self.assertEqual((done.returncode, done.stderr[:14]), (2, "usage: script/"))


class Packaging(unittest.TestCase):
    """What is stated in several files."""

    def test_every_file_names_the_same_version(self):
        version = re.search(r"project\(qkv VERSION (\S+)", (PROJECT / "CMakeLists.txt").read_text())[1]
        self.assertEqual(tomllib.loads((PROJECT / "python/pyproject.toml").read_text())["project"]["version"], version)
        self.assertRegex((PROJECT / "debian/changelog").read_text(), rf"^qkv \({re.escape(version)}-\d+\) ")

    def test_packages_are_built_from_what_bootstrap_installs(self):
        source = (PROJECT / "debian/control").read_text().split("\n\n")[0]
        needed = re.search(r"Build-Depends:((?:\n .*)+)", source)[1].replace(",", "").split("\n ")[1:]
        libraries = subprocess.run([PROJECT / "script/bootstrap", "--libraries"], check=True, capture_output=True, text=True)
        self.assertEqual([name for name in needed if name not in (
            "debhelper-compat (= 13)", "dh-python", "python3:any", "cmake", "ninja-build", "pkgconf")], libraries.stdout.split())


class EveryScript(ScriptTest):
    def test_reads_nothing_from_its_caller(self):
        """Programs that read all of their input would wait forever for the end of ours."""
        for tool in ("cmake", "ctest", "apt-get", "clang-format", "clang-tidy", "sudo"):
            self.program(tool, "cat >/dev/null")
        self.program("id", "echo 0")
        (self.folder / "a.cpp").touch()
        (self.folder / ".red-line").touch()
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        for script in ("bootstrap", "build", "demo", "lint", "test"):
            with self.subTest(script):
                self.run_script(script, stdin=reader)


class Demo(ScriptTest):
    def test_suggests_only_commands_of_the_program_that_it_built(self):
        self.program("dpkg-query", "echo -n installed")
        self.program("cmake")
        self.program("qkv")
        (self.folder / "build/release").mkdir(parents=True)
        (self.folder / "build/release/qkv").symlink_to(self.bin / "qkv")
        done = self.run_script("demo")
        self.assertEqual(done.returncode, 0, done.stderr)
        suggested = re.findall(r"^  (.*)$", done.stdout.split("Look further:")[1], re.MULTILINE)
        self.assertTrue(suggested)
        for command in suggested:
            self.assertTrue(command.startswith("build/release/qkv "), command)


class RealTextTest(ScriptTest):
    """script/real-text beside a program that answers with fixed results."""

    FIT = {"metric": "accuracy", "expected": {"mean": 0.8, "low": 0.7, "high": 0.9}}

    def setUp(self):
        super().setUp()
        fit = lambda confusion, accuracy: json.dumps({**self.FIT, "test": {"confusion": confusion, "accuracy": accuracy}})
        self.program("qkv", f"""case "$*" in
            train*) echo '{{"seconds": 1.5, "test": {{"confusion": [[2, 0], [1, 1]]}}}}';;
            compare*) echo '{{"variants": [{{"name": "learned attention", "seeds": [
                {{"test": {{"confusion": [[3, 1], [0, 4]]}}}}, {{"test": {{"confusion": [[4, 0], [0, 4]]}}}}]}}]}}';;
            fit*seed=1) echo '{fit([[3, 1], [0, 4]], 0.875)}';;
            fit*) echo '{fit([[4, 0], [0, 4]], 1)}';;
            esac""")

    def real_text(self, *arguments):
        done = subprocess.run([sys.executable, self.folder / "script/real-text", *arguments], cwd=self.folder, text=True,
                              env={"PATH": str(self.bin), "QKV": str(self.bin / "qkv")}, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def write_word(self):
        word = self.folder / "bank"
        word.mkdir()
        sentences = ["1\tmoney bank grows", "0\tbank of money", "1\triver bank floods", "0\tbank of rivers"]
        for split, repeats in (("train", 5), ("test", 2)):
            (word / f"{split}.data.txt").write_text("\n".join(sentences * repeats))
            (word / f"{split}.gold.txt").write_text("\n".join("0011" * repeats))
        (word / "classes_map.txt").write_text('{"0": "money", "1": "river"}')

    def write_sentences(self):
        (self.folder / "train.tsv").write_text("good\ta warm film\nbad\ta dull film\n" * 5)
        (self.folder / "test.tsv").write_text("good\ta warm Warm film\nbad\tdull\n")
        return "train.tsv", "test.tsv", "test.tsv"

    def test_tabulates_words_beside_the_yardsticks_over_the_seeds(self):
        self.write_word()
        self.assertEqual(self.real_text("--words", "bank", "--seeds", "2"), [
            "| word (training sentences, senses) | naive Bayes | NBSVM | tf-idf | learned attention |",
            "|---|---:|---:|---:|---:|",
            "| bank (20, 2) | 100.0 / 100.0 | 100.0 / 100.0 | 100.0 / 100.0 | 93.8 ± 8.8 / 93.7 ± 9.0 |",
            "| mean macro F1 | 100.0 | 100.0 | 100.0 | 93.7 ± 9.0 |",
            "| pooled accuracy | 100.0 | 100.0 | 100.0 | 93.8 ± 8.8 |"])
        [call] = self.called()
        self.assertRegex(call, r"^qkv compare .*/configs/coarsewsd.toml --json --set=task.train=.*/train.tsv "
                               r"--set=task.test=.*/test.tsv --seeds 2$")

    def test_tabulates_sentences_with_the_seconds_of_a_run(self):
        self.assertEqual(self.real_text("--sentences", *self.write_sentences(), "--seeds", "1"), [
            "| sentences (training, classes) | naive Bayes | NBSVM | tf-idf | configs/classify.toml | seconds a run |",
            "|---|---:|---:|---:|---:|---:|",
            "| train.tsv (10, 2) | 100.0 / 100.0 | 100.0 / 100.0 | 100.0 / 100.0 | 75.0 / 73.3 | 1.5 |"])

    def test_counts_the_seeds_whose_test_score_fit_expected(self):
        self.write_word()
        for arguments in (("--words", "bank"), ("--sentences", *self.write_sentences())):
            with self.subTest(arguments[0]):
                heading, _, row, *_ = self.real_text(*arguments, "--seeds", "2", "--fit", "90s")
                self.assertEqual(heading.split(" | ")[4:], ["qkv fit", "expected (95 %)", "inside", "seconds of 90s |"])
                self.assertRegex(row, r"\| 93.8 ± 8.8 / 93.7 ± 9.0 \| accuracy 80.0 ± 0.0 \(70.0 ± 0.0 to 90.0 ± 0.0\) \| "
                                      r"1 of 2 \| \d+\.\d \|$")
        self.assertRegex(self.called()[0], r"^qkv fit .*/train.tsv --json --test .*/test.tsv --time 90s --run best --set=seed=1$")

    def test_measures_the_yardsticks_alone_without_seeds(self):
        self.write_word()
        heading, *_ = self.real_text("--words", "bank", "--seeds", "0", "--folds", "2")
        self.assertEqual(heading, "| word (training sentences, senses) | naive Bayes | NBSVM | tf-idf |")
        self.assertEqual(self.called(), [])

    def test_checks_the_yardsticks_on_all_sentences_of_the_files(self):
        files = self.write_sentences()[:2]
        self.assertEqual(self.real_text("--check", *files), [
            "| accuracy of 10-fold cross-validation, 12 sentences | words | words and bigrams |", "|---|---:|---:|",
            "| naive Bayes, smoothing 1 | 100.0 | 100.0 |", "| NBSVM, C 0.5, interpolation 0.25 | 100.0 | 100.0 |"])


class CoarseWsdTest(ScriptTest):
    """script/coarsewsd."""

    def convert(self, **files):
        word = self.folder / "bank"
        word.mkdir(exist_ok=True)
        usual = {"classes_map": '{"0": "money", "1": "river"}', "train_data": "1\tthe bank pays\n0\tbank of mud\n",
                 "train_gold": "0\n1\n", "test_data": "0\tbank of england\n", "test_gold": "0\n"}
        for name, text in {**usual, **files}.items():
            (word / f"{name.replace('train_', 'train.').replace('test_', 'test.')}.txt").write_text(text)
        return subprocess.run([sys.executable, self.folder / "script/coarsewsd", "bank", "out"], cwd=self.folder, text=True,
                              capture_output=True, timeout=30)

    def test_writes_each_split_as_label_index_sentence(self):
        self.assertEqual(self.convert().stderr, "")
        self.assertEqual((self.folder / "out/train.tsv").read_text(), "money\t1\tthe bank pays\nriver\t0\tbank of mud\n")
        self.assertEqual((self.folder / "out/test.tsv").read_text(), "money\t0\tbank of england\n")

    def test_refuses_a_damaged_folder_with_the_name_of_the_file(self):
        for files, error in (({"test_gold": "7\n"}, "bank/test.gold.txt:1: the label 7 is not in classes_map.txt"),
                             ({"test_gold": "0\n1\n"}, "test.data.txt has 1 lines, test.gold.txt has 2"),
                             ({"test_data": "bank\n"}, "bank/test.data.txt:1: must be index<TAB>sentence"),
                             ({"classes_map": "["}, "bank/classes_map.txt: ")):
            with self.subTest(error):
                done = self.convert(**files)
                self.assertEqual(done.returncode, 1)
                self.assertIn(error, done.stderr)


class MutantsTest(unittest.TestCase):
    """What script/mutants reads; it builds and runs for minutes."""

    script = runpy.run_path(str(PROJECT / "script/mutants"))
    mutants = list(script["all_mutants"]())

    def place_of(self, code, original, mutated):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "core/moved").mkdir(parents=True)
            (tree / "core/moved/a.cpp").write_text(code)
            file, text = self.script["place_of"]({"file": "core/a.cpp", "original": original, "mutated": mutated}, tree)
            return file.name, text

    def test_every_mutant_has_an_id_of_its_own(self):
        self.assertEqual(len(self.mutants), len({mutant["id"] for mutant in self.mutants}))

    def test_every_mutant_has_one_place(self):
        for mutant in self.mutants:
            with self.subTest(mutant["id"]):
                self.script["place_of"](mutant, PROJECT)

    def test_a_mutant_is_found_in_code_that_was_renamed_and_moved(self):
        self.assertEqual(self.place_of("if (left < right)\n  return left;\nreturn 0;", "if (a < b) return a;", "if (a > b) return b;"),
                         ("a.cpp", "if (left > right) return right;\nreturn 0;"))
        with self.assertRaisesRegex(LookupError, "occurs 0 times"):
            self.place_of("if (left < right) return right;", "if (a < b) return a;", "")
        with self.assertRaisesRegex(LookupError, "occurs 2 times"):
            self.place_of("x = y; z = w;", "a = b;", "")


if __name__ == "__main__":
    unittest.main()
