"""Markov chains whose correlation is known."""

import numpy as np
from scipy.signal import lfilter

from onebasin.analysis.compare.thinning import thin
from onebasin.posteriors.draws import Draws


def autoregression(rng, rho, shape):
    """Stationary AR(1) chains (chain, draw, param) of unit variance; `rho` may be one a parameter."""
    rhos = np.broadcast_to(rho, shape[-1])
    noise = rng.normal(size=shape) * np.sqrt(1 - rhos**2)
    noise[:, 0] /= np.sqrt(1 - rhos**2)
    columns = [lfilter([1], [1, -r], noise[..., j], axis=1) for j, r in enumerate(rhos)]
    return np.stack(columns, axis=-1)


def independent_draws(values, **options):
    """Draws (chain, draw, param) that may be taken for independent."""
    return thin(Draws(("",) * values.shape[2], values), **options)
