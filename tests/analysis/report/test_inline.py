"""`report`: a file where a path is given, else what a notebook shows and `save` writes."""

from html import unescape

import pytest

from onebasin.analysis.report import InlineReport, report

from .conftest import Page


@pytest.fixture
def tree(make_mcmc, rng, blank_figures):
    return make_mcmc({"theta": rng.normal(size=(2, 50, 2)), "phi": rng.normal(size=(2, 50))})


@pytest.fixture
def shown(tree):
    return report(tree, title='A "page" <b>')


def test_with_a_path_the_file_is_given_back(tree, tmp_path):
    path = report(tree, tmp_path / "page.html", title="Mine")
    assert path == tmp_path / "page.html"
    assert "<title>Mine</title>" in path.read_text(encoding="utf-8")


def test_a_notebook_shows_the_page_in_a_frame_that_reaches_nothing(shown):
    assert isinstance(shown, InlineReport)
    (frame,) = Page(shown._repr_html_()).all("iframe")
    assert frame["sandbox"] == "allow-scripts"  # not the notebook's own origin
    assert frame["title"] == 'A "page" <b>'
    assert frame["srcdoc"] == shown.html
    assert unescape(shown._repr_html_()).count("Content-Security-Policy") == 1
    assert "save" in repr(shown)


def test_what_a_notebook_shows_can_be_saved(shown, tmp_path):
    path = shown.save(tmp_path / "page.html")
    assert path.read_text(encoding="utf-8") == shown.html
    with pytest.raises(RuntimeError, match="exists"):
        shown.save(path)
    shown.save(path, force=True)
