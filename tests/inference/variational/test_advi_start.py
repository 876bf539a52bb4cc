"""ADVI from a given start, and on minibatches, where the posterior is known."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from onebasin.base.errors import AdviFailed
from onebasin.base.seeds import Purpose, keys_for
from onebasin.inference import Advi, advi, infer
from onebasin.inference.density.network import NetworkDensity
from onebasin.inference.mcmc.stan_start import init_values, write
from onebasin.models import NetworkTarget
from onebasin.networks import BayesianNetwork, Gaussian, Network, NormalPrior, Parametrisation
from onebasin.posteriors.entries import gather
from onebasin.stan.interpreter.model import Model
from onebasin.stan.network import read_draws
from onebasin.stan.program import definition
from onebasin.stan.run import make_ready

from ...each import each
from ..known import known_target, linear_target


def exact_posterior(target: NetworkTarget) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the weights of `linear_target`, with their N(0, 1) prior."""
    covariance = np.linalg.inv(np.eye(2) + target.x.T @ target.x / 0.7**2)
    return covariance @ target.x.T @ target.y[:, 0] / 0.7**2, covariance


def test_minibatches_find_the_conjugate_posterior():
    """Measured over seeds 0-2: means within 0.03 sd, sds within 2 %, the ELBO (sd 0.1) within 0.2 of the evidence."""
    target = linear_target(600)
    mean, covariance = exact_posterior(target)
    settings = Advi(
        iterations=4000, tolerance=1e-9, draws=2000, batch_size=100, evaluate_every=1000
    )
    tree = infer(target, replace(settings, family="fullrank"), seed=1)
    sd = np.sqrt(np.diag(covariance))
    assert np.max(np.abs(tree["variational"]["loc"] - mean) / sd) < 0.1
    lower = tree["variational"]["scale_tril"].to_numpy()
    np.testing.assert_allclose(np.sqrt(np.diag(lower @ lower.T)), sd, rtol=0.05)
    # The best ELBO is the log evidence, y ~ N(0, 0.49 I + x x'), and none is better, but for the estimate's noise.
    full = 0.49 * np.eye(len(target.x)) + target.x @ target.x.T
    evidence = -0.5 * (
        target.y[:, 0] @ np.linalg.solve(full, target.y[:, 0])
        + np.linalg.slogdet(2 * np.pi * full)[1]
    )
    assert float(tree["variational"]["elbo"][-1]) == pytest.approx(evidence, abs=0.5)
    ratio = (tree.sample_stats["lp"] - tree.sample_stats["log_q"]).to_numpy()
    assert ratio.mean() == pytest.approx(evidence, abs=0.05)


RECORDED = {"meanfield": -1.1104290669946737, "fullrank": -1.258280075056005}
"""Last entry of W1 with seed 1, recorded before there were minibatches and starts (jax 0.10, x86-64)."""


@each("family", ["meanfield", "fullrank"])
def test_fits_without_batches_give_the_recorded_draws(family):
    x = np.random.default_rng(0).normal(size=(30, 2))
    target = BayesianNetwork(Network(2, (3,), 1)).condition(x, x[:, 0] + 0.1, name="net")
    settings = Advi(iterations=300, draws=20)
    post = infer(target, replace(settings, family=family), seed=1, predictive_mb=0).posterior
    last = float(post["W1"].to_numpy().ravel()[-1])
    assert last == pytest.approx(RECORDED[family], rel=1e-6)


ORDERED = Parametrisation(weights="unit_vector", biases="ordered")


def small_target(parametrisation: Parametrisation) -> NetworkTarget:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(12, 3)), rng.normal(size=(12, 2))
    network = Network(3, (4,), 2, activation="relu")
    model = BayesianNetwork(network, Gaussian(), NormalPrior(0.7, 1.3), parametrisation)
    return model.condition(x, y, name="small")


def natural_start(target: NetworkTarget) -> dict[str, np.ndarray]:
    """A point within the support."""
    density = NetworkDensity.of(target)
    point = density.random_starts(keys_for(Purpose.CHAIN_START, 3, 1), 2.0)[0]
    return {n: np.asarray(value) for n, value in jax.jit(density.constrain)(point).items()}


def test_coordinates_of_a_start_are_those_of_its_values():
    target = small_target(ORDERED)
    start, density = natural_start(target), NetworkDensity.of(target)
    for name, value in jax.jit(density.constrain)(density.given_start(start)).items():
        np.testing.assert_allclose(value, start[name], atol=1e-10)


@each("parametrisation", [Parametrisation(), ORDERED])
def test_stans_init_file_holds_the_start(parametrisation, tmp_path):
    """The program itself reads the file and says what its weights then are."""
    target = small_target(parametrisation)
    start = natural_start(target)
    program = make_ready(target, tmp_path, engine="stanli")
    init = write(tmp_path, init_values(target, program.info, start)).read_text()
    model = Model(definition(target).chosen().accepted.form, program.data.read_text(), seed=1)
    row = np.array([model.values(model.unconstrained(init))])
    variables = {name: entries.take(row) for name, entries in gather(model.columns).items()}
    for name, value in read_draws(target, variables).items():
        np.testing.assert_allclose(value[0], start[name], rtol=1e-10)


def test_start_and_scale_reach_the_first_approximation():
    """One step that goes nowhere: the mean is where it started."""
    settings = Advi(iterations=1, learning_rate=1e-12, init_scale=0.25, draws=5)
    start = {"x": [3.0, -4.0], "tau": 0.2}
    tree = infer(known_target("numpyro"), settings, start=start, seed=1, predictive_mb=0)
    np.testing.assert_allclose(tree["variational"]["loc"], [np.log(0.2), 3.0, -4.0], atol=1e-10)
    np.testing.assert_allclose(tree["variational"]["scale"], 0.25, rtol=1e-10)
    assert len(tree.attrs["start"]) == 64


def test_stan_starts_at_the_given_values():
    """From a start so far out that Stan cannot come back in these iterations, unlike from a near one."""
    settings = Advi(iterations=10, draws=200)

    def mean(first: float) -> float:
        start = {"x": [first, first], "tau": 1.0}
        try:
            post = infer(
                known_target("stan"), settings, engine="stanli", start=start, seed=1
            ).posterior
        except AdviFailed:
            return np.nan
        return float(post["x"][..., 0].mean())

    assert abs(mean(0.0)) < 50
    assert mean(1000.0) > 300


def test_start_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"`start` gives tau a value .* outside its support"):
        advi(known_target("numpyro"), start={"x": [1.0, 2.0], "tau": -1.0})
    with pytest.raises(ValueError, match="`start` lacks tau; give x, tau"):
        advi(known_target("stan"), engine="stanli", start={"x": [1.0, 2.0]})


@pytest.mark.usefixtures("unchecked")
def test_batches_are_refused_where_they_cannot_be():
    few = Advi(batch_size=5)
    with pytest.raises(
        ValueError, match="Stan's ADVI takes all data in every gradient; use engine"
    ):
        infer(linear_target(600), few, engine="cmdstan")
    with pytest.raises(ValueError, match=r"'known' is no network.* use batch_size=None"):
        infer(known_target("numpyro"), few)
    with pytest.raises(ValueError, match="`batch_size` is 41, but the target has 40 observations"):
        advi(linear_target(40), batch_size=41)
    with pytest.raises(ValueError, match="`init_scale` must be a positive finite number; got 0"):
        Advi(init_scale=0)
