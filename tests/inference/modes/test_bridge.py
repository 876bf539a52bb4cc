"""Bridge sampling, against integrals that are known, and its stated error, against how often it holds."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from onebasin.inference.fits.weighting import resampled
from onebasin.inference.modes.basins import LogIntegral, log_integral
from onebasin.inference.modes.by_mode import weigh

CHAINS, DRAWS = 4, 400


def chains(rng: np.random.Generator, size: int, stickiness: float = 0.6) -> np.ndarray:
    """Standard normal chains (chain, draw, param), each draw correlated with the one before."""
    noise = rng.standard_normal((CHAINS, DRAWS, size))
    out = np.empty_like(noise)
    out[:, 0] = noise[:, 0]
    for draw in range(1, DRAWS):
        out[:, draw] = stickiness * out[:, draw - 1] + math.sqrt(1 - stickiness**2) * noise[:, draw]
    return out


def skewed(
    size: int,
) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray], float]:
    """Logs of gamma variables, whose density is skewed: from normal draws, the density, and its log integral."""
    shape = 3.0

    def of_normal(draws: np.ndarray) -> np.ndarray:
        return np.log(stats.gamma.ppf(stats.norm.cdf(draws), shape))

    def density(points: np.ndarray) -> np.ndarray:
        return (shape * points - np.exp(points)).sum(axis=1)

    return of_normal, density, size * math.lgamma(shape)


@pytest.mark.parametrize("size", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_log_integral_of_a_skewed_density_is_found_within_its_error(size):
    of_normal, density, truth = skewed(size)
    errors, found = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        estimate = log_integral(density, of_normal(chains(rng, size)), rng)
        found.append(estimate.value - truth)
        errors.append(estimate.error)
    held = np.mean(np.abs(found) < 1.96 * np.array(errors))
    assert held >= 0.9
    assert np.std(found) > 0.4 * np.mean(errors)  # the error is no boast of caution either
    assert np.mean(errors) < 0.1


@pytest.mark.slow
def test_weights_of_two_far_gaussians_hold_their_intervals():
    """0.9 and 0.1 in 20 dimensions: chains that never cross, 50 seeds."""
    size, truth = 20, np.array([0.9, 0.1])
    means, sds = (np.zeros(size), np.full(size, 6.0)), (1.0, 0.4)
    held = 0
    for seed in range(50):
        rng = np.random.default_rng(100 + seed)
        estimates = []
        for mean, sd, share in zip(means, sds, truth, strict=True):

            def density(points, mean=mean, sd=sd, share=share):
                return math.log(share) + stats.norm.logpdf(points, mean, sd).sum(axis=1)

            estimates.append(log_integral(density, mean + sd * chains(rng, size), rng))
        weights = weigh(estimates)
        held += bool(weights.low[1] <= 0.1 <= weights.high[1])
        assert weights.known
        assert np.exp(weights.log).sum() == pytest.approx(1)
    assert held >= 45


def test_chains_that_disagree_have_a_larger_error():
    rng = np.random.default_rng(1)
    together = chains(rng, 3)
    apart = together + np.arange(CHAINS)[:, None, None]

    def density(points):
        return stats.norm.logpdf(points).sum(axis=1)

    assert log_integral(density, apart, rng).error > 3 * log_integral(density, together, rng).error


@pytest.mark.parametrize(
    ("gap", "error", "known"),
    [(1.0, 0.1, True), (1.0, 0.8, False), (100.0, 3.0, True), (3.0, 2.0, False)],
)
def test_weights_are_known_where_what_is_not_known_does_not_matter(gap, error, known):
    weights = weigh([LogIntegral(0.0, 0.01), LogIntegral(-gap, error)])
    assert weights.known is known
    assert (weights.low <= np.exp(weights.log)).all() and (
        np.exp(weights.log) <= weights.high
    ).all()


def test_draws_are_shared_out_as_weights_say():
    rng = np.random.default_rng(0)
    labels = resampled(np.array([0.7, 0.3, 1e-30]), 1000, rng)
    assert np.abs(np.bincount(labels, minlength=3) - [700, 300, 0]).max() <= 1
    assert len(set(labels[:20])) == 2  # in no order
