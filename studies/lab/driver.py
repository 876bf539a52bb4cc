"""Running a study: cell after cell into the run's folder, then the conclusion.

Cells run one after another, since the chains of each already share the cores. Every cell has a mark, the fingerprint of
all that decides its draws; it covers the marks of its inputs, so that what depends on a changed posterior is made anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebasin.analysis.report import write
from onebasin.inference.errors import AdviFailed
from onebasin.inference.fingerprint import fingerprint
from onebasin.models import schema
from onebasin.models.errors import WriteError

from ..errors import Interrupted, StudyError
from ..methods import infer
from .cells import Cell, CellFailed, Context, Outcomes
from .folder import Run, write_json
from .study import Findings, Study, conclude, measure, report

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target

Say = Callable[[str], None]


def run_cells(study: Study, config: Any, run: Run, *, progress: bool, say: Say) -> Outcomes:
    """Run the cells that the folder does not hold yet; `say` is called with a line of text for every cell.

    Failures (of variational fits, of cells that `make` gave up, and of cells whose input failed) do not stop a study.

    Raises
    ------
    Interrupted
        On Ctrl-C; what is finished stays in the folder.
    StudyError
        If a file cannot be written, such as on a full disk; the message says what is kept.
    ValueError
        If two cells have one key, or an input is no earlier cell.
    """
    cells = study.cells(config)
    _check_order(cells)
    paths: dict[Cell, Path] = {}
    failures: dict[Cell, str] = {}
    marks: dict[str, str | None] = {}
    for place, cell in enumerate(cells, start=1):
        try:
            say(f"[{place}/{len(cells)}] {cell.label}")
            target = study.target(config, cell)
            own = marks[cell.key] = mark(cell, target, marks, say)
            checkpoint = run.checkpoint_path(cell.key) if own else None
            context = Context(target, checkpoint, progress, say)
            make = partial(_make, study, config, cell, Outcomes(paths, failures), context)
            failure = _failed_input(cell, failures, run, say) or _run_cell(
                make, cell, own, run, say
            )
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted; {_what_is_kept(paths, cells, run)}") from None
        except WriteError as error:
            kept = _what_is_kept(paths, cells, run)
            raise StudyError(f"{str(error).removesuffix('.')}; {kept}.") from error
        if failure is None:
            paths[cell] = run.posterior_path(cell.key)
        else:
            failures[cell] = failure
    return Outcomes(paths, failures)


def _what_is_kept(paths: Mapping[Cell, Path], cells: tuple[Cell, ...], run: Run) -> str:
    return (
        f"{len(paths)} of {len(cells)} cells are finished and kept in {run.path}: the same command "
        "goes on from there"
    )


def finish(study: Study, config: Any, run: Run, outcomes: Outcomes) -> Findings:
    """Measure and conclude, and write findings and report into the folder."""
    frames = measure(study, config, outcomes)
    findings = conclude(study, frames)
    write_json(run.findings_path, findings.to_dict())
    write(report(study, config, outcomes, frames), run.report_path, force=True)
    return findings


def sample(cell: Cell, context: Context) -> xr.DataTree:
    """Sample a cell's target by its method; refuses a cell without one."""
    if context.target is None:
        raise ValueError(
            f"`target` of the cell {cell.key} is None; give it a target, or make its posterior without sampling."
        )
    return infer(
        context.target,
        cell.method,
        engine=cell.engine,
        settings=cell.settings,
        seed=cell.seed,
        checkpoint=context.checkpoint,
        predictive_mb=0,  # studies predict at points of their own
        progress=context.progress,
    )


def mark(
    cell: Cell, target: Target | None, marks: Mapping[str, str | None], say: Say | None = None
) -> str | None:
    """Hash everything that decides a cell's file; `marks` are those of its inputs, by key.

    Where the cell or one of its inputs has no fingerprint, it is None: the cell is made anew whenever it is asked for.
    """
    names = ("engine", "method", "settings", "seed")
    deciding: dict[str, Any] = {name: getattr(cell, name) for name in names}
    inputs = deciding["inputs"] = [marks[key] for key in cell.inputs]
    if None in inputs:
        return None
    if target is not None:
        deciding |= {"symmetry": schema.encode_symmetry(target.symmetry), "dims": dict(target.dims)}
    return fingerprint(target, progress=say, **deciding)


def _check_order(cells: tuple[Cell, ...]) -> None:
    """Refuse cells that would overwrite each other, or that need what is not made yet."""
    seen: list[str] = []
    for cell in cells:
        if cell.key in seen:
            raise ValueError(f"`cells` has two cells {cell.key}; give them keys that differ.")
        for key in cell.inputs:
            if key not in seen:
                raise ValueError(
                    f"`inputs` of the cell {cell.key} names {key!r}, which is no earlier cell; "
                    f"earlier are: {', '.join(seen) or 'none'}."
                )
        seen.append(cell.key)


def _failed_input(cell: Cell, failures: Mapping[Cell, str], run: Run, say: Say) -> str | None:
    """Record and return that an input of a cell failed, if one did."""
    for other, reason in failures.items():
        if other.key in cell.inputs:
            message = f"made from {other.key}, which failed: {reason}"
            say(f"    failed: {message}")
            run.keep_failure(cell.key, None, message)
            return message
    return None


def _run_cell(
    make: Callable[[], xr.DataTree], cell: Cell, own: str | None, run: Run, say: Say
) -> str | None:
    """Make one cell unless it is there; return why it failed, None if it did not."""
    if run.find(cell.key, own):
        say("    there already")
        return None
    if (failure := run.find_failure(cell.key, own)) is not None:
        say(f"    failed before: {failure}")
        return failure
    try:
        tree = make()
    except (AdviFailed, CellFailed) as error:
        say(f"    failed: {error}")
        run.keep_failure(cell.key, own, str(error))
        return str(error)
    run.keep(cell.key, own, tree)
    return None


def _make(
    study: Study, config: Any, cell: Cell, outcomes: Outcomes, context: Context
) -> xr.DataTree:
    """Make a cell's posterior as the study says."""
    if study.make is None:
        return sample(cell, context)
    start = time.perf_counter()
    tree = study.make(config, cell, outcomes, context)
    tree.attrs.setdefault(schema.WALL_TIME, time.perf_counter() - start)
    return tree
