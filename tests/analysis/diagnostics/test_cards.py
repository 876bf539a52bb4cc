"""What a notebook and a terminal show of a diagnosis: the answer first, everything escaped."""

import numpy as np

from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.models.symmetry.blocks import Exchangeable

from ...cards import unclosed_tags


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
    assert unclosed_tags(page) == []
    assert len(page) < 10_000


def test_a_notebook_shows_what_alignment_did(make_mcmc, rng):
    mu = np.array([-4.0, 4.0]) + rng.normal(size=(4, 500, 2))
    mu[::2] = mu[::2, :, ::-1]
    found = diagnose(make_mcmc({"mu": mu}), symmetry=(Exchangeable({"mu": 0}),))
    assert "Usable after alignment" in found._repr_html_()
    assert "aligned parameters" in found._repr_html_()
    page = found.aligned._repr_html_()
    assert "Worst R-hat" in page
    assert "left alone by the symmetry" in page


def test_a_terminal_shows_the_answer_first_and_the_tables_after_it(make_mcmc, rng):
    found = diagnose(make_mcmc({"\x1b[31mmu": rng.normal(size=(4, 500, 2))}))
    text = repr(found)
    assert text.startswith("✓ Usable\nYou may use it")
    assert "✓ labels" in text
    assert "R-hat  bulk ESS" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert "Worst R-hat" not in text
