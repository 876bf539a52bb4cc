"""Checks of the HTML by which an object displays itself in a notebook."""

from html.parser import HTMLParser

VOID = {"br", "img", "input", "hr"}


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.misplaced = [], []

    def handle_starttag(self, tag, attrs):
        self.open += [tag] if tag not in VOID else []

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.misplaced.append(tag)


def unclosed_tags(page):
    """Return tags that are opened but not closed, or closed but not open."""
    tags = _Tags()
    tags.feed(page)
    return tags.open + tags.misplaced


def check_page(page):
    """Check that HTML is small, well formed, has both colour schemes and loads no external resource."""
    assert len(page) < 10_000
    assert unclosed_tags(page) == []
    assert page.startswith('<div class="onebasin">')
    for outside in ("http", "url(", "@import", "src=", "<script"):
        assert outside not in page
    assert "light-dark(" in page
