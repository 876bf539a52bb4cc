"""What tests ask of a piece of HTML that an object shows of itself."""

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
    """Tags that are opened and not closed, or closed and not open."""
    tags = _Tags()
    tags.feed(page)
    return tags.open + tags.misplaced


def check_page(page):
    """Small, whole, in both colours, and nothing asked for from outside."""
    assert len(page) < 10_000
    assert unclosed_tags(page) == []
    assert page.startswith('<div class="onebasin">')
    for outside in ("http", "url(", "@import", "src=", "<script"):
        assert outside not in page
    assert "light-dark(" in page
