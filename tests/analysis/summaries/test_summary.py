"""R-hat, ESS and moments: against known answers, arviz_stats and constants."""

import numpy as np
import pytest

from onebasin.analysis.summaries.summary import summary
from onebasin.posteriors.draws import Draws

from ..conftest import autoregression

CHAINS, DRAWS = 4, 4000


def _table(values):
    return summary(Draws(("x",), values[..., None])).loc["x"]


@pytest.mark.parametrize("phi", [-0.3, 0.8])
def test_summary_finds_the_ess_of_an_autoregressive_chain(rng, phi):
    # For the mean it is N (1 - phi) / (1 + phi).
    row = _table(autoregression(rng, phi, (CHAINS, DRAWS)))
    known = CHAINS * DRAWS * (1 - phi) / (1 + phi)
    # Geyer's estimator at these sizes, over 40 seeds: ESS off by at most 17 %, MCSE by 10 %.
    assert row["ess_bulk"] == pytest.approx(known, rel=0.25)
    assert row["mcse_mean"] == pytest.approx(1 / np.sqrt(known), rel=0.15)
    assert 0.99 < row["rhat"] < 1.01
    assert abs(row["mean"]) < 5 * row["mcse_mean"]


def test_summary_gives_constants_no_diagnostics(rng):
    values = np.stack([rng.normal(size=(2, 50)), np.full((2, 50), 0.7)], axis=-1)
    table = summary(Draws(("free", "fixed"), values))
    assert np.isfinite(table.loc["free"]).all()
    assert table.loc["fixed", "mean"] == pytest.approx(0.7)
    assert table.loc["fixed", ["mcse_mean", "mcse_sd", "rhat", "ess_bulk", "ess_tail"]].isna().all()


def test_summary_calls_chains_that_stand_still_apart_infinitely_bad():
    values = np.repeat([[0.0], [1.0]], 50, axis=1)
    row = _table(values)
    assert row["rhat"] == np.inf


def test_summary_has_the_columns_of_arviz(rng):
    from arviz_base import convert_to_datatree
    from arviz_stats import summary as their_summary

    values = np.cumsum(rng.normal(size=(4, 200)), axis=1) / 9
    ours = _table(values)
    theirs = their_summary(convert_to_datatree({"x": values}), ci_kind="eti", round_to="none").loc[
        "x"
    ]
    assert ours["rhat"] == pytest.approx(float(theirs["r_hat"]), rel=1e-12)
    for name in ("mean", "sd", "mcse_mean", "mcse_sd", "ess_bulk"):
        assert ours[name] == pytest.approx(float(theirs[name]), rel=1e-9)
    np.testing.assert_array_equal(
        ours[["q5", "median", "q95"]], np.quantile(values, [0.05, 0.5, 0.95])
    )


def test_summary_of_what_is_not_finite_is_nan_and_leaves_its_neighbours_alone(rng):
    values = rng.normal(size=(4, 50, 2))
    alone = summary(Draws(("a", "b"), values)).loc["a"]
    values[2, 7, 1] = np.inf
    table = summary(Draws(("a", "b"), values))
    assert table.loc["b"].isna().all()
    np.testing.assert_array_equal(table.loc["a"], alone)
