"""One Gaussian between two modes: descents, frames, figures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

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

pytestmark = pytest.mark.full


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


def test_descents_end_where_quadrature_says():
    # Below and above the threshold. A descent's end is never better than the optimum, and worse by its noise: over six
    # keys by 0.012 nats at most.
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


@pytest.mark.parametrize(
    ("stayed", "wanted"),
    [
        ([0, 0, 1, 1], (2.0, 3.0)),
        ([0, 0.5, 0.6, 1], (2.0, 3.0)),
        ([0, 1, 0.2, 1], (3.0, 4.0)),  # one that comes back is not yet above
        ([1, 1, 1, 1], (np.nan, 1.0)),
        ([0, 0, 0, 0], (4.0, np.nan)),
    ],
)
def test_bracket_encloses_the_threshold(stayed, wanted):
    found = bracket(np.array(stayed, float), np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(found, wanted)
