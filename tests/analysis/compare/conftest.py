"""Markov chains whose correlation is known."""

import numpy as np
from scipy.signal import lfilter


def autoregression(rng, rho, shape):
    """Stationary AR(1) chains (chain, draw, param) of unit variance; `rho` may be one a parameter."""
    rhos = np.broadcast_to(rho, shape[-1])
    noise = rng.normal(size=shape) * np.sqrt(1 - rhos**2)
    noise[:, 0] /= np.sqrt(1 - rhos**2)
    columns = [lfilter([1], [1, -r], noise[..., j], axis=1) for j, r in enumerate(rhos)]
    return np.stack(columns, axis=-1)
