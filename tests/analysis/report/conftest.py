"""Parser of pages that checks them as a browser would."""

from onebasin.analysis.page import SCRIPT

from ...cards import Page as Page


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
    parts = html.split("url(")[1:]
    assert all(part.startswith(("#", "data:font/woff2;base64,")) for part in parts)
