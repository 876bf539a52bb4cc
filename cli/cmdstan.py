"""`onebasin cmdstan`: the CmdStan that is assembled from the httpstan wheel, for any tool that wants one."""

from typing import Annotated

import typer

from .examples import Group
from .spelling import Command

app = typer.Typer(
    name="cmdstan",
    help="The CmdStan assembled from the httpstan wheel: build it, point other tools to it, remove it.",
    cls=Group,
)


@app.command(cls=Command)
def build(
    jobs: Annotated[
        int | None, typer.Option(help="Compilers at once; as many as cores and memory allow.")
    ] = None,
    threads: Annotated[
        bool, typer.Option("--threads", help="Build what STAN_THREADS programs need as well.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Build again even if it is there.")
    ] = False,
) -> None:
    """Build it now rather than on first use (minutes, once a machine)."""
    from onebasin.stan.home.assemble import assemble

    from . import console

    with console.stages() as report:
        home = assemble(jobs=jobs, threads=threads, force=force, progress=report)
    console.write_remark(f"CmdStan {_number(home.version)} is at {home.path}", "good")


@app.command(cls=Command)
def path(
    build: Annotated[
        bool, typer.Option("--build/--no-build", help="Build it first if it is not there.")
    ] = True,
) -> None:
    """Print its folder, for CMDSTAN=$(onebasin cmdstan path)."""
    from onebasin.stan.home.assemble import assemble
    from onebasin.stan.home.cache import assembled_path, is_complete
    from onebasin.stan.home.errors import CmdStanNotFound

    from . import console

    folder = assembled_path()
    if folder is None or not is_complete(folder):
        if not build:
            raise CmdStanNotFound("No CmdStan has been assembled; run `onebasin cmdstan build`.")
        with console.stages() as report:
            folder = assemble(progress=report).path
    typer.echo(folder)


@app.command(cls=Command)
def info(
    json: Annotated[bool, typer.Option("--json", help="Write JSON instead of a table.")] = False,
) -> None:
    """Show what has been assembled, and which CmdStan onebasin itself uses."""
    from dataclasses import asdict

    from onebasin import stan
    from onebasin.stan.home.cache import assembled_homes, default_cache

    from . import console

    homes, used = assembled_homes(), stan.existing_cmdstan()
    if json:
        chosen = used and {
            "path": str(used.path),
            "version": _number(used.version),
            "origin": used.origin,
        }
        listed = [asdict(home) | {"path": str(home.path)} for home in homes]
        console.write_json({"used": chosen, "assembled": listed})
        return
    from onebasin.base.table import Column, Table

    table = Table(
        ("assembled", "drivers", Column("size", unit="GB"), "current"),
        tuple((h.path.name, ", ".join(h.flag_sets), h.size / 1e9, h.current) for h in homes),
        caption=f"in {default_cache()}",
    )
    if homes:
        console.write_table(table)
    else:
        console.write_remark("no CmdStan has been assembled: `onebasin cmdstan build`", "warn")
    if used is not None:
        origin = f"CmdStan {_number(used.version)} at {used.path} ({used.origin})"
        console.write_remark(f"onebasin uses {origin}", "good")


@app.command(cls=Command)
def clean(
    old: Annotated[
        bool, typer.Option("--old", help="Spare the one of the present compiler and wheel.")
    ] = False,
) -> None:
    """Remove what has been assembled, and the programs that were compiled with it."""
    from onebasin.stan.compile import remove_compiled
    from onebasin.stan.home.cache import assembled_homes, remove

    from . import console

    sizes = {home.path: home.size for home in assembled_homes()}
    removed = remove(keep_current=old)
    for folder in removed:
        size = f" ({sizes[folder] / 1e9:.1f} GB)" if folder in sizes else " (unfinished)"
        console.write_remark(f"removed {folder}{size}", "good")
    if not removed:
        console.write_remark("there was nothing to remove", "good")
    if not old:
        count = remove_compiled()
        console.write_remark(f"removed {count} compiled programs from the cache", "good")


def _number(version: tuple[int, int, int]) -> str:
    return ".".join(map(str, version))
