"""`onebasin convert`: a posterior from one format to another."""

from pathlib import Path
from typing import Annotated

import typer

from . import reading


def convert(
    run: Annotated[
        list[Path],
        typer.Argument(metavar="RUN.nc", help=f"{reading.HELP} Several are runs or chains of one."),
    ],
    out: Annotated[Path, typer.Option(help=f"What to write: {reading.WRITTEN}.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a posterior in another format, which the suffix of --out says; join runs of one into one file."""
    from onebasin.base.errors import PosteriorFileError
    from onebasin.base.files.outputs import claim
    from onebasin.posteriors.writing import format_of, write_tree

    from . import console

    form = format_of(out, argument="--out")
    inputs = reading.files_of(run)
    with claim(
        out,
        force=force,
        error=PosteriorFileError,
        argument="--out",
        inputs=inputs,
        replaces=form.replaces,
    ):
        view = reading.read(run)
        _ = view.posterior  # which refuses what is no posterior
        write_tree(view.tree, out, new=not force)
    console.write_remark(f"wrote {out}", "good")
