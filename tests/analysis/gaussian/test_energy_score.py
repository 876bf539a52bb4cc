"""The energy score against its closed form, and without bias."""

import jax.numpy as jnp
import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import norm

from onebasin.analysis.gaussian.distillation import energy_score


def test_energy_score_of_a_normal_is_its_closed_form():
    rng = np.random.default_rng(0)
    ours = jnp.asarray(rng.normal(size=(4000, 8, 1)))
    y = jnp.asarray(np.array([0.0, 2.0])[None, :, None] * np.ones((4000, 1, 1)))
    for place, value in enumerate([0.0, 2.0]):
        found = np.asarray(energy_score(ours, y[:, place : place + 1]))
        # Gneiting and Raftery 2007, equation 5, of N(0, 1).
        exact = value * (2 * norm.cdf(value) - 1) + 2 * norm.pdf(value) - 1 / np.sqrt(np.pi)
        assert abs(found.mean() - exact) < 5 * found.std() / np.sqrt(len(found))


def test_energy_score_is_the_mean_over_pairs(rng):
    ours, y = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 4, 3))
    expected = [
        cdist(a, b).mean() - cdist(a, a).sum() / (2 * 5 * 4) for a, b in zip(ours, y, strict=True)
    ]
    found = energy_score(jnp.asarray(ours), jnp.asarray(y))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
