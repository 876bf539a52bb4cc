"""Importance weights for any approximation of known posteriors, in memory and in files."""

from dataclasses import replace

import numpy as np
import numpyro
import pytest
import xarray as xr
from jax import numpy as jnp
from numpyro import distributions as dist

import onebasin as ob
from onebasin.inference.density.counted import CountedDensity
from onebasin.inference.fits.drift import MovedChains, _exchanged, drift
from onebasin.inference.fits.gaussian import NormalFit, find_peaks
from onebasin.inference.fits.weighting import GOOD, HEAVY, Weighted, weigh
from onebasin.posteriors.pareto import CLAIMED, worst_khat

from ..known import COVARIANCE, MEAN, RATE, SHAPE, known_target, linear_target


def assert_known(tree: xr.DataTree):
    """The weighted draws have the known moments, to 5 errors of as many draws as they say they are worth."""
    weights = np.exp(tree["variational"]["log_weight"].to_numpy())
    assert tree.attrs["worth"] == pytest.approx(1 / (weights**2).sum())
    assert tree.attrs["worth"] > 1000
    values = tree["weighted"].to_dataset()
    known = {"tau": (SHAPE / RATE, SHAPE**0.5 / RATE)}
    for name, (mean, sd) in known.items():
        found = weights @ values[name].to_numpy()
        assert found == pytest.approx(mean, abs=5 * sd / tree.attrs["worth"] ** 0.5)
    x = values["x"].to_numpy()
    error = np.sqrt(np.diag(COVARIANCE) / tree.attrs["worth"])
    assert (np.abs(weights @ x - MEAN) < 5 * error).all()
    spread = np.sqrt(weights @ (x - MEAN) ** 2)
    np.testing.assert_allclose(spread, np.sqrt(np.diag(COVARIANCE)), rtol=0.1)


@pytest.mark.parametrize(
    ("method", "engine", "fields"),
    [
        ("advi", "numpyro", {"iterations": 300}),
        pytest.param("pathfinder", "stanli", {}, marks=pytest.mark.full),
        pytest.param("laplace", "stanli", {}, marks=pytest.mark.full),
    ],
)
def test_weights_correct_any_approximation(method, engine, fields, tmp_path):
    target = known_target("numpyro" if engine == "numpyro" else "stan")
    tree = ob.infer(target, method, engine=engine, weights=True, seed=1, draws=400, **fields)
    assert_known(tree)
    assert tree["posterior"].sizes["draw"] == 400
    assert "weights" in tree.attrs["settings"]
    again = ob.open_posterior(ob.save(tree, tmp_path / "run.nc"))
    diagnosis = ob.diagnose(again)
    assert diagnosis.verdict == "usable", diagnosis.judgement.sentence
    assert f"worth {tree.attrs['worth']:,.0f} independent" in diagnosis.judgement.sentence


def test_two_modes_have_their_shares_whatever_their_distance():
    def model() -> None:
        parts = dist.Normal(jnp.array([0.0, 1400.0]), jnp.array([100.0, 50.0]))
        numpyro.sample("x", dist.MixtureSameFamily(dist.Categorical(jnp.array([0.8, 0.2])), parts))

    tree = ob.dadvi(ob.Target("modes", numpyro_model=model), weights=True, seed=1)
    weights = np.exp(tree["variational"]["log_weight"].to_numpy())
    upper = weights @ (tree["weighted"]["x"].to_numpy() > 700)
    assert upper == pytest.approx(0.2, abs=5 * 0.4 / tree.attrs["worth"] ** 0.5)
    assert float((tree["posterior"]["x"] > 700).mean()) == pytest.approx(upper, abs=2e-3)


def test_rounds_for_the_tail_of_a_quantity_carry_its_sd():
    """Of a lognormal, whose tail is the transform's, and of a t, whose own tail is that of no normal."""

    def model() -> None:
        numpyro.sample("x", dist.LogNormal(0, 1.6))
        numpyro.sample("y", dist.StudentT(3))

    def weighed(**rounds: int) -> tuple[float, list[float], int]:
        counted = CountedDensity.of(ob.Target("heavy", numpyro_model=model))
        rng, start = np.random.default_rng(2), NormalFit(np.zeros(2), np.diag([1.6, 1.5]))
        found = weigh(counted, [start], rng, **rounds)
        weights = np.exp(found.log_weight)
        sds = [np.sqrt(weights @ (v - weights @ v) ** 2) for v in found.values.values()]
        return worst_khat(found.values, found.lp - found.log_q), sds, counted.heights

    khat, _, count = weighed(tail_rounds=0)
    assert (khat > GOOD, count) == (True, 5_000)
    khat, sds, count = weighed()
    assert (khat < HEAVY, count) == (True, 15_000)
    known = [np.sqrt(np.expm1(1.6**2) * np.exp(1.6**2)), 3**0.5]
    np.testing.assert_allclose(sds, known, rtol=0.03)


def test_draws_far_out_whose_variables_are_no_numbers_have_no_weight():
    def model() -> None:
        x = numpyro.sample("x", dist.ImproperUniform(dist.constraints.positive, (), ()))
        u = jnp.minimum(jnp.log(x), 1e3)  # finite where x is not
        numpyro.factor("f", -0.5 * u**2 - u)

    counted = CountedDensity.of(ob.Target("far", numpyro_model=model))
    start = NormalFit(np.zeros(1), np.array([[300.0]]))
    found = weigh(counted, [start], np.random.default_rng(1))
    assert len(found.lp) < counted.heights
    assert np.isfinite(found.values["x"]).all()
    assert np.exp(found.log_weight) @ found.values["x"] == pytest.approx(np.exp(0.5), rel=0.1)


def test_a_narrow_mode_far_away_is_found():
    places, sds = jnp.array([[0.0] * 3, [12.7] * 3]), jnp.array([[1.0] * 3, [0.64] * 3])

    def model() -> None:
        parts = dist.Independent(dist.Normal(places, sds), 1)
        shares = dist.Categorical(jnp.array([0.63, 0.37]))
        numpyro.sample("x", dist.MixtureSameFamily(shares, parts))

    counted = CountedDensity.of(ob.numpyro_model(model, name="far"))
    for seed in range(6):
        rng = np.random.default_rng(seed)
        peaks = find_peaks(counted, starts=16, radius=2.0, rng=rng)
        np.testing.assert_allclose([p.vector.mean() for p in peaks], [0, 12.7], atol=1e-3)


@pytest.mark.full
def test_both_arms_of_a_curved_posterior_have_weight():
    def model() -> None:
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(3 / (1 + 0.67 * x**2), 0.14))

    tree = ob.dadvi(ob.numpyro_model(model, name="ridge"), weights=True, seed=1)
    weights = np.exp(tree["variational"]["log_weight"].to_numpy())
    x = tree["weighted"]["x"].to_numpy()
    assert weights @ x == pytest.approx(0, abs=0.1)  # one arm alone: -0.5
    assert weights @ x**2 == pytest.approx(1, abs=0.1)
    assert tree.attrs["worth"] > 2000


def test_short_chains_from_exact_draws_drift_by_chance_alone(rng):
    """Changes are within their errors, which are below half of what is claimed."""

    def model() -> None:
        numpyro.sample("x", dist.Normal(0, 1).expand([3]).to_event(1))

    draws, flat = rng.normal(size=(20_000, 3)), np.full(20_000, -np.log(20_000))
    fit = NormalFit(np.zeros(3), np.eye(3))
    lp, first = fit.log_density(draws), np.zeros(20_000, int)
    weighted = Weighted(
        draws, lp, lp, flat, (fit,), np.ones(1), {"x": draws}, first, fit.log_density
    )
    counted = CountedDensity.of(ob.numpyro_model(model))
    found = [drift(counted, weighted, rng) for _ in range(20)]
    change, error = np.stack([each.changes["x"] for each in found], axis=1)
    np.testing.assert_allclose((change / error).std(axis=(0, 2)), 0.9, atol=0.2)
    assert not any(each.gaps for each in found)
    assert (np.abs(change) < np.array(CLAIMED)[:, None]).mean() > 0.995
    # Draws where there is no density: no chain goes to one.
    here = MovedChains(draws[:4], lp[:4], -draws[:4])
    stayed = _exchanged(counted, replace(weighted, lp=lp - 1e4), here, rng)
    np.testing.assert_array_equal(stayed.points, here.points)


def test_chains_find_what_draws_leave_out_and_weights_then_cover_it(rng):
    """Draws that end at -1.2 sds: more than 5 % of the posterior lie below their 5 % quantile."""

    def model() -> None:
        numpyro.sample("x", dist.Normal(0, 1).expand([2]).to_event(1))

    fit = NormalFit(np.zeros(2), np.eye(2))
    draws = rng.normal(size=(20_000, 2))
    draws = draws[draws[:, 0] > -1.2]
    lp, flat = fit.log_density(draws), np.full(len(draws), -np.log(len(draws)))
    values, first = {"x": draws}, np.zeros(len(draws), int)
    cut = Weighted(draws, lp, lp, flat, (fit,), np.ones(1), values, first, fit.log_density)
    counted = CountedDensity.of(ob.numpyro_model(model))
    found = drift(counted, cut, rng)
    change, error = found.changes["x"][:, 2, 0]
    assert change > CLAIMED[2] and change > 4 * error
    assert found.gaps and found.gaps[0].loc[0] < -1.2
    again = weigh(counted, (*cut.components, *found.gaps), rng, optima=(fit,))
    below = np.exp(again.log_weight) @ (again.vectors[:, 0] < -1.2)
    assert below == pytest.approx(0.115, abs=0.015)


def test_fits_are_weighted_by_default_but_not_networks_and_not_dead_weights():
    def bananas() -> None:
        x = numpyro.sample("x", dist.Normal(0, 1).expand([40]).to_event(1))
        numpyro.sample("y", dist.Normal(2 * x**2, 0.3).to_event(1))

    settings = ob.Advi(iterations=300, draws=200)
    assert "weighted" in ob.infer(known_target("numpyro"), settings, seed=1).children
    assert "weighted" not in ob.infer(linear_target(), settings, seed=1).children
    fit = ob.infer(ob.numpyro_model(bananas, name="bananas"), settings, seed=1)
    assert "weighted" not in fit.children
    assert fit.attrs["weights_note"] in str(ob.diagnose(fit).to_dict())
