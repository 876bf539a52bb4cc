"""What optimisation, Laplace's approximation and Pathfinder share: from a request to a posterior."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr

from onebasin.models.target import Target

from ..engines.engine import Engine, engine_named
from ..runs.run import Found, Job, run
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

    def work(job: Job) -> Found:
        found = ask(engine_named(job.engine))(ModeRequest(target, settings, job.seed, job.bars))
        how = {"converged": int(found.converged)}
        return Found(found.draws, found.stats, how, found.variational)

    return run(
        target,
        method,
        work,
        engine=engine,
        settings=settings,
        amount=(1, 1 if isinstance(settings, OptimizeSettings) else settings.draws),
        seed=seed,
        predictive_mb=predictive_mb,
        check_symmetry=check_symmetry,
        progress=progress,
    )
