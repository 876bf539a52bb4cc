"""Running a study: cell after cell into the run's folder, then the conclusion.

Cells run one after another, since the chains of each already share the cores.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.report import write
from inference.errors import AdviFailed
from inference.posterior import fingerprint

from .errors import Interrupted
from .methods import infer
from .runs import Run, write_json
from .study import Cell, Findings, Outcomes, Study

if TYPE_CHECKING:
    from models import NetworkTarget

Say = Callable[[str], None]


def run_cells(study: Study, config: Any, run: Run, *, progress: bool, say: Say) -> Outcomes:
    """Run the cells that the folder does not hold yet.

    Parameters
    ----------
    study : Study
        The study.
    config
        Its settings.
    run : Run
        The folder.
    progress : bool
        Whether to show bars.
    say : callable
        Called with a line of text for every cell.

    Returns
    -------
    Outcomes
        Files, and failures of variational fits, which do not stop a study.

    Raises
    ------
    Interrupted
        On Ctrl-C; what is finished stays in the folder.
    """
    cells = study.cells(config)
    paths: dict[Cell, Path] = {}
    failures: dict[Cell, str] = {}
    for place, cell in enumerate(cells, start=1):
        try:
            say(f"[{place}/{len(cells)}] {cell.label}")
            target = study.target(config, cell)
            failure = _run_cell(target, cell, run, progress=progress, say=say)
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted; {len(paths)} of {len(cells)} cells are finished and kept in "
                f"{run.path}: the same command goes on from there"
            ) from None
        if failure is None:
            paths[cell] = run.posterior_path(cell.key)
        else:
            failures[cell] = failure
    return Outcomes(paths, failures)


def finish(study: Study, config: Any, run: Run, outcomes: Outcomes) -> Findings:
    """Conclude, and write findings and report into the folder."""
    findings = study.conclude(config, outcomes)
    write_json(run.findings_path, findings.to_dict())
    write(findings.report, run.report_path, force=True)
    return findings


def _run_cell(
    target: NetworkTarget, cell: Cell, run: Run, *, progress: bool, say: Say
) -> str | None:
    """Run one cell unless it is there; return why it failed, None if it did not."""
    mark = fingerprint(
        target, engine=cell.engine, method=cell.method, settings=cell.settings, seed=cell.seed
    )
    if run.find(cell.key, mark):
        say("    there already")
        return None
    if (failure := run.find_failure(cell.key, mark)) is not None:
        say(f"    failed before: {failure}")
        return failure
    try:
        tree = infer(
            target,
            cell.method,
            engine=cell.engine,
            settings=cell.settings,
            seed=cell.seed,
            checkpoint=run.checkpoint_path(cell.key),
            progress=progress,
        )
    except AdviFailed as error:
        say(f"    failed: {error}")
        run.keep_failure(cell.key, mark, str(error))
        return str(error)
    run.keep(cell.key, mark, tree)
    return None
