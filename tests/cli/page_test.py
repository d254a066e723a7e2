"""What a visitor of the page that `qkv report` makes meets: its order, languages, answers, words, terms and colours.

Usage: page_test.py PROGRAM
"""
import json
import re
import shutil
import unittest

from report_page import PageTest
from built_program import CONFIG, PROJECT

LANGUAGES = {file.stem: json.loads(file.read_text()) for file in (PROJECT / "inspect/report/texts").glob("*.json")}
TYPE = "{const t = document.querySelector('#text'); t.value = %s; t.dispatchEvent(new Event('input'))}"
CHOOSE = "{const s = document.querySelector('%s'); s.value = '%s'; s.dispatchEvent(new Event('change'))}"
TWO = re.sub(r"(heads|layers|feed_forward) = \d+\n", "", CONFIG) + """
[[variant]]
name = "static"
model.kind = "static"
[[variant]]
name = "uniform"
model.attention = "uniform"
[[variant]]
name = "learned"
"""
# Colours of the cells of a map with the value at which they stand: [[value, [r, g, b]], ...].
CELLS = "[...document.querySelectorAll('%s .cells rect')].map(e => [e.__data__, e.getAttribute('fill').match(/[\\d.]+/g).map(Number)])"


class Visit(PageTest):
    def text(self, selector):
        return self.browser.run(f"document.querySelector({json.dumps(selector)}).textContent")

    def texts(self, selector):
        return self.browser.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")

    def type(self, text):
        self.browser.run(TYPE % json.dumps(text))
        self.assert_quiet()

    def stop_at(self, value):
        self.browser.run("{const s = document.querySelector('#stop'); s.value = %d; s.dispatchEvent(new Event('input'))}" % value)

    def compare(self, config=TWO, *arguments):
        (self.folder / "two.toml").write_text(config)
        self.run_qkv("compare", "two.toml", *arguments)


class FirstScreen(Visit):
    def test_it_begins_with_a_sentence_and_one_large_answer_of_each_of_two_models(self):
        self.compare()
        for width, height in ((1280, 900), (390, 844)):
            with self.subTest(width=width):
                self.browser.window(width, height)
                self.open("runs/tiny-compare")
                self.assertEqual(self.texts(".card h3")[0], "static")
                self.assertIn(self.texts(".card h3")[1], ("uniform", "learned"))
                self.assertEqual(len(self.texts(".card .large")), 2)
                for selector in ("#name", "#text", "#sentence", "#answer-beside .large", "#answer .large", "#answer .sure"):
                    bottom = self.browser.run(f"document.querySelector('{selector}').getBoundingClientRect().bottom")
                    self.assertTrue(0 < bottom < height, f"{selector} ends at {bottom}")
                self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)

    def test_each_model_s_attention_is_explained_and_the_only_answers_are_named(self):
        self.compare()
        self.open("runs/tiny-compare")
        self.browser.run(CHOOSE % ("#run", 1))
        kinds = {"static": "no attention", "uniform": "uniform attention", "learned": "learned attention"}
        self.assertEqual(self.texts("#answers .card > .soft .term"), [kinds[name] for name in self.texts("#answers h3")])
        for i in range(2):
            self.browser.run(f"document.querySelectorAll('#answers .card > .soft .term')[{i}].click()")
            self.assertIn(self.text("#explanation"), LANGUAGES["en"].values())
        self.assertEqual(self.text("#only"), "The only answers are money and river; a model can be sure and still be wrong.")

    def test_the_link_to_its_first_section_shows_the_title(self):
        self.open("runs/tiny")
        self.browser.run("document.documentElement.style.scrollBehavior = 'auto'; scrollTo(0, document.body.scrollHeight)")
        self.click("nav a[href='#try']")
        self.wait_for("scrollY < 200")
        top, bar = (self.browser.run(f"document.querySelector('{selector}').getBoundingClientRect().{side}")
                    for selector, side in (("#name", "top"), (".top", "bottom")))
        self.assertGreaterEqual(top, bar)

    def test_static_vectors_on_one_spot_say_whose_they_are(self):
        """Another form of the word has another vector, which must not look as if senses were told apart."""
        lines = ["money\t1\tmoney banks grow", "river\t1\triver banks flow", "money\t1\tmoney bank grows", "river\t1\triver bank flows"]
        (self.folder / "forms.tsv").write_text("\n".join(lines) + "\n")
        self.run_qkv("train", "tiny.toml", "--run", "forms", "--set", "train.steps=4", *(f"--set=task.{s}=forms.tsv" for s in ("train", "valid", "test")))
        self.open("forms")
        labels = self.texts("#before svg text")
        self.assertIn("bank: money 1, river 1", labels)
        self.assertIn("banks: money 1, river 1", labels)

    def test_its_sections_go_from_trying_to_the_config(self):
        self.open("runs/tiny")
        sections = self.browser.run("[...document.querySelectorAll('main > section')].filter(e => e.offsetParent).map(e => e.id)")
        self.assertEqual(sections, ["try", "train", "attention", "why", "embeddings", "training", "results", "weights", "config"])
        self.assertEqual(self.browser.run("[...document.querySelectorAll('nav a')].map(a => a.hash.slice(1))"), sections)


class Answers(Visit):
    def answer(self, suffix=""):
        return self.text(f"#answer{suffix} .large"), self.text(f"#answer{suffix} .sure")

    def test_what_is_hardly_more_than_chance_is_undecided(self):
        """Below 60 % of two choices; the bars say which one it would be."""
        self.compare(TWO, "--set", "train.steps=100", "--only", "static", "--only", "learned")
        self.open("runs/tiny-compare")
        (prediction,) = self.json("predict", "runs/tiny-compare/static", "river bank flows")["predictions"]
        self.assertLess(prediction["probability"], 0.6)
        self.type("river bank flows")
        large, sure = self.answer("-beside")
        self.assertEqual(large, "undecided")
        self.assertRegex(sure, rf"^rather {prediction['label']}, 5\d%$")
        self.click("#answer-beside .large .term")
        self.assertIn("below 60 %", self.text("#explanation"))

    def test_no_answer_is_said_to_be_certain_or_impossible(self):
        self.run_qkv("train", "tiny.toml", "--run", "sure", "--set", "train.steps=300", "--set", "optimizer.lr=0.03")
        self.open("sure")
        probabilities = self.json("predict", "sure", "money bank grows")["predictions"][0]["probabilities"]
        self.type("money bank grows")
        shown = self.texts("#answer .choices output")
        self.assertEqual(len(shown), 2)
        for text, value in zip(shown, sorted(probabilities.values(), reverse=True)):
            self.assertNotIn(text, ("100%", "0%", "100.0%", "0.0%"))
            self.assertAlmostEqual(float(re.search(r"[\d.]+", text)[0]), 100 * value, delta=0.5)
        self.browser.run(CHOOSE % ("#language", "de"))
        self.assertRegex(self.texts("#answer .choices output")[0], r"^(> )?\d+(,\d)?\s%$")

    def test_parts_of_a_model_have_names_and_no_codes(self):
        self.open("runs/tiny")
        self.wait_for_ablation()
        names = self.texts("#off option") + self.texts("#ablation-figure .cells title")
        self.assertIn("layer 0, feed-forward", names)
        for name in names:
            self.assertNotRegex(name, r"\.ff|\b0\.\d\b")


class Words(Visit):
    def test_unknown_words_are_struck_out_in_the_sentence_and_counted(self):
        self.open("runs/tiny")
        self.type("the zebra bank qux")
        struck = "[...document.querySelectorAll('#sentence > *')].filter(e => getComputedStyle(e).textDecorationLine === 'line-through').map(e => e.textContent)"
        self.assertEqual(self.browser.run(struck), ["zebra", "qux"])
        self.assertEqual(self.text("#unknown-note"), "2 of 4 words unknown")
        self.type("the zebra, (bank) qux!")
        (prediction,) = self.json("predict", "runs/tiny", "the zebra, (bank) qux!")["predictions"]
        self.assertEqual((prediction["words"], prediction["unknown_words"]), (4, ["zebra", "qux"]))
        self.assertEqual(self.text("#unknown-note"), "2 of 4 words unknown")
        self.click("#unknown-note .term")
        self.assertIn("one and the same unknown word", self.text("#explanation"))
        self.type("the bank the money")
        self.assertEqual((self.browser.run(struck), self.text("#unknown-note")), ([], ""))

    def test_known_words_are_searched_and_inserted_at_the_cursor(self):
        self.open("runs/tiny")
        known = [token for token in self.data_of(self.page)["runs"][0]["model"]["vocabulary"]["tokens"] if not token.startswith("<")]
        self.assertIn(str(len(known)), self.text("#known-title"))
        self.click("#known-title")
        self.assertEqual(sorted(self.texts("#known-words button")), sorted(known))
        self.browser.run("{const s = document.querySelector('#known-search'); s.value = 'ba'; s.dispatchEvent(new Event('input'))}")
        found = self.texts("#known-words button")
        self.assertEqual(sorted(found), sorted(token for token in known if "ba" in token))
        self.type("money bank")
        for at in (10, 5, 0):
            self.browser.run(f"document.querySelector('#text').setSelectionRange({at}, {at})")
            self.click("#known-words button")
        self.assertEqual(self.browser.run("document.querySelector('#text').value").split(), [found[0], "money", found[0], "bank", found[0]])
        self.assertEqual(self.texts("#sentence > *"), [found[0], "money", found[0], "bank", found[0]])


class Languages(Visit):
    def test_every_language_of_the_menu_fills_the_page(self):
        self.open("runs/tiny")
        self.assertEqual(sorted(self.browser.run("[...document.querySelectorAll('#language option')].map(o => o.value)")), sorted(LANGUAGES))
        for language, table in LANGUAGES.items():
            with self.subTest(language):
                self.browser.run(CHOOSE % ("#language", language))
                self.wait_for_ablation()
                self.assertEqual(self.browser.run("document.documentElement.lang"), language)
                self.assertEqual(self.text("#attention-title"), table["attention.title"])
                self.assertNotRegex(self.browser.run("document.body.innerText"), r"undefined|\{\w+\}|\]\(")
                empty = "[...document.querySelectorAll('[data-text], [data-label]')].filter(e => !e.textContent.trim() && !e.ariaLabel).length"
                self.assertEqual(self.browser.run(empty), 0)
                self.assert_quiet()
        for width in (1280, 390):
            self.browser.window(width, 844)
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)

    def test_the_browser_s_language_is_taken_if_there_is_a_table(self):
        for accepted, expected in (("de-AT,en", "de"), ("xx,en", "en"), ("xx", "en")):
            self.browser.call("Emulation.setUserAgentOverride", userAgent="test", acceptLanguage=accepted)
            self.addCleanup(self.browser.call, "Emulation.setUserAgentOverride", userAgent="test", acceptLanguage="en")
            self.open("runs/tiny")
            self.assertEqual(self.browser.run("[document.documentElement.lang, document.querySelector('#language').value]"), [expected] * 2)

    def test_terms_explain_themselves_by_keyboard_and_close(self):
        self.open("runs/tiny")
        self.browser.run("document.querySelector('#attention .lead .term').focus()")
        for kind in ("rawKeyDown", "char", "keyUp"):
            self.browser.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13)
        self.assertEqual(self.text("#explanation"), LANGUAGES["en"]["term.layer"])
        self.assertEqual(self.browser.run("document.activeElement.getAttribute('aria-expanded')"), "true")
        self.browser.call("Input.dispatchKeyEvent", type="keyDown", key="Escape", code="Escape", windowsVirtualKeyCode=27)
        self.assertEqual(self.browser.run("document.querySelector('#explanation')"), None)
        self.click("#attention .lead .term")
        self.browser.run("document.querySelector('#text').focus()")
        self.assertEqual(self.browser.run("document.querySelectorAll('#explanation').length"), 0)

    def test_every_term_fits_a_phone(self):
        self.browser.window(390, 844)
        self.open("runs/tiny")
        outside = self.browser.run("""[...document.querySelectorAll('.term')].filter(e => e.offsetParent).map(e => {
            e.scrollIntoView({ block: 'end', behavior: 'instant' });
            e.click();
            const { left, right, top, bottom } = document.querySelector('#explanation').getBoundingClientRect();
            return [e.textContent, left, right, top, bottom];
        }).filter(([, left, right, top, bottom]) => left < 0 || right > 390 || top < 0 || bottom > 844)""")
        self.assertEqual(outside, [])


class Colours(Visit):
    def test_zero_is_the_paper_of_every_map_below_it_is_blue_and_above_red(self):
        for dark, paper in ((False, [255, 255, 255]), (True, [0x17, 0x18, 0x1E])):
            with self.subTest(dark=dark):
                self.browser.window(1280, 900, dark=dark)
                self.open("runs/tiny")
                self.wait_for_ablation()
                background = self.browser.run("getComputedStyle(document.querySelector('figure')).backgroundColor")
                self.assertEqual([int(v) for v in re.findall(r"\d+", background)], paper)
                signed = self.browser.run("""[...document.querySelectorAll('#weights-map svg > g:first-of-type rect')]
                    .map(e => [e.__data__, e.getAttribute('fill').match(/[\\d.]+/g).map(Number)])""")
                most = max(abs(value) for value, _ in signed)
                red_less_blue = [(value / most, colour[0] - colour[2]) for value, colour in signed if abs(value) > 0.1 * most]
                slack = paper[0] - paper[2]
                for value, difference in red_less_blue:
                    self.assertEqual(difference > slack, value > 0, (value, difference))
                near = min(signed, key=lambda cell: abs(cell[0]))
                for a, b in zip(near[1], paper):
                    self.assertAlmostEqual(a, b, delta=16)
                legend = self.browser.run("document.querySelector('#attention-map g[shape-rendering] rect').getAttribute('fill').match(/\\d+/g).map(Number)")
                self.assertEqual(legend, paper)


class Broken(Visit):
    """What was broken once."""

    def test_the_slider_moves_the_main_model_s_answers_and_maps(self):
        """The room for weights goes to the checkpoints of the model that the page opens on first."""
        config = TWO.replace("width = 8", "width = 48").replace("steps = 40", "steps = 60").replace("checkpoint_every = 10", "checkpoint_every = 5\nkeep = 13")
        self.compare(config + "model.layers = 1\nmodel.feed_forward = 160\n")
        self.open("runs/tiny-compare")
        data = self.data_of(self.page)
        main = data["runs"][data["main"]]
        held = [sorted(map(int, run["model"]["weights"])) for run in data["runs"]]
        self.assertLess(sum(map(len, held)), sum(len(run["stops"]) for run in data["runs"]))  # there is not room for all
        self.assertEqual(held[data["main"]], list(range(len(main["stops"]))))
        self.type("at the river bank money flows")  # no sentence of the page
        seen = set()
        for stop in range(len(main["stops"])):
            self.stop_at(stop)
            self.assertNotIn("not in the page", self.text("#note"))
            seen.add(tuple(self.texts("#attention-map .cells title")))
        self.assertGreater(len(seen), len(main["stops"]) / 2)

    def test_the_map_of_a_second_model_has_its_own_caption_and_file_name(self):
        config = TWO.replace('name = "learned"', 'name = "two layers"\nmodel.layers = 2\n[[variant]]\nname = "short"\ntrain.steps = 20')
        self.compare(config)
        self.open("runs/tiny-compare")
        names = [run["name"] for run in self.data_of(self.page)["runs"]]
        for selector, name in (("#run", "two layers"), ("#beside", "short")):
            self.browser.run("{const s = document.querySelector('%s'); s.selectedIndex = [...s.options].findIndex(o => o.text === '%s');"
                             "s.dispatchEvent(new Event('change'))}" % (selector, name))
        self.assertIn("short", names)
        self.click("[name=head][value='1 mean']")
        self.stop_at(10)
        first, second = self.text("#attention-map figcaption span"), self.text("#attention-map-beside figcaption span")
        self.assertTrue(first.startswith("two layers") and second.startswith("short"), (first, second))
        self.assertEqual(("layer 1" in first, "layer 0" in second), (True, True))  # the second one has one layer
        self.assertRegex(second, r"Step (0|10|20)\b")
        self.assertNotEqual(*(re.search(r"Step \d+", caption)[0] for caption in (first, second)))
        self.browser.run("window.saved = []; HTMLAnchorElement.prototype.click = function() { window.saved.push(this.download); }")
        for host in ("#attention-map", "#attention-map-beside"):
            self.click(f"{host} .save button")
        first, second = self.browser.run("window.saved")
        self.assertIn("two-layers-layer-1", first)
        self.assertIn("short-layer-0", second)

    def test_runs_of_different_data_have_different_names(self):
        shutil.copy(self.folder / "test.tsv", self.folder / "other.tsv")
        for run, data in (("one", "train.tsv"), ("two", "other.tsv")):
            self.run_qkv("train", "tiny.toml", "--run", f"many/{run}", "--set", f"task.train={data}", "--set", "train.steps=2")
        self.open("many")
        self.assertEqual(self.texts("#run option"), ["tiny (one)", "tiny (two)"])
        self.assertEqual(self.texts(".card h3"), ["tiny (one)", "tiny (two)"])

    def test_a_run_with_the_checkpoint_of_step_0_alone_claims_no_training(self):
        self.run_qkv("export", "runs/tiny", "--safetensors", "tiny.safetensors")
        self.run_qkv("import", "tiny.safetensors", "--run", "imported")
        self.open("imported")
        (run,) = self.data_of(self.page)["runs"]
        self.assertEqual(len(run["stops"]), 1)
        self.assertEqual([view for view in run["weights"] if "before" in view], [])
        self.assertEqual(self.browser.run("document.querySelectorAll('[name=kind]').length"), 0)
        self.assertEqual(self.browser.run("document.querySelector('#time').offsetParent"), None)


if __name__ == "__main__":
    unittest.main()
