"""What every method saves is what ArviZ's summaries, cross-validation and predictive checks ask for."""

from functools import partial

import arviz_plots
import arviz_stats
import numpy as np
import pytest
import xarray as xr
from scipy.special import log_softmax
from scipy.stats import norm

import onebasin as ob
from onebasin.posteriors.network_groups import network_groups

pytestmark = pytest.mark.filterwarnings("ignore:Estimated shape parameter")
RNG = np.random.default_rng(4)
X = RNG.normal(size=(12, 2))
REGRESSION = ob.networks.BayesianNetwork(ob.networks.Network(2, (2,), 1, activation="tanh"))
CLASSES = ob.networks.BayesianNetwork(
    ob.networks.Network(2, (2,), 3, activation="tanh"), likelihood=ob.networks.Categorical()
)
# With noise: without it the density has no peak, for sigma goes to 0.
NOISE = 0.3 * np.random.default_rng(1).normal(size=12)
NUMBERS = REGRESSION.condition(X, X[:, 0] + NOISE)
LABELS = CLASSES.condition(X, RNG.integers(0, 3, 12))


def taken_by_arviz(tree: xr.DataTree, tmp_path) -> xr.DataTree:
    again = ob.open_posterior(ob.save(tree, tmp_path / "run.nc"))
    assert len(arviz_stats.summary(again)) > 1
    assert np.isfinite(arviz_stats.loo(again).elpd)
    discrete = again["observed_data"]["y"].dtype.kind in "iu"  # which ArviZ smooths with a warning
    kind = "ecdf" if discrete else "auto"
    arviz_plots.plot_ppc_dist(again, backend="none", kind=kind, num_samples=30)
    return again


@pytest.fixture(scope="module")
def chains() -> xr.DataTree:
    return ob.nuts(NUMBERS, chains=2, warmup=30, draws=30, max_tree_depth=4)


def test_chains_of_a_network(chains, tmp_path):
    again = taken_by_arviz(chains, tmp_path)
    output = ob.networks.predict(REGRESSION, again["posterior"].to_dataset(), X)[..., 0]
    sigma = again["posterior"]["sigma"].values[..., None]
    terms = norm.logpdf(NUMBERS.y[:, 0], output, sigma)
    np.testing.assert_allclose(again["log_likelihood"]["y"], terms, rtol=1e-5)
    assert again["log_likelihood"]["y"].dims == ("chain", "draw", "obs")
    replicated = again["posterior_predictive"]["y"]
    assert replicated.dims == ("chain", "draw", "obs", "out")
    standard = (replicated.values[..., 0] - output) / sigma
    assert abs(standard.mean()) < 5 / np.sqrt(standard.size)
    assert abs(standard.std() - 1) < 5 / np.sqrt(2 * standard.size)


def test_labels_of_a_network():
    draws = {n: RNG.normal(size=(2, 40, *shape)) for n, shape in CLASSES.network.shapes.items()}
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


def test_a_gaussian(chains, tmp_path):
    taken_by_arviz(ob.approximations.fit_gaussian(chains).sample(60, seed=1), tmp_path)


def test_a_block_of_draws_is_like_all_at_once(chains, monkeypatch):
    draws = {str(n): v.values for n, v in chains["posterior"].items()}
    monkeypatch.setattr("onebasin.posteriors.network_groups.BLOCK", 12 * 7)
    found = network_groups(REGRESSION, draws, NUMBERS.x, NUMBERS.y, seed=0, limit_mb=1)
    whole = chains["log_likelihood"]["y"].values
    np.testing.assert_allclose(found["log_likelihood"].values["y"], whole, rtol=1e-5)


def test_the_limit_holds_for_networks(chains):
    draws = {
        str(n): np.tile(v.values, (1, 8, *[1] * (v.ndim - 2)))
        for n, v in chains["posterior"].items()
    }
    here = partial(network_groups, REGRESSION, draws, NUMBERS.x, NUMBERS.y, seed=0)
    found = here(limit_mb=0.03)
    sizes = {name: group.values["y"].nbytes for name, group in found.items()}
    assert set(sizes) == {"log_likelihood", "posterior_predictive"}
    assert 0.015e6 < sum(sizes.values()) <= 0.03e6
    dataset = found["log_likelihood"].to_dataset()
    assert list(dataset["draw"].values[:2]) == [0, dataset.attrs["every"]]
    assert here(limit_mb=0) is None
    assert here(limit_mb=0.005) is None
