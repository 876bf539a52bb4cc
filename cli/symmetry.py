"""`onebasin symmetry`: the symmetries of a Stan program or a NumPyro model, found from its log density.

Also the symmetry that `onebasin sample` finds by itself: searched before a run, tried at its draws, kept with them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from onebasin.base.errors import OnebasinError, check_seed
from onebasin.base.processes.libraries import prepare_jax, quieten_stan

from . import console, inputs
from .options import Data, Json, Program, Seed, option

if TYPE_CHECKING:
    from onebasin.inference.runs.declared import SymmetryTrial
    from onebasin.models.target import Target


def symmetry(
    program: Program,
    data: Data = None,
    draws: Path | None = option(
        None, "A posterior of it, some of whose draws are tried too.", metavar="RUN.nc"
    ),
    seed: Seed = 0,
    seconds: float = option(8.0, "How long it may take, without compiling."),
    json: Json = False,
) -> None:
    """Find which components, signs and complements leave a model's log density unchanged, and what to declare."""
    prepare_jax()
    quieten_stan()
    from onebasin.inference.symmetries.find import find_symmetry

    check_seed(seed)
    given = None if draws is None else inputs.read(draws, "--draws").tree
    with inputs.opened(program, data) as target:
        found = find_symmetry(target, draws=given, seed=seed, seconds=seconds, progress=console.say)
    if json:
        console.write_json({"program": str(program), **found.to_dict()})
        return
    unsearched = f"Not searched: {'; '.join(found.open)}." if found.open else ""
    console.write_headline(found.title, unsearched, "warn" if found.open else "good")
    for block in found.blocks:
        console.write_rows([(block.flag, block.title, block.meaning)])
        for sentence in block.evidence:
            console.write_sentence(f"  {sentence}", indent=2)
    console.write_sentence(found.effort)


@dataclass(frozen=True)
class SearchedSymmetry:
    """The result of a search before a run."""

    target: Target  # With the live symmetry that was found, if any.
    trial: SymmetryTrial | None = None  # Tries it at the draws.
    said: str = ""  # JSON of the result; empty where nothing could be searched.
    remark: str = ""  # An error, reported after the run, which itself reports what is wrong.


def found_in(target: Target, *, seed: int, say: Callable[[str], None]) -> SearchedSymmetry:
    """Search the symmetry of a target that declares none; an error does not stop the run that follows."""
    try:
        return _searched(target, seed, say)
    except Exception as error:
        words = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".:")
        return SearchedSymmetry(target, remark=f"symmetries were not searched: {words}")


def _searched(target: Target, seed: int, say: Callable[[str], None]) -> SearchedSymmetry:
    from onebasin.inference.contracts.engines import defined_by
    from onebasin.inference.runs import declared
    from onebasin.inference.symmetries.find import find_symmetry

    engine = defined_by(target, None)
    found = find_symmetry(target, engine=engine, seed=seed, progress=say)
    others = [b for b in found.blocks if b.status not in ("live", "harmless")]
    if found.words or others or found.open:
        say(found.sentence)
    if not found.symmetry:
        return SearchedSymmetry(target, said=found.to_json())
    moved = replace(target, symmetry=found.symmetry)
    try:
        trial = declared.begin(moved, engine=engine, seed=seed, progress=False, derived=True)
    except (OnebasinError, ValueError) as error:
        say(f"the symmetry that was found is not used: {str(error).rstrip('.')}")
        return SearchedSymmetry(target, said=found.to_json())
    if trial is None:
        return SearchedSymmetry(moved, None, found.to_json())
    before = {name for block in found.symmetry for name in block.variables}
    along = [n for b in trial.target.symmetry for n in b.variables if n not in before]
    if along:
        say(f"Moved along: {', '.join(along)}.")
    return SearchedSymmetry(trial.target, trial, found.to_json())
