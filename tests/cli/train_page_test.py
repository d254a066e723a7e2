"""Training in the page that `qkv report` makes: its controls, edits and links, and that its models are those of the program.

Usage: train_page_test.py PROGRAM
"""
import json
import os
import pathlib
import re
import time
import unittest
import urllib.parse

from report_page import PageTest
from built_program import CONFIG
from long_tests import long_test

TEXT = "(selector => { const e = document.querySelector(selector); return e && e.textContent; })"
SET = "{const e = document.querySelector(%s); e.value = %s; e.dispatchEvent(new Event('%s', { bubbles: true }))}"
PAUSED = "document.querySelector('#train-state').textContent.startsWith('Paused at step %s.')"
DRAWN = "document.querySelector('#model').textContent.endsWith(' · here')"  # the page is drawn anew after the first state
STOPPED = "document.querySelector('#train-error').textContent !== ''"
VARIANTS = '[[variant]]\nname = "static"\nmodel.kind = "static"\n[[variant]]\nname = "learned"\n'


class TrainPage(PageTest):
    """Each test has a page of the tiny run, which it trains again."""

    def setUp(self):
        super().setUp()
        self.open("runs/tiny")

    def text(self, selector):
        return self.browser.run(f"{TEXT}({json.dumps(selector)})")

    def set(self, selector, value, event="change"):
        self.browser.run(SET % (json.dumps(selector), json.dumps(value), event))

    def steps(self, count):
        """Takes so many more steps, one at a time."""
        at = int((re.search(r"\d+", self.text("#train-state")) or [0])[0])
        for step in range(at + 1, at + count + 1):
            self.click("#train-step")
            self.wait_for(PAUSED % step)
        self.wait_for(DRAWN)

    def train_to(self, step):
        """Trains from nothing to a step, as a link does."""
        self.set("#train-config", re.sub(r"(?m)^steps = \d+", f"steps = {step}", self.config()), "input")
        self.click("#train-run")
        self.wait_for(f"document.querySelector('#train-state').textContent === 'Finished at step {step}.'")
        self.wait_for(DRAWN)

    def config(self):
        return self.browser.run("document.querySelector('#train-config').value")

    def row(self, i=0):
        """{name of a column: text} of a model's row, once it shows the present step."""
        self.browser.run("document.querySelector('#train-progress').scrollIntoView()")
        cells = f"[...document.querySelectorAll('#train-table tbody tr')[{i}].querySelectorAll('td')]"
        step = "document.querySelector('#train-state').textContent.match(/\\d+/)[0]"
        self.wait_for(f"{cells}.every(e => e.textContent !== '…') && {cells}[0].textContent === {step}")
        return self.browser.run(f"Object.fromEntries({cells}.map(e => [e.dataset.name, e.textContent]))")

    def saved(self, button, name):
        file, = self.browser.downloads(self.folder, 1, f"document.querySelector('{button}').click()")
        self.assertEqual(file, self.folder / name)
        return file

    def checksum(self, run):
        return self.json("verify", run)["files"][0]["parameters_checksum"]

    def link(self):
        self.click("#copy-link-0")
        return self.browser.run("document.querySelector('#train-link').value")

    def follow(self, fragment):
        self.browser.run("location.hash = ''")
        self.browser.run(f"location.hash = {json.dumps(fragment)}")
        self.browser.run("new Promise(done => setTimeout(done, 50))")


class Controls(TrainPage):
    def test_start_pause_step_and_reset(self):
        self.assertEqual(self.text("#train-state"), "Not started.")
        self.steps(3)
        row = self.row()
        self.assertEqual(row["Step"], "3")
        self.assertGreater(float(row["Training loss"]), 0)
        self.assertGreater(float(row["Validation accuracy"]), 0)
        untrained = row["Checksum"]
        self.click("#train-run")
        self.wait_for("document.querySelector('#train-state').textContent === 'Finished at step 40.'")
        self.assertNotEqual(self.row()["Checksum"], untrained)
        self.click("#train-reset")
        self.wait_for(PAUSED % 0)
        self.steps(3)
        self.assertEqual(self.row()["Checksum"], untrained)
        self.assert_quiet()

    def test_a_pause_stops_between_two_steps(self):
        self.set("#train-config", self.config().replace("steps = 40", "steps = 1000000"), "input")
        self.click("input[name=train-speed][value='1']")
        self.click("#train-run")
        self.wait_for("document.querySelector('#train-state').textContent === 'Training.'")
        self.browser.run("document.querySelector('#train-progress').scrollIntoView()")
        self.wait_for("Number(document.querySelector('#train-table td').textContent) > 5")
        self.click("#train-run")
        self.wait_for("document.querySelector('#train-state').textContent.startsWith('Paused')")
        paused = self.row()
        time.sleep(0.3)
        self.assertEqual(self.row(), paused)
        self.assert_quiet()

    def test_the_model_that_learns_answers_and_shows_its_attention(self):
        self.steps(1)
        before = self.browser.run("[...document.querySelectorAll('#answer meter')].map(m => m.value)")
        self.assertEqual(self.text("#model"), "tiny · here")
        self.assertEqual(self.text("#model-beside"), "tiny")
        self.click("#train-run")
        self.wait_for("document.querySelector('#train-state').textContent.startsWith('Finished')")
        self.browser.run("document.querySelector('#answers').scrollIntoView()")
        self.wait_for(f"JSON.stringify([...document.querySelectorAll('#answer meter')].map(m => m.value)) !== {json.dumps(json.dumps(before))}")
        self.browser.run("document.querySelector('#attention').scrollIntoView()")
        self.wait_for("document.querySelector('#attention-map title').textContent.includes('Step 40')")
        self.browser.run("document.querySelector('#embeddings').scrollIntoView()")
        self.wait_for("document.querySelectorAll('#after .typed').length === 1")
        self.assertEqual(self.browser.run("[...document.querySelectorAll('#time, #time-lead')].filter(e => e.offsetParent).length"), 0)
        self.assertNotIn("slider", self.text("#embeddings-lead"))
        self.assert_quiet()

    def test_a_head_that_is_off_changes_the_answer_while_it_learns(self):
        self.steps(5)
        self.assertEqual(self.browser.run("document.querySelectorAll('#broken li').length"), 0)
        self.set("#off", "0.0")
        self.assertEqual(self.browser.run("document.querySelectorAll('#broken li').length"), 2)
        whole, broken = re.findall(r"[\d.]+%", self.browser.run("document.querySelectorAll('#broken li')[1].lastElementChild.textContent"))
        self.assertNotEqual(whole, broken)
        self.click("#train-step")
        self.wait_for(PAUSED % 6)
        self.assert_quiet()

    def test_the_claims_of_the_config_are_checked_at_each_step(self):
        """The program finds the same in the model that the page saves."""
        probe = '[[probe]]\nname = "{}"\nsentences = ["money bank grows", "the river bank flows"]\nword = "bank"\nexpect = "contextual_cosine < {}"\n'
        (self.folder / "claims.toml").write_text(CONFIG + probe.format("always", 2) + probe.format("never", -2))
        self.run_qkv("train", "claims.toml", "--run", "claims")
        self.open("claims")
        self.steps(2)
        self.browser.run("document.querySelector('#train-claims').scrollIntoView()")
        self.wait_for("document.querySelectorAll('#train-probes li').length === 2")
        found = self.browser.run("[...document.querySelectorAll('#train-probes li')].map(e => e.textContent)")
        self.assertEqual([line.split(" ")[:2] for line in found], [["pass", "always"], ["FAIL", "never"]])
        self.run_qkv("import", self.saved("#save-model-0", "tiny-tiny.safetensors"), "--run", "imported")
        for line, probe in zip(found, json.loads(self.run_qkv("probe", "imported", "--json", code=1).stdout)["probes"]):
            self.assertIn(f"{probe['found']:.4f}", line)
        self.assert_quiet()

    def test_errors_are_those_of_the_program(self):
        self.set("#train-config", self.config().replace("width = 8", "widht = 8"), "input")
        self.click("#train-run")
        self.wait_for(STOPPED)
        self.assertRegex(self.text("#train-error"), r'^page:\d+: unknown key "model.widht" \(did you mean "model.width"\?\)')
        self.set("#train-config", self.config().replace("widht = 8", "width = 8"), "input")
        self.set("[id='option model.heads']", "3")
        self.assertRegex(self.config(), r"(?m)^heads = 3 ")
        self.click("#train-run")
        self.wait_for(STOPPED)
        self.assertIn("model.heads", self.text("#train-error"))
        self.set("[id='option model.heads']", "4")
        self.steps(1)
        self.assertEqual(self.text("#train-error"), "")
        self.assert_quiet()

    def test_two_models_race(self):
        (self.folder / "two.toml").write_text(re.sub(r"(heads|layers|feed_forward) = \d+\n", "", CONFIG) + VARIANTS)
        self.run_qkv("compare", "two.toml")
        self.open("runs/tiny-compare")
        names = self.browser.run("[...document.querySelectorAll('#train-rival option')].map(e => e.textContent)")
        self.assertEqual(names, ["no other", "learned, no positions", "static", "learned"])
        self.browser.run("{const s = document.querySelector('#train-rival'); s.selectedIndex = 2; s.dispatchEvent(new Event('change'))}")
        self.steps(2)
        self.assertEqual([self.row(i)["Step"] for i in range(2)], ["2", "2"])
        self.assertEqual(len({self.row(i)["Checksum"] for i in range(2)}), 2)
        self.assertEqual([self.text("#model"), self.text("#model-beside")], ["learned · here", "static · here"])
        self.wait_for("document.querySelectorAll('#train-curves svg path[stroke-width]').length >= 4")
        self.assert_quiet()

    def test_a_first_step_is_shown_before_the_page_is_drawn_anew(self):
        self.browser.run("""new MutationObserver((_, observer) => {
          const step = document.querySelector("#train-table tbody td").textContent;
          if (step === "") return;
          window.first = { step, model: document.querySelector("#model").textContent };
          observer.disconnect();
        }).observe(document.querySelector("#train-table"), { childList: true, subtree: true, characterData: true })""")
        self.click("#train-run")
        self.wait_for("document.querySelector('#train-state').textContent === 'Finished at step 40.'")
        self.assertEqual(self.browser.run("first"), {"step": "1", "model": "tiny"})
        self.wait_for(DRAWN)
        self.assert_quiet()

    def test_a_model_learns_the_same_alone_and_beside_all_others(self):
        (self.folder / "three.toml").write_text(re.sub(r"(heads|layers|feed_forward) = \d+\n", "", CONFIG) + VARIANTS +
                                                '[[variant]]\nname = "uniform"\nmodel.attention = "uniform"\n')
        self.run_qkv("compare", "three.toml")
        self.open("runs/tiny-compare")
        finished = "document.querySelector('#train-state').textContent === 'Finished at step 40.'"
        choose = "{const s = document.querySelector('%s'); s.value = [...s.options].find(o => o.textContent === '%s').value; s.dispatchEvent(new Event('change'))}"
        self.browser.run(choose % ("#train-rival", "all others"))
        self.click("#train-run")
        self.wait_for(finished)
        names = self.browser.run("[...document.querySelectorAll('#train-table tbody th')].map(e => e.textContent)")
        self.assertEqual(sorted(names), ["learned", "static", "uniform"])
        together = {name: self.row(i) for i, name in enumerate(names)}
        self.assertEqual({row["Step"] for row in together.values()}, {"40"})
        self.assertEqual(len({row["Checksum"] for row in together.values()}), 3)
        for name, row in together.items():
            self.browser.run(choose % ("#train-base", name))
            self.click("#train-run")
            self.wait_for("document.querySelectorAll('#train-table tbody tr').length === 1")
            self.wait_for(finished)
            self.assertEqual(self.row()["Checksum"], row["Checksum"], name)
        self.assert_quiet()


class Data(TrainPage):
    def test_an_edited_sentence_changes_the_model_and_undoing_it_changes_it_back(self):
        self.steps(2)
        before = self.row()["Checksum"]
        data = self.browser.run("document.querySelector('#sentences-text').value")
        self.assertEqual(data, (self.folder / "train.tsv").read_text())
        lines = data.splitlines()  # of which two steps see some
        half = len(lines) // 2
        self.set("#sentences-text", "\n".join([line.replace("money\t", "river\t") for line in lines[:half]] + lines[half:]) + "\n", "input")
        self.assertIn("Edits take effect", self.text("#train-state"))
        self.click("#train-reset")
        self.wait_for(PAUSED % 0)
        self.steps(2)
        self.assertNotEqual(self.row()["Checksum"], before)
        self.click("#sentences-undo")
        self.click("#train-reset")
        self.wait_for(PAUSED % 0)
        self.steps(2)
        self.assertEqual(self.row()["Checksum"], before)
        self.assert_quiet()

    def test_lines_of_a_large_file_are_found_changed_added_and_removed(self):
        lines = (self.folder / "train.tsv").read_text().splitlines(keepends=True)
        (self.folder / "train.tsv").write_text("".join(lines * 3))
        self.run_qkv("train", "tiny.toml", "--run", "large")
        self.open("large")
        line = "[...document.querySelectorAll('#sentences-lines li')][0]"
        self.set("#sentences-search", "bank", "input")
        self.assertLessEqual(self.browser.run("document.querySelectorAll('#sentences-lines li').length"), 30)
        columns = self.browser.run(f"[...{line}.querySelectorAll('input')].map(e => e.value)")
        self.assertIn("\t".join(columns) + "\n", lines)
        self.set("#sentences-lines li input", "river" if columns[0] == "money" else "money")
        self.set("#sentences-search", "zebra", "input")
        self.assertEqual(self.browser.run("document.querySelectorAll('#sentences-lines li').length"), 0)
        self.browser.run("[...document.querySelectorAll('#sentences-new input')].forEach((e, i) => { e.value = ['money', '1', 'the bank zebra'][i] })")
        self.click("#sentences-new button")
        self.assertEqual(self.browser.run("document.querySelectorAll('#sentences-lines li').length"), 1)
        self.steps(1)
        first = self.row()["Checksum"]
        self.click("#sentences-lines button")
        self.assertEqual(self.browser.run("document.querySelectorAll('#sentences-lines li').length"), 0)
        self.click("#train-reset")
        self.wait_for(PAUSED % 0)
        self.steps(1)
        self.assertNotEqual(self.row()["Checksum"], first)
        self.assert_quiet()

    def test_a_wrong_label_is_the_program_s_error(self):
        self.set("#sentences-text", "money\t99\tthe bank\n", "input")
        self.click("#train-run")
        self.wait_for(STOPPED)
        self.assertIn("train.tsv:1", self.text("#train-error"))
        self.assert_quiet()

    def memory(self):
        """Bytes of the browser's processes."""
        parents = {}
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has ended
        family = {self.browser.process.pid}
        while more := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= more
        return sum(int((pathlib.Path("/proc") / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") for pid in family)

    def edit(self, count):
        """Changes the seed so many times; the memory of the browser in bytes."""
        for _ in range(count):
            self.seed += 1
            self.set("[id='option seed']", str(self.seed))
            self.click("#train-reset")
            self.wait_for(PAUSED % 0)
        self.browser.call("HeapProfiler.collectGarbage")
        return self.memory()

    def assert_no_memory_is_left_behind(self, first, more):
        self.seed = 0
        self.steps(1)
        before, after = self.edit(first), self.edit(more)
        print(f"memory of the browser after {first} edits: {before / 1e6:.0f} MB, after {first + more}: {after / 1e6:.0f} MB")
        self.assertLess(after, 1.05 * before)
        self.assertEqual(self.browser.run("document.querySelectorAll('#run option').length"), 2)
        self.assert_quiet()

    def test_edits_leave_no_memory_behind(self):
        """The page has one worker at a time, and its engine the models of one training."""
        self.assert_no_memory_is_left_behind(10, 30)

    @long_test
    def test_200_edits_leave_no_memory_behind(self):
        self.assert_no_memory_is_left_behind(50, 150)


class Files(TrainPage):
    def test_the_program_imports_the_model_that_the_page_saves(self):
        self.train_to(12)
        checksum = self.row()["Checksum"]
        model = self.saved("#save-model-0", "tiny-tiny.safetensors")
        self.run_qkv("import", model, "--run", "imported")
        self.assertEqual(self.checksum("imported"), checksum)
        self.json("predict", "imported", "money bank grows")
        self.assert_quiet()

    def test_the_program_trains_the_config_that_the_page_saves(self):
        self.train_to(12)
        config = self.saved("#save-config-0", "tiny-tiny.toml")
        environment = {**os.environ, "QKV_CPU": "x86-64-v2"}
        done = self.run_qkv("train", config, "--run", "again", code=None, env=environment)
        if "QKV_CPU" in done.stderr:
            self.run_qkv("train", config, "--run", "again")  # other vectors, other bits
            return
        self.assertEqual(self.checksum("again/last.h5"), self.row()["Checksum"])

    def test_edited_data_are_saved_too(self):
        self.set("#sentences-text", "money\t1\tthe bank pays\nriver\t1\tthe bank flows\n", "input")
        self.steps(1)
        (self.folder / "train.tsv").unlink()
        saved = self.saved("#train-save fieldset button:last-child", "train.tsv")
        self.assertEqual(saved.read_text(), "money\t1\tthe bank pays\nriver\t1\tthe bank flows\n")


class Links(TrainPage):
    def assert_agrees(self, step):
        self.wait_for(f"document.querySelector('#train-link-state').textContent.startsWith('Step {step},')")
        self.assertIn("to the last bit", self.text("#train-link-state"))

    def test_a_link_trains_the_same_model_in_another_page(self):
        self.set("[id='option seed']", "7")
        self.steps(5)
        link, checksum = self.link(), self.row()["Checksum"]
        self.assertLess(len(link), 8000)
        self.browser.call("Page.navigate", url="about:blank")
        self.load()
        self.follow(link[link.index("#"):])
        self.assert_agrees(5)
        self.assertEqual(self.row()["Checksum"], checksum)
        self.assertRegex(self.config(), r"(?m)^seed = 7")
        self.assert_quiet()

    def test_a_link_holds_small_data_and_no_large_ones(self):
        self.set("#sentences-text", "money\t1\tthe bank pays\nriver\t1\tthe bank flows\n", "input")
        self.steps(2)
        link = self.link()
        self.assertIn("the bank pays", urllib.parse.unquote(link))
        self.click("#sentences-undo")
        self.follow(link[link.index("#"):])
        self.assert_agrees(2)
        self.set("#sentences-text", (self.folder / "train.tsv").read_text().replace("money", "river", 1), "input")
        self.steps(0)
        self.click("#train-reset")
        self.wait_for(PAUSED % 0)
        self.link()
        self.assertIn("too long for a link", self.text("#train-link-state"))
        self.assert_quiet()

    def test_another_checksum_is_said(self):
        self.steps(1)
        fragment = self.link().partition("#")[2]
        wrong = json.loads(urllib.parse.unquote(fragment.removeprefix("train="))) | {"checksum": "0123456789abcdef"}
        self.follow("#train=" + urllib.parse.quote(json.dumps(wrong)))
        self.wait_for("document.querySelector('#train-link-state').textContent.startsWith('Step 1,')")
        self.assertIn("another model", self.text("#train-link-state"))
        self.assert_quiet()

    def test_hostile_links_give_messages(self):
        good = {"config": self.config(), "seed": 1, "steps": 1, "checksum": "0123456789abcdef"}
        script = "</script><img src=x onerror=document.title='owned'>"
        for fragment in ("{", "%", "%E0%A4", "[]", "null", "7", '"text"', "{}", json.dumps({**good, "config": 7}), json.dumps({**good, "seed": -1}),
                         json.dumps({**good, "steps": 1e300}), json.dumps({**good, "checksum": script}), json.dumps({**good, "files": ["a"]}),
                         json.dumps({**good, "files": {"train.tsv": 7}})):
            with self.subTest(fragment=fragment[:80]):
                self.follow("#train=" + fragment)
                self.assertIn("malformed", self.text("#train-link-state"))
                self.assert_quiet()
        self.follow("#train=" + "a" * 200_000)
        self.assertIn("too long", self.text("#train-link-state"))
        self.assert_quiet()
        wrong_configs = [good["config"] + f"\n[{script}]\n", script, "", good["config"].replace("width = 8", "wdith = 8"), "a" * 50_000, "[" * 10_000,
                         good["config"].replace("width = 8", "width = 4096").replace("layers = 1", "layers = 64").replace("feed_forward = 16", "feed_forward = 65536"),
                         good["config"].replace('"train.tsv"', '"../../etc/passwd"'), "name = \"" + script + "\"\n[model]\nheads = 7\n"]
        for config in wrong_configs:
            with self.subTest(config=config[-80:]):
                self.follow("#train=" + urllib.parse.quote(json.dumps({**good, "config": config})))
                self.wait_for(STOPPED)
                self.assertEqual(self.browser.run("document.querySelectorAll('img').length"), 0)
                self.assertNotEqual(self.browser.run("document.title"), "owned")
                self.assert_quiet()
        self.follow("#train=" + urllib.parse.quote(json.dumps({**good, "files": {"__proto__": "x", "train.tsv": script}})))
        self.wait_for(STOPPED)
        self.assertEqual(self.browser.run("document.querySelectorAll('img').length"), 0)
        self.assert_quiet()


if __name__ == "__main__":
    unittest.main()
