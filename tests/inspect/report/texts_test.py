"""The texts of the report page: every language has every text that the page looks up, and no other."""
import json
import pathlib
import re
import unittest

REPORT = pathlib.Path(__file__).parents[3] / "inspect/report"
TEXTS = {file.stem: json.loads(file.read_text(), object_pairs_hook=list) for file in (REPORT / "texts").glob("*.json")}
SOURCES = "".join(file.read_text() for file in sorted(REPORT.glob("*.js")) + [REPORT / "page.html"])
TERM = re.compile(r"\[[^\]]+\]\((\w+)\)")


class Texts(unittest.TestCase):
    def test_every_language_has_the_same_keys_in_the_same_order(self):
        english = [key for key, _ in TEXTS["en"]]
        self.assertEqual(len(english), len(set(english)))
        for language, table in TEXTS.items():
            self.assertEqual([key for key, _ in table], english, language)

    def test_every_language_has_the_same_placeholders_and_terms(self):
        for language, table in TEXTS.items():
            for (key, text), (_, english) in zip(table, TEXTS["en"]):
                with self.subTest(language=language, key=key):
                    self.assertTrue(text.strip())
                    self.assertEqual(set(re.findall(r"{(\w+)}", text)), set(re.findall(r"{(\w+)}", english)))
                    self.assertEqual(set(TERM.findall(text)), set(TERM.findall(english)))

    def test_every_text_that_the_page_looks_up_is_there_and_every_text_is_looked_up(self):
        keys, texts = dict(TEXTS["en"]), "".join(text for _, text in TEXTS["en"])
        whole = set(re.findall(r'"([a-z]+\.[\w.-]+)"', SOURCES))
        self.assertEqual({name for name in re.findall(r'\b(?:t|rich)\("([^"]+)"', SOURCES)} - keys.keys(), set())
        self.assertEqual({name for name in re.findall(r'data-(?:text|label)="([^"]+)"', SOURCES)} - keys.keys(), set())
        families = set(re.findall(r"`([a-z]+\.(?:\w+_)?)\$\{", SOURCES)) - {"term."}
        used = {key for key in keys if key in whole or any(key.startswith(family) for family in families)}
        terms = {f"term.{name}" for name in TERM.findall(texts) + re.findall(r'\bterm\("(\w+)"', SOURCES)}
        terms |= {re.sub("^(metric|kind)", "term", key) for key in used if key.startswith(("metric.", "kind."))}
        self.assertEqual(terms - keys.keys(), set())
        self.assertEqual(keys.keys() - used - terms - {"language.name"}, set())

    def test_every_language_is_in_the_page(self):
        page = (REPORT / "page.html").read_text()
        tables = re.findall(r"(\w+): \{\{\1.json\}\}", page)
        self.assertEqual(tables[0], "en")
        self.assertEqual(set(tables), TEXTS.keys())

    def test_no_text_stands_in_the_markup(self):
        body = (REPORT / "page.html").read_text().split("<body>")[1]
        body = re.sub(r"<noscript>.*?</noscript>|<script.*?</script>|<[^>]+>|\{\{.*?\}\}", "", body, flags=re.S)
        self.assertEqual(body.split(), [])


if __name__ == "__main__":
    unittest.main()
