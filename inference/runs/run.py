"""From a call of a method to a posterior: what every method on an engine does before and after its own work."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr

from onebasin.base.checks import check_seed
from onebasin.base.progress import ProgressBars
from onebasin.models.target import Target, check_target
from onebasin.posteriors.pointwise import Values, check_limit
from onebasin.posteriors.scratch import close_with
from onebasin.posteriors.storable import check_amount

from ..definition import definition_of, engine_for
from ..engines.engine import engine_named
from . import declared
from .origin import origin_of
from .posterior import build


@dataclass(frozen=True)
class Job:
    """What a method's own work is given.

    Attributes
    ----------
    engine : str
        Who does it.
    seed : int
        Of everything that is random.
    bars : ProgressBars
        Where progress is shown.
    """

    engine: str
    seed: int
    bars: ProgressBars


@dataclass(frozen=True)
class Found:
    """What a method's own work comes to.

    Attributes
    ----------
    draws : mapping
        Variable name to array (chain, draw, ...), in memory or on disk.
    stats : mapping
        Statistic name to array (chain, draw), likewise.
    attributes : mapping
        What the posterior says of this method, beside what it says of every one.
    variational : Dataset or None
        The group of that name.
    modes : Dataset or None
        The group of that name.
    filed : DataTree or None
        What holds the arrays that are on disk; it is closed with the posterior.
    folder : Path or None
        In which more can be laid down.
    """

    draws: Mapping[str, Values]
    stats: Mapping[str, Values]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    variational: xr.Dataset | None = None
    modes: xr.Dataset | None = None
    filed: xr.DataTree | None = None
    folder: Path | None = None


def run(
    target: Target,
    method: str,
    work: Callable[[Job], Found],
    *,
    engine: str | None,
    settings: Any,
    amount: tuple[int, int],
    seed: int,
    predictive_mb: float,
    check_symmetry: bool,
    progress: bool,
) -> xr.DataTree:
    """Hold the declared symmetry against the density, do the work, put the posterior together, and try its draws.

    Parameters
    ----------
    target, engine, settings, seed, predictive_mb, check_symmetry, progress
        As `contract` says.
    method : str
        What the posterior's attribute `method` says.
    work : callable
        What is the method's own.
    amount : tuple of int
        Chains, and draws of each.

    Returns
    -------
    DataTree
        The posterior; its `wall_time` is that of the work, with what it compiles.
    """
    check_target(target)
    engine = engine_for(target, engine)
    engine_named(engine)  # refuses what is none
    definition = definition_of(target, engine)
    seed, limit = check_seed(seed), check_limit(predictive_mb)
    check_amount(*amount)
    trial = declared.begin(
        target, engine=definition, seed=seed, progress=progress, wanted=check_symmetry
    )
    started = time.perf_counter()
    with ProgressBars(progress) as bars:
        origin = origin_of(target, definition, bars.say)
        found = work(Job(engine, seed, bars))
    how = {
        "engine": engine,
        "method": method,
        "settings": asdict(settings),
        "seed": seed,
        "wall_time": time.perf_counter() - started,
        **found.attributes,
    }
    tree = build(
        target,
        found.draws,
        found.stats,
        how,
        origin=origin,
        variational=found.variational,
        modes=found.modes,
        predictive_mb=limit,
        folder=found.folder,
    )
    if found.filed is not None:
        close_with(tree, found.filed)
    if trial is not None:
        trial.end(tree)
    return tree
