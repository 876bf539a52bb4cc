"""What a run is held against, of a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onebasin.analysis.compare.reference.known import Known, nothing, without_lp
from onebasin.analysis.diagnostics.invariants import invariants
from onebasin.analysis.posterior.draws import Draws
from onebasin.analysis.posterior.view import View, as_view

from ..problems import PROBLEMS
from ..problems.problem import Invariant
from .invariants import measured

if TYPE_CHECKING:
    from .reference import Reference


def known_of_reference(reference: Reference) -> Known:
    """Give what is known of a reference, with the functions that measure its invariants of any run."""
    symmetry = reference.symmetry
    problem = PROBLEMS.get(reference.info["problem"])
    own: dict[str, Invariant] = dict(problem.invariants) if problem else {}

    def measure(run: View) -> Draws:
        if own:
            return measured(run, own)
        return without_lp(invariants(run, symmetry)) if symmetry else nothing(run)

    labelling = reference.labelling
    tables = reference.summary
    return Known(
        name=reference.name,
        draws=as_view(reference.draws),
        symmetry=symmetry,
        labelling=None if labelling is None else labelling.target,
        parameters=tables["parameters"],
        invariants=tables["invariants"],
        measure=measure,
    )
