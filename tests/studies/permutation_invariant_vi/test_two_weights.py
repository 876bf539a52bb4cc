"""The network of two weights: data, its posterior and its best Gaussians against other ways to the same numbers."""

import math
from dataclasses import replace
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from numpyro.infer.util import log_density as numpyro_log_density
from scipy.optimize import approx_fprime
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from onebasin.models import Exchangeable
from onebasin.studies.permutation_invariant_vi.two_weights import (
    QUICK,
    Statistics,
    WeightsProblem,
    approximation,
    error_of,
    fit_settings,
    log_density,
    log_joint,
    optimum,
    score_fits,
    separations,
    solve,
    solve_case,
    statistics,
    target,
)

pytestmark = pytest.mark.full

TOY = replace(QUICK, num_test=40, data_sets=2, steps=4000, draws=400)
CASES = [(1.0, 0.25), (1.0, 1.0), (0.3, 0.1)]


def problem(noise: float, alpha: float) -> WeightsProblem:
    return WeightsProblem(replace(TOY, noise=noise, noises=(noise,)), alpha, noise)


def fake_tree(loc: np.ndarray, scale: np.ndarray, found: Statistics, draws: int) -> xr.DataTree:
    """A posterior as the method gives it: exact about itself, with draws from these Gaussians."""
    rng = np.random.default_rng(3)
    w = loc[:, None, :] + scale[:, None, :] * rng.standard_normal((len(loc), draws, 2))
    q = [approximation(m, s, found) for m, s in zip(loc, scale, strict=True)]
    fitted = {
        "loc": (("chain", "param"), loc),
        "scale": (("chain", "param"), scale),
        "final_elbo": ("chain", [one.elbo for one in q]),
    }
    draws_of = xr.Dataset({"W1": (("chain", "draw", "in", "hidden1"), w[:, :, None, :])})
    return xr.DataTree.from_dict({"posterior": draws_of, "variational": xr.Dataset(fitted)})


def test_data_have_the_same_inputs_and_errors_for_every_alpha_and_noise():
    one, other = problem(1.0, 0.25).points("train"), problem(0.3, 1.0).points("train")
    np.testing.assert_array_equal(one[0], other[0])
    errors = (one[1] - 0.25 * np.abs(one[0]), (other[1] - np.abs(other[0])) / 0.3)
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-12, atol=1e-14)
    x, _ = problem(1.0, 0.25).points("test")
    assert not set(x) & set(one[0])
    assert len(x) == TOY.num_test
    assert target(TOY, 0.25).symmetry == (Exchangeable({"W1": 1}),)
    settings = fit_settings(replace(QUICK, steps=7, permutations=4, learning_rate=0.02))
    assert (settings.steps, settings.permutations, settings.learning_rate) == (7, 4, 0.02)
    assert (settings.fits, settings.draws, settings.tolerance) == (2, 500, 0.0)


def test_errors_are_expected_over_inputs(rng):
    x = rng.standard_normal(400_000)
    slope = np.where(x > 0, 0.7, 1.6)
    squares = (np.abs(x) * (slope - 1.0)) ** 2
    miss = squares.mean() - error_of(np.array([0.7, 1.6]), 1.0)
    assert abs(miss) < 5 * squares.std() / len(x) ** 0.5


def test_fits_are_scored_by_their_draws_and_by_quadrature():
    problem = WeightsProblem(TOY, 0.25, 1.0)
    case = solve_case(TOY, 1.0, 0.25)
    found = statistics(*problem.points("train"), problem.noise)
    loc, scale = np.array([[0.3, -0.2], [0.1, 0.0]]), np.array([[0.2, 0.3], [0.4, 0.4]])
    tree = fake_tree(loc, scale, found, 3000)
    scores = score_fits(TOY, case, "mfvi", tree)
    x, y = problem.points("test")
    w = tree["posterior"]["W1"].values[:, :, 0]
    f = np.maximum(w[..., None] * x, 0).sum(axis=2)
    np.testing.assert_allclose(scores["mse"], ((y - f.mean(1)) ** 2).mean(-1), rtol=1e-10)
    elbos = [approximation(m, s, found).elbo for m, s in zip(loc, scale, strict=True)]
    np.testing.assert_allclose(scores["elbo"], elbos, rtol=1e-6)
    np.testing.assert_allclose(separations(scores), [0.5, 0.1])
    q = approximation(loc[1], scale[1], found)
    assert scores["kl"][1] == pytest.approx(case["log_evidence"] - q.elbo, rel=1e-12)
    apart = scores["kl"][1] - q.information
    assert scores["kl_symmetrised"][1] == pytest.approx(apart, rel=1e-12)


@cache
def solved(noise: float, alpha: float):
    found = statistics(*problem(noise, alpha).points("train"), noise)
    return found, solve(found)


def log_mass(x: np.ndarray, y: np.ndarray, noise: float, signs: tuple[int, int]) -> float:
    """Log mass of one quadrant, in which the posterior is a Gaussian cut off."""
    precision, pull = np.eye(2), np.zeros(2)
    constant = norm.logpdf(y, scale=noise).sum()
    for side in (1, -1):
        on = x * side > 0
        active = np.array([side * (sign == side) for sign in signs], float)
        precision += (x[on] ** 2).sum() / noise**2 * np.outer(active, active)
        pull += (np.abs(x[on]) @ y[on]) / noise**2 * active
    cov = np.linalg.inv(precision)
    mean = cov @ pull
    flip = np.diag(signs)
    share = multivariate_normal(-flip @ mean, flip @ cov @ flip).cdf(np.zeros(2))
    return constant + pull @ mean / 2 + np.linalg.slogdet(cov)[1] / 2 + np.log(share)


def test_log_joint_is_that_of_the_numpyro_model(rng):
    found = statistics(*WeightsProblem(TOY, 1.0, 1.0).points("train"), 1.0)
    model = target(TOY, 1.0).numpyro_model
    for w in rng.normal(size=(6, 2)) * 2:
        theirs, _ = numpyro_log_density(model, (), {}, {"W1": jnp.asarray(w[None, :])})
        assert float(log_joint(found, *w)) == pytest.approx(float(theirs), rel=1e-12)


@pytest.mark.parametrize(("noise", "alpha"), CASES)
def test_evidence_is_that_of_four_truncated_gaussians(noise, alpha):
    data = problem(noise, alpha).points("train")
    _, truth = solved(noise, alpha)
    signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    closed = logsumexp([log_mass(*data, noise, sign) for sign in signs])
    assert truth.log_evidence == pytest.approx(closed, rel=1e-12)
    assert truth.mass.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(truth.mass, truth.mass.T, rtol=1e-10)


def test_posterior_means_are_those_of_a_plain_sum():
    noise, alpha = 1.0, 1.0
    found, truth = solved(noise, alpha)
    axis = np.linspace(-6, 6, 1601)
    first, second = axis[:, None], axis[None, :]
    share = np.exp(log_joint(found, first, second) - truth.log_evidence) * (axis[1] - axis[0]) ** 2
    up = np.maximum(first, 0) + np.maximum(second, 0)
    down = np.maximum(-first, 0) + np.maximum(-second, 0)
    means = [float((share * s).sum()) for s in (up, down)]
    # Measured differences: 4e-6 for the slopes, 1e-5 for the separation (kinks in cells of width 0.0075).
    np.testing.assert_allclose(truth.mean_slopes(), means, rtol=2e-5)
    apart = float((share * np.abs(first - second)).sum())
    assert truth.separation == pytest.approx(apart, rel=2e-5)


@pytest.mark.parametrize(("noise", "alpha"), CASES)
@pytest.mark.parametrize(
    ("loc", "scale"),
    [((0.3, -0.2), (0.2, 0.35)), ((0.5, 0.4), (0.3, 0.1)), ((1.2, -1), (0.2, 0.2))],
)
def test_divergences_are_those_of_integrals_over_the_weights(noise, alpha, loc, scale):
    found, truth = solved(noise, alpha)
    q = approximation(np.array(loc), np.array(scale), found)
    half, weight = np.polynomial.legendre.leggauss(250)
    axis = 2 * np.concatenate([half - 1, half + 1])  # from -4 to 4, with an end at the kink
    weight = 2 * np.tile(weight, 2)
    first, second = axis[:, None], axis[None, :]
    log_p = log_joint(found, first, second) - truth.log_evidence
    log_q = sum(norm.logpdf(w, m, s) for w, m, s in zip((first, second), loc, scale, strict=True))
    log_mean = np.logaddexp(log_q, log_q.T) - math.log(2)
    kl, kl_symmetrised = (weight @ (np.exp(d) * (d - log_p)) @ weight for d in (log_q, log_mean))
    assert truth.log_evidence - q.elbo == pytest.approx(kl, rel=1e-10)
    assert truth.log_evidence - q.symmetrised_elbo == pytest.approx(kl_symmetrised, rel=1e-10)
    np.testing.assert_allclose(
        log_density(loc, scale, first, second), log_q, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        log_density(loc, scale, first, second, symmetrised=True), log_mean, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("symmetrised", [False, True])
@pytest.mark.parametrize(("noise", "alpha"), CASES)
def test_optimum_is_flat_and_no_random_gaussian_is_better(noise, alpha, symmetrised, rng):
    found, _ = solved(noise, alpha)
    best = optimum(found, symmetrised=symmetrised)

    def objective(where: np.ndarray) -> float:
        q = approximation(where[:2], np.exp(where[2:]), found)
        return q.symmetrised_elbo if symmetrised else q.elbo

    where = np.concatenate([best.loc, np.log(best.scale)])
    # Forward differences of 1e-6: their own error is about curvature (up to 2e2) times the step.
    np.testing.assert_allclose(approx_fprime(where, objective, 1e-6), 0, atol=1e-3)
    others = np.concatenate([rng.normal(size=(150, 2)), rng.uniform(-3, 0, (150, 2))], axis=1)
    others[:50] = where + 0.1 * rng.normal(size=(50, 4))
    assert max(map(objective, others)) < objective(where)
