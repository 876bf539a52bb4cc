"""Run a method on a target and return a posterior. Every inference goes through `run`.

Independent tasks run in this process, or in processes of a Dask cluster. The symmetry of the target is searched for if
none is declared, and checked before the run and at its draws. Derived quantities, such as responsibilities, may move
with the components. They are computed at random points and at the same points after a move. A quantity that moves in
one of the possible ways is added to the block, so that alignment includes it.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import xarray as xr

from onebasin.base.checks import check_path, check_seed, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.processes.tasks import run_tasks, succeeded
from onebasin.base.progress import ProgressBars
from onebasin.base.run_log import record
from onebasin.models.target import Target, check_target
from onebasin.posteriors import schema
from onebasin.posteriors.pointwise import LIMIT_MB, check_limit
from onebasin.posteriors.scratch import close_with
from onebasin.posteriors.storable import check_amount

from ..contracts.method import (
    DEFINED,
    LIBRARIES,
    Found,
    Job,
    Method,
    bound,
    chosen,
    definition_of,
    found_at,
    weighs,
)
from ..density.start import initial_values
from ..symmetries.find import SymmetryTrial, begin_trial, found_in
from .posterior import add_warmup, build, origin_of


def spread[T](
    client: Any,
    bars: ProgressBars,
    what: str,
    function: Callable[..., T],
    tasks: Mapping[str, tuple[Any, ...]],
) -> Iterator[T]:
    """Call a function with progress bars and each of several tuples of arguments; yield the results in order.

    With a `client` (a cluster or the address of its scheduler), workers call the function, and results are yielded as
    they finish. Raise TaskError if the arguments, which `what` names in the message, cannot be sent, a worker has
    other package versions, or a task's process was killed twice.
    """
    if client is None:
        yield from (function(bars, *arguments) for arguments in tasks.values())
        return

    def hear(key: str, told: Mapping[str, Any]) -> None:
        match dict(told):
            case {"again": why}:
                bars.say(f"{key}: {why}; trying again")
            case {"says": line}:
                bars.say(line)
            case {"records": line}:
                record(line)

    sent = {key: (function, *arguments) for key, arguments in tasks.items()}
    for key, found in run_tasks(_called, sent, client, what=what, hear=hear, say=bars.say):
        yield succeeded(key, found)


def _called[T](function: Callable[..., T], *arguments: Any) -> T:
    return function(ProgressBars(False), *arguments)  # A worker sends only the lines that it logs.


WEIGHTS = "onebasin.inference.fits.approximate:weighted"
"""The function that computes importance weights of an approximation."""


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
    """Check the arguments, check or find the symmetry, run the method, build the posterior, and check its draws.

    `infer` describes the arguments. The posterior's `wall_time` includes compilation.
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
    if start is not None and not method.takes_adaptation:  # A fit starts at a single point.
        (start,), _ = initial_values(start, 1, seed)
    numbers = 0  # Number of values per draw, if known before compilation.
    if target.is_network:
        network = cast(Any, target).model.network
        numbers = sum(map(math.prod, network.shapes.values()))
    check_amount(*method.amount, numbers=numbers, kept=kept is not None)
    method.check(target, definition)
    if symmetry and not (target.symmetry or target.is_network) and method.gives_posterior:
        with ProgressBars(progress) as bars:
            trial: SymmetryTrial | None = found_in(target, seed=seed, say=bars.say)
    else:
        wanted = check_symmetry or "symmetry" in method.needs
        trial = begin_trial(target, engine=engine, seed=seed, progress=progress, wanted=wanted)
    target = target if trial is None else trial.target
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
    if trial is not None:
        trial.end(tree)
    if found.finish is not None:
        found.finish(tree)
    return tree


def _worked(bars: ProgressBars, job: Job[Any]) -> Found:
    """Run the method, and weight its draws if requested."""
    job = replace(job, bars=bars)
    found = job.method.run(job)
    if weighs(job.method, is_network=job.target.is_network):
        found = found_at(WEIGHTS)(job, found)
    return replace(found, proposals=None)


def _library(target: Target, asked: str | None, engine: str, definition: str) -> dict[str, str]:
    """Return attributes on a Stan program's library: the interpreter's build, or why CmdStan is used."""
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
    """Reject arguments that a method does not support."""
    if client is not None and getattr(method, "save_warmup", False):
        raise ArgumentError(
            f"`client` is given, but {method.name} with `save_warmup` runs only in this process. Omit `client` or "
            "`save_warmup`."
        )
    if client is not None and checkpoint is not None and not method.takes_client:
        raise ArgumentError(
            f"`checkpoint` is given, but {method.name} with a `client` saves nothing before the run ends. Omit "
            "`checkpoint` or `client`."
        )
    if start is not None and not method.takes_start:
        raise ArgumentError(
            f"`init` gives values, but {method.name} does not accept initial values. Omit `init`, or use `nuts`, "
            "`hmc`, `advi` or `symmetrised_vi`."
        )
    if adapt_from is not None and not method.takes_adaptation:
        raise ArgumentError(
            f"`adapt_from` is given, but {method.name} has no step sizes or metrics. Omit `adapt_from`, or use `nuts` "
            "or `hmc`."
        )
    if checkpoint is not None and not method.keeps:
        what = f"{method.name} with `save_warmup`" if method.resumes else method.name
        raise ArgumentError(
            f"`checkpoint` is {str(checkpoint)!r}, but {what} saves nothing before it ends. Omit `checkpoint`."
        )
