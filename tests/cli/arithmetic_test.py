"""The heads and the arithmetic of a word in the page that `qkv report` makes: they show what `qkv explain` prints.

Usage: arithmetic_test.py PROGRAM
"""
import json
import re
import unittest

from report_page import PageTest
from built_program import CONFIG, PROJECT

TOLERANCE = 1e-4  # of values that are 1 at most; of larger ones in proportion
TYPE = "{const t = document.querySelector('#text'); t.value = %s; t.dispatchEvent(new Event('input', { bubbles: true }))}"
DOCUMENT = "JSON.parse(JSON.stringify(document.querySelector('#chain').explanation, (_, value) => ArrayBuffer.isView(value) ? Array.from(value) : value))"
SENTENCE = "the money bank grows again"
MODELS = {"pre-norm": {},
          "post-norm, sinusoidal": {"model.norm": "post", "model.position": "sinusoidal", "model.layers": 2},
          "no norm, windows, no feed-forward": {"model.norm": "none", "model.position": "windows", "model.feed_forward": 0},
          "relative, shared keys, no bias, unscaled": {"model.position": "relative", "model.kv_heads": 1, "model.bias": "false", "model.scale": "false"},
          "learned positions": {"model.position": "learned"},
          "rotary": {"model.position": "rotary"},
          "uniform": {"model.attention": "uniform", "model.position": "none"},
          "decoder": {"model.kind": "decoder", "model.layers": 2},
          "bert": {"model.kind": "bert", "model.position": "learned", "model.norm": "post"}}
BARE = {"parameter-free": {"model.attention": "parameter-free", "model.position": "none"}, "static": {"model.kind": "static"}, "recurrent": {"model.kind": "recurrent"}, "convolution": {"model.kind": "convolution"}}


class Arithmetic(PageTest):
    def type(self, text):
        self.browser.run(TYPE % json.dumps(text))
        self.wait_for("!document.querySelector('[aria-busy=true]')")
        self.assert_quiet()

    def train(self, name, options, config=CONFIG):
        run = "runs/" + re.sub("[^0-9a-z]+", "-", name)
        (self.folder / "other.toml").write_text(config)
        self.run_qkv("train", "other.toml", "--run", run, "--set", "train.steps=5",
                     *(word for key, value in options.items() for word in ("--set", f"{key}={value}")))
        return run

    def assert_same(self, found, expected, where):
        """Of two JSON documents, numbers up to the tolerance."""
        if isinstance(expected, dict):
            self.assertEqual(found.keys(), expected.keys(), where)
            for key, value in expected.items():
                self.assert_same(found[key], value, f"{where}.{key}")
        elif isinstance(expected, list):
            self.assertEqual(len(found), len(expected), where)
            for i, (a, b) in enumerate(zip(found, expected)):
                self.assert_same(a, b, f"{where}[{b['path'] if isinstance(b, dict) and 'path' in b else i}]")
        elif isinstance(expected, (int, float)) and not isinstance(expected, bool):
            self.assertLess(abs(found - expected), TOLERANCE * max(1, abs(expected)), f"{where}: {found}, {expected}")
        else:
            self.assertEqual(found, expected, where)

    def assert_explained(self, run, text, choose, *arguments):
        """`choose` chooses in the page what `arguments` choose of the command; the rest of its document follows from it."""
        expected = self.json("explain", run, text, *arguments)
        for key in ("logit_lens", "attribution"):
            expected.pop(key, None)
        self.type(text)
        choose(expected["index"])
        self.assert_same(self.browser.run(DOCUMENT), expected, run)
        self.assert_quiet()

    def word(self, index):
        self.click(f"#sentence > button:nth-child({index + 1})")

    def test_its_document_is_the_one_that_explain_prints_of_every_kind_of_encoder(self):
        bare = re.sub(r"(heads|layers|feed_forward|dropout) = [\d.]+\n", "", CONFIG)
        for name, options in {**MODELS, **BARE}.items():
            with self.subTest(name):
                run = self.train(name, options, bare if name in BARE else CONFIG)
                self.open(run)
                self.assert_explained(run, SENTENCE, self.word)
                self.assert_explained(run, SENTENCE, self.word, "--word", "grows")

    def test_its_document_of_a_class_a_pronoun_and_a_tag_is_the_one_that_explain_prints(self):
        for config, text in (("classify", "a funny plot"), ("pronoun", "the dog ran because it was fast"), ("tagging", "Anna lives in Paris")):
            with self.subTest(config):
                self.run_qkv("train", PROJECT / f"configs/{config}.toml", "--run", config, "--set", "train.steps=3", code=None)
                self.open(config)
                self.assert_explained(config, text, self.word, *(["--word", text.split()[0]] if config != "pronoun" else []))

    def test_its_document_of_a_translation_is_the_one_that_explain_prints(self):
        self.run_qkv("compare", PROJECT / "configs/sequences.toml", "--set", "train.steps=60", "--only", "copy")
        run = "runs/sequences-compare/copy"
        self.open("runs/sequences-compare")

        def output(index):
            self.click("[name=map][value=cross]")
            self.click(f"#tokens button:nth-child({index + 1})")

        def source(index):
            self.click("[name=map][value=encoder]")
            self.click(f"#tokens button:nth-child({index + 1})")
        self.assert_explained(run, "a b c d", output)
        self.assert_explained(run, "a b c d", output, "--output", 2)
        self.assert_explained(run, "a b c d", source, "--word", "c")

    def unfold(self):
        self.browser.run("document.querySelectorAll('#chain [aria-expanded=false].formula').forEach(e => e.click())")

    def test_every_number_that_explain_prints_of_a_head_stands_in_the_page(self):
        for name in ("pre-norm", "post-norm, sinusoidal", "no norm, windows, no feed-forward"):
            with self.subTest(name):
                run = self.train(name, {**MODELS[name], "model.layers": 1})
                self.open(run)
                self.type(SENTENCE)
                self.click("[name=head][value='0 1']")
                self.unfold()
                shown = self.browser.run("document.querySelector('#chain').innerText")
                printed = self.run_qkv("explain", run, SENTENCE).stdout.split("what each layer would answer")[0]
                of_head_0 = re.search(r"  head 0 of 2.*?(?=  head 1 of 2)", printed, re.S)[0]
                steps = re.sub(r"z_\d = .*weighted sum", "", printed.replace(of_head_0, ""))
                probabilities = steps.split("prediction")[1]
                numbers = re.findall(r"-?\d+\.\d{4}", steps)
                self.assertGreater(len(numbers), 60)
                near = {f"{number:.4f}" for found in re.findall(r"-?\d+\.\d{4}", shown) for number in (float(found) - 1e-4, float(found), float(found) + 1e-4)}
                self.assertEqual([number for number in numbers if number not in near], [], probabilities)

    def press(self, key, code, text=""):
        for kind in ("rawKeyDown", "char", "keyUp") if text else ("rawKeyDown", "keyUp"):
            self.browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text, windowsVirtualKeyCode=code)

    def test_steps_unfold_and_cells_tell_their_values_by_keyboard(self):
        self.open("runs/tiny")
        self.type(SENTENCE)
        self.click("[name=head][value='0 0']")
        self.browser.run("document.querySelector('#chain [id$=\"attention.q\"].formula').focus()")
        self.press("Enter", 13, "\r")
        numbers = "document.querySelector('[id=\"numbers encoder.layers.0.attention.q\"]')"
        expected = self.json("explain", "runs/tiny", SENTENCE, "--word", "bank")
        query = expected["attention"][0]["heads"][0]["q"][2]
        self.assertIn(f"{query[0]:.4f}", self.browser.run(f"{numbers}.textContent"))
        self.assertEqual(self.browser.run("document.activeElement.getAttribute('aria-expanded')"), "true")
        self.browser.run("document.querySelector('#chain [id$=\"attention.q\"].formula').closest('.step').querySelector('.strip').focus()")
        self.browser.press("ArrowRight")
        self.assertEqual(self.browser.run("document.querySelector('#chain .value').textContent"), f"element 1: {query[1]:.4f}")
        self.browser.press("End")
        self.assertEqual(self.browser.run("document.activeElement.getAttribute('aria-valuetext')"), f"element {len(query) - 1}: {query[-1]:.4f}")
        self.browser.run("document.activeElement.blur()")
        self.assertEqual(self.browser.run("document.querySelectorAll('#chain .value').length"), 0)

    def test_a_touch_shows_the_value_of_a_cell(self):
        self.browser.window(390, 844)
        self.open("runs/tiny")
        x, y = self.browser.run("(e => { e.scrollIntoView({ block: 'center', behavior: 'instant' }); const r = e.getBoundingClientRect(); return [r.x + r.width * 0.99, r.y + r.height / 2]; })"
                                "(document.querySelector('#chain .strip'))")
        self.browser.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.assertRegex(self.browser.run("document.querySelector('#chain .value').textContent"), r"^element 7: -?\d\.\d{4}$")

    def test_thumbnails_show_every_head_and_choose_one_by_key_and_click(self):
        self.run_qkv("train", "tiny.toml", "--run", "deep", "--set", "model.layers=2", "--set", "train.steps=10")
        self.open("deep", "--sentence", SENTENCE)
        self.type(SENTENCE)
        self.assertEqual(self.browser.run("[...document.querySelectorAll('[name=head]')].map(e => e.value)"), [f"{layer} {head}" for layer in (0, 1) for head in ("mean", 0, 1)])
        self.click("[name=head][value='1 mean']")
        self.browser.run("document.querySelector('[name=head]:checked').focus()")
        self.browser.press("ArrowRight")
        self.assertEqual(self.browser.run("document.activeElement.value"), "1 0")
        self.assertIn("layer 1, head 0", self.browser.run("document.querySelector('#attention-map figcaption').textContent"))
        self.assertEqual(self.browser.run("document.querySelector('#chain-head').selectedIndex"), 2)
        weights = self.json("attend", "deep", SENTENCE)["layers"][1]["heads"][0]
        light = self.browser.run("(c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].filter((_, i) => i % 4 === 0))"
                                 "(document.querySelector('[name=head]:checked').parentElement.querySelector('canvas'))")
        order = sorted(zip([w for row in weights for w in row], light))  # the larger a weight, the darker
        self.assertEqual(len(order), 25)
        for (_, before), (_, after) in zip(order, order[1:]):
            self.assertLessEqual(after, before + 1)

    def test_a_step_leads_to_another_layer_and_a_word_to_its_score(self):
        self.run_qkv("train", "tiny.toml", "--run", "deep", "--set", "model.layers=2", "--set", "train.steps=10")
        self.open("deep")
        self.type(SENTENCE)
        self.click("[name=head][value='0 0']")
        self.click("#chain .quiet")
        self.assertEqual(self.browser.run("document.querySelector('[name=head]:checked').value"), "1 0")
        self.unfold()
        scores = self.json("explain", "deep", SENTENCE, "--word", "bank")["attention"][1]["heads"][0]["scores"][2]
        for key, score in enumerate(scores):
            chip = f"[id='chip encoder.layers.1.attention.scores {key}']"
            self.browser.run(f'document.querySelector("{chip}").focus(); document.querySelector("{chip}").click()')
            self.assertIn(f"sum of the products is {score:.4f}".replace("-0.0000", "0.0000"), self.browser.run("document.querySelector('[id=\"numbers encoder.layers.1.attention.scores\"]').textContent"))
            self.assertEqual(self.browser.run("document.activeElement.getAttribute('aria-pressed')"), "true")
        self.browser.press("ArrowLeft")
        self.assertEqual(self.browser.run("document.activeElement.id"), f"chip encoder.layers.1.attention.scores {len(scores) - 2}")
        self.assertEqual(self.browser.run("document.activeElement.getAttribute('aria-pressed')"), "true")

    def test_it_fits_a_phone_with_everything_unfolded(self):
        for width in (1280, 390):
            self.browser.window(width, 844)
            self.open("runs/tiny")
            self.unfold()
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
            self.assertEqual(self.browser.run("[...document.querySelectorAll('#chain .strip')].filter(e => e.getBoundingClientRect().right > innerWidth).length"), 0)
            self.assertNotRegex(self.browser.run("document.querySelector('#chain').innerText"), r"undefined|NaN|\{\w+\}|\]\(")


if __name__ == "__main__":
    unittest.main()
