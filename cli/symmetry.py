"""`onebasin symmetry`: the symmetries of a Stan program or a NumPyro model, found from its log density."""

from pathlib import Path
from typing import Annotated

import typer

from onebasin.base.processes.libraries import prepare_jax, quieten_stan


def symmetry(
    program: Annotated[
        Path,
        typer.Argument(
            metavar="PROGRAM.stan",
            help="A Stan program; or MODEL.py:NAME, a function that states a NumPyro model.",
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA.json]", help="Its data, as JSON; a function's arguments by name."
        ),
    ] = None,
    draws: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN.nc", help="A posterior of it, some of whose draws are tried too."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of random points.")] = 0,
    seconds: Annotated[float, typer.Option(help="How long it may take, without compiling.")] = 8.0,
    json: Annotated[bool, typer.Option("--json", help="Write JSON instead of sentences.")] = False,
) -> None:
    """Find which parts, signs and complements leave a model's log density unchanged, and what to declare."""
    from . import console

    prepare_jax()
    quieten_stan()
    from onebasin.base.errors import check_seed
    from onebasin.inference.symmetries.find import find_symmetry

    from . import reading
    from .sampling import opened

    check_seed(seed)
    given = None if draws is None else reading.read(draws, "--draws").tree
    with opened(program, data) as target:
        found = find_symmetry(target, draws=given, seed=seed, seconds=seconds, progress=console.say)
    if json:
        console.write_json({"program": str(program), **found.to_dict()})
        return
    console.write_headline(found.title, found.sentence, "good" if not found.open else "warn")
    for block in found.blocks:
        console.write_rows([(block.flag, block.title, block.meaning)])
        for sentence in block.evidence:
            console.write_sentence(f"  {sentence}", indent=2)
    console.write_sentence(found.effort)
