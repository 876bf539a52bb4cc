"""Running a study: its cells into the run's folder, one after another or several at once, then the conclusion.

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
from pathlib import Path
from typing import Any

from onebasin.analysis.page.render import write
from onebasin.base.cores import available_cores
from onebasin.base.errors import ArgumentError, Halted, Interrupted, StudyError, WriteError
from onebasin.base.extras import lacks
from onebasin.base.notices import record

from .cell_files import write_json
from .cell_process import Answer, start_cell, write_order
from .cells import Cell, Outcomes
from .folder import Run
from .making import Broken, MadeCell, Recipe, Say, find_cell, make_cell, persist
from .study import Findings, Study, conclude, measure, report
from .time_left import StudyTimeLeft

LOCAL = "local"
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
        """Refuse what is none."""
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
class _Told:
    """Says which cell lines are about, and how far the study is."""

    cells: tuple[Cell, ...]
    say: Say
    clock: StudyTimeLeft
    ended: int = 0
    begun: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def name(self, cell: Cell) -> str:
        """A cell's place and label."""
        place = next(at for at, other in enumerate(self.cells, start=1) if other.key == cell.key)
        return f"[{place}/{len(self.cells)}] {cell.label}"

    def hear(self, cell: Cell, text: str) -> None:
        """Say a line of a cell, one of several at work; "" when it begins, which is said once."""
        with self.lock:
            if text or cell.key not in self.begun:
                self.say(f"{self.name(cell)}: {text}" if text else self.name(cell))
            self.begun.add(cell.key)

    def pass_on(self, cell: Cell, word: str, line: str) -> None:
        """Say or record a line of the process that makes a cell."""
        if word == "records":
            record(f"{cell.key}: {line}")
        else:
            self.hear(cell, line)

    def end(self, made: MadeCell) -> None:
        """Say that a cell has ended."""
        self.ended += 1
        self.clock.end(made)
        if made.failure is None and not made.found:
            so_far = f"{self.ended} of {len(self.cells)} cells have ended"
            self.hear(made.cell, f"done in {made.seconds:.0f} s; {so_far}{self.left}")

    @property
    def left(self) -> str:
        """The time that the study still takes, where that is worth a word."""
        return self.clock.words(time.monotonic())


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
    recipe = Recipe(study.target, study.make, config, run.files)
    paths: dict[Cell, Path] = {}
    failures: dict[Cell, str] = {}
    broken: list[Cell] = []
    making = _making(recipe, cells, schedule or Schedule(), progress=progress, say=say)
    try:
        for made in making:
            if made.failure is None:
                paths[made.cell] = run.files.posterior_path(made.cell.key)
                run.note(made.cell.key, status="done", seconds=made.seconds)
            else:
                failures[made.cell] = made.failure
                run.note(made.cell.key, status="failed", message=made.failure)
            if made.broken:
                broken.append(made.cell)
    except KeyboardInterrupt:
        making.close()
        raise Interrupted(f"interrupted; {_what_is_kept(paths, cells, run)}") from None
    except (WriteError, Halted) as error:
        kept = _what_is_kept(paths, cells, run)
        raise StudyError(f"{str(error).removesuffix('.')}; {kept}.") from error
    in_order = [cell for cell in cells if cell in paths]
    return Outcomes(
        {cell: paths[cell] for cell in in_order},
        {cell: failures[cell] for cell in cells if cell in failures},
        tuple(broken),
    )


def _making(
    recipe: Recipe, cells: tuple[Cell, ...], schedule: Schedule, *, progress: bool, say: Say
) -> Generator[MadeCell]:
    """Make the cells where the schedule says."""
    told = _Told(cells, say, StudyTimeLeft(cells, time.monotonic()))
    tries = schedule.retries + 1
    at_once, cores = _shares(cells, schedule.workers)
    if schedule.scheduler == LOCAL and at_once == 1 and schedule.workers is None:
        yield from _one_by_one(recipe, cells, tries, told, progress=progress)
        return
    ended: dict[str, MadeCell] = {}
    for cell in cells:  # no process is started for those that an earlier run has made
        if all(key in ended for key in cell.inputs):
            inputs = [ended[key] for key in cell.inputs]
            made = find_cell(recipe, cell, inputs, partial(told.hear, cell))
            if made is not None:
                ended[cell.key] = made
                told.end(made)
                yield made
    left = [cell for cell in cells if cell.key not in ended]
    if not left:
        return
    attempts: AbstractContextManager[Attempt]
    if schedule.scheduler == LOCAL:
        attempts = _processes(cores, told)
    else:
        try:
            from .cluster import workers_of
        except ModuleNotFoundError as error:
            if error.name != "distributed":
                raise
            raise StudyError(
                lacks("`--scheduler` (`--workers` are on this machine)", "cluster")
            ) from error
        attempts = workers_of(schedule.scheduler, left, told.say, told.pass_on)
        at_once = len(left)
    yield from _at_once(recipe, left, ended, attempts, at_once, tries, told)


def _at_once(
    recipe: Recipe,
    cells: Sequence[Cell],
    ended: dict[str, MadeCell],
    attempts: AbstractContextManager[Attempt],
    at_once: int,
    tries: int,
    told: _Told,
) -> Generator[MadeCell]:
    """Make cells as soon as their inputs have `ended`, and yield them in the order in which they end themselves."""
    waiting, at_work = list(cells), set[Future[MadeCell]]()
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

            return persist(recipe, cell, inputs, tries, once, partial(told.hear, cell))

        while waiting or at_work:
            for cell in [cell for cell in waiting if all(key in ended for key in cell.inputs)]:
                if len(at_work) < at_once:
                    waiting.remove(cell)
                    at_work.add(pool.submit(make, cell, [ended[key] for key in cell.inputs]))
            done, at_work = wait(at_work, return_when=FIRST_COMPLETED)
            for made in [future.result() for future in done]:
                ended[made.cell.key] = made
                told.end(made)
                yield made


@contextmanager
def _processes(cores: int, told: _Told) -> Iterator[Attempt]:
    """Make cells in processes of this machine; those at work end with the block."""
    cancel = threading.Event()

    def attempt(cell: Cell, order: bytes) -> Answer:
        told.hear(cell, "")
        return start_cell(order, cores=cores, cancel=cancel, hear=partial(told.pass_on, cell))

    try:
        yield attempt
    finally:
        cancel.set()


def _one_by_one(
    recipe: Recipe, cells: tuple[Cell, ...], tries: int, told: _Told, *, progress: bool
) -> Generator[MadeCell]:
    """Make cells in this process."""
    ended: dict[str, MadeCell] = {}

    def say(text: str) -> None:
        told.say(f"    {text}")

    for cell in cells:
        told.say(f"{told.name(cell)}{told.left}")
        inputs = [ended[key] for key in cell.inputs]

        def attempt(cell: Cell = cell, inputs: list[MadeCell] = inputs) -> MadeCell:
            return make_cell(recipe, cell, inputs, progress=progress, say=say)

        ended[cell.key] = made = persist(recipe, cell, inputs, tries, attempt, say)
        told.clock.end(made)
        yield made


def _shares(cells: tuple[Cell, ...], workers: int | None) -> tuple[int, int]:
    """Choose how many cells are made at once on this machine, and on how many cores each."""
    if workers is not None:
        return workers, 1
    cores = available_cores()
    used = max((min(cores, getattr(cell.settings, "chains", 1)) for cell in cells), default=cores)
    at_once = max(1, min(cores // used, len(cells)))
    return at_once, cores // at_once


def _what_is_kept(paths: Mapping[Cell, Path], cells: tuple[Cell, ...], run: Run) -> str:
    return (
        f"{len(paths)} of {len(cells)} cells are finished and kept in {run.path}: repeat the "
        "command to resume"
    )


def finish(study: Study, config: Any, run: Run, outcomes: Outcomes) -> Findings:
    """Measure and conclude, and write findings and report; a `StudyError` at the end if cells failed by an error."""
    try:
        frames = measure(study, config, outcomes)
        findings = conclude(study, frames)
        write_json(run.findings_path, findings.to_dict())
        write(report(study, config, outcomes, frames), run.report_path, force=True)
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
