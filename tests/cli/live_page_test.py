"""The model inside the page that `qkv report` makes: what it makes of a typed text is what the program makes of it.

Usage: live_page_test.py PROGRAM
"""
import base64
import json
import math
import pathlib
import re
import shutil
import struct
import tomllib
import unittest

from report_page import PageTest
from built_program import CONFIG, PROJECT
from long_tests import long_test
from kinds_of_model import CONFIGS, texts_of, variants
from stand_ins import GIVEN, write_stand_ins

TOLERANCE = 1e-4
SHOWN = str.maketrans({" ": "·", "\n": "↵", "\t": "⇥"})  # white space of a token
# Texts that tokenizers could disagree about: capitals, punctuation, white space, unknown words, other scripts, long words.
HARD = ["Money, BANK grows!", "zebra  qux\tbank\n", "a.b.c (x) [y] \"z\" bank", "über café naïve — “quoted” don't bank", "日本語 bank 😀 grüße",
        "bankers groww grüße moneylenders étéçàx riv",
        "the\u00a0river\u2003bank\u200bflows", "x" * 70 + " bank " + "é" * 40, "...bank?!", "<u>bank</u> &amp; </script> İI ß", "[MASK] bank [mask]",
        "<pad> bank <unk>", "cafe\u0301 don\u2019t l\u00b7l co\u2011op \u2018bank\u2019\u2026", "the\u2028river\u3000bank\ufeff \u00abflows\u00bb\u2014now",
        "\u00bfbank? \u65e5\u672c\u3002\u0915\u093c bank\u2019 \u2019s \u00a0\u00a0"]
# Changes of an option that no config in configs/ makes, and that change the forward pass.
OTHERS = {"post-norm, bpe, shared keys": {"model.norm": "post", "task.tokenizer": "bpe", "task.merges": 60, "model.kv_heads": 1},
          "no norm, char, relative, capitals": {"model.norm": "none", "task.tokenizer": "char", "model.position": "relative",
                                                "task.lower_case": "false"},
          "gru of both directions": {"model.kind": "recurrent", "model.cell": "gru", "model.bidirectional": "true", "model.layers": 2},
          "rnn": {"model.kind": "recurrent", "model.cell": "rnn"},
          "rotary": {"model.position": "rotary"},
          "rotary, bpe, no bias": {"model.position": "rotary", "task.tokenizer": "bpe", "task.merges": 20, "model.bias": "false"}}

TYPE = "{const t = document.querySelector('#text'); t.value = %s; t.dispatchEvent(new Event('input', { bubbles: true }))}"
# Reads what the page shows: { tokens, unknown, note, answers about words, written, maps }.
READ = """((words, all_maps) => {
  const $ = selector => document.querySelector(selector), all = selector => [...document.querySelectorAll(selector)];
  const visible = selector => $(selector) && !$(selector).hidden;
  const result = { tokens: all('#sentence > *').map(e => e.textContent), note: $('#note').textContent, answers: [], maps: {},
                   unknown: all('#sentence > .unknown').map(e => e.textContent), written: $('#answer .written') && $('#answer .written').textContent };
  const choices = () => all('#answer .choices li').map(li => [li.querySelector('span').textContent, li.querySelector('meter').value]);
  for (const word of words) {
    if (word !== null) all('#sentence > button')[word].click();
    result.answers.push(choices());
  }
  const radios = name => {
    const values = all(`input[name=${name}]`).map(input => input.value);
    return values.length ? values.map(value => () => ($(`input[name=${name}][value="${value}"]`).click(), value)) : [() => null];
  };
  if (all_maps && visible('#attention-map'))
    for (const map of radios('map')) {
      const name = map();
      result.maps[name || 'self'] = [];
      for (const choose of radios('head')) {
        const [layer, head] = (choose() || '0 0').split(' ');
        if (head === 'mean') continue;
        (result.maps[name || 'self'][layer] = result.maps[name || 'self'][layer] || []).push(d3.selectAll('#attention-map .cells rect').data());
      }
    }
  return result;
})(%s, %s)"""


def flat(matrix):
    return [value for row in matrix for value in row]


def floats_of(text):
    return [value for (value,) in struct.iter_unpack("<f", base64.b64decode(text))]


class LivePage(PageTest):
    def setUp(self):
        super().setUp()
        self.worst, self.slowest = 0, 0

    def read(self, text, words=(None,), maps=False):
        before = self.browser.busy()
        self.browser.run(TYPE % json.dumps(text))
        self.slowest = max(self.slowest, 1000 * (self.browser.busy() - before))
        self.wait_for("!document.querySelector('[aria-busy=true]')")
        result = self.browser.run(READ % (json.dumps(list(words)), json.dumps(maps)))
        self.assert_quiet()
        return result

    def assert_near(self, actual, expected, what):
        self.assertEqual(len(actual), len(expected), what)
        for a, b in zip(actual, expected):
            self.worst = max(self.worst, abs(a - b))
            self.assertLess(abs(a - b), TOLERANCE, what)

    def shows_what_the_program_says(self, run, text, maps=True):
        done = self.run_qkv("predict", run, "--json", "--", text, code=None)
        found = json.loads(done.stdout)["predictions"] if done.returncode == 0 else []
        page = self.read(text, [p.get("index") for p in found] or [None], maps)
        if not found and "empty" in done.stderr:
            self.assertIn(done.stderr.strip().removeprefix("qkv: "), page["note"])
            return
        for prediction, answer in zip(found, page["answers"]):
            if "output" in prediction:
                self.assertEqual(page["written"].removesuffix("(nothing)"), prediction["output"])
                self.assert_near([answer[0][1]], [prediction["probability"]], text)
                continue
            expected = sorted(prediction["probabilities"].values(), reverse=True)[:10]
            self.assert_near([value for _, value in answer], expected, text)
            if len(expected) == 1 or expected[0] - expected[1] > TOLERANCE:
                self.assertEqual(re.sub(r" \(\d+\)$", "", answer[0][0]), prediction["label"].translate(SHOWN))
        done = self.run_qkv("attend", run, "--json", "--", text, code=None)
        if done.returncode != 0:
            self.assertEqual(page["maps"], {})
            return
        attention = json.loads(done.stdout)
        if "output" not in found[0] if found else True:
            self.assertEqual(page["tokens"], [token.translate(SHOWN) for token in attention["tokens"]])
        if not maps:
            return
        for name, key in (("encoder" if "decoder" in attention else "self", "layers"), ("decoder", "decoder"), ("cross", "cross")):
            for layer, expected in enumerate(attention.get(key, [])):
                for head, weights in enumerate(expected["heads"]):
                    if max(len(weights), len(weights[0])) <= 40:  # else it is one image
                        self.assert_near(page["maps"][name][layer][head], flat(weights), f"{text}: {name}, layer {layer}, head {head}")

    def choose_model(self, i):
        self.browser.run("{const s = document.querySelector('#run'), b = document.querySelector('#beside');"
                         f"if (s) {{ b.selectedIndex = 0; b.dispatchEvent(new Event('change')); s.selectedIndex = {i}; s.dispatchEvent(new Event('change')); }}}}")

    @long_test
    def test_every_kind_of_model_answers_as_the_program_does(self):
        write_stand_ins(self.folder)
        (self.folder / "configs").mkdir()
        configs = [pathlib.Path(shutil.copy(config, self.folder / "configs")) for config in CONFIGS]
        (self.folder / "datasets").symlink_to(PROJECT / "datasets")
        small = {"shakespeare": ["--set", "model.width=32", "--set", "model.layers=2", "--set", "model.feed_forward=64"]}
        known = set()
        for config in configs:
            new = {kind: name for name, kind in variants(config) if kind not in known and "2000" not in name}
            known.update(new)
            if not new or config.stem == "finetune":  # which starts from a run of pretrain.toml; its kinds are others', too
                continue
            names = list(new.values())
            only = [word for name in names if name for word in ("--only", name)]
            self.run_qkv("compare" if only else "train", config, "--set", "train.steps=5", *only, *GIVEN.get(config.stem, []),
                         *small.get(config.stem, []), code=None)
            runs = self.folder / "runs" / (config.stem + ("-compare" if only else ""))
            self.open(runs)
            self.assertLess(self.page.stat().st_size, 2.5e6)
            for i, run in enumerate(self.data_of(self.page)["runs"]):
                folder = runs / re.sub("[^0-9A-Za-z]+", "-", run["name"]) if only else runs
                task = {**run["model"]["options"]["task"], **self.files_of(folder)}
                self.choose_model(i)
                if not run["model"].get("weights"):
                    self.assertIn("too large", self.browser.run("document.querySelector('#note').textContent"))
                    continue
                self.worst, self.slowest = 0, 0
                with self.subTest(config=config.name, model=run["name"]):
                    self.shows_what_the_program_says(folder, texts_of(task)[1].split("\t")[0])
                    self.shows_what_the_program_says(folder, "zebra, Bank it!", maps=False)
                print(f"{config.stem}: {run['name']:<40} worst difference {self.worst:.1e}, {self.slowest:.0f} ms of the processor a key")

    def files_of(self, run):
        """The data files that a run's config names."""
        task = tomllib.loads((run / "config.toml").read_text())["task"]
        found = {name: task[name] for name in ("train", "valid", "test", "data")}
        return {name: str(next((above / value for above in run.resolve().parents if value and (above / value).exists()), value))
                for name, value in found.items()}

    def test_options_that_no_config_has_and_texts_that_are_hard_to_cut(self):
        for name, options in OTHERS.items():
            run = "runs/" + re.sub("[^0-9a-z]+", "-", name)
            lines = CONFIG if options.get("model.kind") != "recurrent" else re.sub(r"(heads|feed_forward) = \d+\n", "", CONFIG)
            (self.folder / "other.toml").write_text(lines.replace("max_length = 24", "max_length = 200"))
            self.run_qkv("train", "other.toml", "--run", run, "--set", "train.steps=5",
                         *(word for key, value in options.items() for word in ("--set", f"{key}={value}")))
            self.open(run)
            with self.subTest(name):
                for text in HARD:
                    self.shows_what_the_program_says(run, text, maps=text in HARD[:2])
                print(f"{name}: worst difference {self.worst:.1e}, {self.slowest:.0f} ms of the processor a key")

    def test_empty_and_too_long_texts_and_unknown_words_are_said(self):
        self.open("runs/tiny")
        for text in ("", "  \n", "bank " * 25):
            error = self.run_qkv("predict", "runs/tiny", "--", text, code=2).stderr.strip().removeprefix("qkv: ")
            self.assertIn(error, self.read(text)["note"])
        page = self.read("Zebra bank qux, qux")
        self.assertEqual(page["unknown"], ["zebra", "qux", ",", "qux"])
        self.assertEqual(self.browser.run("document.querySelector('#unknown-note').textContent"), "3 of 4 words unknown")
        self.assertIn("none of the words", self.read("money grows")["note"])
        self.assertEqual(len(self.read("money grows", [1])["answers"][0]), 2)  # the chosen word is asked about
        self.read("</script><img src=x onerror=document.title='owned'> bank")
        self.assertEqual(self.browser.run("document.querySelectorAll('img').length"), 0)

    def test_keys_on_the_keyboard_are_answered(self):
        self.open("runs/tiny")
        self.browser.run("{const t = document.querySelector('#text'); t.focus(); t.select()}")
        self.browser.call("Input.insertText", text="river bank flows")
        self.assertEqual(self.browser.run("[...document.querySelectorAll('#tokens > *')].map(e => e.textContent)"), ["river", "bank", "flows"])
        self.assertEqual(self.browser.run("document.activeElement.id"), "text")
        reached = set()
        for _ in range(200):
            self.browser.press("Tab")
            reached.add(self.browser.run("document.activeElement.id || document.activeElement.name || document.activeElement.parentElement.id"))
        self.assertLessEqual({"sentence", "known-title", "example", "head", "chain-head", "break-uniform", "off", "play", "stop", "tokens"}, reached)

    def switched(self, key):
        self.click(f"#break-{key}")

    def test_switches_break_the_model_as_the_program_s_interventions_do(self):
        """With two dimensions the map of embeddings has the whole vectors, from which follow the cosines of probes."""
        names = {"uniform": "uniform-attention", "shuffled": "shuffled-queries", "without_positions": "without-positions"}
        (self.folder / "flat.toml").write_text(CONFIG.replace("width = 8", "width = 2").replace("heads = 2", "heads = 1").replace("dropout = 0.1", 'norm = "none"') + f"""
[[probe]]
name = "apart"
sentences = ["money bank grows", "the river bank flows again"]
word = "bank"
expect = "contextual_cosine > 2"
broken_by = {json.dumps(list(names.values()))}
""")
        self.run_qkv("train", "flat.toml", "--run", "flat", code=None)
        (probe,) = json.loads(self.run_qkv("probe", "flat", "--json", code=1).stdout)["probes"]
        expected = {"": probe["found"], **{found["intervention"]: found["found"] for found in probe["broken_by"]}}
        self.assertEqual(len({round(value, 4) for value in expected.values()}), 4)  # they differ
        self.open("flat")
        view = self.data_of(self.page)["runs"][0]["embedding"]["after"]
        mean, directions = floats_of(view["mean"]), floats_of(view["directions"])

        def vector(text):
            self.read(text)
            x, y = self.browser.run("d3.select('#after .typed').datum()")
            return [mean[i] + x * directions[i] + y * directions[2 + i] for i in range(2)]

        def cosine():
            a, b = (vector(text) for text in ("money bank grows", "the river bank flows again"))
            return sum(x * y for x, y in zip(a, b)) / math.hypot(*a) / math.hypot(*b)
        self.assertAlmostEqual(cosine(), expected[""], delta=1e-3)
        for key, name in names.items():
            self.switched(key)
            self.assertAlmostEqual(cosine(), expected[name], delta=1e-3, msg=name)
            self.switched(key)
        self.assertAlmostEqual(cosine(), expected[""], delta=1e-3)

    def test_a_head_that_is_off_costs_what_ablate_says(self):
        (self.folder / "one.tsv").write_text("money\t1\tmoney bank grows\n")
        ablated = self.json("ablate", "runs/tiny", "--data", "one.tsv")
        self.open("runs/tiny")

        def loss():
            return -math.log(dict(self.read("money bank grows")["answers"][0])["money"])
        self.assertAlmostEqual(loss(), ablated["whole"]["loss"], delta=TOLERANCE)
        for component in ablated["components"]:
            self.browser.run("{const s = document.querySelector('#off'); s.value = '%s'; s.dispatchEvent(new Event('change'))}" % component["id"])
            self.assertAlmostEqual(loss(), component["zero"]["loss"], delta=TOLERANCE)

    def ablations_after(self, change):
        """{id: change of the loss} of the map that is computed after a change of the page."""
        self.wait_for_ablation()
        self.browser.run("d3.selectAll('#ablation-figure .cells').remove()")
        change()
        self.wait_for_ablation()
        return self.browser.run("Object.fromEntries(d3.selectAll('#ablation-figure .cells rect').data().map(d => [d.id, d.change]))")

    def assert_ablations(self, run, text, line):
        (self.folder / "one.tsv").write_text(line)
        expected = {found["id"]: found["zero"]["loss_change"] for found in self.json("ablate", run, "--data", "one.tsv")["components"]}
        found = self.ablations_after(lambda: self.read(text))
        self.assertEqual(found.keys(), expected.keys())
        for name, change in expected.items():
            self.assertAlmostEqual(found[name], change, delta=TOLERANCE, msg=name)

    def test_the_map_of_what_an_answer_needs_holds_the_changes_that_ablate_prints(self):
        self.open("runs/tiny")
        answer = self.json("predict", "runs/tiny", "money bank grows")["predictions"][0]["label"]
        self.assert_ablations("runs/tiny", "money bank grows", f"{answer}\t1\tmoney bank grows\n")
        whole = self.ablations_after(lambda: self.read("money bank grows"))
        broken = self.ablations_after(lambda: self.click("#break-uniform"))
        self.assertEqual(broken.keys(), whole.keys())
        self.assertGreater(max(abs(broken[name] - whole[name]) for name in whole), 100 * TOLERANCE)
        self.assert_quiet()

    def test_the_map_of_a_translation_holds_the_changes_of_every_stack(self):
        self.run_qkv("compare", PROJECT / "configs/sequences.toml", "--set", "train.steps=60", "--only", "copy")
        self.open("runs/sequences-compare")
        output = self.json("predict", "runs/sequences-compare/copy", "a b c d")["predictions"][0]["output"]
        self.assert_ablations("runs/sequences-compare/copy", "a b c d", f"a b c d\t{output}\n")

    def test_two_models_stand_side_by_side_on_the_same_text(self):
        variants = '[[variant]]\nname = "static"\nmodel.kind = "static"\n[[variant]]\nname = "learned"\n'
        (self.folder / "two.toml").write_text(re.sub(r"(heads|layers|feed_forward) = \d+\n", "", CONFIG) + variants)
        self.run_qkv("compare", "two.toml")
        self.open("runs/tiny-compare")
        names = "['', '-beside'].map(s => document.querySelector('#pane-name' + s).textContent)"
        self.assertEqual(self.browser.run(names), ["learned", "static"])
        self.read("river bank flows")
        shown = "[...document.querySelectorAll('%s .choices meter')].map(m => m.value)"
        for suffix, run in (("", "learned"), ("-beside", "static")):
            expected = self.json("predict", f"runs/tiny-compare/{run}", "river bank flows")["predictions"][0]["probabilities"]
            self.assert_near(self.browser.run(shown % f"#answer{suffix}"), sorted(expected.values(), reverse=True), run)

    def test_a_language_model_writes_on_as_generate_does(self):
        write_stand_ins(self.folder)
        shutil.copy(PROJECT / "configs/shakespeare.toml", self.folder)
        self.run_qkv("train", "shakespeare.toml", *GIVEN["shakespeare"], "--run", "lm", "--set", "train.steps=30", "--set", "model.width=16",
                     "--set", "model.layers=1", "--set", "model.feed_forward=32", "--set", "model.max_length=20", "--set", "task.stride=20")
        self.open("lm")
        self.read("ROMEO: to")
        written = "document.querySelector('#answer .written').textContent"
        self.wait_for(f"{written}.length >= 9 + 80")
        text = self.browser.run(written)
        expected = self.run_qkv("generate", "lm", "--prompt", "ROMEO: to", "--temperature", 0, "--tokens", 80).stdout
        self.assertEqual(text[:89], expected[:89])

    def test_a_model_that_is_too_large_is_left_out_and_the_page_says_so(self):
        (self.folder / "large.toml").write_text(CONFIG.replace("width = 8", "width = 512").replace("feed_forward = 16", "feed_forward = 2048"))
        self.run_qkv("train", "large.toml", "--run", "large", "--set", "train.steps=1")
        self.open("large")
        self.assertLess(self.page.stat().st_size, 2.5e6)
        self.assertIn("too large", self.browser.run("document.querySelector('#note').textContent"))
        self.assertEqual(self.browser.run("document.querySelector('#text').offsetParent"), None)  # not shown
        self.assertGreater(self.browser.run("document.querySelectorAll('#attention-map .cells rect').length"), 0)

    def test_a_checkpoint_without_weights_says_which_ones_answer(self):
        (self.folder / "wide.toml").write_text(CONFIG.replace("width = 8", "width = 128").replace("feed_forward = 16", "feed_forward = 512"))
        self.run_qkv("train", "wide.toml", "--run", "wide")
        self.open("wide")
        run = self.data_of(self.page)["runs"][0]
        missing = next(i for i in range(len(run["stops"])) if str(i) not in run["model"]["weights"])
        self.browser.run("{const s = document.querySelector('#stop'); s.value = %d; s.dispatchEvent(new Event('input'))}" % missing)
        self.assertIn("not in the page", self.browser.run("document.querySelector('#note').textContent"))

    def test_a_browser_without_webassembly_is_told_so_and_shows_the_figures(self):
        script = self.browser.call("Page.addScriptToEvaluateOnNewDocument", source="delete globalThis.WebAssembly")["identifier"]
        self.addCleanup(self.browser.call, "Page.removeScriptToEvaluateOnNewDocument", identifier=script)
        self.open("runs/tiny")
        self.assertIn("WebAssembly", self.browser.run("document.querySelector('#note').textContent"))
        self.assertEqual(self.browser.run("['text', 'train'].map(id => document.getElementById(id).offsetParent)"), [None, None])
        self.assertGreater(self.browser.run("document.querySelectorAll('#curves path').length"), 0)
        self.assertGreater(self.browser.run("document.querySelectorAll('#before circle').length"), 0)

    def test_weights_of_few_bits_answer_nearly_as_the_program_does(self):
        (self.folder / "wide.toml").write_text(CONFIG.replace("width = 8", "width = 104").replace("feed_forward = 16", "feed_forward = 416"))
        self.run_qkv("train", "wide.toml", "--run", "wide")
        self.open("wide")
        run = self.data_of(self.page)["runs"][0]
        stop, step = next((i, stop["step"]) for i, stop in enumerate(run["stops"]) if stop["step"] == 40 and stop["note"] != "best")
        self.assertLess(run["model"]["weights"][str(stop)]["bits"], 32)
        self.browser.run("{const s = document.querySelector('#stop'); s.value = %d; s.dispatchEvent(new Event('input'))}" % stop)
        expected = self.json("predict", f"wide/checkpoints/step-{step:08}.h5", "river bank flows")["predictions"][0]["probabilities"]
        for value, answer in zip(sorted(expected.values(), reverse=True), self.read("river bank flows")["answers"][0]):
            self.assertAlmostEqual(answer[1], value, delta=2e-3)


if __name__ == "__main__":
    unittest.main()
