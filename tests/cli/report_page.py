"""What the tests of the page that `qkv report` makes have in common: the file, and a browser that opens it."""
import base64
import gzip
import json
import pathlib
import re
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import browser
from built_program import ProgramTest


class ReportTest(ProgramTest):
    def report(self, *arguments):
        self.run_qkv("report", *arguments, "-o", "page.html")
        return self.folder / "page.html"

    def data_of(self, page):
        return json.loads(self.unpacked(page, "data").partition(b"\0")[0])

    def unpacked(self, page, name):
        """The bytes of an element that holds them as gzip and base64."""
        return gzip.decompress(base64.b64decode(re.search(rf'id="{name}">([^<]*)</script>', page.read_text()).group(1)))


@unittest.skipIf(browser.missing(), f"no browser: {browser.missing()}")
class PageTest(ReportTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        super().setUp()
        self.browser.window(1280, 900)

    def open(self, *arguments):
        self.page = self.report(*arguments)
        return self.load()

    def load(self):
        """Opens the page and waits until it is drawn; returns the seconds of work that its process did."""
        self.browser.open(self.page)
        self.wait_for("document.querySelector('main:not([aria-busy])') !== null")
        self.assert_quiet()
        return self.browser.busy()

    def assert_quiet(self):
        self.assertEqual(self.browser.complaints, [])
        outside = [url for url in self.browser.requests if not url.startswith(("data:", "blob:", self.page.as_uri()))]
        self.assertEqual(outside, [])

    def wait_for(self, condition):
        for _ in range(600):
            if self.browser.run(condition):
                return
            time.sleep(0.05)
        self.fail(f"waited in vain for {condition}")

    def wait_for_ablation(self):
        """The map of what an answer needs is computed after the rest of the page is drawn."""
        self.wait_for("document.querySelector('#ablation-figure .cells rect') !== null")

    def click(self, selector):
        self.browser.run(f"document.querySelector({json.dumps(selector)}).click()")
