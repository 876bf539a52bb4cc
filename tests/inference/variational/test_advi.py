"""Mean-field and full-rank ADVI on NumPyro and Stan, and on networks."""

import json
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import xarray as xr
from numpyro import distributions as dist

import onebasin as ob
from onebasin import Target, open_posterior, save
from onebasin.base.errors import AdviFailed
from onebasin.base.seeds import Purpose, keys_for
from onebasin.inference import Advi, advi, infer
from onebasin.inference.variational.engine import (
    WINDOW,
    annealed,
    divergence_weight,
    has_settled,
    planned,
    step_sizes,
)
from onebasin.inference.variational.stan import ATTEMPTS
from onebasin.models import NetworkTarget
from onebasin.stan import stan_program

from ..known import COVARIANCE, MEAN, PROGRAMS, RATE, SHAPE, known_target, linear_target
from .problems import broken

LONG = Advi(weights=False, iterations=4000, gradient_samples=200, tolerance=1e-6, draws=4000)


def _gaussian() -> None:
    numpyro.sample("x", dist.MultivariateNormal(jnp.asarray(MEAN), jnp.asarray(COVARIANCE)))


def test_fullrank_finds_a_gaussian_exactly():
    settings = replace(LONG, family="fullrank", trace_parameters=True)
    tree = infer(Target("g", numpyro_model=_gaussian), settings, seed=2)
    lower = tree["variational"]["scale_tril"].to_numpy()
    sds = np.sqrt(np.diag(lower @ lower.T))
    np.testing.assert_allclose(tree["variational"]["scale_trace"][-1], sds, rtol=1e-9)
    np.testing.assert_allclose(tree["variational"]["loc"], MEAN, atol=0.03)
    np.testing.assert_allclose(lower @ lower.T, COVARIANCE, atol=0.05)
    # The model is normalised, so the best ELBO is the log evidence, 0.
    elbo = float(tree["variational"]["elbo"][-1])  # of 100 draws
    assert elbo == pytest.approx(0, abs=5 * (len(MEAN) / 2 / settings.elbo_samples) ** 0.5)


def test_adam_stops_by_its_criterion_where_the_elbo_is_small():
    """Of a standard normal without its constant, evaluated by other draws each time, it never did."""
    target = ob.target(lambda v: -0.5 * jnp.sum(v["x"] ** 2), {"x": ("real", 2)})
    for seed in range(4):
        fit = infer(target, Advi(family="fullrank", weights=False, draws=10), seed=seed)
        assert fit.attrs["converged"] == 1


def test_meanfield_finds_the_conditional_variances():
    """The best diagonal Gaussian has the variances 1 / precision_ii (Bishop 2006, section 10.1.2)."""
    tree = infer(Target("g", numpyro_model=_gaussian), LONG, seed=2)
    precision = np.linalg.inv(COVARIANCE)
    expected = np.diag(precision) ** -0.5
    np.testing.assert_allclose(tree["variational"]["loc"], MEAN, atol=0.03)
    np.testing.assert_allclose(tree["variational"]["scale"], expected, rtol=0.05)
    gap = 0.5 * (np.log(np.linalg.det(COVARIANCE)) + np.log(np.diag(precision)).sum())
    assert abs(float(tree["variational"]["elbo"][-1]) + gap) < 0.15


@pytest.mark.parametrize(
    ("engine", "family"),
    [
        ("numpyro", "fullrank"),
        pytest.param("stanli", "meanfield", marks=pytest.mark.full),
        ("stanli", "fullrank"),
        pytest.param("cmdstan", "fullrank", marks=pytest.mark.stan),
    ],
)
def test_draws_have_the_right_means(engine, family):
    """Means of the Gaussian part, and of tau under the best lognormal, whose log-mean lies near the mode's."""
    settings = Advi(family=family, iterations=6000, tolerance=1e-3, draws=4000)
    fit = infer(known_target(engine), settings, engine=engine, seed=3)
    post, stats = fit.posterior, fit.sample_stats
    np.testing.assert_allclose(post["x"].mean(("chain", "draw")), MEAN, atol=0.15)
    assert post["tau"].min() > 0
    # For a lognormal q with log-mean m and log-sd s, the optimum has exp(m + s^2/2) = shape / rate.
    assert float(post["tau"].mean()) == pytest.approx(SHAPE / RATE, rel=0.1)
    if family == "fullrank":
        # Up to a constant the log importance ratio, which is flat for a good fit. Measured 0.3 (NumPyro) and 0.43
        # (Stan): the lognormal is not quite a gamma.
        assert (stats["lp"] - stats["log_q"]).to_numpy().std() < 0.6
        assert stats["lp"].to_numpy().std() > 0.8


def test_stopping_rule_needs_a_window_and_small_changes():
    flat = [-10.0] * (WINDOW + 1)
    assert has_settled(flat, 1e-3)
    assert not has_settled(flat[:-1], 1e-3)
    falling = [-100.0 * 0.9**i for i in range(WINDOW + 1)]
    assert not has_settled(falling, 0.05)
    # One jump spoils the mean but not the median.
    assert has_settled([*flat[:-1], -20.0], 1e-3)


def _undefined() -> None:
    x = numpyro.sample("x", dist.Normal(0.0, 1.0))
    numpyro.factor("bad", jnp.where(jnp.abs(x) < 3.0, 0.0, jnp.nan))


def test_numpyro_failure_says_what_to_do():
    settings = Advi(weights=False, iterations=2000, elbo_samples=20_000)
    with pytest.raises(AdviFailed, match="Try a smaller `learning_rate`"):
        infer(Target("undefined", numpyro_model=_undefined), settings, seed=1)


def test_stan_failure_is_one_line_after_all_attempts():
    target = stan_program(PROGRAMS / "broken.stan", {"always": 1})
    with pytest.raises(AdviFailed, match=r"failed on 'broken' \(attempts: 4") as caught:
        advi(target, engine="stanli", iterations=200, seed=1)
    assert "\n" not in str(caught.value)
    assert len(caught.value.attempts) == len(ATTEMPTS)
    assert all(attempt["error"] for attempt in caught.value.attempts)


def test_stan_attempts_are_recorded(monkeypatch):
    """A first attempt that cannot work (a start far outside) is followed by one that does."""
    bad = type(ATTEMPTS[0])(eta=1e9)
    monkeypatch.setattr("onebasin.inference.variational.stan.ATTEMPTS", (bad, *ATTEMPTS))
    tree = advi(known_target("stan"), engine="stanli", iterations=2000, seed=1)
    first, second = json.loads(tree.attrs["attempts"])
    assert first["eta"] == 1e9
    assert first["error"]
    assert second["error"] == ""
    assert tree.posterior["x"].shape == (1, 1000, 2)


def exact_posterior(target: NetworkTarget) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the weights of `linear_target`, with their N(0, 1) prior."""
    covariance = np.linalg.inv(np.eye(2) + target.x.T @ target.x / 0.7**2)
    return covariance @ target.x.T @ target.y[:, 0] / 0.7**2, covariance


def test_minibatches_find_the_conjugate_posterior():
    """Measured over seeds 0-2: means within 0.03 sd, sds within 2 %, the ELBO (sd 0.1) within 0.2 of the evidence."""
    target = linear_target(600)
    mean, covariance = exact_posterior(target)
    few = {"batch_size": 100, "evaluate_every": 1000}
    settings = Advi(iterations=4000, tolerance=1e-9, draws=2000, **few)
    tree = infer(target, replace(settings, family="fullrank"), seed=1)
    sd = np.sqrt(np.diag(covariance))
    assert np.max(np.abs(tree["variational"]["loc"] - mean) / sd) < 0.1
    lower = tree["variational"]["scale_tril"].to_numpy()
    np.testing.assert_allclose(np.sqrt(np.diag(lower @ lower.T)), sd, rtol=0.05)
    # The best ELBO is the log evidence, y ~ N(0, 0.49 I + x x'), and none is better, but for the estimate's noise.
    full = 0.49 * np.eye(len(target.x)) + target.x @ target.x.T
    log_det = np.linalg.slogdet(2 * np.pi * full)[1]
    evidence = -0.5 * (target.y[:, 0] @ np.linalg.solve(full, target.y[:, 0]) + log_det)
    assert float(tree["variational"]["elbo"][-1]) == pytest.approx(evidence, abs=0.5)
    ratio = (tree.sample_stats["lp"] - tree.sample_stats["log_q"]).to_numpy()
    assert ratio.mean() == pytest.approx(evidence, abs=0.05)


def test_start_and_scale_reach_the_first_approximation():
    """One step that goes nowhere: the mean is where it started."""
    settings = Advi(weights=False, iterations=1, learning_rate=1e-12, init_scale=0.25, draws=5)
    start = {"x": [3.0, -4.0], "tau": 0.2}
    tree = infer(known_target("numpyro"), settings, start=start, seed=1, predictive_mb=0)
    np.testing.assert_allclose(tree["variational"]["loc"], [np.log(0.2), 3.0, -4.0], atol=1e-10)
    np.testing.assert_allclose(tree["variational"]["scale"], 0.25, rtol=1e-10)
    assert len(tree.attrs["start"]) == 64


def test_stan_starts_at_the_given_values():
    """From a start so far out that Stan cannot come back in these iterations, unlike from a near one."""
    settings = Advi(iterations=10, draws=200, weights=False)

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
    with pytest.raises(ValueError, match=r"value of tau in `start` .* outside the support"):
        advi(known_target("numpyro"), start={"x": [1.0, 2.0], "tau": -1.0})
    with pytest.raises(
        ValueError, match=r"`start` lacks tau\. Give values for exactly these variables: x, tau"
    ):
        advi(known_target("stan"), engine="stanli", start={"x": [1.0, 2.0]})


@pytest.mark.usefixtures("unchecked")
def test_batches_are_refused_where_they_cannot_be():
    few = Advi(batch_size=5)
    with pytest.raises(
        ValueError, match=r"Stan's ADVI uses all data for every gradient\. Use batch_size=None"
    ):
        infer(linear_target(600), few, engine="cmdstan")
    with pytest.raises(ValueError, match=r"'known' is not a network.* Use batch_size=None"):
        infer(known_target("numpyro"), few)


FEW = {"iterations": 200, "gradient_samples": 8, "elbo_samples": 64, "evaluate_every": 50}
OWN = {"learning_rate": 0.01, "schedule": "cosine", "anneal": 0.5, "init": "he", "init_scale": 0.05}
SHORT = Advi(**FEW, **OWN, tolerance=0.0, draws=20, trace_parameters=True, dtype="float32")


def fit(target: Target, settings: Advi = SHORT, **how: Any) -> xr.DataTree:
    """A fit without what is computed beside its draws."""
    return infer(target, settings, predictive_mb=0, **how)


@pytest.fixture(scope="module")
def both() -> xr.DataTree:
    """Ordered biases and skips."""
    return fit(broken(skip="orthogonal", biases="ordered"), seed=2)


@pytest.mark.full
def test_networks_of_the_paper_are_fitted(both):
    variational = both["variational"]
    assert variational["loc"].dtype == np.float32
    assert float(variational["elbo"][-1]) > float(variational["elbo"][0])
    assert np.all(np.diff(both["posterior"]["b2"].values, axis=-1) > 0)


@pytest.mark.full
def test_he_is_where_the_means_start():
    plan = planned(broken(biases="ordered"), SHORT)
    expected = plan.density.he_starts(keys_for(Purpose.MEMBER_START, 5, 1))
    np.testing.assert_array_equal(plan.begin(5).state.params["loc"], expected)


@pytest.mark.full
def test_parameters_are_traced_to_the_end(both, tmp_path):
    for tree in (both, open_posterior(save(both, tmp_path / "fit.nc"))):
        found = tree["variational"]
        assert found["loc_trace"].dims == found["scale_trace"].dims == ("evaluation", "param")
        assert found["loc_trace"].sizes["evaluation"] == found["elbo"].size == 4
        np.testing.assert_array_equal(found["loc_trace"][-1], found["loc"])
        np.testing.assert_array_equal(found["scale_trace"][-1], found["scale"])
        assert not np.array_equal(found["loc_trace"][0], found["loc_trace"][-1])


@pytest.mark.full
def test_annealing_starts_from_the_likelihood_alone():
    """With the divergence held back throughout, q is narrower than with all of it."""

    def sd(anneal: float) -> float:
        settings = replace(SHORT, anneal=anneal)
        return float(fit(linear_target(), settings)["variational"]["scale"].mean())

    assert sd(1.0) < sd(0.0)


@pytest.mark.full
def test_stopping_rule_waits_for_the_whole_divergence():
    """Without annealing it would be met after 11 evaluations."""
    settings = replace(SHORT, tolerance=1e9, evaluate_every=10, iterations=300, anneal=0.6)
    found = fit(linear_target(), settings)
    assert found.attrs["converged"] == 1
    assert int(found["variational"]["iteration"][-1]) == 180


@pytest.mark.full
def test_step_sizes_and_the_divergences_weight_are_those_named():
    steps = np.array([0, 50, 100])
    cosine, exponential = (step_sizes(word, 0.2, 100) for word in ("cosine", "exponential"))
    np.testing.assert_allclose([cosine(s) for s in steps], [0.2, 0.1, 0.0], atol=1e-9)
    np.testing.assert_allclose([exponential(s) for s in steps], [0.2, 0.02, 0.002], rtol=1e-6)
    assert step_sizes("constant", 0.2, 100) == 0.2
    weights = [float(divergence_weight(jnp.asarray(s), 0.5, 100)) for s in (0, 24, 49, 99)]
    np.testing.assert_allclose(weights, [0.02, 0.5, 1.0, 1.0])
    assert annealed(0.5, 101) == 51
