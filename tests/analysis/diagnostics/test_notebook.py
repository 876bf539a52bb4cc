"""What a notebook shows of a diagnosis: the answer first, everything escaped, nothing asked for from outside."""

from html.parser import HTMLParser

import numpy as np

from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.models.symmetry.blocks import Exchangeable

VOID = {"br", "img", "input", "hr"}


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        self.open += [tag] if tag not in VOID else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_notebook_shows_the_answer_first_and_no_markup_of_names(make_mcmc, rng):
    name = "<script>alert(1)<b>\x1b[31m"
    page = diagnose(make_mcmc({name: rng.normal(size=(4, 500))}))._repr_html_()
    assert page.index("Usable") < page.index("You may use it") < page.index("<caption>")
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page
    for outside in ("http", "url(", "@import", "src="):
        assert outside not in page
    assert "light-dark(" in page
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert len(page) < 20_000


def test_a_notebook_shows_what_alignment_did(make_mcmc, rng):
    mu = np.array([-4.0, 4.0]) + rng.normal(size=(4, 500, 2))
    mu[::2] = mu[::2, :, ::-1]
    found = diagnose(make_mcmc({"mu": mu}), symmetry=(Exchangeable({"mu": 0}),))
    assert "Usable after alignment" in found._repr_html_()
    assert "aligned parameters" in found._repr_html_()
    page = found.aligned._repr_html_()
    assert "Worst R-hat" in page
    assert "left alone by the symmetry" in page
