"""`onebasin cmdstan` and `bridgestan`: the CmdStan that is assembled from the httpstan wheel, for any tool."""

from __future__ import annotations

from pathlib import Path

import typer

from . import console
from .options import Build, Json, option
from .spelling import Command, CommandGroup

app = typer.Typer(
    name="cmdstan",
    help="The CmdStan assembled from the httpstan wheel: build it, point other tools to it, remove it.",
    cls=CommandGroup,
)
bridgestan = typer.Typer(
    name="bridgestan",
    help="Stan programs in another tool's process: BridgeStan, and nutpie with it, without a download.",
    cls=CommandGroup,
)


@app.command(cls=Command)
def build(
    jobs: int | None = option(None, "Compilers at once; as many as cores and memory allow."),
    threads: bool = option(False, "Build what STAN_THREADS programs need as well.", "--threads"),
    force: bool = option(False, "Build again even if it is there.", "--force"),
) -> None:
    """Build it now rather than on first use (minutes, once a machine)."""
    from onebasin.stan.home.assemble import assemble

    with console.stages() as report:
        home = assemble(jobs=jobs, threads=threads, force=force, progress=report)
    console.write_remark(f"CmdStan {_number(home.version)} is at {home.path}", "good")


@app.command(cls=Command)
def path(build: Build = True) -> None:
    """Print its folder, for CMDSTAN=$(onebasin cmdstan path)."""
    from onebasin.stan.home.assemble import assemble

    if (folder := _assembled(build)) is None:
        with console.stages() as report:
            folder = assemble(progress=report).path
    typer.echo(folder)


@bridgestan.callback()
def group() -> None:
    """Keep `path` a command of the group, though it is the only one."""


@bridgestan.command("path", cls=Command)
def bridge_path(build: Build = True) -> None:
    """Print a folder for BRIDGESTAN=$(onebasin bridgestan path)."""
    from onebasin.stan.home.search import bridge_folder, bridge_home

    _assembled(build)
    with console.stages() as report:
        folder = bridge_folder(bridge_home(progress=report))
    typer.echo(folder)


def _assembled(build: bool) -> Path | None:
    """Return the folder of the assembled CmdStan; where there is none, refuse unless it is to be built."""
    from onebasin.stan.home.assemble import assembled_path, is_complete
    from onebasin.stan.home.errors import CmdStanNotFound

    folder = assembled_path()
    if folder is not None and is_complete(folder):
        return folder
    if not build:
        raise CmdStanNotFound("No CmdStan has been assembled; run `onebasin cmdstan build`.")
    return None


@app.command(cls=Command)
def info(json: Json = False) -> None:
    """Show what has been assembled, and which CmdStan onebasin itself uses."""
    from dataclasses import asdict

    from onebasin import stan
    from onebasin.base.table import Column, Table
    from onebasin.stan.home.assemble import assembled_homes, default_cache

    homes, used = assembled_homes(), stan.existing_cmdstan()
    if json:
        listed = [asdict(home) | {"path": str(home.path)} for home in homes]
        number = used and _number(used.version)
        chosen = used and {"path": str(used.path), "version": number, "origin": used.origin}
        console.write_json({"used": chosen, "assembled": listed})
        return
    if homes:
        columns = ("assembled", "drivers", Column("size", unit="GB"), "current")
        rows = ((h.path.name, ", ".join(h.flag_sets), h.size / 1e9, h.current) for h in homes)
        console.write_table(Table(columns, tuple(rows), caption=f"in {default_cache()}"))
    else:
        console.write_remark("no CmdStan has been assembled: `onebasin cmdstan build`", "warn")
    if used is not None:
        origin = f"CmdStan {_number(used.version)} at {used.path} ({used.origin})"
        console.write_remark(f"onebasin uses {origin}", "good")


@app.command(cls=Command)
def clean(
    old: bool = option(False, "Spare the one of the present compiler and wheel.", "--old"),
) -> None:
    """Remove what has been assembled, and the programs that were compiled with it."""
    from onebasin.stan.compile import remove_compiled
    from onebasin.stan.home.assemble import assembled_homes, remove

    sizes = {home.path: home.size for home in assembled_homes()}
    removed = remove(keep_current=old)
    for folder in removed:
        size = f" ({sizes[folder] / 1e9:.1f} GB)" if folder in sizes else " (unfinished)"
        console.write_remark(f"removed {folder}{size}", "good")
    if not removed:
        console.write_remark("there was nothing to remove", "good")
    if not old:
        console.write_remark(
            f"removed {remove_compiled()} compiled programs from the cache", "good"
        )


def _number(version: tuple[int, int, int]) -> str:
    return ".".join(map(str, version))
