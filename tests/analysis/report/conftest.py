"""Parser of pages that checks them as a browser would."""

from html.parser import HTMLParser

from onebasin.analysis.page import SCRIPT

VOID = {"meta", "img", "link", "br", "hr", "input"}


class Page(HTMLParser):
    """Parser that collects elements, text and ids of a page, and checks that tags are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.text = ""
        self.cells: list[list[str]] = []
        self.scripts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.cells.append([])
        elif tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif "style" not in self.open:
            self.text += data
        if self.open and {"td", "th"} & set(self.open):
            self.cells[-1][-1] += data

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    def values(self, attribute):
        return [attrs[attribute] for _, attrs in self.elements if attribute in attrs]


def assert_only_our_script(page):
    assert page.all("script") == [{}]
    assert page.scripts == [SCRIPT]


def assert_self_contained(page, html):
    assert page.all("link") == page.all("iframe") == []
    assert_only_our_script(page)
    for attribute in ("src", "href"):
        for value in page.values(attribute):
            assert value.startswith(("#", "data:image/png;base64,"))
    assert "http:" not in html and "https:" not in html
    assert "@import" not in html
    assert all(part.startswith(("#", "data:font/woff2;base64,")) for part in _after(html, "url("))


def _after(text, mark):
    return text.split(mark)[1:]
