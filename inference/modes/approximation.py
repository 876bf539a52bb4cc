"""What optimisation, Laplace's approximation and Pathfinder hand back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from onebasin.posteriors import schema

from ..contracts.method import Found


def approximation(
    draws: Mapping[str, np.ndarray],
    stats: Mapping[str, np.ndarray],
    converged: bool,
    variational: xr.Dataset | None = None,
) -> Found:
    """Put the result of a method together.

    Parameters
    ----------
    draws : mapping of str to array (1, draw, ...)
        By variable; of an optimum, one draw.
    stats : mapping of str to array (1, draw)
        ``lp`` and, but for an optimum, ``log_q``.
    converged : bool
        Whether an optimiser came to the end that it sought.
    variational : Dataset, optional
        The approximation's parameters, or importance ratios of draws that were resampled.
    """
    groups = {} if variational is None else {schema.VARIATIONAL: variational}
    return Found(draws, stats, {"converged": int(converged)}, groups)
