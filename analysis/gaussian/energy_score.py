"""The energy score of a distribution that is known by draws, and can be differentiated through them.

    S(q, y) = E |f - y| - 1/2 E |f - f'|,   f, f' independent from q,

smaller is better, and smallest in expectation over y where q is the distribution of y. Source: Gneiting and Raftery
2007, "Strictly proper scoring rules, prediction, and estimation", equation 21 (there with the other sign).
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

_CLOSEST = 1e-12
"""Added to squared distances, whose root has no gradient at 0."""


def energy_score(
    ours: Float[Array, "point sample out"], y: Float[Array, "point draw out"]
) -> Float[Array, " point"]:
    """Estimate, without bias, the energy score of a distribution at every point.

    Parameters
    ----------
    ours : array (point, sample, out)
        Draws of the distribution that is judged, at least two.
    y : array (point, draw, out)
        Draws of what it should be.

    Returns
    -------
    array (point,)
        Mean distance to `y` less half the mean distance of two different draws.
    """
    num = ours.shape[1]
    own = _distances(ours, ours) * (1 - jnp.eye(num, dtype=ours.dtype))[None]
    return _distances(ours, y).mean((1, 2)) - own.sum((1, 2)) / (2 * num * (num - 1))


def _distances(
    a: Float[Array, "point sample out"], b: Float[Array, "point draw out"]
) -> Float[Array, "point sample draw"]:
    squares = jnp.square(a[:, :, None, :] - b[:, None, :, :]).sum(-1)
    return jnp.sqrt(squares + _CLOSEST)
