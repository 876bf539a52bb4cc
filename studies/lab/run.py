"""Run a study: make its cells in this process or on workers, then write its numbers, tables and figures.

A run's folder contains ``posteriors/KEY.nc``, `run.json` (settings, versions, and the status of each cell),
`results.json` (the recorded frames), `tables.md` and figures. Every file is written completely or not at all.
`run.json` records a mark for each cell: a fingerprint of everything that determines its draws, including the marks of
its inputs. A repeated run therefore makes only missing and changed cells.

An error before a cell is made, such as missing data or no CmdStan, stops the study. An `InferenceError` while a cell is
made is its result. After any other error, the cell is tried again.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
import shlex
import shutil
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from onebasin import inference
from onebasin.base import errors, machine, run_log
from onebasin.base.errors import StudyError, TaskError, WriteError
from onebasin.base.files import netcdf, writing
from onebasin.base.processes.tasks import run_tasks
from onebasin.base.table import table_to_markdown
from onebasin.base.text import json_safe, json_text
from onebasin.inference.contracts.method import Method, as_dict
from onebasin.inference.infer import as_word
from onebasin.inference.runs import checkpoint, posterior
from onebasin.posteriors import schema
from onebasin.posteriors.open import open_posterior

from .study import Cell, Context, Frames, Outcomes, Study, frame_of, tables_of

if TYPE_CHECKING:
    import xarray as xr

RESULTS = Path(__file__).parents[1] / "results"  # Folder of the recorded results.
Say = Callable[[str], None]


def make_cell(
    study: tuple[Any, Any], config: Any, folder: Path, progress: bool, cell: Cell
) -> float | str:
    """Make the posterior of a cell with the study's `target` and `make`.

    Return the seconds that it took, or the reason why there is no posterior. All machines must share the folder. An
    unexpected error is raised as `TaskDied`, with its traceback as a note. A full disk raises `WriteError`.
    """
    if not folder.is_dir():
        raise TaskError(
            f"A worker cannot find the folder {folder}. Give `--out` a folder that all machines share."
        )
    path, *inputs = (folder / f"{key}.nc" for key in (cell.key, *cell.inputs))
    (target_of, make), chains = study, path.with_suffix(".chains")
    path.unlink(missing_ok=True)
    if not all(file.exists() for file in inputs):
        return "an input failed"
    target = target_of(config, cell)
    start = time.perf_counter()
    try:
        context = Context(target, chains, progress, tuple(map(open_posterior, inputs)))
        tree = make(config, cell, context) if make else sample(cell, context)
        seconds = tree.attrs.setdefault(schema.WALL_TIME, time.perf_counter() - start)
        netcdf.write_tree(tree, path)
    except errors.InferenceError as error:
        return str(error)
    except (WriteError, errors.RunCancelled):
        raise
    except Exception as error:
        broken = errors.TaskDied(errors.error_in_words(error))
        broken.add_note(traceback.format_exc())
        raise broken from error
    checkpoint.remove(chains)
    return float(seconds)


def sample(cell: Cell, context: Context, method: Method | None = None, **how: Any) -> xr.DataTree:
    """Sample the target of a cell with `method`, by default the cell's; pass the arguments `how` to `infer`."""
    assert context.target is not None, f"the cell {cell.key} is sampled"
    method = method or as_word(cell.method, cell.settings)
    how = {**dict.fromkeys(("symmetry", "check_symmetry"), False), "predictive_mb": 0, **how}
    how = {"engine": cell.engine, "seed": cell.seed, "progress": context.progress, **how}
    kept = context.checkpoint if method.keeps else None
    return inference.infer(context.target, method, checkpoint=kept, **how)


def only(
    cells: Sequence[Cell], patterns: Sequence[str] | None, there: Iterable[str] = ()
) -> dict[str, Cell]:
    """Select cells: keys that match a pattern, such as ``split03.*``, their inputs, and the keys in `there`.

    Without patterns, select all cells. A pattern that matches no cell raises `StudyError`.
    """
    keys = [cell.key for cell in cells]
    kept = set(keys if patterns is None else there)
    for pattern in patterns or ():
        if not (named := fnmatch.filter(keys, pattern)):
            raise StudyError(
                f"`--only` is {pattern!r}, which matches none of the {len(keys)} cell(s). Use keys such as "
                f"{', '.join(keys[:3])}. The character * matches any text."
            )
        kept.update(named)
    for cell in reversed(cells):  # Inputs come before the cells that need them.
        if cell.key in kept:
            kept.update(cell.inputs)
    return {cell.key: cell for cell in cells if cell.key in kept}


def mark_of(
    study: Study, config: Any, cell: Cell, marks: Mapping[str, str | None], say: Say
) -> str | None:
    """Hash everything that determines the posterior of a cell; return None if an input has no mark."""
    deciding = {name: getattr(cell, name) for name in ("engine", "method", "settings", "seed")}
    deciding["inputs"] = [marks[key] for key in cell.inputs]
    if not all(deciding["inputs"]):
        return None
    target = study.target(config, cell)
    if target is not None:
        symmetry = schema.encode_symmetry(target.symmetry)
        deciding |= {"symmetry": symmetry, "dims": dict(target.dims)}
    return checkpoint.fingerprint(target, progress=say, **deciding)


def run_cells(
    study: Study,
    config: Any,
    run: Run,
    *,
    progress: bool = False,
    say: Say = lambda line: None,
    scheduler: str | None = None,
    workers: int | None = None,
    retries: int = 1,
    patterns: Sequence[str] | None = None,
) -> Outcomes:
    """Run the cells that are missing from the folder, and call `say` with a line of text for every cell.

    Cells run on the workers of a Dask scheduler or on this machine. `workers` is the number of cells at once, with one
    core each. By default, a cell gets one core per chain, and as many cells run at once as the cores allow. If that is
    one cell, it runs in this process. A cell that stops with an error is tried again up to `retries` times.

    A failed cell does not stop the study. Ctrl-C raises `Interrupted`. If a file cannot be written or no worker can
    make cells, `StudyError` is raised. Both messages say which cells are finished.
    """
    cells = only(study.cells(config), patterns, run.record["cells"])
    there = machine.available_cores()
    chains = (min(there, getattr(cell.settings, "chains", 1)) for cell in cells.values())
    at_once = workers or max(1, min(there // max(chains, default=there), len(cells)))
    here = scheduler is None and workers is None and at_once == 1
    folder = run.posteriors.absolute()
    labels = {key: f"[{n}/{len(cells)}] {c.label}" for n, (key, c) in enumerate(cells.items(), 1)}
    marks: dict[str, str | None] = {}
    failures: dict[str, str] = {}
    done: dict[str, Path] = {}

    def hear(key: str, told: Mapping[str, Any]) -> None:
        if "records" in told:
            run_log.record(f"{key}: {told['records']}")
        elif "again" in told:
            say(f"{labels[key]}: failed, trying again: {told['again']}")
        else:
            say(f"{labels[key]}: {told['says']}" if told else labels[key])

    for key, cell in cells.items():
        mark = marks[key] = mark_of(study, config, cell, marks, say)
        before, path = run.record["cells"].get(key, {}), folder / f"{key}.nc"
        if mark is None or before.get("mark") != mark:
            continue
        if "message" in before:
            failures[key] = before["message"]
            say(f"{labels[key]}: failed before: {failures[key]}")
        elif path.exists() and writing.examine(path) is writing.Seal.SEALED:
            done[key] = path
            say(f"{labels[key]}: already done")
        else:
            run_log.notice(
                f"{path} is missing or damaged (wrong checksum); onebasin makes it again."
            )
    missing = {key: cell for key, cell in cells.items() if key not in {*done, *failures}}
    shared = ((study.target, study.make), config, folder, progress and here)
    making = run_tasks(
        make_cell,
        {key: (*shared, cell) for key, cell in missing.items()},
        scheduler,
        what="The study",
        hear=hear,
        say=say,
        after={key: [k for k in cell.inputs if k in missing] for key, cell in missing.items()},
        at_once=at_once,
        cores=1 if workers else there // at_once,
        here=here,
        retries=retries,
    )
    try:
        for key, found in making:
            note: dict[str, Any] = {"mark": marks[key]}
            if isinstance(found, float):
                done[key] = folder / f"{key}.nc"
                run.note(key, status="done", seconds=found, **note)
                count = f"{len(done) + len(failures)} of {len(cells)} cells finished"
                say(f"{labels[key]}: done in {found:.0f} s; {count}")
                continue
            failures[key] = str(found)
            if isinstance(found, Exception):
                note = {"mark": None, "trace": "".join(getattr(found, "__notes__", ()))}
            if failed := [k for k in cells[key].inputs if k in failures]:
                note = {"mark": None}
                failures[key] = f"made from {failed[0]}, which failed: {failures[failed[0]]}"
            run.note(key, status="failed", message=failures[key], **note)
            say(f"{labels[key]}: failed: {failures[key]}")
    except (KeyboardInterrupt, WriteError, TaskError) as error:
        making.close()
        kept = f"{len(done)} of {len(cells)} cells are finished and kept in {run.path}: repeat the command to resume"
        if isinstance(error, KeyboardInterrupt):
            raise errors.Interrupted(f"interrupted; {kept}") from None
        raise StudyError(f"{str(error).removesuffix('.')}; {kept}.") from error
    paths = {cell: done[key] for key, cell in cells.items() if key in done}
    reasons = {cell: failures[key] for key, cell in cells.items() if key in failures}
    return Outcomes(paths, reasons)


@dataclass
class Run:
    """The folder of a run and the content of its `run.json`."""

    path: Path
    record: dict[str, Any]

    @property
    def posteriors(self) -> Path:
        """Folder of the cells' posteriors."""
        return self.path / "posteriors"

    def note(self, key: str, **fate: Any) -> None:
        """Record the outcome of a cell."""
        self.record["cells"][key] = fate
        self.mark("running")

    def mark(self, status: str, **more: Any) -> None:
        """Record the status of the run."""
        self.record |= {"status": status, **more}
        writing.write_sealed(self.path / "run.json", self.record)


@contextmanager
def opened(
    path: Path | None, *, study: str, config: Any, command: list[str], force: bool = False
) -> Iterator[Run]:
    """Lock the folder of a run and record how the run ended. By default, the folder's name depends on the settings.

    Finished cells are reused. A folder with other files, or with a run of different settings, raises `StudyError`. With
    `force`, the run starts from the beginning instead. `InUse` is raised if another process uses the folder.
    """
    text = f"{study}\n{json.dumps(as_dict(config), sort_keys=True)}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    path = path or Path("runs") / f"{study}-{digest[:10]}"
    if path.exists() and not path.is_dir():
        raise StudyError(f"`--out` is {path}, which is a file. Name a folder.")
    others = path.is_dir() and any(path.glob("[!.]*"))
    earlier = {} if force else writing.read_json(path / "run.json")
    if others and not force and earlier.get("config_hash") != digest:
        raise StudyError(
            f"`--out` is {path}, which contains other files or a run with different settings. Choose another folder, "
            "or add --force to replace these results."
        )
    path.mkdir(parents=True, exist_ok=True)
    record = {
        "study": study,
        "config": as_dict(config),
        "config_hash": digest,
        "command": re.sub(r" --(out[ =]\S+|record\b)", "", shlex.join(command)),
        "versions": posterior.versions(),
        "commit": posterior.commit(),
        "machine": posterior.machine(),
        "cells": earlier.get("cells", {}),
    }
    run = Run(path, record)
    with writing.locked(path, argument="--out"):
        if force:
            shutil.rmtree(run.posteriors, ignore_errors=True)
        run.mark("running")
        run.posteriors.mkdir(exist_ok=True)
        writing.sweep(run.posteriors)
        try:
            yield run
        except BaseException as error:
            stopped = isinstance(error, errors.Interrupted | KeyboardInterrupt)
            why = f"{type(error).__name__}: {error}"
            with suppress(WriteError):  # The first error is more useful.
                run.mark("interrupted" if stopped else "failed", message=why)
            raise
        run.mark("done")


def finish(study: Study, config: Any, run: Run, outcomes: Outcomes) -> Frames:
    """Compute the measures, write numbers, tables and figures, and raise `StudyError` if errors stopped cells."""
    failed = ({"key": c.key, "label": c.label, "reason": w} for c, w in outcomes.failures.items())
    broken = [key for key, cell in run.record["cells"].items() if "trace" in cell]
    forgiven = [Exception] if broken else []  # Measures may need the cells that failed.
    with suppress(*forgiven):
        frames: Frames = {**study.measures(config, outcomes), "failures": frame_of(failed)}
        cells = run.record["cells"].values()
        made = {n: v for n, v in run.record.items() if n not in ("cells", "status")}
        made["seconds"] = sum(float(cell.get("seconds", 0.0)) for cell in cells)
        write_results(run.path / "results.json", made, frames)
        tables = map(table_to_markdown, tables_of(study.tables, frames))
        with writing.replacing(run.path / "tables.md") as part:
            part.write_text("\n\n".join([*tables, ""]), encoding="utf-8")
        for name, figure in study.figures(config, outcomes, frames).items():
            with writing.replacing(run.path / f"{name}.png") as part:
                figure.savefig(part, format="png", dpi=150)
    if broken:
        more = f", and {len(broken) - 1} more" if len(broken) > 1 else ""
        why = run.record["cells"][broken[0]]["message"]
        raise StudyError(
            f"Cells that failed: {broken[0]}{more}. The error of the first cell: {why}. Cells that were completed: "
            f"{len(outcomes.paths)}. See {run.path / 'run.json'} for the traceback. Repeat the command to run the "
            "failed cells again."
        )
    return frames


def write_results(path: Path, made: Mapping[str, Any], frames: Frames) -> None:
    """Write frames and their provenance as JSON: column names once, then one line per row."""
    split = {n: {"columns": list(f), "rows": f.to_numpy().tolist()} for n, f in frames.items()}
    text = json_text(writing.seal_json(json_safe({**made, "frames": split})))
    with writing.replacing(path) as part:
        part.write_text(re.sub(r"\n {10,}|\n {8}(?=\])", "", text) + "\n", encoding="utf-8")


def read_results(path: Path, study: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the provenance and the frames of a study's results, from a file or from the folder of a finished run."""
    file = path / "results.json" if path.is_dir() else path
    made = writing.read_json(file)
    if "frames" not in made:
        raise StudyError(
            f"{path} contains no results to show. Run the study first, or use --out to give the folder of a finished "
            "run."
        )
    if writing.examine_json(made) is writing.Seal.DAMAGED:
        raise StudyError(
            f"The checksum of {file} is wrong, so the results may be damaged. Run the study again."
        )
    if made["study"] != study:
        raise StudyError(
            f"`--out` is {path}, which contains a run of the study {made['study']}. Give the folder of a run of the "
            f"study {study}."
        )
    tables = made.pop("frames").items()
    return made, {n: pd.DataFrame(t["rows"], None, t["columns"], object) for n, t in tables}


def recorded(study: str, size: str = "") -> Path:
    """Return the file of a study's recorded results; give `size` if it is not the default."""
    return RESULTS / f"{'-'.join(filter(None, (study, size)))}.json"
