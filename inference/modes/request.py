"""What a method is asked for, and what it hands back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from onebasin.base.progress import ProgressBars
from onebasin.models.target import Target

from .settings import LaplaceSettings, OptimizeSettings, PathfinderSettings

Settings = OptimizeSettings | LaplaceSettings | PathfinderSettings


@dataclass(frozen=True)
class ModeRequest[S: Settings]:
    """What an engine is asked for.

    Attributes
    ----------
    target, settings, seed
        As of `laplace`.
    bars : ProgressBars
        Where progress is shown.
    """

    target: Target
    settings: S
    seed: int
    bars: ProgressBars


@dataclass(frozen=True)
class Approximation:
    """What came of it.

    Attributes
    ----------
    draws : dict
        Variable name to array (1, draw, ...); of an optimum, one draw.
    stats : dict
        ``lp`` and, but for an optimum, ``log_q``, (1, draw).
    converged : bool
        Whether an optimiser came to the end that it sought.
    variational : Dataset or None
        The approximation's parameters, or importance ratios of draws that were resampled.
    """

    draws: dict[str, np.ndarray]
    stats: dict[str, np.ndarray]
    converged: bool
    variational: xr.Dataset | None = None
