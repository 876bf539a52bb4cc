"""Plots of chains and of what was left out: which labelling they show, what they mark, and how often bands are left."""

import numpy as np
import pytest
from scipy.signal import lfilter

import onebasin as ob
from onebasin.analysis.plots.chains import rank_bands
from onebasin.posteriors.rhat_ess import mean_ranks

from ..conftest import tree_of


def _heads(figure):
    return [text.get_text() for text in figure.texts]


def _medians(figure):
    """Rows and medians of each posterior of a forest of one variable."""
    return [line.get_xdata() for line in figure.axes[0].lines if line.get_marker() == "o"]


@pytest.fixture(scope="module")
def mirrored(long_mixture):
    """The mixture in the other labelling."""
    posterior = long_mixture["posterior"].to_dataset()
    return tree_of(posterior={"mu": posterior["mu"][..., ::-1], "theta": 1 - posterior["theta"]})


def test_plots_show_the_draws_that_diagnose_shows_and_say_so(long_mixture):
    diagnosis = ob.diagnose(long_mixture)
    names = [name for name in diagnosis.parameters.index if name.startswith("mu")]
    aligned = ob.plot.forest(long_mixture, var_names="mu")
    assert _heads(aligned) == ["aligned"]
    np.testing.assert_allclose(_medians(aligned)[0], diagnosis.shown.loc[names, "median"])
    raw = ob.plot.forest(long_mixture, var_names="mu", align=False)
    assert _heads(raw) == ["as sampled"]
    np.testing.assert_allclose(_medians(raw)[0], diagnosis.parameters.loc[names, "median"])
    for plot in (ob.plot.traces, ob.plot.densities, ob.plot.ranks, ob.plot.ess, ob.plot.pair):
        figure = plot(long_mixture, diagnosis=diagnosis)
        assert _heads(figure) == ["aligned"], plot
        assert figure.alt.startswith("Aligned. ")


def test_a_posterior_without_a_symmetry_has_no_line(rng):
    figure = ob.plot.forest({"x": rng.normal(size=(4, 200))})
    assert not _heads(figure)


def test_a_plot_says_how_many_entries_it_leaves_out(rng):
    drawn = {"x": rng.normal(size=(4, 200, 30))}
    assert _heads(ob.plot.forest(drawn)) == ["the first 24 of 30 entries (rows= shows more)"]
    assert _heads(ob.plot.forest(drawn, rows=30)) == []
    assert _heads(ob.plot.traces(drawn)) == ["the 4 of 30 entries with the largest R-hat"]


def test_an_entry_that_mirrors_another_is_drawn_only_where_it_was_asked_for(rng):
    w = rng.normal(size=(4, 200))
    drawn = {"w": np.stack([w, 1 - w], -1), "x": rng.normal(size=(4, 200))}
    assert len(ob.plot.autocorrelation(drawn, rows=3).axes) == 2
    assert len(ob.plot.autocorrelation(drawn, var_names="w").axes) == 2


def test_several_posteriors_have_the_labelling_of_the_first(long_mixture, mirrored):
    figure = ob.plot.forest({"one": long_mixture, "other": mirrored}, var_names="mu")
    first, second = _medians(figure)
    np.testing.assert_allclose(first, second)
    assert _heads(figure) == ["aligned"]
    curves = ob.plot.densities({"one": long_mixture, "other": mirrored}, var_names="mu")
    first, second = curves.axes[0].lines
    np.testing.assert_allclose(first.get_ydata(), second.get_ydata())


def test_variables_of_other_size_have_an_axis_of_their_own(rng):
    drawn = {"small": 0.01 * rng.normal(size=(2, 50)), "large": 100 * rng.normal(size=(2, 50))}
    assert len(ob.plot.forest(drawn).axes) == 2
    alike = {"one": rng.normal(size=(2, 50)), "two": 2 + rng.normal(size=(2, 50))}
    assert len(ob.plot.forest(alike).axes) == 1


def test_bands_of_ranks_are_left_by_one_run_in_twenty(rng):
    """Chains with autocorrelation 0.6 at lag 1; 5 % of runs are outside, and 2 to 8 % of 400 are in 99.9 % of tries."""
    outside, x = 0, np.linspace(0, 1, 101)
    for _ in range(400):
        values = lfilter([1], [1, -0.6], rng.normal(size=(4, 600)))[:, 100:]
        ranks = mean_ranks(values.ravel()).reshape(values.shape) / values.size
        found = (np.searchsorted(np.sort(chain), x, side="right") / chain.size for chain in ranks)
        away = max(np.abs(share - x).max() for share in found)
        outside += away > rank_bands({"x": values})[0]
    assert outside <= 32


def test_chains_apart_leave_the_band(rng):
    values = rng.normal(size=(4, 500))
    values[1] += 1
    figure = ob.plot.ranks({"x": values})
    curve = figure.axes[0].lines[1].get_ydata()
    assert np.abs(curve).max() > rank_bands({"x": values})[0] or "lies high" in figure.alt
    assert "chain 1 lies high" in figure.alt


def test_rhat_has_a_point_for_each_parameter_and_names_the_worst(rng):
    values = rng.normal(size=(4, 300, 5))
    values[2, :, 3] += 3
    figure = ob.plot.rhat({"x": values})
    assert sum(len(line.get_xdata()) for line in figure.axes[0].lines[:2]) == 5
    assert [text.get_text() for text in figure.axes[0].texts] == ["x[3]"]


def test_energy_tells_e_bfmi(make_mcmc, rng):
    walk = rng.normal(size=(2, 200)).cumsum(axis=1)  # energies that hardly change
    tree = make_mcmc({"mu": rng.normal(size=(2, 200))}, stats={"energy": walk})
    found = ob.diagnose(tree).sampler.bfmi
    told = ob.plot.energy(tree).alt
    assert all(f"{value:.2f}" in told for value in found)
    assert "below 0.3 in chains 0, 1" in told
    with pytest.raises(ValueError, match="`energy` of `posterior` is missing, constant"):
        ob.plot.energy({"x": rng.normal(size=(2, 50))})


@pytest.fixture
def left_out(rng):
    """Normal data with log likelihoods and predictions of a model whose sd is this many times the right one."""

    def made(times, outlier=0.0):
        mu = 0.1 * rng.normal(size=(4, 250))
        y = rng.normal(size=100)
        y[7] += outlier
        log = -0.5 * ((y - mu[..., None]) / times) ** 2 - np.log(times)
        predicted = mu[..., None] + times * rng.normal(size=(4, 250, 100))
        return tree_of(
            posterior={"mu": (("chain", "draw"), mu)},
            log_likelihood={"y": (("chain", "draw", "obs"), log)},
            posterior_predictive={"y": (("chain", "draw", "obs"), predicted)},
            observed_data={"y": ("obs", y)},
        )

    return made


def test_loo_pit_leaves_the_band_where_predictions_are_too_wide(left_out):
    assert "stays within" in ob.plot.loo_pit(left_out(1.0)).alt
    assert "leaves the 95" in ob.plot.loo_pit(left_out(3.0)).alt
    bare = left_out(1.0)
    del bare["posterior_predictive"]
    with pytest.raises(ValueError, match=r"lacks `posterior_predictive`"):
        ob.plot.loo_pit(bare)


def test_khat_names_observations_above_the_limit(left_out):
    tree = left_out(1.0, outlier=40.0)
    for given in (tree, ob.loo(tree)):
        figure = ob.plot.khat(given)
        assert [text.get_text() for text in figure.axes[0].texts] == ["y[7]"]
        assert "1 of 100 is above the limit" in figure.alt


def test_a_matrix_has_logarithmic_axes_for_wide_scales_and_crosses_for_divergences(make_mcmc, rng):
    tau = np.exp(1.5 * rng.normal(size=(2, 100)))
    draws = {"tau": tau, "a": tau * rng.normal(size=(2, 100)), "b": tau - 3}
    diverging = tau < np.quantile(tau, 0.05)
    tree = make_mcmc(draws, stats={"diverging": diverging})
    figure = ob.plot.pair(tree, "tau", "a", "b")
    grid = np.array(figure.axes).reshape(3, 3)
    assert [axes.get_visible() for axes in figure.axes] == np.tri(3, dtype=bool).ravel().tolist()
    assert grid[1, 0].get_xscale() == "log"
    assert grid[2, 1].get_xscale() == grid[1, 0].get_yscale() == "linear"
    marks = grid[1, 0].lines[0].get_xdata()
    np.testing.assert_array_equal(np.sort(marks), np.sort(tau[diverging]))
    assert "10 of 200 draws diverged" in figure.alt
    with pytest.raises(ValueError, match="`entries` names only one parameter"):
        ob.plot.pair(tree, "tau")


def test_binary_outcomes_are_shown_as_the_share_of_ones(rng):
    y = (rng.uniform(size=50) < 0.3).astype(int)
    predicted = (rng.uniform(size=(2, 100, 50)) < 0.3).astype(int)
    tree = tree_of(
        posterior={"p": (("chain", "draw"), rng.uniform(size=(2, 100)))},
        posterior_predictive={"y": (("chain", "draw", "obs"), predicted)},
        observed_data={"y": ("obs", y)},
    )
    (axes,) = ob.plot.predictive(tree).axes
    assert axes.get_xlabel() == "share of ones in y"
    (line,) = axes.lines
    assert line.get_xdata()[0] == y.mean()
    assert sum(bar.get_height() for bar in axes.patches) == pytest.approx(1.0)
