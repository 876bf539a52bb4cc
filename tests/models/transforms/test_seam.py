"""The seam of the Givens chart, and the chart without it.

A posterior around longitude pi is one mode on the circle. In the unconstrained space of the Givens
chart it is two, infinitely far apart.
"""

import jax.numpy as jnp
import numpy as np

from onebasin.models.transforms.transforms import (
    SeamlessGivensTransform,
    UnconstrainedGivensTransform,
)

CONCENTRATION = 20.0
GIVENS, SEAMLESS = UnconstrainedGivensTransform(), SeamlessGivensTransform()


def log_density(chart, x):
    """Von Mises around longitude pi, on a chart's unconstrained space; x is (..., raw, 1)."""
    w = chart(x)
    return chart.log_abs_det_jacobian(x, w) - CONCENTRATION * w[..., 0, 0]


def on_circle(longitude):
    return jnp.array([[np.cos(longitude)], [np.sin(longitude)]])


def test_neighbours_across_the_seam_are_far_apart_in_the_givens_chart_alone():
    above, below = on_circle(np.pi - 1e-3), on_circle(-np.pi + 1e-3)
    assert jnp.linalg.norm(above - below) < 0.01
    assert jnp.linalg.norm(GIVENS._inverse(above) - GIVENS._inverse(below)) > 10
    assert jnp.linalg.norm(SEAMLESS._inverse(above) - SEAMLESS._inverse(below)) < 0.01


def test_a_mode_on_the_seam_is_split_in_the_givens_chart():
    x = jnp.linspace(-30, 30, 6001)
    p = np.asarray(log_density(GIVENS, x[:, None, None]))
    peaks = np.flatnonzero((p[1:-1] > p[:-2]) & (p[1:-1] > p[2:])) + 1
    assert len(peaks) == 2
    assert x[peaks[0]] < -2 < 2 < x[peaks[1]]
    # The valley between them, at longitude 0, is e^30 deep.
    assert p[peaks].min() - p[3000] > 30


def test_a_mode_on_the_seam_is_one_mode_in_the_seamless_chart():
    axis = jnp.linspace(-2, 2, 201) + 1e-6
    u, v = jnp.meshgrid(axis, axis, indexing="ij")
    p = np.asarray(log_density(SEAMLESS, jnp.stack([u, v], -1)[..., None]))
    middle = p[1:-1, 1:-1]
    higher = np.ones_like(middle, bool)
    for i, j in np.ndindex(3, 3):
        if (i, j) != (1, 1):
            higher &= middle > p[i : i + 199, j : j + 199]
    (peak,) = np.argwhere(higher) + 1
    np.testing.assert_allclose([axis[peak[0]], axis[peak[1]]], [-1, 0], atol=0.02)
