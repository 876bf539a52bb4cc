"""`onebasin study`: repeat a paper's experiment and compare the results with the published numbers."""

from __future__ import annotations

import shutil
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onebasin.base.errors import UsageError, interruption_says
from onebasin.base.processes.libraries import prepare_libraries

from . import console
from .options import Json, Progress, Quick, Record, Scheduler, Seed, argument, option, words_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onebasin.studies.lab.study import Frames, Study
    from onebasin.studies.registry import StudyEntry


def _studies() -> Mapping[str, StudyEntry]:
    from onebasin.studies.registry import STUDIES

    return STUDIES


def study(
    context: typer.Context,
    name: Annotated[
        str | None, argument("NAME", "See --list.", autocompletion=lambda: list(_studies()))
    ] = None,
    list_: bool = option(False, "List the studies.", "--list"),
    quick: Quick = False,
    full: bool = option(
        False, "Run at the paper's full size, which can take a long time.", "--full", "--paper"
    ),
    engine: str | None = option(
        None, "numpyro, stan or both.", autocompletion=lambda: ["numpyro", "stan", "both"]
    ),
    seed: Seed = 0,
    chains: int | None = option(None, "Number of NUTS chains."),
    warmup: int | None = option(None, "Number of warmup iterations per chain."),
    draws: int | None = option(None, "Number of draws kept per chain."),
    dtype: str | None = option(None, "float64 or float32: precision of the NumPyro engine."),
    splits: int | None = option(None, "Number of splits into training and test data."),
    datasets: int | None = option(None, "Number of simulated data sets."),
    parametrisations: str | None = option(None, "Parametrisations to run, separated by commas."),
    problems: str | None = option(None, "Problems to run, separated by commas."),
    only: str | None = option(
        None, "Cells to run, by key: split03.*,split*.stan; cells already in the folder are kept."
    ),
    show: bool = option(
        False,
        "Show the recorded numbers, or those in the folder of --out, and run nothing.",
        "--show",
    ),
    out: Path | None = option(
        None, "Folder of the run; by default runs/NAME-HASH, with a hash of the settings."
    ),
    force: bool = option(False, "Start again in a folder that has other content.", "--force"),
    record: Record = False,
    scheduler: Scheduler = None,
    workers: int | None = option(
        None, "Number of cells to run at once on this machine, one core each.", min=1
    ),
    retries: int = option(1, "Number of retries of a cell that fails.", min=0),
    json: Json = False,
    progress: Progress = True,
) -> None:
    """Repeat a paper's experiment and show the results next to the published ones."""
    if list_:
        _write_list(json)
        return
    if name is None:
        raise UsageError(f"`NAME` is missing. The studies are {', '.join(_studies())}.")
    prepare_libraries()
    from onebasin.base import run_log
    from onebasin.studies.lab import run
    from onebasin.studies.options import Options
    from onebasin.studies.registry import find_study

    if scheduler is not None and workers is not None:
        raise UsageError("`--workers` cannot be combined with --scheduler. Omit one of them.")
    chosen, size = find_study(name), "quick" if quick else "full" if full else ""
    if show:
        if record:
            raise UsageError("`--show` runs nothing, so there is nothing to record. Omit --record.")
        _, recorded = run.read_results(out or run.recorded(name, size), name)
        _write_findings(chosen, recorded, json=json)
        return
    given = {field.name: context.params[field.name] for field in fields(Options)}
    words = {name: words_in(given[name]) for name in ("parametrisations", "problems")}
    config = chosen.configure(Options(**given | words))
    command = ["onebasin", *sys.argv[1:]]
    folder = run.opened(out, study=name, config=config, command=command, force=force)

    def say(line: str) -> None:
        run_log.record(line.strip())
        console.say(line)

    def kept() -> str:
        return f"finished cells are kept in {opened.path}: repeat the command to resume"

    with folder as opened, run_log.logged_to(opened.path / run_log.NAME), interruption_says(kept):
        made = {"versions": opened.record["versions"], "settings": opened.record["config"]}
        with run_log.story(context.obj or "", **made):
            outcomes = run.run_cells(
                chosen,
                config,
                opened,
                patterns=words_in(only),
                progress=progress,
                say=say,
                scheduler=scheduler,
                workers=workers,
                retries=retries,
            )
            frames = run.finish(chosen, config, opened, outcomes)
    if record:
        path = run.recorded(name, size)
        path.parent.mkdir(exist_ok=True)
        shutil.copy(opened.path / "results.json", path)
        console.say(f"wrote {path}; tables for its page are in {opened.path / 'tables.md'}")
    _write_findings(chosen, frames, opened.path, json=json)


def _write_list(json: bool) -> None:
    from dataclasses import asdict

    entries = _studies()
    if json:
        console.write_json([{"name": name, **asdict(entry)} for name, entry in entries.items()])
        return
    width = max(map(len, entries))
    for name, entry in entries.items():
        console.write_remark(f"{name:<{width}}  {entry.summary}", indent=width + 2)
        console.write_remark(f"{'':<{width}}  {entry.paper}", indent=width + 2)
    console.say("to run one: onebasin study NAME")


def _write_findings(
    study: Study, frames: Frames, folder: Path | None = None, *, json: bool
) -> None:
    """Write the tables, or all numbers as JSON."""
    from onebasin.studies.lab.study import tables_of

    if json:
        tables = [{"caption": one.caption, "rows": one.rows(frames)} for one in study.tables]
        rows = {name: frame.to_dict("records") for name, frame in frames.items()}
        where = {} if folder is None else {"folder": str(folder)}
        console.write_json({**where, "tables": tables, "frames": rows})
        return
    for table in tables_of(study.tables, frames):
        console.write_table(table)
    if folder is not None:
        console.write_remark(f"the tables and figures are in {folder}", "good")
