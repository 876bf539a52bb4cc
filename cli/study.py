"""`onebasin study`: a paper's experiment, its numbers next to those that the paper prints."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onebasin.base.errors import StudyError, UsageError, interruption_says
from onebasin.base.processes.libraries import prepare_jax, quieten_stan

from . import console
from .options import Json, Progress, Quick, Record, Seed, argument, option, words_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onebasin.studies.lab import Study
    from onebasin.studies.lab.driver import Schedule
    from onebasin.studies.lab.folder import Run
    from onebasin.studies.lab.study import Findings
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
        False, "Run it at the paper's size, where that takes long.", "--full", "--paper"
    ),
    engine: str | None = option(
        None, "numpyro, stan or both.", autocompletion=lambda: ["numpyro", "stan", "both"]
    ),
    seed: Seed = 0,
    chains: int | None = option(None, "Chains of NUTS."),
    warmup: int | None = option(None, "Warmup of a chain."),
    draws: int | None = option(None, "Draws kept, a chain."),
    dtype: str | None = option(None, "float64 or float32: precision of the NumPyro engine."),
    splits: int | None = option(None, "Splits into training and test part."),
    datasets: int | None = option(None, "Data sets, where they are drawn."),
    parametrisations: str | None = option(None, "Some of the study's, separated by commas."),
    problems: str | None = option(None, "Some of the study's, separated by commas."),
    only: str | None = option(
        None,
        "Cells to run, by their keys: split03.*,split*.stan; in addition to those in the folder.",
    ),
    show: bool = option(
        False, "Run nothing: show what is recorded, or what the folder of --out holds.", "--show"
    ),
    rerun: Path | None = option(
        None, "Run this record, or folder of a run, again, and compare the numbers."
    ),
    out: Path | None = option(None, "The run's folder; runs/NAME-HASH of the settings."),
    resume: bool = option(True, "Take what the folder already holds."),
    force: bool = option(False, "Use a folder that holds something else.", "--force"),
    record: Record = False,
    scheduler: str = option("local", "local, or a Dask scheduler's address, as tcp://host:8786."),
    workers: int | None = option(None, "Cells made at once on this machine, each on one core."),
    retries: int = option(1, "Tries more of a cell that an error breaks off."),
    json: Json = False,
    progress: Progress = True,
) -> None:
    """Repeat a paper's experiment and show its numbers next to those that the paper prints."""
    if list_:
        _write_list(json)
        return
    if name is None:
        raise UsageError(f"`NAME` is missing; the studies are: {', '.join(_studies())}.")
    prepare_jax()
    quieten_stan()
    from onebasin.studies.lab import Options
    from onebasin.studies.lab.driver import Schedule
    from onebasin.studies.lab.folder import default_folder, open_run
    from onebasin.studies.lab.record import read_findings, read_manifest, record_path, settings_of
    from onebasin.studies.lab.study import find
    from onebasin.studies.lab.study import only as restricted

    schedule = Schedule(scheduler, workers, retries)
    chosen, size = find(name), "quick" if quick else "full" if full else ""
    if show:
        if rerun or record:
            raise UsageError("`--show` runs nothing: leave out --rerun and --record.")
        _write_findings(read_findings(name, chosen, out or record_path(name, size)), json=json)
        return
    options = Options(
        quick=quick,
        full=full,
        engine=engine,
        seed=seed,
        chains=chains,
        warmup=warmup,
        draws=draws,
        dtype=dtype,
        splits=splits,
        datasets=datasets,
        parametrisations=words_in(parametrisations),
        problems=words_in(problems),
    )
    manifest = read_manifest(rerun, name) if rerun else None
    config = settings_of(chosen, manifest, options) if manifest else chosen.configure(options)
    folder = out or default_folder(name, config)
    run = open_run(
        folder if out or not manifest else folder.with_name(f"{folder.name}-rerun"),
        study=name,
        config=config,
        command=["onebasin", *sys.argv[1:]],
        resume=resume,
        force=force,
    )
    if only is not None:
        chosen = restricted(chosen, words_in(only) or (), run)

    def write(findings: Findings) -> None:
        if manifest is None:
            _write_findings(findings, run, json=json)
            return
        from onebasin.studies.lab.record import against_table, held_against

        against = held_against(manifest, findings.frames)
        console.write_table(against_table(against))
        other = sum(not row["same"] for row in against)
        if other or not against:
            versions = ", ".join(f"{name} {number}" for name, number in manifest.versions.items())
            raise StudyError(
                f"`--rerun` has other numbers than {manifest.path} in {other} of {len(against)} cells; "
                f"that was made with {versions}."
            )
        console.write_remark(f"all numbers of {len(against)} cells are those recorded", "good")

    _carry_out(
        chosen,
        config,
        run,
        schedule=schedule,
        progress=progress,
        command=context.obj or "",
        record=size if record else None,
        write=write,
    )


def _write_list(json: bool) -> None:
    from dataclasses import asdict

    entries = _studies()
    if json:
        console.write_json([{"name": name, **asdict(entry)} for name, entry in entries.items()])
        return
    width = max(map(len, entries))
    for name, entry in entries.items():
        console.write_sentence(f"{name:<{width}}  {entry.summary}", indent=width + 2)
        console.write_sentence(f"{'':<{width}}  {entry.paper}", indent=width + 2)
    console.say("run one with: onebasin study NAME")


def _carry_out(
    study: Study,
    config: Any,
    run: Run,
    *,
    schedule: Schedule,
    progress: bool,
    command: str,
    record: str | None = None,
    write: Callable[[Findings], None],
) -> None:
    """Make the cells that the folder does not hold yet, measure them, and write the findings once it holds them.

    `record` is the size under which the findings are also written to studies/results, empty for the study's own. After
    Ctrl-C the folder keeps what is finished.
    """
    from onebasin.base.run_log import logged_to, story, telling
    from onebasin.studies.lab.driver import finish, run_cells
    from onebasin.studies.lab.record import write_record

    def kept() -> str:
        if run.record.get("status") == "done":
            return f"the run is finished, and its tables are in {run.tables_path}"
        return f"finished cells are kept in {run.path}: repeat the command to resume"

    say = telling(console.say)
    made = {"versions": run.record["versions"], "settings": run.record["config"]}
    with interruption_says(kept):
        try:
            with run, logged_to(run.log_path), story(command, **made):
                outcomes = run_cells(
                    study, config, run, progress=progress, say=say, schedule=schedule
                )
                findings = finish(study, config, run, outcomes)
        finally:
            run.settle()
        if record is not None:
            path = write_record(run.record["study"], run, findings, size=record)
            console.say(f"wrote {path}; tables for its page are in {run.tables_path}")
        write(findings)


def _write_findings(findings: Findings, run: Run | None = None, *, json: bool) -> None:
    """Write the tables, or all numbers as JSON."""
    if json:
        folder = {} if run is None else {"folder": str(run.path)}
        console.write_json({**folder, **findings.to_dict()})
        return
    for table in findings.tables:
        console.write_table(table)
    if run is not None:
        console.write_remark(f"the tables and figures are in {run.path}", "good")
