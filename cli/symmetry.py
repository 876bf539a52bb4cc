"""`onebasin symmetry`: find the symmetries of a Stan program or NumPyro model from its log density."""

from __future__ import annotations

from pathlib import Path

from onebasin.base.processes.libraries import prepare_libraries

from . import console, inputs
from .options import Data, Json, Program, Seed, option


def symmetry(
    program: Program,
    data: Data = None,
    draws: Path | None = option(
        None, "Also check the symmetry at draws of this posterior.", metavar="RUN.nc"
    ),
    seed: Seed = 0,
    seconds: float = option(8.0, "Time limit in seconds, not counting compilation."),
    json: Json = False,
) -> None:
    """Find which components, signs and complements leave a model's log density unchanged, and what to declare."""
    prepare_libraries()
    from onebasin.inference.symmetries.find import find_symmetry

    given = None if draws is None else inputs.read(draws, "--draws").tree
    with inputs.opened(program, data) as target:
        found = find_symmetry(target, draws=given, seed=seed, seconds=seconds, progress=console.say)
    if json:
        console.write_json({"program": str(program), **found.to_dict()})
        return
    console.write_card(found)
