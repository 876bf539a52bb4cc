"""What a comparison says: each posterior in a sentence that claims no more than its numbers do; notes and warnings."""

import numpy as np
import pandas as pd
import pytest

from onebasin.analysis.compare.compare import compare
from onebasin.analysis.compare.comparison import FLOOR, Comparison
from onebasin.analysis.report import comparison_table

from ...cards import check_page


def compared(kind="regression", floor_p=0.6, **row):
    floor = {name: np.nan for name in row} | {"energy_p": floor_p, "energy": 0.0, "num_draws": 50}
    if "mean_distance" in row:
        floor["mean_distance"] = 0.1
    truth = {name: np.nan for name in row} | {"num_draws": 200}
    rows = {"hmc": truth, "<b>fit": row, "floor": floor}
    table = pd.DataFrame.from_dict(rows, orient="index")
    return Comparison(kind, "hmc", table, ("A note.",), ("Beware.",))


def test_a_comparison_shows_sentences_before_its_table_and_notes_after_it():
    found = compared(mean_distance=0.25, rmse=0.5, energy=1.0, energy_p=0.4, num_draws=100)
    text = repr(found)
    order = ("Beware.", "regression:", "distance of means (sds)", "nearly independent", "A note.")
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    page = found._repr_html_()
    check_page(page)


@pytest.fixture
def fit(make_variational, rng):
    """Independent draws of two parameters, the last quarter moved."""

    def make(moved=0.0):
        lp, mu = rng.normal(size=(1, 400)), rng.normal(size=(1, 400, 2))
        mu[:, 300:] += moved
        return make_variational({"mu": mu}, lp=lp, log_q=lp)

    return make


def test_of_the_truth_only_the_half_that_was_set_aside_is_compared(fit):
    table = compare({"a": fit(), "b": fit()}, truth="a", permutations=9).table
    assert table["num_draws"].to_dict() == {"a": 200, "b": 400, FLOOR: 100}


def test_a_drift_within_the_truth_voids_the_other_p_values(fit):
    # The floor holds the third quarter against the last.
    assert compare({"a": fit(moved=2.0), "b": fit()}, truth="a").warnings
    found = compare({"a": fit(), "b": fit(moved=2.0)}, truth="a")
    assert found.warnings == ()


def test_chains_that_do_not_mix_are_said_to(make_mcmc, rng):
    apart = rng.normal(size=(4, 400, 1)) + np.array([0.0, 0.0, 0.0, 8.0])[:, None, None]
    trees = {"a": make_mcmc({"mu": apart}), "b": make_mcmc({"mu": rng.normal(size=(4, 400, 1))})}
    found = compare(trees, truth="a")
    assert "`a` has 2 nearly independent draws of its own" in " ".join(found.warnings)
    assert np.isnan(found.table.loc["b", "energy_p"])


def test_other_names_of_targets_are_pointed_at(make_mcmc, rng):
    trees = {
        name: make_mcmc({"mu": rng.normal(size=(4, 50))}, attrs={"target": name}) for name in "ab"
    }
    found = compare(trees, truth="a", weights=False)
    assert "than that of `a` (a): `b` (b)" in " ".join(found.warnings)


def test_the_table_leaves_out_what_is_empty(fit):
    shown = comparison_table(compare({"a": fit(), "b": fit()}, truth="b", permutations=9))
    assert [row[0] for row in shown.rows] == ["b (truth)", "a", FLOOR]
    names = [column.name for column in shown.headings]
    assert names == ["posterior", "|z|", "|d|", "means", "energy", "p", "MMD", "p", "draws"]
    assert shown.caption == "against b"
