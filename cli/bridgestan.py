"""`onebasin bridgestan`: Stan programs in the process of BridgeStan, nutpie and other tools."""

from typing import Annotated

import typer

from .examples import Group
from .spelling import Command

app = typer.Typer(
    name="bridgestan",
    help="Stan programs in another tool's process: BridgeStan, and nutpie with it, without a download.",
    cls=Group,
)


@app.callback()
def group() -> None:
    """Keep `path` a command of the group, though it is the only one."""


@app.command(cls=Command)
def path(
    build: Annotated[
        bool, typer.Option("--build/--no-build", help="Assemble CmdStan first if it is not there.")
    ] = True,
) -> None:
    """Print a folder for BRIDGESTAN=$(onebasin bridgestan path)."""
    from onebasin.stan.home.bridge import bridge_folder, bridge_home
    from onebasin.stan.home.cache import assembled_path, is_complete
    from onebasin.stan.home.errors import CmdStanNotFound

    from . import console

    assembled = assembled_path()
    if not build and (assembled is None or not is_complete(assembled)):
        raise CmdStanNotFound("No CmdStan has been assembled; run `onebasin cmdstan build`.")
    with console.stages() as report:
        folder = bridge_folder(bridge_home(progress=report))
    typer.echo(folder)
