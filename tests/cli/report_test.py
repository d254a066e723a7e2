"""The page that `qkv report` makes: what is in the file, and how it behaves in a browser.

Usage: report_test.py PROGRAM
"""
import itertools
import json
import math
import pathlib
import re
import shutil
import statistics
import struct
import time
import unittest
import xml.etree.ElementTree

from report_page import PageTest, ReportTest
from built_program import CONFIG, PROJECT
from long_tests import long_test
from stand_ins import GIVEN, write_stand_ins

BAD = "</script><img src=x onerror=document.title='owned'>"
# Names that D3 5, 6 and 7 all have; others are gone in 6 (event, mouse, nest) or new in it (pointer, group, maxIndex).
IN_EVERY_D3 = set("""area axisBottom axisLeft bisector color create deviation extent interpolateRgbBasis lab line max mean min
                  pairs range rgb scaleLinear sum symbol symbolDiamond""".split())
MAP = "document.querySelector('#attention-map svg').outerHTML"


class File(ReportTest):
    def test_it_is_said_whose_data_a_page_holds(self):
        said = self.run_qkv("report", "runs/tiny", "-o", "page.html").stdout
        self.assertRegex(said, r"page\.html: \d\.\d MB, opens in any browser, holds test\.tsv, train\.tsv, valid\.tsv\n")
        (self.folder / "train.tsv").rename(self.folder / "gone.tsv")
        self.assertRegex(self.run_qkv("report", "runs/tiny", "-o", "page.html").stdout, r"page\.html: \d\.\d MB, opens in any browser\n")

    def test_a_run_s_page_holds_its_curves_checkpoints_config_and_results(self):
        data = self.data_of(self.report("runs/tiny"))
        self.assertEqual(data["name"], "tiny")
        (run,) = data["runs"]
        steps = [stop["step"] for stop in run["stops"]]
        self.assertEqual(steps, sorted({0, 20, 30, 40, *steps}))  # and the best, whichever it is
        self.assertIn("width = 8", run["config"])
        self.assertEqual((run["data"]["train"], run["data"]["valid"], run["data"]["test"]), (200, 40, 40))
        self.assertEqual(run["test"]["split"], "test")
        self.assertEqual(len(run["points"]), 40)
        self.assertEqual(len(run["embedding"]["after"]["points"]), len(steps))
        self.assertIn("encoder.layers.0.attention.w_q.weight", [view["path"] for view in run["weights"]])
        self.assertEqual(run["training"], {"config": run["config"], "files": ["train.tsv", "valid.tsv", "test.tsv"]})
        self.assertEqual(data["files"], {name: (self.folder / name).read_text() for name in run["training"]["files"]})

    def test_weights_in_the_page_are_those_of_the_checkpoint(self):
        page = self.report("runs/tiny")
        (run,) = self.data_of(page)["runs"]
        weights = self.unpacked(page, "data").partition(b"\0")[2]
        best = next(i for i, stop in enumerate(run["stops"]) if stop["note"] == "best")
        self.assertEqual(run["model"]["weights"].keys(), {str(i) for i in range(len(run["stops"]))})
        self.assertIsNone(run["attention"])  # the page computes it
        found, count = run["model"]["weights"][str(best)], sum(math.prod(p["shape"]) for p in run["model"]["parameters"])
        self.assertEqual(found["bits"], 32)
        planes = [weights[found["at"] + plane * count:][:count] for plane in range(4)]
        self.run_qkv("export", "runs/tiny", "--safetensors", "tiny.safetensors")
        file = (self.folder / "tiny.safetensors").read_bytes()
        (length,) = struct.unpack_from("<Q", file)
        tensors = json.loads(file[8:8 + length])
        places = [tensors[parameter["path"]]["data_offsets"] for parameter in run["model"]["parameters"]]
        self.assertEqual(bytes(itertools.chain(*zip(*planes))), b"".join(file[8 + length + begin:8 + length + end] for begin, end in places))

    def test_a_comparison_s_page_holds_every_variant_in_the_order_of_training(self):
        variants = '[[variant]]\nname = "z"\nmodel.kind = "static"\n[[variant]]\nname = "a, 1 head"\nmodel.heads = 1\n'
        (self.folder / "two.toml").write_text(CONFIG + variants)
        self.run_qkv("compare", "two.toml")
        runs = self.data_of(self.report("runs/tiny-compare"))["runs"]
        self.assertEqual([run["name"] for run in runs], ["z", "a, 1 head"])
        self.assertEqual([sum(".attention." in parameter["path"] for parameter in run["model"]["parameters"]) > 0 for run in runs], [False, True])

    def test_runs_that_differ_in_their_seeds_are_one_model(self):
        """Also where a variant differs from another one in its seed only; not where more differs."""
        variants = "".join(f'[[variant]]\nname = "{name}"\n{options}\n' for name, options in
                           (("a", ""), ("b", "model.heads = 1"), ("c", "seed = 7")))
        (self.folder / "three.toml").write_text(CONFIG + variants)
        self.run_qkv("compare", "three.toml", "--seeds", 2, "--set", "train.steps=2")
        runs = self.data_of(self.report("runs/tiny-compare"))["runs"]
        self.assertEqual([(run["name"], len(run["others"])) for run in runs], [("a", 3), ("b", 1)])
        for run in runs:
            losses = [outcome["test"]["loss"] for outcome in (run, *run["others"])]
            self.assertEqual(len(set(losses)), len(losses))

    def test_the_points_of_runs_on_the_same_data_are_in_the_page_once(self):
        (self.folder / "two.toml").write_text(CONFIG + '[[variant]]\nname = "a"\n[[variant]]\nname = "b"\nmodel.heads = 1\n')
        self.run_qkv("compare", "two.toml", "--set", "train.steps=2")
        runs = self.data_of(self.report("runs/tiny-compare"))["runs"]
        self.assertEqual((len(runs[0]["points"]), runs[1]["points"]), (40, 0))

    def test_runs_of_other_data_are_not_said_to_have_the_same(self):
        (self.folder / "two.toml").write_text(CONFIG + '[[variant]]\nname = "a"\n[[variant]]\nname = "b"\nmodel.heads = 1\n')
        self.run_qkv("compare", "two.toml", "--set", "train.steps=2")
        data = self.data_of(self.report("runs/tiny-compare"))
        self.assertEqual((data["same_data"], data["name"]), (True, "tiny"))
        shutil.copy(self.folder / "test.tsv", self.folder / "other.tsv")
        self.run_qkv("train", "tiny.toml", "--set", "task.train=other.tsv", "--set", "name=other", "--set", "train.steps=2")
        data = self.data_of(self.report("runs"))
        self.assertEqual((data["same_data"], data["name"]), (False, "runs"))

    def test_the_page_lies_in_the_run_unless_named(self):
        self.assertIn("report.html", self.run_qkv("report", "runs/tiny").stdout)
        self.assertTrue((self.folder / "runs/tiny/report.html").exists())

    def test_a_page_is_made_where_the_data_is_gone(self):
        for split in ("train", "valid", "test"):
            (self.folder / f"{split}.tsv").unlink()
        run = self.data_of(self.report("runs/tiny"))["runs"][0]
        self.assertEqual((run["sentences"], run["embedding"], run["training"]), ([], None, None))
        run = self.data_of(self.report("runs/tiny", "--sentence", "money bank grows"))["runs"][0]
        self.assertEqual(run["sentences"][0]["tokens"], ["money", "bank", "grows"])

    def test_nothing_in_the_page_leads_outside(self):
        text = self.report("runs/tiny").read_text()
        for tag in re.findall(r"<(?:script|link|img|iframe)[^>]*>", text):
            self.assertNotRegex(tag, r"(src|href)=\W?(?!data:)\w")

    def test_the_page_uses_what_every_supported_version_of_d3_has(self):
        scripts = "".join(file.read_text() for file in (PROJECT / "inspect/report").glob("*.js"))
        used = set(re.findall(r"\bd3\.(\w+)", scripts))
        self.assertTrue(used)
        self.assertEqual(used - IN_EVERY_D3, set())

    def test_a_page_of_a_config_holds_its_data_and_untrained_variants(self):
        (self.folder / "two.toml").write_text(CONFIG + '[[variant]]\nname = "a"\n[[variant]]\nname = "b"\nmodel.heads = 1\n')
        self.assertIn("two.html", self.run_qkv("page", "two.toml", "--set", "name=two").stdout)
        data = self.data_of(self.folder / "two.html")
        self.assertEqual((data["name"], data["files"].keys()), ("two", {"train.tsv", "valid.tsv", "test.tsv"}))
        self.assertEqual([(run["name"], run["stops"]) for run in data["runs"]], [(name, [{"step": 0, "note": "untrained"}]) for name in "ab"])
        self.assertIn("heads = 1 ", data["runs"][1]["training"]["config"])

    def test_a_page_of_a_config_that_it_cannot_train_is_refused(self):
        self.assert_refused(["page", "tiny.toml", "--set", "train.init=runs/tiny"], "a page cannot train tiny: ")
        self.assert_refused(["page", "tiny.toml", "--set", "train.step=2"], "train.step")
        self.assert_refused(["page", "tiny.toml", "-o", "train.tsv"], "train.tsv: exists and is not a page of qkv report")

    def test_bad_folders_are_refused(self):
        self.assert_refused(["report", "none"], "none is not a folder")
        self.assert_refused(["report", "."], "holds no checkpoint")
        self.assert_refused(["report", "runs/tiny", "--sentence", " "], "the sentence is empty")
        (self.folder / "runs/tiny/metrics.jsonl").write_text("{}\n")
        self.assert_refused(["report", "runs/tiny"], "metrics.jsonl:1: ")
        for line in ('{"step":"x"}', '{"step":"x","split":"test"}', '{"step":1,"split":"valid","loss":"x"}', '[]'):
            (self.folder / "runs/tiny/metrics.jsonl").write_text('{"step":1,"split":"valid","loss":1}\n' + line + "\n")
            self.assert_refused(["report", "runs/tiny"], "metrics.jsonl:2: is not a line of metrics")

    def test_a_line_of_metrics_that_a_killed_run_did_not_finish_stops_no_report(self):
        metrics = self.folder / "runs/tiny/metrics.jsonl"
        lines = metrics.read_text()
        metrics.write_text(lines + '{"step":50,"spl')
        run = self.data_of(self.report("runs/tiny"))["runs"][0]
        self.assertEqual(len(run["metrics"]), len(lines.splitlines()))


class Page(PageTest):
    def test_it_loads_without_a_complaint_or_a_request(self):
        self.open("runs/tiny")
        self.assertLess(self.page.stat().st_size, 2.5e6)
        self.wait_for_ablation()
        self.assertEqual(self.browser.run("document.querySelectorAll('figure svg').length"), 6)
        self.assertEqual(self.browser.run("document.querySelector('#name').textContent"), "tiny")

    def test_sentence_head_and_word_change_the_picture(self):
        self.open("runs/tiny")
        self.click("[name=head][value='0 mean']")
        seen = {self.browser.run(MAP)}
        for selector in ("[name=head][value='0 1']", "[name=head][value='0 0']", "#tokens button:first-child"):
            self.click(selector)
            seen.add(self.browser.run(MAP))
        self.browser.run("{const s = document.querySelector('#example'); s.selectedIndex = 1;"
                         "s.dispatchEvent(new Event('change'))}")
        seen.add(self.browser.run(MAP))
        self.assertEqual(len(seen), 5)
        self.assert_quiet()

    def test_layers_change_the_picture(self):
        self.run_qkv("train", "tiny.toml", "--run", "deep", "--set", "model.layers=2", "--set", "train.steps=10")
        self.open("deep")
        self.click("[name=head][value='0 mean']")
        before = self.browser.run(MAP)
        self.click("[name=head][value='1 mean']")
        self.assertNotEqual(self.browser.run(MAP), before)
        self.assertIn("layer 1", self.browser.run("document.querySelector('#attention-map figcaption').textContent"))

    def test_the_slider_moves_by_keyboard_through_the_checkpoints(self):
        self.open("runs/tiny")
        self.browser.run("document.querySelector('#stop').focus()")
        self.browser.press("Home")
        first = self.browser.run(MAP)
        points = self.browser.run("document.querySelector('#after svg').outerHTML")
        self.assertEqual(self.browser.run("document.querySelector('#stop-name').textContent"), "Step 0 · untrained")
        self.browser.press("ArrowRight")
        self.assertRegex(self.browser.run("document.querySelector('#stop-name').textContent"), "Step [12]0")
        self.assertNotEqual(self.browser.run(MAP), first)
        self.assertNotEqual(self.browser.run("document.querySelector('#after svg').outerHTML"), points)

    def stop(self):
        """Where the slider stands, once it agrees with the name beside it."""
        value, name = self.browser.run("[Number(document.querySelector('#stop').value), document.querySelector('#stop-name').textContent]")
        step = self.data_of(self.page)["runs"][0]["stops"][value]["step"]
        self.assertRegex(name, rf"^Step {step}( ·|$)")
        return value

    def test_play_moves_slider_and_picture_together_until_it_is_paused(self):
        self.open("runs/tiny")
        self.browser.run("document.querySelector('#stop').focus()")
        self.browser.press("End")
        # From the last checkpoint to the first, and on to the second, where the page itself presses "Pause".
        value, first = self.browser.run(f"""(() => {{
            const play = document.querySelector('#play'), stop = document.querySelector('#stop');
            new MutationObserver((_, observer) => {{
                if (stop.value === '0') return;
                observer.disconnect();
                window.shown = play.textContent;
                play.click();
            }}).observe(document.querySelector('#stop-name'), {{ childList: true, characterData: true, subtree: true }});
            play.click();
            return [stop.value, {MAP}];
        }})()""")
        self.assertEqual(value, "0")
        self.wait_for("window.shown === 'Pause'")
        self.assertNotEqual(self.browser.run(MAP), first)
        paused = self.stop()
        time.sleep(1)
        self.assertEqual(self.stop(), paused)
        self.assertEqual(self.browser.run("document.querySelector('#play').textContent"), "Play")
        self.click("#play")
        self.wait_for("document.querySelector('#play').textContent === 'Play'")  # at the end
        self.assertEqual(self.browser.run("document.querySelector('#stop').value === document.querySelector('#stop').max"), True)
        self.assert_quiet()

    def test_a_hand_on_the_slider_ends_playing(self):
        self.open("runs/tiny")
        self.click("#play")
        self.browser.run("{const s = document.querySelector('#stop'); s.value = 2; s.dispatchEvent(new Event('input'))}")
        time.sleep(1)
        self.assertEqual(self.stop(), 2)
        self.assert_quiet()

    @long_test
    def test_every_config_s_page_shows_each_of_its_models_without_a_complaint(self):
        write_stand_ins(self.folder)
        # Copies of the configs find the vectors above them, where `qkv embed` would have written them.
        configs = pathlib.Path(shutil.copytree(PROJECT / "configs", self.folder / "configs"))
        (self.folder / "datasets").symlink_to(PROJECT / "datasets")
        # finetune.toml starts from a run of pretrain.toml.
        self.run_qkv("compare", configs / "pretrain.toml", "--set", "train.steps=2", "--only", "attention")
        for config in sorted(configs.glob("*.toml")):
            with self.subTest(config.name):
                variants = re.findall(r'^\[\[variant\]\]\nname = "(.*)"$', config.read_text(), re.MULTILINE)
                # One of those that differ by a number only, and none of width 2000, whose principal components take long.
                chosen = list({re.sub(r"\d+", "", name): name for name in reversed(variants) if "2000" not in name}.values())
                arguments = [part for name in chosen for part in ("--only", name)]
                arguments += GIVEN.get(config.stem, [])
                command = "compare" if variants else "train"
                self.run_qkv(command, config, "--set", "train.steps=2", *arguments)
                self.open(f"runs/{config.stem}" + ("-compare" if variants else ""))
                count = len(chosen) if variants else 1
                for model in reversed(range(count)):
                    if count > 1:
                        self.browser.run("{const s = document.querySelector('#run'); s.selectedIndex = %d;"
                                         "s.dispatchEvent(new Event('change'))}" % model)
                    self.click("#play")
                    self.browser.window(1100 + model, 900)
                    self.browser.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
                    self.assert_quiet()

    def test_several_seeds_are_shown_by_mean_and_standard_deviation(self):
        probe = '\n[[probe]]\nname = "any"\nsentences = ["money bank grows", "the river bank flows"]\nword = "bank"\nexpect = "contextual_cosine < %s"\n'
        (self.folder / "seeds.toml").write_text(CONFIG + '[[variant]]\nname = "a"\n[[variant]]\nname = "b"\nmodel.heads = 1\n' + probe % 2 + probe % -2)
        done = self.run_qkv("compare", "seeds.toml", "--seeds", 3, "--json")
        self.open("runs/tiny-compare")
        text = self.browser.run("document.querySelector('#results-table').textContent")
        for variant in json.loads(done.stdout)["variants"]:
            accuracies = [seed["test"]["accuracy"] for seed in variant["seeds"]]
            self.assertIn(f"{statistics.mean(accuracies):.4f} ± {statistics.stdev(accuracies):.4f}", text)
        self.assertEqual(text.count("3 seeds"), 2)
        verdicts = self.browser.run("[...document.querySelectorAll('#probes-table tbody td:last-child')].map(e => e.textContent)")
        self.assertEqual(verdicts, ["pass in 3 of 3", "pass in 0 of 3"] * 2)
        self.assertEqual(self.browser.run("document.querySelectorAll('#curves .band').length"), 2)
        self.assert_quiet()

    def test_the_page_of_runs_without_test_data_claims_no_results(self):
        self.run_qkv("train", "tiny.toml", "--run", "untested", "--set", "task.test=", "--set", "task.valid=", "--set", "train.steps=2")
        self.open("untested")
        text = self.browser.run("document.querySelector('#results').textContent")
        self.assertIn("no test data", text)
        self.assertNotIn("Test accuracy", text)
        self.assertNotIn("held back", self.browser.run("document.querySelector('#training').textContent"))

    def test_the_page_of_an_imported_model_shows_no_training(self):
        self.run_qkv("export", "runs/tiny", "--safetensors", "tiny.safetensors")
        self.run_qkv("import", "tiny.safetensors", "--run", "imported")
        self.open("imported")
        shown = "[...document.querySelectorAll('nav a')].filter(a => a.offsetParent).map(a => a.hash)"
        self.assertEqual(self.browser.run(shown), ["#try", "#train", "#attention", "#why", "#embeddings", "#results", "#weights", "#config"])
        self.assertEqual(self.browser.run("document.querySelector('#training').offsetParent"), None)
        self.assert_quiet()

    def test_the_map_shows_the_model_s_own_weights(self):
        self.open("runs/tiny", "--sentence", "money bank grows")
        self.click("[name=head][value='0 1']")
        shown = self.browser.run("[...document.querySelectorAll('#attention-map text')].map(t => t.textContent)"
                                 ".filter(t => /^(1?\\.\\d\\d|1\\.00)$/.test(t)).map(Number)")
        expected = [w for row in self.json("attend", "runs/tiny", "money bank grows")["layers"][0]["heads"][1] for w in row]
        self.assertEqual(len(shown), 9)
        for a, b in zip(shown, expected):
            self.assertAlmostEqual(a, b, delta=0.0051)

    def test_markup_in_sentences_and_labels_shows_as_text(self):
        for split in ("train", "valid", "test"):
            file = self.folder / f"{split}.tsv"
            file.write_text(file.read_text().replace("money\t", "<u>money&amp;\t"))
        self.run_qkv("train", "tiny.toml", "--run", "marked", "--set", "train.steps=5")
        self.open("marked", "--sentence", BAD + " bank", "--sentence", "money bank grows")
        self.assertEqual(self.browser.run("document.querySelectorAll('img, u').length"), 0)
        self.assertNotIn("owned", self.browser.run("document.title"))
        self.assertIn("</script><img", self.browser.run("document.querySelector('#tokens').textContent"))
        self.assertIn("<u>money&amp;", self.browser.run("document.querySelector('#labels').textContent"))

    def test_512_tokens_are_one_image(self):
        (self.folder / "long.toml").write_text(CONFIG.replace("max_length = 24", "max_length = 512"))
        self.run_qkv("train", "long.toml", "--run", "long", "--set", "train.steps=1", "--set", "model.heads=4")
        seconds = self.open("long", "--sentence", " ".join(["the bank grows again"] * 128))
        print(f"a page of 512 tokens opened in {seconds:.2f} s")
        self.assertLess(self.page.stat().st_size, 2.5e6)
        self.assertEqual(self.browser.run("document.querySelectorAll('#attention-map image').length"), 1)
        before = self.browser.busy()
        self.click("[name=head][value='0 2']")
        print(f"another head was drawn in {self.browser.busy() - before:.2f} s")

    def test_every_picture_is_saved_as_an_svg_that_stands_alone_and_as_a_png(self):
        self.open("runs/tiny")
        files = []
        for button in (1, 2):
            self.load()  # Chromium saves ten files at most from one
            self.wait_for_ablation()
            files += self.browser.downloads(self.folder / "saved", 6, "document.querySelectorAll("
                                            f"'figure:has(svg) .save button:nth-child({button})').forEach(button => button.click())")
        self.assertEqual(sorted({f.suffix for f in files}), [".png", ".svg"])
        self.assertEqual(len(files), 12)
        for file in files:
            if file.suffix == ".png":
                self.assertEqual(file.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
                continue
            root = xml.etree.ElementTree.parse(file).getroot()
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
            self.page = file
            self.browser.open(file)
            self.assert_quiet()
            marks = self.browser.run("document.documentElement.querySelectorAll('path, rect, circle').length")
            if "-ablation-" in file.name:
                self.assertEqual(marks, 4, file.name)  # the background, two heads and the feed-forward block
            else:
                self.assertGreater(marks, 5, file.name)

    def test_a_phone_scrolls_in_one_direction_only(self):
        self.browser.window(390, 844)
        self.open("runs/tiny")
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 390)

    def test_dark_is_dark(self):
        self.browser.window(1280, 900, dark=True)
        self.open("runs/tiny")
        lightness = "d3.lab(getComputedStyle(document.body).backgroundColor).l"
        self.assertLess(self.browser.run(lightness), 20)
        self.click("#theme")
        self.assertGreater(self.browser.run(lightness), 90)

    def test_screen_readers_find_a_name_for_everything(self):
        self.open("runs/tiny")
        nameless = "[...document.querySelectorAll('%s')].filter(e => !(%s)).map(e => e.outerHTML.slice(0, 80))"
        self.assertEqual(self.browser.run(nameless % ("svg", "e.getAttribute('aria-label') && e.querySelector('title').textContent")), [])
        self.assertEqual(self.browser.run(nameless % ("input, select", "e.getAttribute('aria-label') || e.labels.length")), [])
        self.assertEqual(self.browser.run(nameless % ("button", "e.textContent.trim()")), [])


if __name__ == "__main__":
    unittest.main()
