"""What every method saves is what ArviZ's summaries, cross-validation and predictive checks ask for."""

from functools import partial

import arviz_plots
import arviz_stats
import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import norm

import onebasin as ob
from onebasin.posteriors.pointwise import network_groups

RNG = np.random.default_rng(4)
X = RNG.normal(size=(12, 2))
REGRESSION = ob.networks.BayesianNetwork(ob.networks.Network(2, (2,), 1, activation="tanh"))
CLASSES = ob.networks.BayesianNetwork(
    ob.networks.Network(2, (2,), 3, activation="tanh"), likelihood=ob.networks.Categorical()
)
NUMBERS = REGRESSION.condition(X, X[:, 0])
LABELS = CLASSES.condition(X, RNG.integers(0, 3, 12))


def drawn(model: ob.networks.BayesianNetwork, num: int = 40) -> dict[str, np.ndarray]:
    """Weights, and the noise where it is inferred."""
    draws = {n: RNG.normal(size=(2, num, *shape)) for n, shape in model.network.shapes.items()}
    return draws if model.is_classifier else {**draws, "sigma": RNG.uniform(0.2, 2, (2, num))}


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_arviz_takes_what_is_saved(shared, tmp_path):
    chains = shared.load("network")
    for tree in (chains, ob.approximations.fit_gaussian(chains).sample(60, seed=1)):
        again = ob.open_posterior(ob.save(tree, tmp_path / "run.nc", force=True))
        assert len(arviz_stats.summary(again)) > 1
        assert np.isfinite(arviz_stats.loo(again).elpd)
        arviz_plots.plot_ppc_dist(again, backend="none", num_samples=30)


def test_numbers_of_a_network(monkeypatch):
    draws = drawn(REGRESSION)
    here = partial(network_groups, REGRESSION, draws, NUMBERS.x, NUMBERS.y, seed=1, limit_mb=1)
    found = here()
    output = ob.networks.predict(REGRESSION, draws, X)[..., 0]
    sigma = draws["sigma"][..., None]
    terms = found["log_likelihood"].to_dataset()["y"]
    np.testing.assert_allclose(terms, norm.logpdf(NUMBERS.y[:, 0], output, sigma), rtol=1e-5)
    assert terms.dims == ("chain", "draw", "obs")
    replicated = found["posterior_predictive"].to_dataset()["y"]
    assert replicated.dims == ("chain", "draw", "obs", "out")
    standard = (replicated.values[..., 0] - output) / sigma
    assert abs(standard.mean()) < 5 / np.sqrt(standard.size)
    assert abs(standard.std() - 1) < 5 / np.sqrt(2 * standard.size)
    monkeypatch.setattr("onebasin.posteriors.pointwise.BLOCK", 12 * 7)
    by_blocks = here()["log_likelihood"].values["y"]
    np.testing.assert_allclose(by_blocks, terms, rtol=1e-5)


def test_labels_of_a_network():
    draws = drawn(CLASSES)
    groups = network_groups(CLASSES, draws, LABELS.x, LABELS.y, seed=1, limit_mb=1)
    terms = log_softmax(ob.networks.predict(CLASSES, draws, X), axis=-1)[
        ..., np.arange(12), LABELS.y
    ]
    found = groups["log_likelihood"].values["y"]
    np.testing.assert_allclose(found, terms, rtol=1e-5, atol=1e-7)
    replicated = groups["posterior_predictive"].values["y"]
    assert replicated.dtype == np.int16
    expected = np.exp(terms)
    error = np.sqrt((expected * (1 - expected)).sum()) / expected.size
    assert abs((replicated == LABELS.y).mean() - expected.mean()) < 5 * error
