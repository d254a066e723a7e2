"""The pages that `qkv sweep` and `qkv fit` write."""
import pathlib
import xml.etree.ElementTree


class SearchPage:
    """A page, which must be well-formed and ask for nothing."""

    def __init__(self, path):
        self.text = pathlib.Path(path).read_text()
        self.root = xml.etree.ElementTree.fromstring(self.text)
        links = [element.get(name) for element in self.root.iter() for name in ("src", "href") if name in element.keys()]
        assert "://" not in self.text and links == ["data:,"] and not self.root.findall(".//script")

    def rows(self):
        """The cells of the table, without its head."""
        return [["".join(cell.itertext()) for cell in row] for row in self.root.findall(".//tbody/tr")]

    def headings(self):
        return [heading.text for heading in self.root.iter("h2")]

    def marks(self, section, kind):
        """The tooltips of marks of a kind in the section of a heading; None for one without."""
        (found,) = [part for part in self.root.iter("section") if part.find("h2").text == section]
        return [mark.findtext("title") for mark in found.iter(kind) if "mark" in mark.get("class")]

    def labels(self):
        return [text.text for text in self.root.iter("text")]
