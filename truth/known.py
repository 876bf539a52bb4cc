"""What a run is held against, of a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onebasin.analysis.compare.reference.known import Known, nothing, without_lp
from onebasin.analysis.diagnostics.invariants import invariants
from onebasin.posteriors.draws import Draws
from onebasin.posteriors.view import View, as_view

from .invariants import measured
from .problems import PROBLEMS
from .problems.problem import Invariant

if TYPE_CHECKING:
    from .reference import Reference

_CAVEATS = {
    "invariants pass": "Entries under labels do not pass the checks of the reference itself, and are not compared.",
    "fails": "The reference does not pass its own checks: `onebasin truth show` says which.",
}


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
    status = reference.status
    aligned = tables["parameters"]
    return Known(
        name=reference.name,
        draws=as_view(reference.draws),
        symmetry=symmetry,
        labelling=None if labelling is None else labelling.target,
        parameters=aligned.iloc[:0] if status == "invariants pass" else aligned,
        invariants=tables["invariants"],
        measure=measure,
        caveat=_CAVEATS.get(status, ""),
    )
