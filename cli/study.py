"""`onebasin study`: a paper's experiment, beside the paper's own words."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onebasin.base.errors import UsageError
from onebasin.base.processes.libraries import prepare_jax, quieten_stan

from .completion import engines, studies

if TYPE_CHECKING:
    from onebasin.studies.lab.rerun import Manifest
    from onebasin.studies.lab.study import Findings


def study(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="See --list.", autocompletion=studies)
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the studies.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Run it small, in minutes.")] = False,
    full: Annotated[
        bool,
        typer.Option(
            "--full", "--paper", help="Run it at the paper's size, where that takes long."
        ),
    ] = False,
    engine: Annotated[
        str | None, typer.Option(help="numpyro, stan or both.", autocompletion=engines)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the data and of the samplers.")] = 0,
    chains: Annotated[int | None, typer.Option(help="Chains of NUTS.")] = None,
    warmup: Annotated[int | None, typer.Option(help="Warmup of a chain.")] = None,
    draws: Annotated[int | None, typer.Option(help="Draws kept, a chain.")] = None,
    dtype: Annotated[
        str | None, typer.Option(help="float64 or float32: precision of the NumPyro engine.")
    ] = None,
    splits: Annotated[int | None, typer.Option(help="Splits into training and test part.")] = None,
    datasets: Annotated[int | None, typer.Option(help="Data sets, where they are drawn.")] = None,
    parametrisations: Annotated[
        str | None, typer.Option(help="Some of the study's, separated by commas.")
    ] = None,
    problems: Annotated[
        str | None, typer.Option(help="Some of the study's, separated by commas.")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            help="Cells to run, by their keys: split03.*,split*.stan; beside what the folder holds."
        ),
    ] = None,
    rerun: Annotated[
        Path | None,
        typer.Option(
            help="Run this record, or folder of a run, again, and hold the numbers against it."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; runs/NAME-HASH of the settings.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Take what the folder already holds.")] = True,
    force: Annotated[
        bool, typer.Option("--force", help="Use a folder that holds something else.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Write the result to studies/results.")
    ] = False,
    scheduler: Annotated[
        str, typer.Option(help="local, or a Dask scheduler's address, as tcp://host:8786.")
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option(help="Cells made at once on this machine, each on one core."),
    ] = None,
    retries: Annotated[
        int, typer.Option(help="Tries more of a cell that an error breaks off.")
    ] = 1,
    json: Annotated[bool, typer.Option("--json", help="Write JSON instead of tables.")] = False,
    progress: Annotated[bool, typer.Option(help="Show bars while it runs.")] = True,
) -> None:
    """Repeat a paper's experiment and hold the outcome beside what the paper says."""
    from onebasin.studies.registry import STUDIES

    if list_:
        _write_list(json)
        return
    if name is None:
        raise UsageError(f"`NAME` is missing; the studies are: {', '.join(STUDIES)}.")
    prepare_jax()
    quieten_stan()
    from onebasin.studies.lab import Options
    from onebasin.studies.lab.driver import Schedule
    from onebasin.studies.lab.folder import default_folder, open_run
    from onebasin.studies.lab.rerun import read_manifest, settings_of
    from onebasin.studies.lab.study import find
    from onebasin.studies.lab.study import only as restricted

    from .running import carry_out, keep_record, words_in, write_findings

    schedule = Schedule(scheduler, workers, retries)
    chosen = find(name)
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

    def then(findings: "Findings") -> None:
        if record:
            keep_record(name, run, findings, size="quick" if quick else "full" if full else "")
        if manifest is not None:
            _write_against(manifest, findings)
        else:
            write_findings(run, findings, json=json)

    carry_out(
        chosen,
        config,
        run,
        schedule=schedule,
        progress=progress,
        command=context.obj or "",
        then=then,
    )


def _write_against(manifest: "Manifest", findings: "Findings") -> None:
    """Say whether a rerun has the recorded numbers; refuse where it has not."""
    from onebasin.base.errors import StudyError
    from onebasin.studies.lab.rerun import AGAINST, held_against

    from . import console

    against = held_against(manifest, findings.frames)
    console.write_table(AGAINST({"against": against}))
    other = sum(not row["same"] for row in against)
    if other or not against:
        raise StudyError(
            f"`--rerun` has other numbers than {manifest.path} in {other} of {len(against)} cells; "
            f"that was made with {_listed_versions(manifest)}."
        )
    console.write_remark(f"all numbers of {len(against)} cells are those recorded", "good")


def _listed_versions(manifest: "Manifest") -> str:
    return ", ".join(f"{name} {number}" for name, number in manifest.versions.items())


def _write_list(json: bool) -> None:
    from onebasin.studies.registry import STUDIES

    from . import console

    if json:
        typer.echo(_listed())
        return
    width = max(map(len, STUDIES))
    for name, entry in STUDIES.items():
        console.write_sentence(f"{name:<{width}}  {entry.summary}", indent=width + 2)
        console.write_sentence(f"{'':<{width}}  {entry.paper}", indent=width + 2)
    console.say("run one with: onebasin study NAME")


def _listed() -> str:
    import json
    from dataclasses import asdict

    from onebasin.studies.registry import STUDIES

    return json.dumps(
        [{"name": name, **asdict(entry)} for name, entry in STUDIES.items()], indent=2
    )
