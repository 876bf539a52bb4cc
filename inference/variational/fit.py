"""What a variational method hands back, and when its optimiser may stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.progress import ProgressBars
from onebasin.models.target import Target

from .settings import AdviSettings

WINDOW = 10
"""Evaluations of the ELBO whose relative changes decide whether to stop."""


@dataclass(frozen=True)
class FitRequest:
    """What ADVI is asked for.

    Attributes
    ----------
    target, family, settings, start, seed
        As of `inference.advi`.
    bars : ProgressBars
        Where progress is shown.
    """

    target: Target
    family: str
    settings: AdviSettings
    start: Mapping[str, Any] | None
    seed: int
    bars: ProgressBars


@dataclass(frozen=True)
class VariationalFit:
    """A fitted approximation.

    Attributes
    ----------
    draws : dict
        Variable name to array (1, draw, ...).
    stats : dict
        ``lp`` and ``log_q``, (1, draw).
    variational : Dataset
        ELBO trace and, where the engine gives them, the parameters.
    converged : bool
        Whether the stopping rule was met.
    gradient_evaluations : int
        Gradients of the log density that the optimiser took.
    attempts : list of dict
        What was tried.
    """

    draws: dict[str, np.ndarray]
    stats: dict[str, np.ndarray]
    variational: xr.Dataset
    converged: bool
    gradient_evaluations: int
    attempts: list[dict[str, Any]] = field(default_factory=list)


def has_settled(elbo: Sequence[float], tolerance: float) -> bool:
    """Whether the mean or the median relative change over the last `WINDOW` evaluations is below `tolerance`.

    The rule of Stan's ADVI (Kucukelbir et al. 2017, section 2.6), with a fixed window.
    """
    if len(elbo) <= WINDOW:
        return False
    last = np.asarray(elbo[-WINDOW - 1 :])
    change = np.abs(np.diff(last) / last[1:])
    return bool(min(change.mean(), np.median(change)) < tolerance)


def elbo_trace(
    iteration: Sequence[int] | np.ndarray, elbo: Sequence[float] | np.ndarray
) -> dict[str, Any]:
    """The trace as variables of the group `variational`."""
    return {
        "iteration": ("evaluation", np.asarray(iteration, dtype=np.int64)),
        "elbo": ("evaluation", np.asarray(elbo, dtype=np.float64)),
    }
