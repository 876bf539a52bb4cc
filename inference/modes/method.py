"""What optimisation, Laplace's approximation and Pathfinder share: from a request to a posterior."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import xarray as xr

from onebasin.models.checks import check_seed
from onebasin.models.pointwise import check_limit
from onebasin.models.storable import check_amount
from onebasin.models.target import Target, check_target

from .. import declared
from ..engine import Engine, engine_for, engine_named
from ..origin import origin_of
from ..posterior import build
from ..progress import ProgressBars
from .request import Approximation, ModeRequest, Settings
from .settings import OptimizeSettings


def approximate[S: Settings](
    target: Target,
    method: str,
    ask: Callable[[Engine], Callable[[ModeRequest[S]], Approximation]],
    *,
    engine: str | None,
    settings: S,
    seed: int,
    predictive_mb: float,
    check_symmetry: bool,
    progress: bool,
) -> xr.DataTree:
    """Run a method; `optimize`, `laplace` and `pathfinder` say what the arguments mean."""
    check_target(target)
    engine = engine_for(target, engine)
    run = ask(engine_named(engine))
    seed, limit = check_seed(seed), check_limit(predictive_mb)
    check_amount(1, 1 if isinstance(settings, OptimizeSettings) else settings.draws)
    trial = declared.begin(
        target, engine=engine, seed=seed, progress=progress, wanted=check_symmetry
    )
    started = time.perf_counter()
    with ProgressBars(progress) as bars:
        origin = origin_of(target, engine, bars.say)
        found = run(ModeRequest(target, settings, seed, bars))
    how: dict[str, Any] = {
        "engine": engine,
        "method": method,
        "settings": asdict(settings),
        "seed": seed,
        "wall_time": time.perf_counter() - started,
        "converged": int(found.converged),
    }
    tree = build(
        target,
        found.draws,
        found.stats,
        how,
        origin=origin,
        variational=found.variational,
        predictive_mb=limit,
    )
    if trial is not None:
        trial.end(tree)
    return tree
