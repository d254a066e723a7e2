"""Every picture in the terminal and as SVG, which an XML parser and a browser read.

Usage: pictures_test.py PROGRAM
"""
import itertools
import json
import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import browser
from built_program import PROJECT, ProgramTest, qkv

SVG = "{http://www.w3.org/2000/svg}"
SENTENCE = "money bank grows"
OUTSIDE = """(() => {
  const paper = document.documentElement.getBoundingClientRect();
  return [...document.querySelectorAll("text")].filter(text => {
    const box = text.getBoundingClientRect();
    return box.left < paper.left || box.right > paper.right || box.top < paper.top || box.bottom > paper.bottom;
  }).map(text => text.textContent);
})()"""


class Pictures(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = qkv("train", "tiny.toml", "--run", "longer", "--set", "train.steps=200", cwd=cls.template.name)
        assert done.returncode == 0, done.stderr
        two = cls.two_texts()
        columns = len(two[0].split()) + 1
        # With one layer of two heads: arguments, and the cells of each map, None for another picture.
        cls.commands = [
            (["attend", SENTENCE], [9, 9, 9]),
            (["attend", SENTENCE, "--head", "1"], [9]),
            (["attend", "--data", "test.tsv"], [2 * 5]),
            (["ablate"], [3, 3]),
            (["explain", SENTENCE], [2 * 2, 8 * 2]),
            (["embed", SENTENCE, "--data", "test.tsv", "--pca"], [None]),
            (["linear-probe"], [2 * 3]),
            (["inspect", "w_q"], [64, 8]),
            (["patch", *two], [2 * columns, columns, columns, 2 * columns]),
            (["find-lr"], [None]),
        ]
        cls.browser = None
        if not browser.missing():
            cls.browser = browser.Browser()
            cls.addClassCleanup(cls.browser.close)

    @classmethod
    def two_texts(cls):
        """As patch takes them: of one length and with different answers."""
        texts = [line.split("\t")[-1] for line in (pathlib.Path(cls.template.name) / "test.tsv").read_text().splitlines()]
        found = json.loads(qkv("predict", "longer", *texts, "--json", cwd=cls.template.name).stdout)
        labels = [prediction["label"] for prediction in found["predictions"]]
        return next([a, b] for (a, one), (b, other) in itertools.combinations(zip(texts, labels), 2)
                    if one != other and len(a.split()) == len(b.split()))

    @staticmethod
    def on(run, arguments):
        """The arguments of a command on a run, or on a config for a command that takes one."""
        return [arguments[0], "tiny.toml" if arguments[0] == "find-lr" else run, *arguments[1:]]

    def shown(self, arguments, **environment):
        """The text that a command on the longer run leaves on a terminal, without the progress bar before it."""
        return self.in_terminal(*self.on("longer", arguments), **environment).split("\r\x1b[K")[-1]

    def svg(self, arguments, run="longer", file="picture.svg"):
        """The root of what --svg writes."""
        done = self.run_qkv(*self.on(run, arguments), "--svg", file)
        self.assertIn(f"wrote {file}\n", done.stderr)
        return xml.etree.ElementTree.parse(self.folder / file).getroot()

    def assert_drawn(self, file):
        """A browser draws the picture without complaints or requests, with all texts inside."""
        if not self.browser:
            return
        self.browser.open(self.folder / file)
        self.assertEqual((self.browser.complaints, len(self.browser.requests)), ([], 1))
        self.assertEqual(self.browser.run(OUTSIDE), [])

    def test_every_command_with_pictures_writes_them_as_svg(self):
        for arguments, cells in self.commands:
            with self.subTest(" ".join(arguments)):
                root = self.svg(arguments)
                self.assertEqual(root.tag, SVG + "svg")
                self.assertEqual(root.find(SVG + "title").text, "qkv " + arguments[0])
                maps = [group for group in root.iter(SVG + "g") if group.get("class") == "cells"]
                self.assertEqual([len(group.findall(SVG + "rect")) for group in maps], [c for c in cells if c])
                panels = [group for group in root.findall(SVG + "g") if group.find(SVG + "title") is not None]
                self.assertEqual(len(panels), len(cells))
                self.assert_drawn("picture.svg")

    def test_the_commands_with_pictures_are_those_with_the_option(self):
        commands = re.findall(r"^  ([a-z-]+) +[A-Z]", self.run_qkv("--help").stdout.split("Subcommands:")[1], re.M)
        having = {command for command in commands if "--svg" in self.run_qkv(command, "--help").stdout}
        self.assertEqual(having, {arguments[0] for arguments, _ in self.commands})

    def test_every_picture_has_a_twin_in_the_terminal(self):
        for arguments, cells in self.commands:
            titles = [panel.find(SVG + "title").text for panel in self.svg(arguments).findall(SVG + "g")
                      if panel.find(SVG + "title") is not None]
            for environment, colour in (({"COLORTERM": "truecolor"}, r"\x1b\[[34]8;2;"), ({"COLORTERM": ""}, r"\x1b\[[34]8;5;"),
                                        ({"COLORTERM": "", "TERM": "linux"}, r"\x1b\[(3|4|9|10)[0-7][;m]")):
                with self.subTest(" ".join(arguments), **environment):
                    text = self.shown(arguments, **environment)
                    for title in titles:
                        self.assertIn(f"\n{title}\r\n", "\n" + text)
                    if cells[0]:  # a scatter has letters and a curve has signs instead of colours
                        self.assertRegex(text, colour)
            self.assertNotIn("\033", self.shown(arguments, NO_COLOR="1"))

    def test_the_shades_of_a_map_are_its_weights(self):
        (weights,) = [self.json("attend", "longer", SENTENCE)["layers"][0]["heads"][1]]
        cells = next(group for group in self.svg(["attend", SENTENCE, "--head", "1"]).iter(SVG + "g") if group.get("class") == "cells")
        darkness = [-sum(bytes.fromhex(cell.get("fill")[1:])) for cell in cells]
        self.assertEqual(sorted(range(9), key=lambda i: sum(weights, [])[i]), sorted(range(9), key=lambda i: darkness[i]))

    def test_each_layer_is_a_row_of_heads_and_cross_attention_has_its_map(self):
        (self.folder / "one.toml").write_text(
            f'name = "copy"\n[task]\nkind = "translate"\ntrain = "{PROJECT}/datasets/sequences/copy/valid.tsv"\n[model]\n'
            'kind = "encoder-decoder"\nwidth = 8\nheads = 2\nlayers = 2\nmax_length = 12\n[train]\nsteps = 2\n')
        self.run_qkv("train", "one.toml")
        root = self.svg(["attend", "a b c", "--target", "d e"], "runs/copy")
        panels = [group for group in root.findall(SVG + "g") if group.find(SVG + "title") is not None]
        at = {panel.find(SVG + "title").text.split(":")[0]: tuple(map(float, re.findall(r"[\d.]+", panel.get("transform"))))
              for panel in panels}
        self.assertEqual(len(at), 3 * 4 + 2)
        for kind in ("encoder", "decoder", "cross-attention of each output"):
            places = [[at[f"{kind}, layer {layer}, head {head}"] for head in range(2)] for layer in range(2)]
            for row in places:
                self.assertEqual(row[0][1], row[1][1])
                self.assertLess(row[0][0], row[1][0])
            self.assertLess(places[0][0][1], places[1][0][1])
        self.assertEqual(sum(group.get("class") == "legend" for group in root.iter(SVG + "g")), 1)
        self.assert_drawn("picture.svg")

    def test_markup_in_words_is_text_and_long_sentences_stay_inside(self):
        words = '<b> & "bank" ]]> \u202e Ünïcödé 漢字 internationalisation WWWWWWWWWW mmmmmmmmmmmm bank'
        self.svg(["attend", words])
        self.assert_drawn("picture.svg")
        self.svg(["attend", "the bank of the river was flooded by all the rain that had fallen on it for so long"])
        self.assert_drawn("picture.svg")

    def test_a_picture_replaces_a_picture_and_no_other_file(self):
        self.svg(["attend", SENTENCE])
        self.svg(["attend", SENTENCE])
        for content in ("precious", "<svg xmlns='http://www.w3.org/2000/svg'/>"):
            (self.folder / "mine.svg").write_text(content)
            self.assert_refused(["attend", "longer", SENTENCE, "--svg", "mine.svg"], "mine.svg: exists and is not a picture of qkv")
            self.assertEqual((self.folder / "mine.svg").read_text(), content)
        self.assert_refused(["attend", "longer", SENTENCE, "--svg", "none/a.svg"], "none/a.svg: cannot", code=1)

    def test_svg_stands_beside_every_format_and_needs_a_picture(self):
        self.assertEqual(self.json("attend", "longer", SENTENCE, "--svg", "a.svg"), self.json("attend", "longer", SENTENCE))
        self.assert_refused(["embed", "longer", SENTENCE, "--svg", "b.svg"], "--svg: this result has no picture")


if __name__ == "__main__":
    unittest.main()
