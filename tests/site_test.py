"""script/site writes a site whose links all resolve, which is searched without a server, and whose llms.txt lists every page.

Skipped, with the exit code 77, where MkDocs or Doxygen are not installed.
"""
import functools
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

PROJECT = pathlib.Path(__file__).parents[1]
SITE, SOURCE = PROJECT / "build/site", PROJECT / "build/site-source"
sys.path.insert(0, str(PROJECT / "tests/support"))
import browser

LINK = re.compile(r'<[^>]*?\s(?:href|src)="([^"]+)"')
ANCHOR = re.compile(r'\s(?:id|name)="([^"]+)"')


@functools.cache
def anchors(page):
    return {html.unescape(anchor) for anchor in ANCHOR.findall(page.read_text())}


def broken_links(page):
    """The links of a page to files that are not there, or to anchors that a page does not have."""
    for link in dict.fromkeys(LINK.findall(page.read_text())):
        path, _, anchor = html.unescape(link).partition("#")
        if re.match(r"[a-z]+:|//", path):
            continue
        target = page.parent / urllib.parse.unquote(path) if path else page
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file() or anchor and target.suffix == ".html" and urllib.parse.unquote(anchor) not in anchors(target):
            yield f"{page.name}: {link}"


class Site(unittest.TestCase):
    def test_every_link_resolves_to_a_file_and_an_anchor(self):
        pages = [page for page in SITE.rglob("*.html") if page.name != "404.html"]  # which a server shows, with its addresses
        self.assertGreater(len(pages), 100)
        self.assertEqual([broken for page in pages for broken in broken_links(page)], [])

    def test_a_link_to_a_missing_page_or_anchor_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "a.html")
            page.write_text('<h1 id="top"></h1><a href="#top"></a><a href="#b"></a><a class="x" href="c.html#top"></a>')
            self.assertEqual(list(broken_links(page)), ["a.html: #b", "a.html: c.html#top"])

    def test_a_page_with_a_broken_link_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "source")
            shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("api", "html"))
            (source / "pages/api.md").write_text("# API\n\n[a page](docs/no-such-page.md)\n")
            done = subprocess.run(["mkdocs", "build", "--strict", "--site-dir", f"{folder}/site", "-f", source / "mkdocs.yml"],
                                  capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("no-such-page.md", done.stderr)

    def test_llms_txt_lists_every_page_and_each_is_there(self):
        listed = re.findall(r"\]\(markdown/(.*?)\)", (SITE / "llms.txt").read_text())
        written = {str(page.relative_to(PROJECT)) for page in [*PROJECT.glob("docs/**/*.md"), *PROJECT.glob("C*.md")]}
        self.assertEqual(sorted(listed), sorted(written))
        for page in listed:
            self.assertEqual((SITE / "markdown" / page).read_text(), (PROJECT / page).read_text())
            self.assertIn(f"<!-- {page} -->", (SITE / "llms-full.txt").read_text())

    def test_the_search_index_has_every_page_and_each_page_has_its_script(self):
        index = json.loads((SITE / "search/search_index.json").read_text())
        locations = {entry["location"].split("#")[0] for entry in index["docs"]}
        for page in PROJECT.glob("docs/**/*.md"):
            name = str(page.relative_to(PROJECT).with_suffix(".html")).replace("README", "index")
            self.assertIn(name, locations)
            self.assertIn('search/offline.js"></script>', (SITE / name).read_text())
        self.assertIn("Blob", (SITE / "search/offline.js").read_text())

    @unittest.skipIf(browser.missing(), browser.missing() or "")
    def test_a_page_opened_as_a_file_finds_a_word_of_another_page(self):
        chromium = browser.Browser()
        self.addCleanup(chromium.close)
        chromium.window(1280, 900)
        chromium.open(SITE / "index.html")
        # The word is typed again until there are results, because a query is lost before the index is read.
        found = chromium.run("""new Promise(done => {
          const field = document.querySelector(".md-search__input");
          const results = document.querySelector(".md-search-result__list");
          field.focus();
          const typing = setInterval(() => {
            if (results.querySelector("a")) {
              clearInterval(typing);
              done(results.innerHTML);
            }
            field.value = field.value === "softsign" ? "softsig" : "softsign";
            field.dispatchEvent(new Event("keyup", {bubbles: true}));
          }, 500);
        })""")
        self.assertIn("docs/how-to.html", found)
        self.assertEqual([request for request in chromium.requests if request.startswith("http")], [])


if __name__ == "__main__":
    built = subprocess.run([PROJECT / "script/site"], capture_output=True, text=True)
    if built.returncode == 77:
        print(f"skipped: {built.stdout.strip()}")
        sys.exit(77)
    assert built.returncode == 0, built.stdout + built.stderr
    unittest.main()
