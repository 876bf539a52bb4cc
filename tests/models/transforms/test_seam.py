"""The seam of the Givens chart, and the chart without it.

A posterior around longitude pi is one mode on the circle. In the unconstrained space of the Givens
chart it is two, infinitely far apart, and chains stay in the one they start in.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from arviz_stats.base import array_stats
from numpyro.infer import MCMC, NUTS

from onebasin.models.transforms.distributions import UnitColumns
from onebasin.models.transforms.transforms import (
    SeamlessGivensTransform,
    UnconstrainedGivensTransform,
)

from ...each import each

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


def draws(chart, start):
    """NUTS draws of sin(longitude), (chain, draw), four chains from either side of the seam."""

    def model():
        w = numpyro.sample("w", UnitColumns(2, 1, chart))
        numpyro.factor("von_mises", -CONCENTRATION * w[0, 0])

    mcmc = MCMC(
        # Of a step size of its own: the first, long steps of its adaptation jump over the valley.
        NUTS(model, step_size=0.5, adapt_step_size=False),
        num_warmup=300,
        num_samples=400,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(8), init_params={"w": start})
    return np.asarray(mcmc.get_samples(group_by_chain=True)["w"])[:, :, 1, 0]


@pytest.mark.slow
@each(("chart", "transform"), [("givens", GIVENS), ("givens_seamless", SEAMLESS)])
def test_chains_agree_without_the_seam_alone(chart, transform):
    sides = np.array([-1, 1, -1, 1]) * (np.pi - 0.3)
    start = transform._inverse(jnp.stack([on_circle(side) for side in sides]))
    sine = draws(chart, start)
    rhat = array_stats.rhat(sine, chain_axis=0, draw_axis=1)
    if chart == "givens":
        assert rhat > 1.5
        # A chain never crosses, though the two sides touch at the seam.
        assert np.all(np.abs(np.sign(sine).mean(axis=1)) == 1)
    else:
        assert rhat < 1.02
        ess = array_stats.ess(sine, chain_axis=0, draw_axis=1, method="mean")
        assert ess > 200
        assert abs(sine.mean()) < 5 * sine.std() / np.sqrt(ess)
