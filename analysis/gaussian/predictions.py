"""Log likelihoods and predictions of a Gaussian's draws, as every method writes them, where there is a network."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from onebasin.posteriors.network_groups import network_groups
from onebasin.posteriors.view import View


def prediction_groups(
    source: View, draws: Mapping[str, np.ndarray], *, seed: int, limit_mb: float
) -> dict[str, xr.Dataset]:
    """Groups beside draws of a network's weights.

    Parameters
    ----------
    source : View
        The posterior that the Gaussian is of; says which network it is, and keeps its data.
    draws : mapping of str to array (chain, draw, ...)
        The Gaussian's.
    seed : int
        Of the draws.
    limit_mb : float
        Megabytes that the groups may take; see `posteriors.pointwise`.

    Returns
    -------
    dict
        None where the source is of no network or keeps no data, or the draws lack a variable.
    """
    model = source.network
    if model is None or source.x is None or source.y is None:
        return {}
    needed = [*model.network.shapes, *(["sigma"] if model.infers_noise else [])]
    if not set(needed) <= set(draws):
        return {}
    groups = network_groups(model, draws, source.x, source.y, seed=seed, limit_mb=limit_mb)
    return {name: group.to_dataset() for name, group in (groups or {}).items()}
