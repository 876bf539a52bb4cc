"""The symmetry that `onebasin sample` finds by itself: searched before a run, tried at its draws, kept with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from onebasin.base.errors import OnebasinError

if TYPE_CHECKING:
    from onebasin.inference.runs.declared import SymmetryTrial
    from onebasin.models.target import Target


@dataclass(frozen=True)
class SearchedSymmetry:
    """The result of a search."""

    target: Target  # With the live symmetry that was found, if any.
    trial: SymmetryTrial | None = None  # Tries it at the draws.
    said: str = ""  # JSON of the result; empty where nothing could be searched.
    remark: str = (
        ""  # An error, reported after the run, which itself reports what is wrong with the model.
    )


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
