"""The section of modes: their weights in the words of the answer, and a picture that tells them apart."""

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.analysis.page import render
from onebasin.analysis.plots.posteriors import Subject
from onebasin.analysis.report import posterior_report
from onebasin.analysis.report.sections import modes
from onebasin.analysis.summaries.sampler import modes_of
from onebasin.models.symmetry import Exchangeable
from onebasin.models.symmetry.blocks import to_json
from onebasin.posteriors import schema
from onebasin.posteriors.view import as_view

from ..conftest import modes_table, tree_of
from .conftest import Page, assert_self_contained

WEIGHTS = np.array([0.7, 0.2, 0.1])
DIMS = ("chain", "draw")
CENTRES = {"a": (0.0, 9.0, 9.0), "b": (0.0, 8.0, 8.0), "c": (0.0, 0.0, 3.0), "d": (0.0, 0.0, 0.0)}
"""By `a` and `b` mode 0 is told from the others, and these from one another by `c` alone."""


def together(weights=WEIGHTS, **changes):
    """Four chains of draws of three modes, by their weights, with the table of modes."""
    rng = np.random.default_rng(3)
    of = rng.choice(len(weights), p=weights / weights.sum(), size=(4, 500))
    drawn = {n: (DIMS, rng.normal(np.array(each)[of], 0.5)) for n, each in CENTRES.items()}
    stats = {schema.MODE: (DIMS, of), "lp": (DIMS, rng.normal(size=of.shape))}
    modes = {schema.MODES: modes_table(weights, [0.02, 0.03, 0.04], **changes)}
    tree = tree_of(posterior=drawn, sample_stats=stats, **modes)
    tree.attrs = {"method": "modes"}
    return tree


def section(tree):
    view = as_view(tree)
    return modes(Subject("run", view, diagnose(view)))


def cells(tree):
    table, *_ = section(tree).parts
    names = [column.name for column in table.headings]
    return [dict(zip(names, row, strict=True)) for row in table.cells]


def test_a_page_shows_weights_as_the_answer_says_them(blank_figures):
    tree = together()
    html = render(posterior_report({"run": tree}))
    page = Page(html)
    assert_self_contained(page, html)
    said = modes_of(as_view(tree)).sentence
    for row, weight in zip(cells(tree), ("0.7", "0.2", "0.1"), strict=True):
        assert f"{float(row['weight'].value):g}" == weight
        low, high = row["95 % interval"].value.split(" to ")
        assert f"{weight} ({float(low):.3g} to {float(high):.3g})" in said
    assert page.text.count(said) == 2  # in the answer, and over the table


def test_the_closest_modes_are_told_apart():
    *_, figure = section(together()).parts
    assert "`c`" in figure.caption
    assert "`a`" in figure.caption or "`b`" in figure.caption
    (axes,) = figure.figure.axes
    drawn = [len(points.get_offsets()) for points in axes.collections]
    assert np.array(drawn) / sum(drawn) == pytest.approx(WEIGHTS, abs=0.03)


def test_draws_of_one_mode_are_not_drawn_and_its_weight_is_not_rounded_away():
    tree = together(np.array([1.0, 1e-44, 1e-56]))
    assert len(section(tree).parts) == 1
    assert [row["weight"].value for row in cells(tree)] == ["1.00", "1e-44", "1e-56"]


def test_chains_that_disagree_are_marked_where_their_mode_matters():
    flags = [row["R-hat"].flag for row in cells(together(rhat=[1.001, 1.2, 1.003]))]
    assert flags == ["", "bad", ""]
    light = together(np.array([0.9, 0.099, 0.001]), rhat=[1.001, 1.002, 1.2])
    assert [row["R-hat"].flag for row in cells(light)] == ["", "", "warn"]
    heavy, light = (diagnose(tree) for tree in (together(rhat=[1.001, 1.2, 1.003]), light))
    assert (heavy.verdict, light.verdict) == ("unusable", "usable")
    assert "Chains of mode 1 disagree" in heavy.judgement.sentence


def test_weights_that_are_not_known_are_not_said():
    tree = together(known=0)
    found, rows = diagnose(tree), cells(tree)
    assert (found.verdict, found.causes) == ("unusable", ("weights",))
    assert "weight" not in section(tree).parts[1].caption + section(tree).parts[1].alt
    assert [row["weight"].value for row in rows] == ["not known"] * 3
    assert all("95 % interval" not in row for row in rows)


def labelled():
    """The same of two exchangeable means, in the labelling of their mode."""
    tree = together()
    rng, of = np.random.default_rng(5), tree["sample_stats"][schema.MODE].values
    centres = np.array([(-3.0, 3.0), (-3.0, 9.0), (-9.0, 3.0)])[of]
    drawn = xr.Dataset({"mu": ((*DIMS, "k"), rng.normal(centres, 0.5))})
    tree["posterior"] = xr.DataTree(drawn)
    tree.attrs["symmetry"] = to_json((Exchangeable({"mu": 0}),))
    return tree


def test_labels_that_modes_came_with_are_not_aligned_anew(blank_figures):
    report = posterior_report({"run": labelled()})
    assert report.answers[0].verdict.answer == "usable"
    titles = [section.title for section in report.sections]
    assert titles[0] == "Modes"
    assert "Labels before and after alignment" not in titles
    plain = labelled()
    del plain[schema.MODES]
    titles = [section.title for section in posterior_report({"run": plain}).sections]
    assert titles[0] == "Labels before and after alignment"
    assert "Modes" not in titles
