"""From a method and a target to a posterior: the only way into inference.

Independent parts of the work run in this process, or each in a process of a Dask cluster. The symmetry of the target is
searched where none is declared, and checked before the run and at its draws. Derived quantities may move along with it:
responsibilities, shares, what a component is computed of. They are computed at random points and at the same points
moved. Where a quantity changes and comes out as one of the ways to move it says, it belongs to the block; without it,
aligned draws would be of parameters alone.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, override

import numpy as np
import xarray as xr

from onebasin.base.checks import check_path, check_seed, checks_arguments
from onebasin.base.errors import ArgumentError, OnebasinError, StanError
from onebasin.base.precision import precision
from onebasin.base.processes.task_process import tell
from onebasin.base.processes.tasks import run_tasks, succeeded
from onebasin.base.progress import ChainBar, ProgressBars
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
from .origin import origin_of
from .posterior import add_warmup, build

TELL_SECONDS = 0.5  # Least time between two reports of a chain.


def spread[T](
    client: Any,
    bars: ProgressBars,
    what: str,
    function: Callable[..., T],
    tasks: Mapping[str, tuple[Any, ...]],
) -> Iterator[T]:
    """Call a function on bars and each of several tuples of arguments, and yield the results: here in order.

    With a `client`, a cluster or the address of its scheduler, they are sent to its workers and yielded as they end;
    `what` is the name for what is sent in an error.

    Raises
    ------
    TaskError
        If something cannot be sent, a worker has other versions, or a task's process was killed twice.
    """
    if client is None:
        yield from (function(bars, *arguments) for arguments in tasks.values())
        return
    sent = {key: (function, *arguments) for key, arguments in tasks.items()}
    hear = _Hearing(bars)
    for key, found in run_tasks(_called, sent, client, what=what, hear=hear, say=bars.say):
        yield succeeded(key, found)


def _called[T](function: Callable[..., T], *arguments: Any) -> T:
    return function(_TellingBars(), *arguments)


class _TellingBars(ProgressBars):
    """Tells progress to whoever started this process."""

    def __init__(self) -> None:
        super().__init__(False)
        self._told_at = 0.0

    @override
    def add(self, description: str, total: int, *, timed: bool = True) -> int:
        bar = super().add(description, total, timed=timed)
        tell(bar=bar, adds=description, total=total, timed=timed)
        return bar

    @override
    def move(self, bar: int, completed: int, description: str | None = None) -> None:
        if time.monotonic() - self._told_at >= TELL_SECONDS:
            self._told_at = time.monotonic()
            tell(bar=bar, done=completed, description=description)

    @override
    def chain(self, number: int, *, warmup: int, draws: int, done: int = 0) -> ChainBar:
        return _TellingBar(self, number, warmup, draws, done)

    @override
    def say(self, message: str) -> None:
        tell(says=message)


class _TellingBar(ChainBar):
    """Tells how far a chain is, now and then."""

    moving = True

    def __init__(
        self, bars: ProgressBars, number: int, warmup: int, draws: int, done: int = 0
    ) -> None:
        self._number, self._told_at = number, time.monotonic()
        tell(chain=number, done=done, warmup=warmup, draws=draws)

    @override
    def show(self, done: int, **facts: float | None) -> None:
        if time.monotonic() - self._told_at >= TELL_SECONDS:
            self._told_at = time.monotonic()
            tell(chain=self._number, done=done, facts=facts)

    @override
    def end(self, seconds: float, **facts: float | None) -> None:
        tell(chain=self._number, seconds=seconds, facts=facts)


class _Hearing:
    """Shows what processes tell of their work."""

    def __init__(self, bars: ProgressBars) -> None:
        self._bars, self._shown = bars, dict[int, ChainBar]()
        self._added: dict[tuple[str, int], int] = {}

    def __call__(self, key: str, told: Mapping[str, Any]) -> None:
        match dict(told):
            case {"chain": number, "done": done, "warmup": warmup, "draws": draws}:
                if number in self._shown:  # a second try
                    self._shown[number].show(done)
                else:
                    bars = self._bars
                    self._shown[number] = bars.chain(number, warmup=warmup, draws=draws, done=done)
            case {"chain": number, "seconds": seconds, "facts": facts}:
                self._shown[number].end(seconds, **facts)
            case {"chain": number, "done": done, "facts": facts}:
                self._shown[number].show(done, **facts)
            case {"bar": bar, "adds": words, "total": total, "timed": timed}:
                self._added[key, bar] = self._bars.add(words, total, timed=timed)
            case {"bar": bar, "done": done, "description": words}:
                self._bars.move(self._added[key, bar], done, words)
            case {"again": why}:
                self._bars.say(f"{key}: {why}; tried again")
            case {"says": line}:
                self._bars.say(line)
            case {"records": line}:
                record(line)


DERIVED_AT = 4  # At which derived quantities are computed.


def with_derived(symmetry: Symmetry, density: ValueDensity, seed: int) -> Symmetry:
    """Return blocks that also move the derived quantities that follow; those of random numbers cannot be told."""
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
"""Random points at which the density is compared before a run, and draws after it."""


@dataclass(frozen=True)
class SymmetryTrial:
    """The state that a run needs to try its target's symmetry twice; made by `begin`."""

    target: Target  # what is inferred
    density: ValueDensity  # its log density, taken and compiled once for both times
    seed: int  # of points and elements
    before: Evidence  # what was found before the run

    def at_draws(self, tree: xr.DataTree) -> Evidence:
        """Try the draws too, which are valid whatever comes of it; what came of both.

        So a symmetry that they contradict is not an error here: the evidence says that it is refuted, and by what.
        """
        before = self.before
        try:
            with precision("float64"):
                found = hold(self.target, self.density, points=DRAWS, seed=self.seed, draws=tree)
            return before.joined(found.evidence)
        except SymmetryError as error:
            return replace(before, refuted=error.reason)
        except Exception as error:  # whatever it is, it is no reason to lose draws
            words = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            return replace(before, skipped=(*before.skipped, f"trying draws failed ({words})"))

    def end(self, tree: xr.DataTree) -> None:
        """Keep with a posterior what came of trying its draws; where they contradict the symmetry, say so."""
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
    """Hold a target's declared symmetry against its log density, before a run and in double precision.

    The seed decides points and elements; the run's draws do not depend on what is tried here. With `derived`, derived
    quantities that follow are added to the symmetry. Return None if nothing is to be tried: it is not `wanted`,
    there is no symmetry, or it is that of a network, which its architecture has.
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

    target: Target  # with the live symmetry that was found, if any
    trial: SymmetryTrial | None = None  # tries it at the draws
    said: str = ""  # JSON of the result; empty if no search ran

    def end(self, tree: xr.DataTree) -> None:
        """Keep the result with a posterior, and try the draws."""
        if self.trial is not None:
            self.trial.end(tree)
        if self.said:
            tree.attrs[schema.SYMMETRY_FOUND] = self.said


def found_in(target: Target, *, seed: int, say: Callable[[str], None]) -> SearchedSymmetry:
    """Search the symmetry of a target that declares none; an error does not stop the run that follows.

    `say` is called with a line of text before something that takes long. What is found is reported in a notice.
    """
    try:
        return _searched(target, seed, say)
    except Exception as error:
        words = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".:")
        notice(f"symmetries were not searched: {words}")
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
    assert trial is not None  # there is a symmetry, of no network
    before = {name for block in found.symmetry for name in block.variables}
    along = [n for b in trial.target.symmetry for n in b.variables if n not in before]
    if along:
        notice(f"Moved along: {', '.join(along)}.")
    return SearchedSymmetry(trial.target, trial, found.to_json())


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
