"""What pictures show, in words: levels and jumps of chains, ranks, lags, divergences."""

from types import SimpleNamespace

import numpy as np
from matplotlib.figure import Figure

from onebasin.analysis.plots.marginals import ranks_in_words
from onebasin.analysis.plots.traces import chain_in_words, traces_in_words
from onebasin.analysis.report.sections import chains
from onebasin.analysis.report.sections.chains import autocorrelation_in_words
from onebasin.analysis.report.sections.sampler import pairs_in_words

from ...each import each
from ..conftest import autoregression


def noisy(levels, rng, sd=0.1):
    return np.asarray(levels, float) + sd * rng.normal(size=len(levels))


def test_a_chain_that_jumps_is_told_with_its_levels_and_draws(rng):
    draws = noisy([-2.0] * 400 + [3.0] * 600, rng, sd=1e-3)
    assert chain_in_words(draws) == "sits at −2.00 until draw 400, at 3.00 from there on"


def test_a_chain_that_jumps_often_is_counted(rng):
    draws = noisy([-2.0, 2.0] * 100, rng, sd=1e-3)
    assert chain_in_words(draws) == "jumps 199 times between levels −2.00 and 2.00"


@each("draw", ["normal", "uniform", "exponential", "standard_cauchy"])
def test_one_mode_is_never_told_as_two_levels(rng, draw):
    for _ in range(20):
        assert "jumps" not in chain_in_words(getattr(rng, draw)(size=500))


def test_a_chain_that_stands_still_is_told(rng):
    assert chain_in_words(np.full(10, 2.5)) == "never leaves 2.50"


def test_chains_that_mix_are_told_together_and_others_one_by_one(rng):
    mixed = traces_in_words({"mu": rng.normal(size=(4, 500))})
    assert mixed.startswith("mu: all chains mix around ")
    apart = traces_in_words({"mu": rng.normal(size=(2, 500)) + np.asarray([[0.0], [9.0]])})
    assert "chain 0 stays around" in apart
    assert "chain 1 stays around" in apart


def test_ranks_name_the_chain_that_lies_apart(rng):
    values = rng.normal(size=(4, 300))
    assert "no chain lies higher or lower" in ranks_in_words({"mu": values}, {"mu": 1.0})
    values[2] += 5
    told = ranks_in_words({"mu": values}, {"mu": 1.7})
    assert "chain 2 lies high, at the 87 % rank" in told
    assert "R-hat 1.700" in told


def test_autocorrelation_tells_the_lag_at_which_it_has_fallen(rng):
    noise = rng.normal(size=(2, 4000))
    slow = autoregression(rng, 0.9, (2, 4000))
    assert autocorrelation_in_words({"x": noise}) == "x: autocorrelation below 0.1 from lag 1 on."
    lag = int(autocorrelation_in_words({"x": slow}).split("lag ")[1].split()[0])
    assert 15 <= lag <= 30  # 0.9^22 = 0.1


def test_divergences_are_told_where_they_lie(rng):
    tau, theta = np.exp(rng.normal(size=(2, 500))), rng.normal(size=(2, 500))
    diverging = tau < np.quantile(tau, 0.1)
    told = pairs_in_words({"tau": tau, "theta": theta}, diverging)
    assert "100 of 1\u202f000 draws diverged" in told
    assert "their tau is in 100 % below its median" in told
    assert "Divergences were not recorded." in pairs_in_words({"tau": tau}, None)


def test_ranks_of_long_chains_are_drawn_of_some_draws(rng, monkeypatch):
    """What draws them takes a time that is quadratic in draws."""
    sizes = []

    def drawn(_plot, tree, **_options):
        sizes.append(tree["posterior"].sizes["draw"])
        return Figure()

    monkeypatch.setattr(chains, "drawn", drawn)
    subject = SimpleNamespace(diagnosis=SimpleNamespace(shown={"rhat": {}}))
    chains._ranks(subject, {"mu": rng.normal(size=(2, 9000))})
    assert sizes == [1800]
