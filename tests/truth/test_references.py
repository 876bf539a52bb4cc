"""The reference posteriors of the package are what they claim: checked with ArviZ, NumPy and SciPy only."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from arviz_stats.base import array_stats
from scipy import stats

FOLDER = Path(__file__).parents[2] / "truth" / "references"
NAMES = sorted(path.name for path in FOLDER.iterdir())
QUANTILES = {"q5": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
LEVEL = 1e-4
"""Share of sound references that a comparison of many numbers may reject, by Bonferroni's bound."""

pytestmark = pytest.mark.parametrize("name", NAMES)


def read(name, part):
    return json.loads((FOLDER / name / f"{name}.{part}.json").read_text(encoding="utf-8"))


def draws_of(name):
    """Draws (chain, draw, entry) of all parameters, in the order of the summary's rows."""
    tree = xr.open_datatree(FOLDER / name / f"{name}.draws.nc", engine="h5netcdf")
    values = {
        n: v.transpose("chain", "draw", ...).values for n, v in tree["posterior"].data_vars.items()
    }
    rows = list(read(name, "summary")["parameters"])
    variables = list(dict.fromkeys(row.split("[")[0] for row in rows))
    entries = [values[v].reshape(*values[v].shape[:2], -1) for v in variables]
    return rows, np.concatenate(entries, axis=-1).astype(float)


def varying(draws):
    """Entries that vary; the others, such as norms of unit vectors, have no R-hat."""
    return draws[..., np.ptp(draws, axis=(0, 1)) > 1e-6]


def bound(count):
    return stats.norm.isf(LEVEL / (2 * count))


def test_files_are_what_was_written(name):
    sums = read(name, "info")["sha256"]
    for part in ("summary.json", "draws.nc"):
        content = (FOLDER / name / f"{name}.{part}").read_bytes()
        assert hashlib.sha256(content).hexdigest() == sums[part]


def test_all_draws_met_the_criteria_of_posteriordb(name):
    info = read(name, "info")
    found = info["diagnostics"]
    assert found["ndraws"] == 10_000
    assert found["nchains"] >= 4
    ess = found["effective_sample_size_bulk"] + found["effective_sample_size_tail"]
    free = np.array(ess, float)[np.isfinite(np.array(ess, float))]
    # Four standard errors of the ESS of independent draws, for all estimates together.
    half = stats.norm.isf(stats.norm.sf(4) / len(free)) * np.sqrt(7 * 10_000)
    assert np.abs(free - 10_000).max() < half
    assert np.nanmax(np.array(found["lag1_autocorrelation"], float)) < 0.05
    assert np.nanmax(np.array(found["r_hat"] + info["diagnostics_of_invariants"]["r_hat"])) < 1.01
    assert sum(found["divergent_transitions"]) == 0
    assert min(found["expected_fraction_of_missing_information"]) > 0.2
    assert all(info["checks_made"].values())


def test_kept_draws_have_mixed(name):
    draws = varying(draws_of(name)[1])
    assert draws.shape[0] * draws.shape[1] == 1000
    assert np.isfinite(draws).all()
    how = {"chain_axis": 0, "draw_axis": 1}
    rhat, ess = (function(draws, **how) for function in (array_stats.rhat, array_stats.ess))
    # Chains of 100 independent draws: R-hat is 1.00 with an error of 0.01.
    assert rhat.max() < 1.05
    assert ess.min() > 500


def test_halves_of_the_chains_agree(name):
    draws = varying(draws_of(name)[1])
    one, two = (half.reshape(-1, half.shape[-1]) for half in np.split(draws, 2))
    for values in (lambda x: x, lambda x: (x - x.mean(axis=0)) ** 2):
        a, b = values(one), values(two)
        z = (a.mean(axis=0) - b.mean(axis=0)) / np.hypot(stats.sem(a), stats.sem(b))
        assert (
            np.abs(z).max() < bound(z.size) + 1
        )  # second moments of 500 draws are not quite normal


def test_the_summary_is_that_of_the_draws(name):
    rows, draws = draws_of(name)
    told = read(name, "summary")
    column = {word: place for place, word in enumerate(told["columns"])}
    summary = np.array([told["parameters"][row] for row in rows], float)
    flat = draws.reshape(-1, draws.shape[-1])
    mean, sd = summary[:, column["mean"]], summary[:, column["sd"]]
    free = sd > 0
    assert free.any()
    for word, q in QUANTILES.items():
        # Compared as probabilities: which share of the draws lies below the summary's quantile?
        share = (flat < summary[:, column[word]]).mean(axis=0)
        error = np.sqrt(1.1 * q * (1 - q) / len(flat))
        assert np.abs(share - q)[free].max() < bound(free.sum()) * error
    error = np.hypot(sd / np.sqrt(len(flat)), summary[:, column["mcse_mean"]])
    gap = np.abs(flat.mean(axis=0) - mean)
    assert (gap / np.where(free, error, 1))[free].max() < bound(free.sum())
    assert np.abs(flat.std(axis=0) / np.where(free, sd, 1) - 1)[free].max() < 0.3
    np.testing.assert_allclose(flat.mean(axis=0)[~free], mean[~free], rtol=1e-6)


def test_another_seed_agrees(name):
    seeds = read(name, "seeds")
    assert len(set(seeds["seeds"])) == 2
    assert seeds["agrees"]
    assert 0.7 < seeds["rms_z"] < 1.3


def test_components_are_in_the_labelling_that_is_recorded(name):
    """No exchange of two components brings a draw closer to the centres, and those in order increase."""
    info = read(name, "info")
    tree = xr.open_datatree(FOLDER / name / f"{name}.draws.nc", engine="h5netcdf")["posterior"]
    for variable in (info.get("quotient") or {"increasing": []})["increasing"]:
        assert (np.diff(tree[variable].values, axis=-1) >= 0).all()
    for block in info["symmetry"]:
        if block["kind"] != "exchangeable" or block["flips"] or block["complements"]:
            continue
        axes = {v: np.atleast_1d(of) for v, of in block["axes"].items()}
        size = tree[next(iter(axes))].shape[next(iter(axes.values()))[0] + 2]
        orders = np.array([np.arange(size)] * (1 + size * (size - 1) // 2))
        for order, (i, j) in zip(orders[1:], np.argwhere(np.tri(size, k=-1)), strict=True):
            order[[i, j]] = j, i
        costs = np.zeros((len(orders), *tree[next(iter(axes))].shape[:2]))
        for variable, places in axes.items():
            centre, scale = (np.array(info["labelling"][w][variable]) for w in ("centre", "scale"))
            for cost, order in zip(costs, orders, strict=True):
                values = tree[variable].values.astype(float)
                for place in places:
                    values = np.take(values, order, axis=place + 2)
                cost += (((values - centre) / scale) ** 2).sum(axis=tuple(range(2, values.ndim)))
        assert (costs[0] <= costs * (1 + 1e-5)).all()
