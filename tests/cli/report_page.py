"""What the tests of the page that `qkv report` makes have in common: the file, and a browser that opens it."""
import json
import pathlib
import re
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import browser
from program_test import ProgramTest


class ReportTest(ProgramTest):
    def report(self, *arguments):
        self.run_qkv("report", *arguments, "-o", "page.html")
        return self.folder / "page.html"

    def data_of(self, page):
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S).group(1))


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
        seconds = self.browser.open(self.page)
        self.assert_quiet()
        return seconds

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
