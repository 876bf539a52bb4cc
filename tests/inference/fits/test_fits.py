"""Fits: Gaussians on fixed draws, weights, proposals along bends, and chains that start from a fit."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import xarray as xr
from numpyro import distributions as dist
from scipy.stats import norm

import onebasin as ob
from onebasin.base.errors import ArgumentError
from onebasin.base.progress import ProgressBars
from onebasin.inference import Nuts
from onebasin.inference.contracts.method import Found, Job
from onebasin.inference.density.network import CountedDensity
from onebasin.inference.fits.begin import _come, _from_afar, sampled, start_from_fit
from onebasin.inference.fits.conditional import SPACING, WIDTH, BentFit, bending
from onebasin.inference.fits.drift import MovedChains, _exchanged, drift
from onebasin.inference.fits.gaussian import NormalFit, find_peaks, t_log_densities
from onebasin.inference.fits.weighting import GOOD, HEAVY, Weighted, weigh
from onebasin.posteriors.pareto import CLAIMED, worst_khat

from ..known import COVARIANCE, MEAN, RATE, SHAPE, assert_mean, known_target, linear_target

LOC = np.array([3.0, -200.0, 0.5, 1.0])


def covariance() -> np.ndarray:
    """Of condition 1e8, in coordinates of unlike scales."""
    root = np.diag([1.0, 100.0, 0.01, 1.0]) @ np.tril(np.full((4, 4), 0.7), -1)
    root += np.diag([1.0, 100.0, 0.01, 1.0])
    return root @ root.T


def gaussian() -> ob.Target:
    def model() -> None:
        numpyro.sample("x", dist.MultivariateNormal(jnp.asarray(LOC), jnp.asarray(covariance())))

    return ob.Target("gaussian", numpyro_model=model)


@pytest.mark.parametrize("family", ["fullrank", "meanfield"])
def test_a_gaussian_is_found_exactly_by_either_family(family):
    """Of the mean-field fit it is the linear response."""
    fit = ob.dadvi(gaussian(), family=family, starts=2, draws=10, weights=False, seed=1)
    loc, root = (fit["variational"][name].to_numpy() for name in ("loc", "scale_tril"))
    sds = np.sqrt(np.diag(covariance()))
    np.testing.assert_allclose((loc - LOC) / sds, 0, atol=1e-4)
    units = np.outer(sds, sds)
    np.testing.assert_allclose(root @ root.T / units, covariance() / units, atol=1e-4)
    within = 1e-4 if family == "fullrank" else 10
    np.testing.assert_allclose(fit["variational"]["elbo"][-1], 0, atol=within)
    assert fit.attrs["converged"] == 1
    ratio = (fit["sample_stats"]["lp"] - fit["sample_stats"]["log_q"]).to_numpy()
    if family == "fullrank":
        np.testing.assert_allclose(ratio, 0, atol=1e-3)  # complete densities, with all constants


def test_engines_agree_and_an_odd_shape_is_fitted():
    """The unconstrained space of both is the same; a gamma's logarithm has the known optimum."""
    how = {"seed": 3, "draws": 4000, "fixed_draws": 400, "weights": False}
    fits = [ob.dadvi(known_target(engine), **how) for engine in ("numpyro", "stan")]
    for fit in fits:
        draws = fit["posterior"]
        np.testing.assert_allclose(draws["x"].mean(("chain", "draw")), MEAN, atol=0.06)
        # E_q[log tau] and sd: a normal on log tau has digamma-like moments of its own
        assert float(np.log(draws["tau"]).mean()) == pytest.approx(
            np.log(SHAPE / RATE) - 1 / (2 * SHAPE), abs=0.06
        )
        assert float(np.log(draws["tau"]).std()) == pytest.approx(SHAPE**-0.5, rel=0.06)
    one, other = (np.sort(fit["variational"]["loc"].to_numpy()) for fit in fits)
    np.testing.assert_allclose(one, other, atol=0.02)


def test_a_network_is_fitted_and_weighted():
    """One summed identity unit is linear regression, whose posterior is a Gaussian."""
    target = linear_target()
    fit = ob.dadvi(target, starts=4, draws=500, weights=True, seed=1)
    exact = np.linalg.inv(np.eye(2) + target.x.T @ target.x / 0.7**2)
    centre = exact @ target.x.T @ target.y[:, 0] / 0.7**2
    apart = fit["posterior"]["W1"].mean(("chain", "draw")).to_numpy()[:, 0] - centre
    assert (np.abs(apart) < 0.2 * np.sqrt(np.diag(exact))).all()
    assert fit.attrs["worth"] > 400


def test_a_t_density_integrates_to_one():
    grid = np.linspace(-400, 400, 400_001)[:, None]
    proposals = [
        (NormalFit(np.array([1.0]), np.array([[2.0]])), 8.0),
        (NormalFit(np.zeros(1), np.ones(1)), 20.0),
    ]
    heights = t_log_densities(proposals, grid)
    mass = np.exp(heights).sum(axis=1) * (grid[1, 0] - grid[0, 0])
    np.testing.assert_allclose(mass, 1, atol=1e-6)


def test_linear_response_sees_how_scale_and_mean_go_together():
    """Of log tau with a gamma's shape a it is 1 / (a - 1 / (2 + 1 / a)), the mean-field variance 1 / a."""
    fit = ob.dadvi(known_target("numpyro"), family="meanfield", fixed_draws=2000, draws=10, seed=1)
    root = fit["variational"]["scale_tril"].to_numpy()
    variance = (root @ root.T)[0, 0]  # tau stands before x
    assert variance == pytest.approx(1 / (SHAPE - 1 / (2 + 1 / SHAPE)), rel=0.03)
    np.testing.assert_allclose((root @ root.T)[1:, 1:], COVARIANCE, rtol=1e-3)


def test_a_density_that_is_finite_nowhere_around_its_optimum_is_fitted():
    """A normal that is cut at half of its standard deviation: no direction from the optimum leads anywhere."""

    def density(values):
        return jnp.where(jnp.abs(values["x"]) < 0.5, -0.5 * values["x"] ** 2, -jnp.inf)

    tree = ob.dadvi(ob.target(density, {"x": "real"}), seed=1)
    weights = np.exp(tree["variational"]["log_weight"].values)
    np.testing.assert_allclose(weights @ tree["weighted"]["x"].values ** 2, 0.0806, rtol=0.05)


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
    values = {"x": draws}
    weighted = Weighted(draws, lp, lp, flat, (fit,), np.ones(1), values, first, fit.log_density)
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


Model = Callable[[], None]


def normal() -> None:
    loc, scale = jnp.array([1.0, 2.0, 3.0]), jnp.array([[2, 0, 0], [1, 1, 0], [0, 1, 0.5]])
    numpyro.sample("x", dist.MultivariateNormal(loc, scale_tril=scale))


def funnel() -> None:
    v = numpyro.sample("v", dist.Normal(0.2, 0.8))
    numpyro.sample("x", dist.Normal(0, jnp.exp(v)).expand([4]).to_event(1))


def funnels() -> None:
    v = numpyro.sample("v", dist.Normal(0, 0.5).expand([2]).to_event(1))
    numpyro.sample("x", dist.Normal(0, jnp.exp(jnp.repeat(v, 6))).to_event(1))


def banana() -> None:
    x = numpyro.sample("x", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(0.9 * x**2, 0.4))


def bowl() -> None:
    x = numpyro.sample("x", dist.Normal(0, 1).expand([2]).to_event(1))
    numpyro.sample("y", dist.Normal(0.6 * (x**2).sum(), 0.4))


def counted_of(model: Model) -> CountedDensity:
    return CountedDensity.of(ob.Target("bent", numpyro_model=model))


@pytest.mark.parametrize(
    ("model", "held"), [(normal, []), (funnel, [0]), (funnels, [0, 1]), (bowl, [0, 1])]
)
def test_coordinates_are_held_given_which_the_others_are_normal(model, held):
    """Of y = x1^2 + x2^2 + noise not y, though it is the strongest: given y, x lies on a circle."""
    counted = counted_of(model)
    fit = NormalFit(np.zeros(counted.size), 0.7 * np.eye(counted.size))
    for seed in range(5):
        assert sorted(bending(counted, fit, np.random.default_rng(seed))) == held


def test_the_evidence_of_a_node_is_the_marginal_density_there():
    """Given v, x is normal, so that Laplace's approximation is exact; the unit of the coordinates does not matter."""
    fit = NormalFit(np.array([0.1, 0, 0, 0, 0]), np.diag([0.5, 2, 1, 1, 3.0]))
    found = BentFit(counted_of(funnel), fit, [0]).grid()
    v = np.array([each.loc[0] for each, _ in found])
    assert np.ptp(v) > 4 * 0.8
    np.testing.assert_allclose(np.diff(np.sort(v)), 0.5 * SPACING)
    known = norm.logpdf(v, 0.2, 0.8) + np.log(0.5 * SPACING)
    np.testing.assert_allclose([evidence for _, evidence in found], known, atol=1e-6)
    for each, _ in found:
        np.testing.assert_allclose(each.sds, [0.5 * WIDTH, *[np.exp(each.loc[0])] * 4], rtol=1e-6)


def test_nodes_follow_the_ridge_and_there_are_none_of_a_grid_without_end():
    bent = BentFit(counted_of(banana), NormalFit(np.zeros(2), 0.5 * np.eye(2)), [0])
    places = np.array([each.loc for each, _ in bent.grid()])
    (near,) = bent.at(np.array([[1.5, -3.0], [1.6, 9.0]]))  # one node for both
    flat = BentFit(counted_of(banana), NormalFit(np.zeros(2), 1e-3 * np.eye(2)), [0]).grid()
    np.testing.assert_allclose(places[:, 1], 0.9 * places[:, 0] ** 2, atol=0.1)
    np.testing.assert_allclose(near[0].loc, [1.5, 0.9 * 1.5**2], atol=0.1)
    assert flat == []


@pytest.mark.slow
def test_crossed_groups_that_no_gaussian_fits_are_weighed_along_their_scales():
    """Two factors of six levels, which are normal given their scales, with scales of an sd of .8 in their logs."""

    def model() -> None:
        scales = numpyro.sample("scales", dist.LogNormal(0, 0.8).expand([2]).to_event(1))
        numpyro.sample("effects", dist.Normal(0, jnp.repeat(scales, 6)).to_event(1))

    tree = ob.dadvi(ob.Target("crossed", numpyro_model=model), weights=True, seed=1)
    assert ob.diagnose(tree).verdict == "usable"
    assert tree.attrs["worth"] > 3000
    weights = np.exp(tree["variational"]["log_weight"].to_numpy())
    logs = np.log(tree["weighted"]["scales"].to_numpy())
    np.testing.assert_allclose(weights @ logs, 0, atol=0.08)
    np.testing.assert_allclose(weights @ logs**2, 0.8**2, rtol=0.1)
    effects = np.sqrt(weights @ tree["weighted"]["effects"].to_numpy() ** 2)
    np.testing.assert_allclose(effects, np.exp(0.8**2), rtol=0.15)


def job(model: Any, engine: str = "numpyro") -> Job[Nuts]:
    return Job(target(model), Nuts(init="fit"), engine, 1, ProgressBars(False))


def target(model: Any) -> ob.Target:
    return ob.Target("target", numpyro_model=model)


def narrowing() -> None:
    v = numpyro.sample("v", dist.Normal(0, 3))
    numpyro.sample("x", dist.Normal(0, jnp.exp(v / 2)).expand([3]).to_event(1))


def two_modes() -> None:
    parts = dist.Normal(jnp.array([-4.0, 4.0]), 1.0)
    numpyro.sample("x", dist.MixtureSameFamily(dist.Categorical(jnp.array([0.7, 0.3])), parts))


def plain_normal() -> None:
    numpyro.sample("x", dist.Normal(30.0, 1.0))


def low_mode() -> None:
    parts = dist.Normal(jnp.array([0.0, 30.0]), 1.0)
    numpyro.sample("x", dist.MixtureSameFamily(dist.Categorical(jnp.array([1e-9, 1.0])), parts))


def wide() -> None:
    numpyro.sample("x", dist.Normal(0, 1).expand([61]).to_event(1))


@pytest.mark.full
@pytest.mark.parametrize(("kind", "engine"), [("numpyro", "numpyro"), ("stan", "stanli")])
def test_chains_of_a_good_fit_have_its_covariance_and_need_no_warmup(kind, engine):
    tree = ob.nuts(known_target(kind), engine=engine, init="fit", draws=500, seed=2)
    assert tree.attrs["fit_start"].startswith("Chains start from the fit: its weights leave 1,")
    assert 500 < tree.attrs["fit_gradient_evaluations"] < 2500
    metric = tree["adaptation"]["inverse_metric"].to_numpy()
    x = slice(1, 3) if engine == "numpyro" else slice(0, 2)  # tau stands first or last
    np.testing.assert_allclose(metric[0][x, x], COVARIANCE, rtol=0.2)
    assert (metric == metric[0]).all()
    steps, acceptance = (tree["sample_stats"][n] for n in ("step_size", "acceptance_rate"))
    assert len(np.unique(steps)) == 1
    assert 0.72 < float(acceptance.mean()) < 0.92
    assert_mean(tree["posterior"]["tau"].to_numpy(), SHAPE / RATE)
    assert_mean(tree["posterior"]["x"].to_numpy()[..., 0], MEAN[0])


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (narrowing, r"its [\d,]+ weighted draws have|k-hat of its weights"),
        (two_modes, "the main one of 2 optima has only (69|70|71)% of the probability"),
        (wide, "importance weights are unreliable in 61 coordinates"),
    ],
)
def test_a_fit_that_does_not_cover_the_posterior_is_not_used(model, reason):
    said, start = start_from_fit(job(model), CountedDensity.of(target(model)))
    assert start is None
    assert re.search(f"not used and chains warm up as usual, because .*({reason})", said)


def test_chains_without_their_fit_are_those_of_no_fit():
    how: dict[str, Any] = {"chains": 2, "warmup": 60, "draws": 20, "seed": 1}
    fitted, plain = (ob.nuts(target(two_modes), init=init, **how) for init in ("fit", "random"))
    assert fitted.attrs["fit_start"].startswith("The fit is not used")
    np.testing.assert_array_equal(fitted["posterior"]["x"], plain["posterior"]["x"])


def test_one_chain_in_four_begins_at_a_random_point():
    counted = CountedDensity.of(target(plain_normal))
    nine = replace(job(plain_normal), method=Nuts(init="fit", chains=9))
    start = start_from_fit(nine, counted)[1]
    assert start is not None
    assert (np.abs(start.positions - 30) < 6).all()  # those from +-2 as well
    assert (
        np.abs(_from_afar(replace(job(plain_normal), method=Nuts(chains=9)), counted)) < 2
    ).all()
    jobs = [replace(job(plain_normal), method=Nuts(chains=n)) for n in (1, 2, 9)]
    assert [len(_from_afar(each, counted)) for each in jobs] == [0, 1, 2]


@pytest.mark.parametrize(("model", "comes"), [(plain_normal, True), (low_mode, False)])
def test_a_chain_from_afar_comes_or_speaks_against_the_fit(model, comes):
    counted = CountedDensity.of(target(model))
    settled = MovedChains.at(counted, 30 + np.linspace(-2, 2, 16)[:, None])
    fit = NormalFit(np.array([30.0]), np.eye(1))
    found = _come(counted, np.full((1, 1), 0.1), settled, fit, 1.0, np.random.default_rng(0))
    assert (found is not None) == comes
    if found is not None:
        assert 1e-3 < abs(found[0, 0] - 30) < 4  # not at the optimum


def test_an_engine_without_a_metric_is_refused():
    with pytest.raises(ArgumentError, match=r"`init` is 'fit', .* engine='nutpie' cannot use one"):
        sampled(job(plain_normal, "nutpie"), lambda _: Found({}, {}))
