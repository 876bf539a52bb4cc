"""`onebasin truth leaderboard`: our methods, and your own, compared with the reference posteriors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from onebasin.base.errors import check_seed
from onebasin.base.processes.libraries import prepare_jax, quieten_stan

from .options import Json, Progress, Quick, Record, Seed, option, words_in

if TYPE_CHECKING:
    from onebasin.studies.leaderboard.added import Added


def leaderboard(
    context: typer.Context,
    only: str | None = option(None, "References, separated by commas; by default all."),
    methods: str | None = option(
        None, "Methods, separated by commas; by default all, or with --add none but what is added."
    ),
    add: list[str] | None = option(
        None,
        "A method of your own: MODULE.py:FUNCTION, called with a target and a seed, which returns a posterior; or "
        "FILE.nc, where {reference} stands for the name of each. Repeatable.",
        metavar="NAME=WHAT",
    ),
    quick: Quick = False,
    seed: Seed = 0,
    workers: int | None = option(
        None, "Posteriors made at once on this machine, each on one core."
    ),
    out: Path | None = option(None, "The run's folder; runs/leaderboard-HASH of the settings."),
    force: bool = option(
        False, "Use a folder that holds other settings; what fits is taken.", "--force"
    ),
    record: Record = False,
    json: Json = False,
    progress: Progress = True,
) -> None:
    """Run methods on the reference posteriors, and show their errors by gradients and seconds."""
    check_seed(seed)
    prepare_jax()
    quieten_stan()
    from onebasin.studies.lab.driver import Schedule
    from onebasin.studies.lab.folder import default_folder, open_run
    from onebasin.studies.leaderboard import STUDY
    from onebasin.studies.leaderboard.added import parse
    from onebasin.studies.leaderboard.design import NAME, configured
    from onebasin.studies.leaderboard.methods import METHODS

    from .running import carry_out, write_findings

    added: list[Added] = []
    for words in add or ():
        added.append(parse(words, (*METHODS, *(one.name for one in added))))
    config = configured(
        only=words_in(only), methods=words_in(methods), quick=quick, seed=seed, added=tuple(added)
    )
    folder = out or default_folder(NAME, config)
    command = ["onebasin", *sys.argv[1:]]
    run = open_run(folder, study=NAME, config=config, command=command, resume=True, force=force)
    carry_out(
        STUDY,
        config,
        run,
        schedule=Schedule(workers=workers),
        progress=progress,
        command=context.obj or "",
        record=None if not record else "quick" if quick else "",
        write=lambda findings: write_findings(run, findings, json=json),
    )
