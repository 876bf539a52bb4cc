"""Run a method on a target and return a posterior. Every inference goes through `run`.

Independent tasks run in this process, or in processes of a Dask cluster. The symmetry of the target is searched for if
none is declared, and checked before the run and at its draws. Derived quantities, such as responsibilities, may move
with the components. They are computed at random points and at the same points after a move. A quantity that moves in
one of the possible ways is added to the block, so that alignment includes it.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import xarray as xr

from onebasin.base.checks import check_path, check_seed, checks_arguments
from onebasin.base.errors import ArgumentError, OnebasinError, StanError
from onebasin.base.precision import precision
from onebasin.base.processes.tasks import run_tasks, succeeded
from onebasin.base.progress import ProgressBars
from onebasin.base.run_log import notice, record
from onebasin.models.symmetry.blocks import Symmetry, wider_blocks
from onebasin.models.symmetry.evidence import Evidence
from onebasin.models.symmetry.group import Group
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
    ValueDensity,
    bound,
    chosen,
    defined_by,
    definition_of,
    density_by,
    found_at,
    weighs,
)
from ..density.symmetry import Derived, SymmetryError, hold, is_close, moving_parts
from .initial import initial_values
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


DERIVED_AT = 4  # Number of points at which derived quantities are computed.


def with_derived(symmetry: Symmetry, density: ValueDensity, seed: int) -> Symmetry:
    """Add derived quantities that move with the components to the blocks; random quantities cannot be tested."""
    if not density.derived:
        return symmetry
    points = density.points(DERIVED_AT, seed)
    derived = Derived.at(density, points, seed)
    known = {n: v for n, v in derived.values.items() if n not in derived.random}
    shapes = {n: v.shape[1:] for n, v in (points | known).items()}
    found: Symmetry = ()
    for block in symmetry:
        part = moving_parts(Group((block,), shapes), np.random.default_rng(seed), DERIVED_AT)[0]
        changed: list[str] = []
        with suppress(StanError):
            there = density.derived_at(block.act(points, *part), seed)
            changed = [name for name, values in known.items() if not is_close(there[name], values)]
        for name in changed:
            if name in block.variables:
                continue
            for wider in wider_blocks(block, name, shapes, changed):
                own = {n: known[n] for n in wider.variables if n in known}
                moved = wider.act(own, *part)
                if all(is_close(moved[n], there[n]) for n in own):
                    block = wider
                    break
        found += (block,)
    return found


POINTS, DRAWS = 5, 8
"""Number of random points at which the symmetry is checked before a run, and of draws after the run."""


@dataclass(frozen=True)
class SymmetryTrial:
    """A check of the target's symmetry, begun before a run by `begin_trial` and continued at the draws."""

    target: Target
    density: ValueDensity  # Log density, compiled once for both checks.
    seed: int  # Seed of points and group elements.
    before: Evidence  # Result before the run.

    def at_draws(self, tree: xr.DataTree) -> Evidence:
        """Check the symmetry at the draws as well, and return the combined evidence.

        The draws are valid in any case, so a contradiction is not an error: the evidence records why it is refuted.
        """
        before = self.before
        try:
            with precision("float64"):
                found = hold(self.target, self.density, points=DRAWS, seed=self.seed, draws=tree)
            return before.joined(found.evidence)
        except SymmetryError as error:
            return replace(before, refuted=error.reason)
        except Exception as error:  # An error here must not lose the draws.
            words = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            return replace(
                before, skipped=(*before.skipped, f"the check at draws failed ({words})")
            )

    def end(self, tree: xr.DataTree) -> None:
        """Record the check in a posterior, and report a contradiction in a notice."""
        found = self.at_draws(tree)
        tree.attrs[schema.SYMMETRY_EVIDENCE] = found.to_json()
        if not found.holds:
            notice(found.sentence)


def begin_trial(
    target: Target,
    *,
    engine: str,
    seed: int,
    progress: bool | None,
    wanted: bool = True,
    derived: bool = False,
) -> SymmetryTrial | None:
    """Check a target's declared symmetry on its log density, before a run and in double precision.

    The run's draws do not depend on the check. With `derived`, derived quantities that move with the components are
    added to the symmetry. Return None if the check is not `wanted`, no symmetry is declared, or the target is a
    network, whose architecture implies its symmetry.
    """
    if not wanted or not target.symmetry or target.is_network:
        return None
    with ProgressBars(progress) as bars, precision("float64"):
        density = density_by(engine, target, bars.say)
        if derived:
            target = replace(target, symmetry=with_derived(target.symmetry, density, seed))
        found = hold(target, density, points=POINTS, seed=seed)
    return SymmetryTrial(target, density, seed, found.evidence)


@dataclass(frozen=True)
class SearchedSymmetry:
    """The result of a search before a run."""

    target: Target  # The target with the symmetry that affects its posterior, if one was found.
    trial: SymmetryTrial | None = None  # Check of this symmetry at the draws.
    said: str = ""  # JSON of the result; empty if the search failed.

    def end(self, tree: xr.DataTree) -> None:
        """Record the result in a posterior, and check it at the draws."""
        if self.trial is not None:
            self.trial.end(tree)
        if self.said:
            tree.attrs[schema.SYMMETRY_FOUND] = self.said


def found_in(target: Target, *, seed: int, say: Callable[[str], None]) -> SearchedSymmetry:
    """Search for the symmetry of a target that declares none, and report it in a notice; errors do not stop the run.

    `say` is called with a line of text before a long computation.
    """
    try:
        return _searched(target, seed, say)
    except Exception as error:
        words = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".:")
        notice(f"the search for symmetries failed: {words}")
        return SearchedSymmetry(target)


def _searched(target: Target, seed: int, say: Callable[[str], None]) -> SearchedSymmetry:
    from ..symmetries.find import find_symmetry

    engine = defined_by(target, None)
    found = find_symmetry(target, engine=engine, seed=seed, progress=say)
    others = [b for b in found.blocks if b.status not in ("live", "harmless")]
    if found.words or others or found.open:
        notice(found.sentence)
    if not found.symmetry:
        return SearchedSymmetry(target, said=found.to_json())
    moved = replace(target, symmetry=found.symmetry)
    try:
        trial = begin_trial(moved, engine=engine, seed=seed, progress=False, derived=True)
    except (OnebasinError, ValueError) as error:
        notice(f"the symmetry that was found is not used: {str(error).rstrip('.')}")
        return SearchedSymmetry(target, said=found.to_json())
    assert trial is not None, "the target has a symmetry and is not a network"
    before = {name for block in found.symmetry for name in block.variables}
    along = [n for b in trial.target.symmetry for n in b.variables if n not in before]
    if along:
        notice(f"Derived quantities that move with the components: {', '.join(along)}.")
    return SearchedSymmetry(trial.target, trial, found.to_json())


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
    searched = None
    if symmetry and not (target.symmetry or target.is_network) and method.gives_posterior:
        with ProgressBars(progress) as bars:
            searched = found_in(target, seed=seed, say=bars.say)
        target = searched.target
    wanted = (check_symmetry or "symmetry" in method.needs) and searched is None
    trial = begin_trial(target, engine=engine, seed=seed, progress=progress, wanted=wanted)
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
