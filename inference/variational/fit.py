"""What ADVI hands back, and when its optimiser may stop."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from onebasin.posteriors import schema

from ..contracts.method import Found, Job
from .advi import Advi

WINDOW = 10
"""Evaluations of the ELBO whose relative changes decide whether to stop."""


def found_by_advi(
    job: Job[Advi],
    draws: dict[str, np.ndarray],
    stats: dict[str, np.ndarray],
    variational: xr.Dataset,
    *,
    converged: bool,
    gradient_evaluations: int,
    attempts: Sequence[Mapping[str, Any]] = (),
) -> Found:
    """Put a fitted approximation together.

    Parameters
    ----------
    job : Job
        The fit.
    draws : dict of str to array (chain, draw, ...)
        By variable.
    stats : dict of str to array (chain, draw)
        ``lp`` and ``log_q``.
    variational : Dataset
        ELBO trace and, where the engine gives them, the parameters.
    converged : bool
        Whether the stopping rule was met.
    gradient_evaluations : int
        Gradients of the log density that the optimiser took.
    attempts : sequence of mapping
        Each attempt, where an engine makes several.
    """
    how: dict[str, Any] = {
        "gradient_evaluations": gradient_evaluations,
        "converged": int(converged),
        "attempts": list(attempts),
    }
    if job.start is not None:
        how["start"] = _digest(job.start)
    return Found(draws, stats, how, {schema.VARIATIONAL: variational})


def _digest(start: Mapping[str, Any]) -> str:
    """SHA-256 of the given values, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(start):
        values = np.ascontiguousarray(start[name], np.float64)
        digest.update(f"{name}{values.shape}".encode() + values.tobytes())
    return digest.hexdigest()


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
