"""Reader for the site that `make docs` built, which resolves links as a browser does."""

from __future__ import annotations

import re
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "docs" / "html"
# Pages that the theme adds, which no navigation lists.
MACHINERY = {"index.html", "search.html", "genindex.html", "py-modindex.html"}


class _Reader(HTMLParser):
    """Parser that collects a page's links, the resources that it loads, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.navigation: list[str] = []
        self.images: list[dict] = []
        self.title = ""
        self._within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the link, resource or anchor of an element."""
        has = {name: value or "" for name, value in attrs}
        self.anchors |= {has[name] for name in ("id", "name") if name in has}
        if tag == "title" and not self.title:  # Pictures have titles too.
            self._within = tag
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
            if {"reference", "internal"} <= set(has.get("class", "").split()):
                self.navigation.append(has["href"])
        elif tag == "link" and "canonical" not in has.get("rel", ""):
            self.loaded.append(has.get("href", ""))
        elif "src" in has:
            self.loaded.append(has["src"])
        if tag == "img":
            self.images.append(has)

    def handle_data(self, data: str) -> None:
        """Record the title."""
        if self._within == "title":
            self.title += data

    def handle_endtag(self, tag: str) -> None:
        """End the title."""
        if tag == "title":
            self._within = ""


class Document:
    """One HTML page of the site."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path.relative_to(SITE))

    @cached_property
    def read(self) -> _Reader:
        """The parsed content of the page."""
        reader = _Reader()
        reader.feed(self.path.read_text(encoding="utf-8"))
        return reader

    def leads_to(self, link: str) -> tuple[Path, str]:
        """Return the file and anchor of a link within the site."""
        parts = urlsplit(link)
        path = (self.path.parent / unquote(parts.path)).resolve() if parts.path else self.path
        return path, unquote(parts.fragment)


def documents() -> list[Document]:
    """Return all pages of the site except the theme's own and reports."""
    every = (Document(path) for path in sorted(SITE.rglob("*.html")))
    apart = ("_static/", "_downloads/", "docs/gallery/")  # Reports are separate pages.
    return [
        document
        for document in every
        if document.name not in MACHINERY and not document.name.startswith(apart)
    ]


def is_elsewhere(address: str) -> bool:
    """Return whether an address leads out of the site."""
    return bool(re.match(r"(?:[a-z]+:)?//", address))
