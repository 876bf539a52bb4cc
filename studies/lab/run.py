"""Running a study: its cells into a folder, here or in processes anywhere, then its numbers, tables and figures.

The folder holds ``posteriors/KEY.nc`` (or ``KEY.failed.json``), `run.json` (settings, versions, what became of each
cell), `results.json` (the frames, as they are recorded), `tables.md` and figures. Every file appears whole or not at
all. A posterior carries its mark, the fingerprint of all that decides its draws, the marks of its inputs included: so a
run that is repeated makes what is missing or changed.

An error before the making (data that are missing, no CmdStan) stops the study; one of the making is `Broken`, and tried
again; `CellFailed` and `AdviFailed` are results.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onebasin import inference
from onebasin.base.cores import available_cores
from onebasin.base.errors import (
    AdviFailed,
    ArgumentError,
    Interrupted,
    OnebasinError,
    RunCancelled,
    StudyError,
    TaskDied,
    TaskError,
    WriteError,
    error_in_words,
    made_from,
)
from onebasin.base.files.locks import locked
from onebasin.base.files.netcdf import write_tree
from onebasin.base.files.seal import Seal, examine, examine_json, read_json, seal_json, write_sealed
from onebasin.base.files.writing import replacing, sweep
from onebasin.base.jsonable import json_safe, json_text
from onebasin.base.processes.task_process import tell
from onebasin.base.processes.tasks import run_tasks
from onebasin.base.run_log import notice, record
from onebasin.base.table import table_to_markdown
from onebasin.inference.contracts.method import Method, as_dict
from onebasin.inference.methods import as_word
from onebasin.inference.runs.checkpoint import remove
from onebasin.inference.runs.fingerprint import fingerprint
from onebasin.inference.runs.posterior import open_posterior
from onebasin.posteriors import schema

from .cells import Cell, CellFailed, Context, Outcomes
from .frames import Frames, frame_of
from .study import Study
from .tables import tables_of

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target

LOCAL = "local"
MARK = "cell"
"""Attribute of a posterior's file that says which cell it is of."""
RESULTS = Path(__file__).parents[1] / "results"
"""The folder of recorded results."""


class Broken(OnebasinError, RuntimeError):
    """A making that was broken off by an error, which may not come again; `trace` says where in the code."""

    trace = ""


@dataclass(frozen=True)
class Schedule:
    """The place where cells are made."""

    scheduler: str = LOCAL  # ``local``, or the address of a Dask scheduler.
    workers: int | None = None
    """With ``local``: how many cells are made at once, each on one core. None: as many as the cores suffice for,
    with as many cores each as a cell has chains; where that is one, cells are made in this process."""
    retries: int = 1  # How often a cell is tried again that was broken off by an error.

    def __post_init__(self) -> None:
        if self.workers is not None and self.scheduler != LOCAL:
            raise StudyError("`--workers` does not apply with --scheduler, which has workers.")
        for name, least in (("workers", 1), ("retries", 0)):
            number = getattr(self, name)
            if number is not None and number < least:
                raise StudyError(f"`--{name}` is {number}; it must be a whole number from {least}.")

    def shares(self, cells: tuple[Cell, ...]) -> tuple[int, int]:
        """Choose how many cells are made at once on this machine, and on how many cores each."""
        if self.workers is not None:
            return self.workers, 1
        cores = available_cores()
        chains = (min(cores, getattr(cell.settings, "chains", 1)) for cell in cells)
        at_once = max(1, min(cores // max(chains, default=cores), len(cells)))
        return at_once, cores // at_once


class Made(NamedTuple):
    """The result of making a cell."""

    failure: str | None = None  # Why there is no posterior.
    seconds: float = 0.0  # What its posterior took, when it was made.
    found: bool = False  # Whether an earlier run has made it.


@dataclass(frozen=True)
class Recipe:
    """All that the making of every cell takes; it is sent to other processes."""

    target: Callable[[Any, Cell], Target | None]
    make: Callable[[Any, Cell, Context], xr.DataTree] | None
    config: Any  # The study's settings.
    folder: Path  # Of the posteriors; all machines see it.
    progress: bool  # Whether to show bars.

    def path(self, key: str, ending: str = "nc") -> Path:
        """Return the file of a cell's posterior; that with ``failed.json`` says why it has none."""
        return self.folder / f"{key}.{ending}"

    def fail(self, key: str, message: str, mark: str | None, **more: Any) -> Made:
        """Write why a cell has no posterior; without a mark it is tried again by the next run."""
        tell(says=f"failed: {message}")
        self.path(key).unlink(missing_ok=True)
        failed = {MARK: mark, "message": message, **more}
        write_sealed(self.path(key, "failed.json"), failed)
        return Made(message)


def make_cell(recipe: Recipe, cell: Cell) -> Made:
    """Make a cell unless it is there; `Broken` if an error broke it off, `WriteError` where the disk is full."""
    if not recipe.folder.is_dir():
        raise TaskError(
            f"A worker does not see {recipe.folder}; give `--out` a folder that all machines share."
        )
    for key in cell.inputs:
        if not recipe.path(key).exists():
            why = read_json(recipe.path(key, "failed.json")).get("message", "")
            return recipe.fail(cell.key, made_from(key, why), None)
    target = recipe.target(recipe.config, cell)
    mark = mark_of(recipe, cell, target)
    if (made := found_cell(recipe, cell, mark)) is not None:
        return made
    chains = recipe.path(cell.key, "chains")
    context = Context(target, chains if mark else None, recipe.progress)
    try:
        tree = _tree(recipe, cell, context)
        tree.attrs[MARK] = mark or ""
        write_tree(tree, recipe.path(cell.key))
    except (AdviFailed, CellFailed) as error:
        return recipe.fail(cell.key, str(error), mark)
    except (WriteError, RunCancelled):
        raise
    except Exception as error:
        broken = Broken(error_in_words(error))
        broken.trace = traceback.format_exc()
        raise broken from error
    recipe.path(cell.key, "failed.json").unlink(missing_ok=True)
    remove(chains)
    return Made(seconds=float(tree.attrs.get(schema.WALL_TIME, 0.0)))


def mark_of(recipe: Recipe, cell: Cell, target: Target | None) -> str | None:
    """Hash everything that decides a cell's posterior; None where that cannot be known."""
    deciding = {name: getattr(cell, name) for name in ("engine", "method", "settings", "seed")}
    deciding["inputs"] = [_attributes(recipe.path(key)).get(MARK) for key in cell.inputs]
    if not all(deciding["inputs"]):
        return None
    if target is not None:
        symmetry = schema.encode_symmetry(target.symmetry)
        deciding |= {"symmetry": symmetry, "dims": dict(target.dims)}
    return fingerprint(target, progress=lambda line: tell(says=line), **deciding)


def found_cell(recipe: Recipe, cell: Cell, mark: str | None = None) -> Made | None:
    """Take what an earlier run made of a cell with its mark; a notice tells of a damaged file."""
    mark = mark or mark_of(recipe, cell, recipe.target(recipe.config, cell))
    path, failed = recipe.path(cell.key), read_json(recipe.path(cell.key, "failed.json"))
    said = _attributes(path) if path.exists() else {MARK: ""}
    if mark is not None and said.get(MARK, mark) == mark:
        if examine(path) is Seal.SEALED:
            tell(says="there already")
            return Made(seconds=float(said.get(schema.WALL_TIME, 0.0)), found=True)
        notice(f"{path} is damaged (its checksum is missing or wrong): it is made again.")
    if mark is None or failed.get(MARK) != mark:
        return None
    tell(says=f"failed before: {failed['message']}")
    return Made(failed["message"], found=True)


def _tree(recipe: Recipe, cell: Cell, context: Context) -> xr.DataTree:
    if recipe.make is None:
        return sample(cell, context)
    start = time.perf_counter()
    inputs = tuple(open_posterior(recipe.path(key)) for key in cell.inputs)
    tree = recipe.make(recipe.config, cell, replace(context, inputs=inputs))
    tree.attrs.setdefault(schema.WALL_TIME, time.perf_counter() - start)
    return tree


def sample(cell: Cell, context: Context, method: Method | None = None, **how: Any) -> xr.DataTree:
    """Sample a cell's target by its own method, or by the one given; `how` are arguments of `infer`."""
    assert context.target is not None, f"the cell {cell.key} is sampled"
    method = method or as_word(cell.method, cell.settings)
    how = {**dict.fromkeys(("symmetry", "check_symmetry"), False), "predictive_mb": 0, **how}
    how = {"engine": cell.engine, "seed": cell.seed, "progress": context.progress, **how}
    kept = context.checkpoint if method.keeps else None
    return inference.infer(context.target, method, checkpoint=kept, **how)


def run_cells(
    study: Study,
    config: Any,
    run: Run,
    *,
    progress: bool,
    say: Callable[[str], None],
    schedule: Schedule,
) -> Outcomes:
    """Run the cells that the folder does not hold yet; `say` is called with a line of text for every cell.

    Failures do not stop a study: of variational fits, of cells that `make` gave up, of cells whose input failed, and of
    those that errors broke off as often as they were tried. `Interrupted` on Ctrl-C, and a `StudyError` where a file
    cannot be written or no worker can make cells, say what is kept.
    """
    cells, seen = study.cells(config), set[str]()
    for cell in cells:
        if cell.key in seen or not seen.issuperset(cell.inputs):
            raise ArgumentError(
                f"`cells` has the cell {cell.key} twice, or before one of its inputs: {', '.join(cell.inputs)}."
            )
        seen.add(cell.key)
    at_once, cores = schedule.shares(cells)
    here = schedule.scheduler == LOCAL and at_once == 1 and schedule.workers is None
    folder = run.posteriors.absolute()
    recipe = Recipe(study.target, study.make, config, folder, progress and here)
    places = {cell.key: f"[{n}/{len(cells)}] {cell.label}" for n, cell in enumerate(cells, start=1)}
    broken = set[str]()

    def hear(key: str, told: Mapping[str, Any]) -> None:
        if "records" in told:
            record(f"{key}: {told['records']}")
        elif "again" in told:
            say(f"{places[key]}: failed, and is tried again: {told['again']}")
        else:
            say(f"{places[key]}: {told['says']}" if told else places[key])

    every = {cell.key: (recipe, cell) for cell in cells}
    there = {} if here else {k: task for k, task in every.items() if recipe.path(k).exists()}
    ended: dict[str, Made] = {
        k: m for k, m in run_tasks(found_cell, there, hear=hear, here=True) if isinstance(m, Made)
    }
    making = run_tasks(
        make_cell,
        {key: task for key, task in every.items() if key not in ended},
        None if schedule.scheduler == LOCAL else schedule.scheduler,
        what="The study",
        hear=hear,
        say=say,
        after={c.key: [k for k in c.inputs if k not in ended] for c in cells},
        at_once=at_once,
        cores=cores,
        here=here,
        retries=schedule.retries,
        again=(TaskDied, Broken),
    )

    def kept() -> str:
        done = sum(made.failure is None for made in ended.values())
        return f"{done} of {len(cells)} cells are finished and kept in {run.path}: repeat the command to resume"

    try:
        for key, made in chain(list(ended.items()), making):
            if isinstance(made, Exception):
                broken.add(key)
                trace = getattr(made, "trace", "")
                hear(key, {"says": f"failed: {made}"})
                made = recipe.fail(key, str(made), None, trace=trace)
            ended[key] = made
            if made.failure is not None:
                run.note(key, status="failed", message=made.failure)
                continue
            run.note(key, status="done", seconds=made.seconds)
            if not made.found:
                count = f"{len(ended)} of {len(cells)} cells have ended"
                hear(key, {"says": f"done in {made.seconds:.0f} s; {count}"})
    except KeyboardInterrupt:
        making.close()
        raise Interrupted(f"interrupted; {kept()}") from None
    except (WriteError, TaskError) as error:
        raise StudyError(f"{str(error).removesuffix('.')}; {kept()}.") from error
    failures = {cell: failure for cell in cells if (failure := ended[cell.key].failure) is not None}
    paths = {cell: recipe.path(cell.key) for cell in cells if cell not in failures}
    return Outcomes(paths, failures, tuple(cell for cell in cells if cell.key in broken))


class Run:
    """A run's folder, and what its `run.json` says; as a context it records how the run ended."""

    def __init__(self, path: Path, record: dict[str, Any], *, force: bool = False) -> None:
        self.path, self.record, self._force = path, record, force
        self.posteriors, self.tables = path / "posteriors", path / "tables.md"
        self._lock = locked(path, argument="--out")

    def note(self, key: str, **what: Any) -> None:
        """Record what became of a cell."""
        self.record["cells"][key] = what
        self._mark("running")

    def __enter__(self) -> Run:
        """Hold the folder, and record that the run is under way; `InUse` if somebody else holds it."""
        self._lock.__enter__()
        if self._force:
            shutil.rmtree(self.posteriors, ignore_errors=True)
        self._mark("running")
        self.posteriors.mkdir(exist_ok=True)
        sweep(self.posteriors)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """Record how the run ended, and let go of the folder."""
        with suppress(*[WriteError] if error else []):  # what broke the run off tells more
            if error is None:
                self._mark("done")
            elif isinstance(error, Interrupted | KeyboardInterrupt):
                self._mark("interrupted")
            else:
                self._mark("failed", message=f"{type(error).__name__}: {error}")
        self._lock.__exit__(None, None, None)

    def _mark(self, status: str, **what: Any) -> None:
        self.record = {**self.record, "status": status, **what}
        write_sealed(self.path / "run.json", self.record)


def open_run(path: Path | None, *, study: str, config: Any, command: list[str], force: bool) -> Run:
    """Open a run's folder, by default one that is named by the settings, new or begun before.

    The cells that are there are taken. A folder that holds something else, or a run with other settings, is a
    `StudyError` unless `force` is true: then the run begins again.
    """
    from onebasin.inference.runs.provenance import commit, machine, versions

    digest = config_hash(study, config)
    path = path or Path("runs") / f"{study}-{digest[:10]}"
    if path.exists() and not path.is_dir():
        raise StudyError(f"`--out` is {path}, which is a file: name a folder.")
    others = path.is_dir() and any(not entry.name.startswith(".") for entry in path.iterdir())
    if others and not force and read_json(path / "run.json").get("config_hash") != digest:
        raise StudyError(
            f"`--out` is {path}, which holds something else, or a run with other settings: name another folder, or "
            "replace what is there with --force."
        )
    path.mkdir(parents=True, exist_ok=True)
    typed = re.sub(r" --(out[ =]\S+|record\b)", "", shlex.join(command))
    made = {"study": study, "config": as_dict(config), "config_hash": digest, "command": typed}
    made |= {"versions": versions(), "commit": commit(), "machine": machine(), "cells": {}}
    return Run(path, made, force=force)


def config_hash(study: str, config: Any) -> str:
    """Hash a study's settings."""
    text = f"{study}\n{json.dumps(as_dict(config), sort_keys=True)}"
    return hashlib.sha256(text.encode()).hexdigest()


def finish(study: Study, config: Any, run: Run, outcomes: Outcomes) -> Frames:
    """Measure, and write numbers, tables and figures; a `StudyError` at the end if cells failed by an error."""
    failed = ({"key": c.key, "label": c.label, "reason": w} for c, w in outcomes.failures.items())
    try:
        frames: Frames = {**study.measures(config, outcomes), "failures": frame_of(failed)}
        cells = run.record["cells"].values()
        made = {n: v for n, v in run.record.items() if n not in ("cells", "status")}
        made["seconds"] = sum(float(cell.get("seconds", 0.0)) for cell in cells)
        write_results(run.path / "results.json", made, frames)
        with replacing(run.tables) as part:
            tables = map(table_to_markdown, tables_of(study.tables, frames))
            part.write_text("\n\n".join([*tables, ""]), encoding="utf-8")
        for name, figure in study.figures(config, outcomes, frames).items():
            with replacing(run.path / f"{name}.png") as part:
                figure.savefig(part, format="png", dpi=150)
    except Exception:
        if not outcomes.broken:  # else it cannot do without the cells that failed
            raise
    if outcomes.broken:
        first, others = outcomes.broken[0], len(outcomes.broken) - 1
        more = f", and {others} more" if others else ""
        raise StudyError(
            f"{len(outcomes.paths)} cells have a posterior, but {first.key} failed{more}: "
            f"{outcomes.failures[first]}; {run.posteriors / first.key}.failed.json says where, and the same command "
            "tries again what failed."
        )
    return frames


def write_results(path: Path, made: Mapping[str, Any], frames: Frames) -> None:
    """Write frames, and how they were made: the names of the columns once, and a line a row."""
    split = {n: {"columns": list(f), "rows": f.to_numpy().tolist()} for n, f in frames.items()}
    text = json_text(seal_json(json_safe({**made, "frames": split})))
    with replacing(path) as part:
        part.write_text(re.sub(r"\n {10,}|\n {8}(?=\])", "", text) + "\n", encoding="utf-8")


def read_results(path: Path, study: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read how results of a study were made, and its frames; from a file, or from the folder of a finished run."""
    file = path / "results.json" if path.is_dir() else path
    made = read_json(file)
    if "frames" not in made:
        raise StudyError(
            f"`--show` finds no recorded numbers in {path}: run the study, or name a run's folder by --out."
        )
    if examine_json(made) is Seal.DAMAGED:
        raise StudyError(f"`--show` reads {file}, whose checksum is wrong: restore the file.")
    if made["study"] != study:
        raise StudyError(
            f"`--out` is {path}, which is of the study {made['study']}: name one of {study}."
        )
    tables = made.pop("frames").items()
    return made, {
        n: frame_of(dict(zip(t["columns"], r, strict=True)) for r in t["rows"]) for n, t in tables
    }


def recorded(study: str, size: str = "") -> Path:
    """Return the file of a study's recorded results; `size` where it is not of the default size."""
    return RESULTS / f"{study}{size and '-'}{size}.json"


def _attributes(path: Path) -> dict[str, Any]:
    """Attributes of a posterior's file; none where it cannot be read."""
    import h5py

    try:
        with h5py.File(path) as file:
            return {
                n: v.item() if hasattr(v, "item") and v.size == 1 else v
                for n, v in file.attrs.items()
            }
    except (OSError, RuntimeError, ValueError, KeyError):
        return {}
