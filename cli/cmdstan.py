"""`onebasin cmdstan` and `onebasin bridgestan`: CmdStan assembled from the httpstan wheel, for use by any tool."""

from __future__ import annotations

from pathlib import Path

import typer

from . import console
from .options import Build, option
from .spelling import Command, CommandGroup

app = typer.Typer(
    name="cmdstan",
    help="Build CmdStan from the httpstan wheel and print its folder.",
    cls=CommandGroup,
)
bridgestan = typer.Typer(
    name="bridgestan",
    help="Print a folder for BridgeStan and nutpie, without downloading anything.",
    cls=CommandGroup,
)


@app.command(cls=Command)
def build(
    jobs: int | None = option(
        None, "Number of compilers that run at once; by default as many as cores and memory allow."
    ),
    force: bool = option(False, "Build CmdStan even if it already exists.", "--force"),
) -> None:
    """Build CmdStan now rather than on first use (minutes, once per machine)."""
    from onebasin.stan.home.assemble import assemble

    home = assemble(jobs=jobs, force=force, progress=console.say)
    number = ".".join(map(str, home.version))
    console.write_remark(f"CmdStan {number} is at {home.path}", "good")


@app.command(cls=Command)
def path(build: Build = True) -> None:
    """Print the folder of CmdStan, as in CMDSTAN=$(onebasin cmdstan path)."""
    from onebasin.stan.home.assemble import assemble

    if (folder := _assembled(build)) is None:
        folder = assemble(progress=console.say).path
    typer.echo(folder)


@bridgestan.callback()
def group() -> None:
    """Keep `path` as a command of the group, although it is the only one."""


@bridgestan.command("path", cls=Command)
def bridge_path(build: Build = True) -> None:
    """Print the path of a BridgeStan folder, as in BRIDGESTAN=$(onebasin bridgestan path)."""
    from onebasin.stan.home.assemble import bridge_folder, bridge_home

    _assembled(build)
    typer.echo(bridge_folder(bridge_home(progress=console.say)))


def _assembled(build: bool) -> Path | None:
    """Return the folder of the assembled CmdStan; if there is none, return None to have it built, or raise."""
    from onebasin.base.errors import CmdStanNotFound
    from onebasin.stan.home.assemble import assembled_path, is_complete

    folder = assembled_path()
    if folder is not None and is_complete(folder):
        return folder
    if not build:
        raise CmdStanNotFound("CmdStan has not been built; run `onebasin cmdstan build`.")
    return None
