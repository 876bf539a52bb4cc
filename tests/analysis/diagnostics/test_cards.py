"""What a notebook and a terminal show of a diagnosis: the answer first, everything escaped."""

from onebasin.analysis.diagnostics.diagnose import diagnose

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


def test_a_terminal_shows_the_answer_first_and_the_tables_after_it(make_mcmc, rng):
    found = diagnose(make_mcmc({"\x1b[31mmu": rng.normal(size=(4, 500, 2))}))
    text = repr(found)
    assert text.startswith("✓ Usable\nYou may use it")
    assert "✓ labels" in text
    assert "R-hat  bulk ESS" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert "Worst R-hat" not in text
