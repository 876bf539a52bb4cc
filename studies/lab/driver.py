"""Running a study: its cells into the run's folder, one after another or several at once, then its tables.

In this process cells run one after another, since the chains of each already share the cores. With `workers` several
are made at once, each in a process (`lab.cell_process`); with a scheduler's address, the workers of a Dask cluster
start these processes (`lab.cluster`). Either way a cell is made by `lab.making`, and its outcome is read from the
folder.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

from onebasin.base.cores import available_cores
from onebasin.base.errors import ArgumentError, Halted, Interrupted, StudyError, WriteError
from onebasin.base.extras import lacks
from onebasin.base.files.atomic import replacing
from onebasin.base.notices import record
from onebasin.base.table import table_to_markdown
from onebasin.base.time_left import in_words

from .cell_process import Answer, start_cell, write_order
from .cells import Cell, Outcomes
from .folder import Run, write_json
from .making import Broken, MadeCell, Recipe, Say, find_cell, make_cell, persist
from .study import Findings, Study, measure

LOCAL = "local"
LEAST_SECONDS = 60.0
"""Shortest remaining time that is shown."""
Attempt = Callable[[Cell, bytes], Answer]
"""Makes a cell by its order, somewhere, and waits for the answer."""


@dataclass(frozen=True)
class Schedule:
    """The schedule by which cells are made."""

    scheduler: str = LOCAL  # ``local``, or the address of a Dask scheduler.
    workers: int | None = None
    """With ``local``: how many cells are made at once, each on one core. None: as many as the cores suffice for,
    with as many cores each as a cell has chains; where that is one, cells are made in this process."""
    retries: int = 1  # How often a cell is tried again that was broken off by an error.

    def __post_init__(self) -> None:
        if self.scheduler != LOCAL and "://" not in self.scheduler:
            raise StudyError(
                f"`--scheduler` is {self.scheduler!r}; give local, or the address of a Dask scheduler, as "
                "tcp://host:8786."
            )
        if self.workers is not None and self.scheduler != LOCAL:
            raise StudyError(
                "`--workers` does not apply to a scheduler of your own, which has workers: leave it out."
            )
        if self.workers is not None and self.workers < 1:
            raise StudyError(f"`--workers` is {self.workers}; it must be a whole number from 1.")
        if self.retries < 0:
            raise StudyError(f"`--retries` is {self.retries}; it must be a whole number from 0.")


@dataclass
class StudyProgress:
    """Outcomes of a study's cells, and its progress in words."""

    cells: tuple[Cell, ...]
    say: Say
    started: float = field(default_factory=time.monotonic)
    ended: dict[str, MadeCell] = field(default_factory=dict)
    """By key, as they ended."""
    begun: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def name(self, cell: Cell) -> str:
        """A cell's place and label."""
        place = next(at for at, other in enumerate(self.cells, start=1) if other.key == cell.key)
        return f"[{place}/{len(self.cells)}] {cell.label}"

    def hear(self, cell: Cell, word: str, line: str) -> None:
        """Record or say a line of a cell, one of several at work; "" when it begins, which is said once."""
        if word == "records":
            record(f"{cell.key}: {line}")
            return
        with self.lock:
            if line or cell.key not in self.begun:
                self.say(f"{self.name(cell)}: {line}" if line else self.name(cell))
            self.begun.add(cell.key)

    def end(self, made: MadeCell) -> None:
        """Say that a cell has ended, one of several at work."""
        self.ended[made.cell.key] = made
        if made.failure is None and not made.found:
            so_far = f"{len(self.ended)} of {len(self.cells)} cells have ended"
            self.hear(made.cell, "says", f"done in {made.seconds:.0f} s; {so_far}{self.left}")

    @property
    def left(self) -> str:
        """Such as ``, about 25 min left``; empty where it is too little to be said, or nothing is known."""
        seconds = seconds_left(self.cells, self.ended, time.monotonic() - self.started)
        if seconds is None or seconds < LEAST_SECONDS:
            return ""
        return f", about {in_words(seconds)} left"


def seconds_left(
    cells: Sequence[Cell], ended: Mapping[str, MadeCell], passed: float
) -> float | None:
    """Estimate the seconds until all cells have ended; None while nothing is known of any.

    A cell that is still to be made takes as long as others of its problem, method and engine took, or else as all did.
    How many are made at once follows from how much of their time has `passed`.
    """

    def kind(cell: Cell) -> tuple[str, str, str]:
        return cell.problem, cell.method, cell.engine

    prices: dict[tuple[str, str, str], list[float]] = {}
    for made in ended.values():
        if made.failure is None and made.seconds > 0:
            prices.setdefault(kind(made.cell), []).append(made.seconds)
    known = list(chain.from_iterable(prices.values()))
    if not known:
        return None
    work = sum(fmean(prices.get(kind(cell), known)) for cell in cells if cell.key not in ended)
    spent = sum(made.seconds for made in ended.values() if not made.found)
    return work * (passed / spent if spent else 1.0)


def run_cells(
    study: Study,
    config: Any,
    run: Run,
    *,
    progress: bool,
    say: Say,
    schedule: Schedule | None = None,
) -> Outcomes:
    """Run the cells that the folder does not hold yet; `say` is called with a line of text for every cell.

    Failures do not stop a study: of variational fits, of cells that `make` gave up, of cells whose input failed, and of
    those that errors broke off as often as they were tried. `Interrupted` on Ctrl-C, and a `StudyError` where a file
    cannot be written or no worker can make cells, say what is kept.
    """
    cells = study.cells(config)
    seen: list[str] = []
    for cell in cells:
        if cell.key in seen:
            raise ArgumentError(f"`cells` has two cells {cell.key}; give them keys that differ.")
        for key in cell.inputs:
            if key not in seen:
                raise ArgumentError(
                    f"`inputs` of the cell {cell.key} names {key!r}, which is no earlier cell; "
                    f"earlier are: {', '.join(seen) or 'none'}."
                )
        seen.append(cell.key)
    recipe, state = Recipe(study.target, study.make, config, run.files), StudyProgress(cells, say)
    making = _making(recipe, state, schedule or Schedule(), progress=progress)
    try:
        for made in making:
            if made.failure is None:
                run.note(made.cell.key, status="done", seconds=made.seconds)
            else:
                run.note(made.cell.key, status="failed", message=made.failure)
    except KeyboardInterrupt:
        making.close()
        raise Interrupted(f"interrupted; {_what_is_kept(state, run)}") from None
    except (WriteError, Halted) as error:
        kept = _what_is_kept(state, run)
        raise StudyError(f"{str(error).removesuffix('.')}; {kept}.") from error
    every = [state.ended[cell.key] for cell in cells]
    return Outcomes(
        {one.cell: run.files.posterior_path(one.cell.key) for one in every if one.failure is None},
        {one.cell: one.failure for one in every if one.failure is not None},
        tuple(one.cell for one in every if one.broken),
    )


def _making(
    recipe: Recipe, state: StudyProgress, schedule: Schedule, *, progress: bool
) -> Generator[MadeCell]:
    """Make the cells where the schedule says."""
    cells, ended, tries = state.cells, state.ended, schedule.retries + 1
    at_once, cores = _shares(cells, schedule.workers)
    if schedule.scheduler == LOCAL and at_once == 1 and schedule.workers is None:
        yield from _one_by_one(recipe, state, tries, progress=progress)
        return
    for cell in cells:  # no process is started for those that an earlier run has made
        if all(key in ended for key in cell.inputs):
            inputs = [ended[key] for key in cell.inputs]
            made = find_cell(recipe, cell, inputs, partial(state.hear, cell, "says"))
            if made is not None:
                state.end(made)
                yield made
    left = [cell for cell in cells if cell.key not in ended]
    if not left:
        return
    attempts: AbstractContextManager[Attempt]
    if schedule.scheduler == LOCAL:
        attempts = _processes(cores, state)
    else:
        try:
            from .cluster import workers_of
        except ModuleNotFoundError as error:
            if error.name != "distributed":
                raise
            raise StudyError(
                lacks("`--scheduler` (`--workers` are on this machine)", "cluster")
            ) from error
        attempts = workers_of(schedule.scheduler, left, state.say, state.hear)
        at_once = len(left)
    yield from _at_once(recipe, left, state, attempts, at_once, tries)


def _at_once(
    recipe: Recipe,
    cells: Sequence[Cell],
    state: StudyProgress,
    attempts: AbstractContextManager[Attempt],
    at_once: int,
    tries: int,
) -> Generator[MadeCell]:
    """Make cells as soon as their inputs have ended, and yield them in the order in which they end themselves."""
    waiting, at_work, ended = list(cells), set[Future[MadeCell]](), state.ended
    with ThreadPoolExecutor(at_once) as pool, attempts as attempt:

        def make(cell: Cell, inputs: Sequence[MadeCell]) -> MadeCell:
            def once() -> MadeCell:
                match attempt(cell, write_order(recipe, cell, inputs)):
                    case {"made": made}:
                        return MadeCell(cell, **made)
                    case {"broken": message, "trace": trace}:
                        raise Broken(message, trace)
                    case {"unwritten": message, "path": path}:
                        raise WriteError(Path(path), message)
                    case answer:
                        raise Halted(answer["refused"])

            return persist(recipe, cell, inputs, tries, once, partial(state.hear, cell, "says"))

        while waiting or at_work:
            for cell in [cell for cell in waiting if all(key in ended for key in cell.inputs)]:
                if len(at_work) < at_once:
                    waiting.remove(cell)
                    at_work.add(pool.submit(make, cell, [ended[key] for key in cell.inputs]))
            done, at_work = wait(at_work, return_when=FIRST_COMPLETED)
            for made in [future.result() for future in done]:
                state.end(made)
                yield made


@contextmanager
def _processes(cores: int, state: StudyProgress) -> Iterator[Attempt]:
    """Make cells in processes of this machine; those at work end with the block."""
    cancel = threading.Event()

    def attempt(cell: Cell, order: bytes) -> Answer:
        state.hear(cell, "says", "")
        return start_cell(order, cores=cores, cancel=cancel, hear=partial(state.hear, cell))

    try:
        yield attempt
    finally:
        cancel.set()


def _one_by_one(
    recipe: Recipe, state: StudyProgress, tries: int, *, progress: bool
) -> Generator[MadeCell]:
    def say(text: str) -> None:
        state.say(f"    {text}")

    for cell in state.cells:
        state.say(f"{state.name(cell)}{state.left}")
        inputs = [state.ended[key] for key in cell.inputs]
        attempt = partial(make_cell, recipe, cell, inputs, progress=progress, say=say)
        state.ended[cell.key] = made = persist(recipe, cell, inputs, tries, attempt, say)
        yield made


def _shares(cells: tuple[Cell, ...], workers: int | None) -> tuple[int, int]:
    """Choose how many cells are made at once on this machine, and on how many cores each."""
    if workers is not None:
        return workers, 1
    cores = available_cores()
    used = max((min(cores, getattr(cell.settings, "chains", 1)) for cell in cells), default=cores)
    at_once = max(1, min(cores // used, len(cells)))
    return at_once, cores // at_once


def _what_is_kept(state: StudyProgress, run: Run) -> str:
    done = sum(made.failure is None for made in state.ended.values())
    return (
        f"{done} of {len(state.cells)} cells are finished and kept in {run.path}: repeat the "
        "command to resume"
    )


def finish(study: Study, config: Any, run: Run, outcomes: Outcomes) -> Findings:
    """Measure, and write numbers, tables and figures; a `StudyError` at the end if cells failed by an error."""
    try:
        findings = Findings(study.tables, measure(study, config, outcomes))
        write_json(run.findings_path, findings.to_dict())
        with replacing(run.tables_path) as part:
            tables = "\n\n".join(map(table_to_markdown, findings.tables))
            part.write_text(f"{tables}\n", encoding="utf-8")
        for name, figure in study.figures(config, outcomes, findings.frames).items():
            with replacing(run.path / f"{name}.png") as part:
                figure.savefig(part, format="png", dpi=150)
    except Exception as error:
        if not outcomes.broken:
            raise
        raise StudyError(_what_broke(outcomes, run)) from error  # it cannot do without those cells
    if outcomes.broken:
        raise StudyError(_what_broke(outcomes, run))
    return findings


def _what_broke(outcomes: Outcomes, run: Run) -> str:
    first = outcomes.broken[0]
    others = len(outcomes.broken) - 1
    more = f", and {others} more" if others else ""
    return (
        f"{len(outcomes.paths)} cells have a posterior, but {first.key} failed{more}: "
        f"{outcomes.failures[first].removesuffix('.')}; {run.files.folder / first.key}.failed.json says where, and the "
        "same command tries again what failed."
    )
