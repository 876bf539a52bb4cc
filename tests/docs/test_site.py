"""The site builds without a warning, opens without a network, and every page is found and fits a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from ..analysis.report.browsing import browser

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "docs" / "html"
# Pages that the theme adds, which no navigation lists.
MACHINERY = {"index.html", "search.html", "genindex.html", "py-modindex.html"}


class Document:
    """One HTML page of the site: its title, links, anchors and pictures, and the resources that it loads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path.relative_to(SITE))
        page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        self.title = page.title.get_text() if page.title else ""
        every, inner = page(True), {"reference", "internal"}
        links = [e for e in every if e.name == "a" and "href" in e.attrs]
        self.links = [link["href"] for link in links]
        self.navigation = [link["href"] for link in links if inner <= set(link.get("class", ()))]
        self.loaded = [e["src"] for e in every if "src" in e.attrs]
        resources = [e for e in every if e.name == "link" and "canonical" not in e["rel"]]
        self.loaded += [link["href"] for link in resources]
        self.anchors = {e[name] for e in every for name in ("id", "name") if name in e.attrs}
        self.images = [e.attrs for e in every if e.name == "img"]

    def leads_to(self, link: str) -> tuple[Path, str]:
        """Return the file and anchor of a link within the site."""
        parts = urlsplit(link)
        path = (self.path.parent / unquote(parts.path)).resolve() if parts.path else self.path
        return path, unquote(parts.fragment)


def documents() -> list[Document]:
    """Return all pages of the site except the theme's own and reports."""
    apart = ("_static/", "_downloads/", "docs/gallery/")  # Reports are separate pages.
    every = ((path, str(path.relative_to(SITE))) for path in sorted(SITE.rglob("*.html")))
    return [
        Document(path)
        for path, name in every
        if name not in MACHINERY and not name.startswith(apart)
    ]


def is_elsewhere(address: str) -> bool:
    """Return whether an address leads out of the site."""
    return bool(re.match(r"(?:[a-z]+:)?//", address))


pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def site() -> list[Document]:
    """Return the pages of the site, as `make docs` builds it."""
    found = documents()
    assert found, f"no page in {SITE}: run `make docs`"
    return found


def test_site_holds_every_kind_of_page(site):
    names = {document.name for document in site}
    kinds = ("docs/guides/", "docs/explanations/", "docs/reference/", "notebooks/", "studies/")
    assert all(any(name.startswith(kind) for name in names) for kind in kinds)


def test_nothing_is_loaded_from_elsewhere(site):
    for document in site:
        assert not [each for each in document.loaded if is_elsewhere(each)], document.name
    for sheet in SITE.rglob("*.css"):
        found = re.findall(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^)\"']+)", sheet.read_text())
        assert not found, sheet


def test_links_within_the_site_lead_somewhere(site):
    anchors: dict = {}
    for document in site:
        anchors[document.path] = document.anchors
    for document in site:
        for link in (*document.links, *document.loaded):
            if is_elsewhere(link) or link.startswith(("mailto:", "data:")) or not link:
                continue
            path, anchor = document.leads_to(link)
            assert path.is_file(), f"{document.name}: {link}"
            if anchor and path in anchors:
                assert anchor in anchors[path], f"{document.name}: {link}"


def test_navigation_leads_to_every_page(site):
    (front,) = (document for document in site if document.name == "docs/index.html")
    listed = {front.leads_to(link)[0] for link in front.navigation}
    missing = {document.name for document in site if document.path not in listed}
    assert missing <= {front.name}


def test_pages_have_titles_of_their_own_and_pictures_have_words(site):
    titles = [document.title for document in site]
    assert len(set(titles)) == len(titles)
    for document in site:
        for image in document.images:
            assert "alt" in image, f"{document.name}: {image.get('src', '')[:80]}"


PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def phone() -> Iterator:
    with browser() as running:
        context = running.new_context(viewport=PHONE, color_scheme="dark")
        yield context
        context.close()


@pytest.mark.browser
def test_pages_fit_a_phone_and_set_their_mathematics_without_a_network(site, phone):
    page, asked, said = phone.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    wrong = []
    for document in site:
        page.goto(document.path.as_uri())
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        unset = page.evaluate(
            "[...document.querySelectorAll('.math, .katex-error')]"
            ".filter((e) => !e.querySelector('.katex')).map((e) => e.textContent)"
        )
        if wide > 0 or unset or said:
            wrong.append((document.name, wide, unset, list(said)))
            said.clear()
    page.close()
    assert not wrong
    assert not [address for address in asked if not address.startswith(("file:", "data:"))]


@pytest.mark.browser
def test_search_finds_pages_without_a_network(site, phone):
    page = phone.new_page()
    page.goto((SITE / "search.html").as_uri() + "?q=label+switching")
    page.wait_for_selector("ul.search li a")
    first = page.get_attribute("ul.search li a", "href")
    assert first
    # The list still grows while it is looked at: a click may meet an entry that has just moved.
    page.goto((SITE / first.split("?")[0]).as_uri())
    page.wait_for_selector("article h1")
    page.close()


@pytest.mark.browser
def test_pages_are_dark_in_the_dark(site, phone):
    page = phone.new_page()
    page.goto((SITE / "docs" / "index.html").as_uri())
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", colour)[:3])) < 60, colour
    page.close()
