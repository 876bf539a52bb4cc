"""Running a study: its cells into a folder, here or in processes anywhere, then its numbers, tables and figures.

The folder holds ``posteriors/KEY.nc``, `run.json` (settings, versions, what became of each cell), `results.json` (the
frames, as they are recorded), `tables.md` and figures. Every file appears whole or not at all. `run.json` has the mark
of each cell, the fingerprint of all that decides its draws, the marks of its inputs included: so a run that is repeated
makes what is missing or changed.

An error before the making (data that are missing, no CmdStan) stops the study. An `InferenceError` of the making is a
result; any other error breaks the making off, which is tried again.
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
from onebasin.base import cores, errors, run_log
from onebasin.base.errors import StudyError, TaskError, WriteError
from onebasin.base.files import netcdf, writing
from onebasin.base.processes.tasks import run_tasks
from onebasin.base.table import table_to_markdown
from onebasin.base.text import json_safe, json_text
from onebasin.inference.contracts.method import Method, as_dict
from onebasin.inference.methods import as_word
from onebasin.inference.runs import checkpoint, posterior
from onebasin.posteriors import schema

from .study import Cell, Context, Frames, Outcomes, Study, frame_of, tables_of

if TYPE_CHECKING:
    import xarray as xr

RESULTS = Path(__file__).parents[1] / "results"  # The folder of recorded results.
Say = Callable[[str], None]


def make_cell(
    study: tuple[Any, Any], config: Any, folder: Path, progress: bool, cell: Cell
) -> float | str:
    """Make a cell's posterior by the study's `target` and `make`, and return its seconds; or why there is none.

    All machines see the folder. An error that interrupts the run is raised as `TaskDied`, with
    a note of where it happened; a full disk raises `WriteError`.
    """
    if not folder.is_dir():
        raise TaskError(
            f"A worker does not see {folder}; give `--out` a folder that all machines share."
        )
    path, *inputs = (folder / f"{key}.nc" for key in (cell.key, *cell.inputs))
    (target_of, make), chains = study, path.with_suffix(".chains")
    path.unlink(missing_ok=True)
    if not all(file.exists() for file in inputs):
        return "an input failed"
    target = target_of(config, cell)
    start = time.perf_counter()
    try:
        context = Context(target, chains, progress, tuple(map(posterior.open_posterior, inputs)))
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
    """Sample a cell's target by its own method, or by the one given; `how` are arguments of `infer`."""
    assert context.target is not None, f"the cell {cell.key} is sampled"
    method = method or as_word(cell.method, cell.settings)
    how = {**dict.fromkeys(("symmetry", "check_symmetry"), False), "predictive_mb": 0, **how}
    how = {"engine": cell.engine, "seed": cell.seed, "progress": context.progress, **how}
    kept = context.checkpoint if method.keeps else None
    return inference.infer(context.target, method, checkpoint=kept, **how)


def only(
    cells: Sequence[Cell], patterns: Sequence[str] | None, there: Iterable[str] = ()
) -> dict[str, Cell]:
    """Take the cells whose keys match a pattern, such as ``split03.*``, their inputs, and those that were made before.

    Without patterns all are taken. A pattern that matches no cell is a `StudyError`.
    """
    keys = [cell.key for cell in cells]
    kept = set(keys if patterns is None else there)
    for pattern in patterns or ():
        if not (named := fnmatch.filter(keys, pattern)):
            raise StudyError(
                f"`--only` is {pattern!r}, which is the key of none of the {len(keys)} cells: name some such as "
                f"{', '.join(keys[:3])}; * stands for any text."
            )
        kept.update(named)
    for cell in reversed(cells):  # inputs come before the cells that need them
        if cell.key in kept:
            kept.update(cell.inputs)
    return {cell.key: cell for cell in cells if cell.key in kept}


def mark_of(
    study: Study, config: Any, cell: Cell, marks: Mapping[str, str | None], say: Say
) -> str | None:
    """Hash all that decides a cell's posterior, with the marks of its inputs; None if that cannot be known."""
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
    """Run the cells that the folder does not hold yet, and call `say` with a line of text for every cell.

    They are made on the workers of a Dask scheduler, or on this machine: `workers` at once, on one core each; by
    default as many as the cores suffice for, with as many cores each as a cell has chains. Where that is one, cells are
    made in this process. A cell that an error breaks off is tried `retries` times again.

    Cells that fail do not stop a study. `Interrupted` on Ctrl-C, and a `StudyError` where a file cannot be written or
    no worker can make cells, say what is kept.
    """
    cells = only(study.cells(config), patterns, run.record["cells"])
    there = cores.available_cores()
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
            say(f"{labels[key]}: failed, and is tried again: {told['again']}")
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
            say(f"{labels[key]}: there already")
        else:
            run_log.notice(f"{path} is missing or damaged (its checksum): it is made again.")
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
                count = f"{len(done) + len(failures)} of {len(cells)} cells have ended"
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
    """A run's folder, and what its `run.json` says."""

    path: Path
    record: dict[str, Any]

    @property
    def posteriors(self) -> Path:
        """The folder of the cells' posteriors."""
        return self.path / "posteriors"

    def note(self, key: str, **fate: Any) -> None:
        """Record what became of a cell."""
        self.record["cells"][key] = fate
        self.mark("running")

    def mark(self, status: str, **more: Any) -> None:
        """Record how far the run is."""
        self.record |= {"status": status, **more}
        writing.write_sealed(self.path / "run.json", self.record)


@contextmanager
def opened(
    path: Path | None, *, study: str, config: Any, command: list[str], force: bool = False
) -> Iterator[Run]:
    """Hold a run's folder, by default one that is named by the settings, and record how the run ended.

    The cells that are there are taken. A folder that holds something else, or a run with other settings, is a
    `StudyError` unless `force` is true: then the run begins again. `InUse` if another process holds the folder.
    """
    text = f"{study}\n{json.dumps(as_dict(config), sort_keys=True)}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    path = path or Path("runs") / f"{study}-{digest[:10]}"
    if path.exists() and not path.is_dir():
        raise StudyError(f"`--out` is {path}, which is a file: name a folder.")
    others = path.is_dir() and any(path.glob("[!.]*"))
    earlier = {} if force else writing.read_json(path / "run.json")
    if others and not force and earlier.get("config_hash") != digest:
        raise StudyError(
            f"`--out` is {path}, which holds something else, or a run with other settings: name another folder, or "
            "replace what is there with --force."
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
            with suppress(WriteError):  # what broke the run off tells more
                run.mark("interrupted" if stopped else "failed", message=why)
            raise
        run.mark("done")


def finish(study: Study, config: Any, run: Run, outcomes: Outcomes) -> Frames:
    """Measure, and write numbers, tables and figures; a `StudyError` at the end if cells failed by an error."""
    failed = ({"key": c.key, "label": c.label, "reason": w} for c, w in outcomes.failures.items())
    broken = [key for key, cell in run.record["cells"].items() if "trace" in cell]
    forgiven = [Exception] if broken else []  # measures may need the cells that failed
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
            f"{len(outcomes.paths)} cells have a posterior, but {broken[0]} failed{more}: {why}; "
            f"{run.path / 'run.json'} says where, and the same command tries again what failed."
        )
    return frames


def write_results(path: Path, made: Mapping[str, Any], frames: Frames) -> None:
    """Write frames, and how they were made: the names of the columns once, and one line per row."""
    split = {n: {"columns": list(f), "rows": f.to_numpy().tolist()} for n, f in frames.items()}
    text = json_text(writing.seal_json(json_safe({**made, "frames": split})))
    with writing.replacing(path) as part:
        part.write_text(re.sub(r"\n {10,}|\n {8}(?=\])", "", text) + "\n", encoding="utf-8")


def read_results(path: Path, study: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read how results of a study were made, and its frames; from a file, or from the folder of a finished run."""
    file = path / "results.json" if path.is_dir() else path
    made = writing.read_json(file)
    if "frames" not in made:
        raise StudyError(
            f"`--show` finds no numbers in {path}: run the study, or give a run's folder with --out."
        )
    if writing.examine_json(made) is writing.Seal.DAMAGED:
        raise StudyError(f"`--show` reads {file}, whose checksum is wrong: restore the file.")
    if made["study"] != study:
        raise StudyError(
            f"`--out` is {path}, which holds a run of the study {made['study']}: name one of {study}."
        )
    tables = made.pop("frames").items()
    return made, {n: pd.DataFrame(t["rows"], None, t["columns"], object) for n, t in tables}


def recorded(study: str, size: str = "") -> Path:
    """Return the file of a study's recorded results; `size` where it is not of the default size."""
    return RESULTS / f"{'-'.join(filter(None, (study, size)))}.json"
