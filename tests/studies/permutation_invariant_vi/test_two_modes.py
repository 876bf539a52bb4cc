"""Tests of the experiments with two modes and two weights, by quadrature and closed forms."""

import math
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density as numpyro_log_density
from scipy.optimize import approx_fprime
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from onebasin.studies.permutation_invariant_vi.two_modes import (
    DIRECTION,
    Descent,
    bracket,
    descend,
    divergence_in_plane,
    midpoint,
    mode,
    sampled_divergence,
)
from onebasin.studies.permutation_invariant_vi.two_weights import (
    QUICK,
    WeightsProblem,
    approximation,
    log_density,
    log_joint,
    optimum,
    solve,
    statistics,
    target,
)


@pytest.mark.full
def test_sampled_divergence_is_the_mean_log_ratio(rng):
    mean, factor, noise = (
        rng.normal(size=2),
        np.array([[0.8, 0.0], [-0.3, 0.6]]),
        rng.normal(size=(50, 2)),
    )
    x = mean + noise @ factor.T
    modes = [multivariate_normal(s * 1.2 * DIRECTION, 1.0).pdf(x) for s in (1, -1)]
    log_q = multivariate_normal(mean, factor @ factor.T).logpdf(x)
    wanted = (log_q - np.log(np.mean(modes, axis=0))).mean()
    q = (jnp.asarray(mean), jnp.asarray(factor))
    found = sampled_divergence(q, jnp.asarray(noise), jnp.asarray(1.2))
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


@pytest.mark.full
def test_descents_end_where_quadrature_says():
    # The ratios lie below and above the threshold. The end of a descent is never better than the optimum, and worse by
    # its noise: at most 0.012 nats over six keys.
    ratios, seeds, how = np.array([1.0, 2.2, 2.6, 3.5]), 8, Descent(50, 0.05, 1_500)
    means, covariances = descend(jax.random.key(3), np.repeat(ratios, seeds), how)
    for ratio, mine, wide in zip(
        ratios, means.reshape(-1, seeds, 2), covariances.reshape(-1, seeds, 2, 2), strict=True
    ):
        along = mode(ratio) or midpoint(ratio)
        place = mine @ DIRECTION - along.mean
        assert abs(place.mean()) < 5 * place.std(ddof=1) / seeds**0.5
        across = mine @ [-DIRECTION[1], DIRECTION[0]]
        assert abs(across.mean()) < 5 * across.std(ddof=1) / seeds**0.5
        excess = [
            divergence_in_plane(ratio, m, c) - along.divergence
            for m, c in zip(mine, wide, strict=True)
        ]
        assert all(0 < value < 0.03 for value in excess)


@pytest.mark.full
@pytest.mark.parametrize(
    ("stayed", "wanted"),
    [
        ([0, 0, 1, 1], (2.0, 3.0)),
        ([0, 0.5, 0.6, 1], (2.0, 3.0)),
        ([0, 1, 0.2, 1], (3.0, 4.0)),  # A share that falls again is not above the threshold.
        ([1, 1, 1, 1], (np.nan, 1.0)),
        ([0, 0, 0, 0], (4.0, np.nan)),
    ],
)
def test_bracket_encloses_the_threshold(stayed, wanted):
    found = bracket(np.array(stayed, float), np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(found, wanted)


TOY = replace(QUICK, num_test=40, data_sets=2, steps=4000, draws=400)
CASES = [(1.0, 0.25), (1.0, 1.0), (0.3, 0.1)]


def problem(noise: float, alpha: float) -> WeightsProblem:
    return WeightsProblem(replace(TOY, noise=noise, noises=(noise,)), alpha, noise)


@cache
def solved(noise: float, alpha: float):
    found = statistics(*problem(noise, alpha).points("train"), noise)
    return found, solve(found)


def log_mass(x: np.ndarray, y: np.ndarray, noise: float, signs: tuple[int, int]) -> float:
    """Return the log mass of one quadrant, in which the posterior is a truncated Gaussian."""
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


@pytest.mark.full
def test_log_joint_is_that_of_the_numpyro_model(rng):
    found = statistics(*WeightsProblem(TOY, 1.0, 1.0).points("train"), 1.0)
    model = target(TOY, 1.0).numpyro_model
    for w in rng.normal(size=(6, 2)) * 2:
        theirs, _ = numpyro_log_density(model, (), {}, {"W1": jnp.asarray(w[None, :])})
        assert float(log_joint(found, *w)) == pytest.approx(float(theirs), rel=1e-12)


@pytest.mark.full
@pytest.mark.parametrize(("noise", "alpha"), CASES)
def test_evidence_is_that_of_four_truncated_gaussians(noise, alpha):
    data = problem(noise, alpha).points("train")
    _, truth = solved(noise, alpha)
    signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    closed = logsumexp([log_mass(*data, noise, sign) for sign in signs])
    assert truth.log_evidence == pytest.approx(closed, rel=1e-12)
    assert truth.mass.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(truth.mass, truth.mass.T, rtol=1e-10)


@pytest.mark.full
@pytest.mark.parametrize(("noise", "alpha"), CASES)
@pytest.mark.parametrize(
    ("loc", "scale"),
    [((0.3, -0.2), (0.2, 0.35)), ((0.5, 0.4), (0.3, 0.1)), ((1.2, -1), (0.2, 0.2))],
)
def test_divergences_are_those_of_integrals_over_the_weights(noise, alpha, loc, scale):
    found, truth = solved(noise, alpha)
    q = approximation(np.array(loc), np.array(scale), found)
    half, weight = np.polynomial.legendre.leggauss(250)
    axis = 2 * np.concatenate([half - 1, half + 1])  # From -4 to 4, with an edge at the kink.
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


@pytest.mark.full
@pytest.mark.parametrize("symmetrised", [False, True])
@pytest.mark.parametrize(("noise", "alpha"), CASES)
def test_optimum_is_flat_and_no_random_gaussian_is_better(noise, alpha, symmetrised, rng):
    found, _ = solved(noise, alpha)
    best = optimum(found, symmetrised=symmetrised)

    def objective(where: np.ndarray) -> float:
        q = approximation(where[:2], np.exp(where[2:]), found)
        return q.symmetrised_elbo if symmetrised else q.elbo

    where = np.concatenate([best.loc, np.log(best.scale)])
    # The error of forward differences is about the curvature (up to 2e2) times the step of 1e-6.
    np.testing.assert_allclose(approx_fprime(where, objective, 1e-6), 0, atol=1e-3)
    others = np.concatenate([rng.normal(size=(150, 2)), rng.uniform(-3, 0, (150, 2))], axis=1)
    others[:50] = where + 0.1 * rng.normal(size=(50, 4))
    assert max(map(objective, others)) < objective(where)
