"""Tests of the experiments with two modes and two weights, by quadrature, counting and closed forms."""

import math
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density as numpyro_log_density
from scipy.integrate import quad
from scipy.optimize import approx_fprime, brentq, minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from onebasin.studies.permutation_invariant_vi import two_modes as two
from onebasin.studies.permutation_invariant_vi import two_weights as weights

GAUSSIANS = [
    *((0.5, 0.25, 0.3, 0.4), (1.0, 1.0, -0.7, 1.3), (5.0, 2.0, 3.0, 1.0), (4.0, 1.0, 0.0, 3.5)),
    (6.0, 1.0, 0.0, 5.0),  # up to this ratio the quadrature converges
]


def log_target(x, alpha, sigma):
    parts = [norm.logpdf(x, place, sigma) for place in (-alpha, alpha)]
    return np.logaddexp(*parts) - np.log(2)


def direct(alpha, sigma, mean, sd):
    """KL(q || p) of the densities themselves."""

    def integrand(x):
        log_q = norm.logpdf(x, mean, sd)
        return np.exp(log_q) * (log_q - log_target(x, alpha, sigma))

    ends = mean - 12 * sd, mean + 12 * sd
    return quad(integrand, *ends, points=[mean], limit=400, epsabs=1e-13)[0]


@pytest.mark.parametrize(("alpha", "sigma", "mean", "sd"), GAUSSIANS)
def test_divergence_is_that_of_the_densities(alpha, sigma, mean, sd):
    found = two.divergence(alpha / sigma, mean / sigma, sd / sigma)
    np.testing.assert_allclose(found, direct(alpha, sigma, mean, sd), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("ratio", "others"), [(2.4, 0), (2.42, 2), (5.0, 2)])
def test_stationary_points_are_counted(ratio, others):
    # Besides the midpoint, at means above 0: where the slope along the mean changes its sign, among the sds that are
    # stationary at a mean. There is one such sd, but for a range of means at large ratios where all slopes agree.
    sds = np.geomspace(0.3, 2 * ratio + 2, 80)
    signs = []
    for mean in np.linspace(1e-3, 1.2 * ratio, 100):
        slopes = np.array([two.slope(ratio, mean, sd)[1] for sd in sds])
        places = np.flatnonzero(np.diff(np.sign(slopes)))
        assert len(places) == 1 or mean > two.vanishing()[0]  # so that `saddle` finds the right one
        ends = [sds[k : k + 2] for k in places]
        found = [brentq(lambda sd, at=mean: two.slope(ratio, at, sd)[1], *each) for each in ends]
        (sign,) = {np.sign(two.slope(ratio, mean, sd)[0]) for sd in found}
        signs.append(sign)
    assert int((np.diff(signs) != 0).sum()) == others
    assert (two.mode(ratio) is not None) == (others == 2) == (two.saddle(ratio) is not None)


def test_vanishing_is_where_two_stationary_points_meet():
    mean, sd, ratio = two.vanishing()
    near, between = two.mode(ratio + 1e-8), two.saddle(ratio + 1e-8)
    np.testing.assert_allclose([near.mean, between.mean], mean, atol=1e-3)
    np.testing.assert_allclose(two.slope(ratio, mean, sd), 0, atol=1e-10)
    np.testing.assert_allclose(np.linalg.det(two.curvature(ratio, mean, sd)), 0, atol=1e-10)


def test_switching_is_where_the_best_gaussian_moves():
    x = np.linspace(-20, 20, 4001)

    def value(q, ratio):
        log_q = norm.logpdf(x, q[0], np.exp(q[1]))
        return np.exp(log_q) @ (log_q - log_target(x, ratio, 1.0)) * (x[1] - x[0])

    gains = []
    for ratio in (2.799, 2.801):
        ends = [minimize(value, start, (ratio,), tol=1e-8) for start in ((0, 1), (ratio, 0))]
        assert abs(ends[0].x[0]) < 1e-3 < 2.7 < ends[1].x[0]
        gains.append(ends[0].fun - ends[1].fun)
    assert gains[0] < 0 < gains[1]
    np.testing.assert_allclose(two.switching(), 2.80, atol=1e-3)


@pytest.mark.full
def test_sampled_divergence_is_the_mean_log_ratio(rng):
    mean, noise = rng.normal(size=2), rng.normal(size=(50, 2))
    factor = np.array([[0.8, 0.0], [-0.3, 0.6]])
    x = mean + noise @ factor.T
    modes = [multivariate_normal(s * 1.2 * two.DIRECTION, 1.0).pdf(x) for s in (1, -1)]
    log_q = multivariate_normal(mean, factor @ factor.T).logpdf(x)
    wanted = (log_q - np.log(np.mean(modes, axis=0))).mean()
    q = (jnp.asarray(mean), jnp.asarray(factor))
    found = two.sampled_divergence(q, jnp.asarray(noise), jnp.asarray(1.2))
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


@pytest.mark.full
def test_descents_end_where_quadrature_says():
    # The ratios lie below and above the threshold. The end of a descent is never better than the optimum, and worse by
    # its noise: at most 0.012 nats over six keys.
    ratios, seeds, how = np.array([1.0, 2.2, 2.6, 3.5]), 8, two.Descent(50, 0.05, 1_500)
    means, covariances = two.descend(jax.random.key(3), np.repeat(ratios, seeds), how)
    means, covariances = means.reshape(-1, seeds, 2), covariances.reshape(-1, seeds, 2, 2)
    for ratio, mine, wide in zip(ratios, means, covariances, strict=True):
        along = two.mode(ratio) or two.midpoint(ratio)
        place = mine @ two.DIRECTION - along.mean
        assert abs(place.mean()) < 5 * place.std(ddof=1) / seeds**0.5
        across = mine @ [-two.DIRECTION[1], two.DIRECTION[0]]
        assert abs(across.mean()) < 5 * across.std(ddof=1) / seeds**0.5
        pairs = zip(mine, wide, strict=True)
        excess = [two.divergence_in_plane(ratio, m, c) - along.divergence for m, c in pairs]
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
    found = two.bracket(np.array(stayed, float), np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(found, wanted)


TOY = replace(weights.QUICK, num_test=40, data_sets=2, steps=4000, draws=400)
CASES = [(1.0, 0.25), (1.0, 1.0), (0.3, 0.1)]


def problem(noise: float, alpha: float) -> weights.WeightsProblem:
    return weights.WeightsProblem(replace(TOY, noise=noise, noises=(noise,)), alpha, noise)


@cache
def solved(noise: float, alpha: float):
    found = weights.statistics(*problem(noise, alpha).points("train"), noise)
    return found, weights.solve(found)


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
    found = weights.statistics(*weights.WeightsProblem(TOY, 1.0, 1.0).points("train"), 1.0)
    model = weights.target(TOY, 1.0).numpyro_model
    for w in rng.normal(size=(6, 2)) * 2:
        theirs, _ = numpyro_log_density(model, (), {}, {"W1": jnp.asarray(w[None, :])})
        assert float(weights.log_joint(found, *w)) == pytest.approx(float(theirs), rel=1e-12)


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
    q = weights.approximation(np.array(loc), np.array(scale), found)
    half, weight = np.polynomial.legendre.leggauss(250)
    axis = 2 * np.concatenate([half - 1, half + 1])  # From -4 to 4, with an edge at the kink.
    weight = 2 * np.tile(weight, 2)
    first, second = axis[:, None], axis[None, :]
    log_p = weights.log_joint(found, first, second) - truth.log_evidence
    log_q = sum(norm.logpdf(w, m, s) for w, m, s in zip((first, second), loc, scale, strict=True))
    log_mean = np.logaddexp(log_q, log_q.T) - math.log(2)
    kl, kl_symmetrised = (weight @ (np.exp(d) * (d - log_p)) @ weight for d in (log_q, log_mean))
    assert truth.log_evidence - q.elbo == pytest.approx(kl, rel=1e-10)
    assert truth.log_evidence - q.symmetrised_elbo == pytest.approx(kl_symmetrised, rel=1e-10)
    for symmetrised, wanted in ((False, log_q), (True, log_mean)):
        ours = weights.log_density(loc, scale, first, second, symmetrised=symmetrised)
        np.testing.assert_allclose(ours, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("symmetrised", [False, True])
@pytest.mark.parametrize(("noise", "alpha"), CASES)
def test_optimum_is_flat_and_no_random_gaussian_is_better(noise, alpha, symmetrised, rng):
    found, _ = solved(noise, alpha)
    best = weights.optimum(found, symmetrised=symmetrised)

    def objective(where: np.ndarray) -> float:
        q = weights.approximation(where[:2], np.exp(where[2:]), found)
        return q.symmetrised_elbo if symmetrised else q.elbo

    where = np.concatenate([best.loc, np.log(best.scale)])
    # The error of forward differences is about the curvature (up to 2e2) times the step of 1e-6.
    np.testing.assert_allclose(approx_fprime(where, objective, 1e-6), 0, atol=1e-3)
    others = np.concatenate([rng.normal(size=(150, 2)), rng.uniform(-3, 0, (150, 2))], axis=1)
    others[:50] = where + 0.1 * rng.normal(size=(50, 4))
    assert max(map(objective, others)) < objective(where)
