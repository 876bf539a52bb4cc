"""A network's predictions, draw by draw, at so many draws as a picture needs.

Convention: noise is one number a draw, the same at all points. Every point's own distribution is what it should be, and
a band along a line has smooth edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onebasin.posteriors.view import View

DRAWS = 1000
"""Draws of all chains that are taken at most."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """Predictions of one output at some points."""

    mean: Float[np.ndarray, " obs"]  # Mean of the network's output over draws, without noise.
    draws: Float[np.ndarray, "chain draw obs"]  # With noise.


def draw_regression(
    view: View, x: Float[np.ndarray, "obs in"], *, output: int = 0, seed: int = 0
) -> Drawn:
    """Predict one output at some points, with noise, by a posterior of a network with a Gaussian likelihood."""
    from onebasin.models.networks.prediction import predict_with_noise  # here: it loads JAX

    assert view.network is not None
    draws = few_draws(view)
    function, sigma = (
        part[..., output].astype(np.float64) for part in predict_with_noise(view.network, draws, x)
    )
    noise = np.random.default_rng(seed).normal(size=function.shape[:2])
    predicted = function + sigma * noise[..., None]
    return Drawn(function.mean(axis=(0, 1)), predicted)


def few_draws(view: View) -> dict[str, np.ndarray]:
    """Every k-th draw of all variables."""
    every = max(1, -(-view.num_chains * view.num_draws // DRAWS))
    return {name: view.values(name)[:, ::every] for name in view.variables}
