"""From a method and a target to a posterior: the only way into inference."""

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import xarray as xr

from onebasin.base.checks import check_path, check_seed, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.progress import ProgressBars
from onebasin.models.target import Target, check_target
from onebasin.posteriors import schema
from onebasin.posteriors.pointwise import LIMIT_MB, check_limit
from onebasin.posteriors.scratch import close_with
from onebasin.posteriors.storable import check_amount

from ..contracts.engines import DEFINED, LIBRARIES, bound, chosen, definition_of, found_at
from ..contracts.method import Found, Job, Method, weighs
from . import declared
from .initial import initial_values
from .origin import origin_of
from .posterior import add_warmup, build
from .spread import spread

WEIGHTS = "onebasin.inference.fits.approximate:weighted"
"""The function that gives an approximation importance weights."""


@checks_arguments
def run(
    target: Target,
    method: Method,
    *,
    engine: str | None = None,
    seed: int = 0,
    start: Any = None,
    adapt_from: Any = None,
    checkpoint: str | Path | None = None,
    client: Any = None,
    predictive_mb: float = LIMIT_MB,
    symmetry: bool = True,
    check_symmetry: bool = True,
    progress: bool | None = None,
) -> xr.DataTree:
    """Check the arguments and the symmetry, or search it; do the method's work, build the posterior, try its draws.

    `infer` says what the arguments mean. The posterior's `wall_time` is that of the work, with what it compiles.
    """
    check_target(target)
    asked = engine
    if engine is None:
        target = bound(target, None)
    engine, implementation = chosen(target, type(method), engine)
    definition, target = definition_of(target, engine), bound(target, engine)
    library = _library(target, asked, engine, definition)
    seed, limit = check_seed(seed), check_limit(predictive_mb)
    kept = None if checkpoint is None else check_path("checkpoint", checkpoint)
    _check_arguments(method, start=start, adapt_from=adapt_from, checkpoint=kept, client=client)
    if start is not None and not method.takes_adaptation:  # a fit starts at one place
        (start,), _ = initial_values(start, 1, seed)
    numbers = 0  # in a draw: of a network it is known before anything is compiled
    if target.is_network:
        network = cast(Any, target).model.network
        numbers = sum(map(math.prod, network.shapes.values()))
    check_amount(*method.amount, numbers=numbers, kept=kept is not None)
    method.check(target, definition)
    searched = None
    if symmetry and not (target.symmetry or target.is_network) and method.gives_posterior:
        with ProgressBars(progress) as bars:
            searched = declared.found_in(target, seed=seed, say=bars.say)
        target = searched.target
    wanted = (check_symmetry or "symmetry" in method.needs) and searched is None
    trial = declared.begin(target, engine=engine, seed=seed, progress=progress, wanted=wanted)
    started = time.perf_counter()
    with ProgressBars(progress) as bars:
        if asked is None and (reason := library.get(schema.ENGINE_NOTE)):
            bars.say(reason.removesuffix("."))
        origin = origin_of(target, definition, bars.say)
        job = Job(target, method, engine, seed, bars, implementation, start, kept)
        job = replace(job, adapt_from=adapt_from, client=client)
        away = None if method.takes_client else client
        if away is not None:
            job = replace(job, bars=cast(Any, None), client=None)
        what = f"The model {target.name!r}"
        (found,) = spread(away, bars, what, _worked, {method.name: (job,)})
    how = {
        "engine": engine,
        **library,
        "method": method.label,
        "settings": method.recorded(),
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
        groups=found.groups,
        predictive_mb=limit,
        folder=found.folder,
    )
    if found.warmup is not None:
        add_warmup(tree, found.warmup)
    if found.filed is not None:
        close_with(tree, found.filed)
    for looked in (searched, trial):
        if looked is not None:
            looked.end(tree)
    if found.finish is not None:
        found.finish(tree)
    return tree


def _worked(bars: ProgressBars, job: Job[Any]) -> Found:
    """Do the method's own work, and weigh its draws."""
    job = replace(job, bars=bars)
    found = job.method.run(job)
    if weighs(job.method, is_network=job.target.is_network):
        found = found_at(WEIGHTS)(job, found)
    return replace(found, proposals=None)


def _library(target: Target, asked: str | None, engine: str, definition: str) -> dict[str, str]:
    """Describe the library that evaluates a Stan program: the interpreter's build, or why it is not the interpreter."""
    if definition != "stan" or engine not in DEFINED:
        return {}
    from onebasin.stan.interpreter.runtime import identity
    from onebasin.stan.program import definition as program_of

    wanted = engine if asked is not None and engine in LIBRARIES else None
    choice = program_of(target).chosen(wanted)
    if choice.accepted is not None:
        return {schema.ENGINE_BUILD: identity()}
    return {schema.ENGINE_NOTE: choice.reason} if choice.reason else {}


def _check_arguments(
    method: Method, *, start: Any, adapt_from: Any, checkpoint: Path | None, client: Any
) -> None:
    """Reject arguments that a method has no use for."""
    if client is not None and getattr(method, "save_warmup", False):
        raise ArgumentError(
            f"`client` is given, but {method.name} with `save_warmup` runs in this process; leave one of them out."
        )
    if client is not None and checkpoint is not None and not method.takes_client:
        raise ArgumentError(
            f"`checkpoint` is given, but {method.name} on a `client` keeps nothing before it ends; leave one of them "
            "out."
        )
    if start is not None and not method.takes_start:
        raise ArgumentError(
            f"`init` gives values, but {method.name} takes none; leave it out, or use `nuts`, `hmc`, `advi` or "
            "`symmetrised_vi`."
        )
    if adapt_from is not None and not method.takes_adaptation:
        raise ArgumentError(
            f"`adapt_from` is given, but {method.name} has no step size and metric to take; use `nuts` or `hmc`."
        )
    if checkpoint is not None and not method.keeps:
        what = f"{method.name} with `save_warmup`" if method.resumes else method.name
        raise ArgumentError(
            f"`checkpoint` is {str(checkpoint)!r}, but {what} keeps nothing before it ends; leave it out."
        )
