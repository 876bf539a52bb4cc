"""`onebasin truth leaderboard`: methods of ours, and of one's own, beside the reference posteriors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onebasin.base.errors import check_seed
from onebasin.base.processes.libraries import prepare_jax, quieten_stan

if TYPE_CHECKING:
    from onebasin.studies.lab.study import Findings
    from onebasin.studies.leaderboard.added import Added


def leaderboard(
    context: typer.Context,
    only: Annotated[
        str | None, typer.Option(help="References, separated by commas; by default all.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods, separated by commas; by default all, or with --add none but what is added."
        ),
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=WHAT",
            help="A method of your own: MODULE.py:FUNCTION, called with a target and a seed, which returns a "
            "posterior; or FILE.nc, where {reference} stands for the name of each. Repeatable.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Give every method less.")] = False,
    seed: Annotated[int, typer.Option(help="Of every method.")] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Posteriors made at once on this machine, each on one core.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; runs/leaderboard-HASH of the settings.")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Use a folder that holds other settings; what fits is taken."),
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Write the result to studies/results.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Write JSON instead of tables.")] = False,
    progress: Annotated[bool, typer.Option(help="Show bars while it runs.")] = True,
) -> None:
    """Run methods on the reference posteriors, and tell error against gradients and seconds."""
    check_seed(seed)
    prepare_jax()
    quieten_stan()
    from onebasin.studies.lab.driver import Schedule
    from onebasin.studies.lab.folder import default_folder, open_run
    from onebasin.studies.leaderboard import STUDY
    from onebasin.studies.leaderboard.added import parse
    from onebasin.studies.leaderboard.design import NAME, configured
    from onebasin.studies.leaderboard.methods import METHODS

    from .running import carry_out, keep_record, words_in, write_findings

    taken = tuple(METHODS)
    added: list[Added] = []
    for words in add or ():
        added.append(parse(words, (*taken, *(one.name for one in added))))
    config = configured(
        only=words_in(only), methods=words_in(methods), quick=quick, seed=seed, added=tuple(added)
    )
    folder = out or default_folder(NAME, config)
    command = ["onebasin", *sys.argv[1:]]
    run = open_run(folder, study=NAME, config=config, command=command, resume=True, force=force)

    def then(findings: Findings) -> None:
        if record:
            keep_record(NAME, run, findings, size="quick" if quick else "")
        write_findings(run, findings, json=json)

    carry_out(
        STUDY,
        config,
        run,
        schedule=Schedule(workers=workers),
        progress=progress,
        command=context.obj or "",
        then=then,
    )
