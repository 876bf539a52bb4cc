"""A network's predictions, draw by draw, at so many draws as a picture needs.

Convention: noise is one number a draw, the same at all points. Every point's own distribution is what it should be, and
a band along a line has smooth edges.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onebasin.posteriors.view import View

DRAWS = 1000
"""Draws of all chains that are taken at most."""


def draw_regression(
    view: View, x: Float[np.ndarray, "obs in"], *, output: int, seed: int
) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, "chain draw obs"]]:
    """Predict one output at some points by a posterior of a network with a Gaussian likelihood.

    Returns its mean over draws, without noise, and draws with noise.
    """
    from onebasin.models.networks.prediction import predict_with_noise  # here: it loads JAX

    assert view.network is not None
    draws = few_draws(view)
    function, sigma = (
        part[..., output].astype(np.float64) for part in predict_with_noise(view.network, draws, x)
    )
    noise = np.random.default_rng(seed).normal(size=function.shape[:2])
    predicted = function + sigma * noise[..., None]
    return function.mean(axis=(0, 1)), predicted


def few_draws(view: View) -> dict[str, np.ndarray]:
    """Every k-th draw of all variables."""
    every = max(1, -(-view.num_chains * view.num_draws // DRAWS))
    return {name: view.values(name)[:, ::every] for name in view.variables}
