"""What optimisation, Laplace's approximation and Pathfinder share: one request, one result, one posterior of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr

from onebasin.models.checks import check_seed
from onebasin.models.storable import check_amount
from onebasin.models.target import Target, check_target

from ..engine import Engine, engine_named
from ..posterior import build
from ..progress import ProgressBars
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


def approximate[S: Settings](
    target: Target,
    method: str,
    ask: Callable[[Engine], Callable[[ModeRequest[S]], Approximation]],
    *,
    engine: str,
    settings: S,
    seed: int,
    progress: bool,
) -> xr.DataTree:
    """Run a method; `optimize`, `laplace` and `pathfinder` say what the arguments mean."""
    run = ask(engine_named(engine))
    seed = check_seed(seed)
    check_target(target)
    check_amount(1, 1 if isinstance(settings, OptimizeSettings) else settings.draws)
    started = time.perf_counter()
    with ProgressBars(progress) as bars:
        found = run(ModeRequest(target, settings, seed, bars))
    how: dict[str, Any] = {
        "engine": engine,
        "method": method,
        "settings": asdict(settings),
        "seed": seed,
        "wall_time": time.perf_counter() - started,
        "converged": int(found.converged),
    }
    return build(target, found.draws, found.stats, how, variational=found.variational)
