"""What nobody has checked of a symmetry that draws are judged or aligned by, in a sentence."""

from __future__ import annotations

from onebasin.models.symmetry.blocks import Symmetry, equal_modes, to_json
from onebasin.models.symmetry.evidence import DECLARED, UNRECORDED

from . import schema
from .view import View


def symmetry_caveat(view: View, used: Symmetry | None = None) -> str:
    """Say what to know of a symmetry before relying on it; empty where all of it was checked and holds.

    Parameters
    ----------
    view : View
        The posterior.
    used : Symmetry, optional
        The symmetry that is used; by default what the posterior declares. A network's own follows from its
        architecture and needs no check.
    """
    if used is not None and not declares(view, used):
        return f"The symmetry is {DECLARED}."
    declared = equal_modes(view.declared_symmetry)
    if not declared or (view.network is not None and view.symmetry_evidence is None):
        return ""
    if view.symmetry_evidence is None:
        return f"The symmetry is {UNRECORDED}."
    return view.symmetry_evidence.sentence


def symmetry_status(view: View, used: Symmetry | None = None) -> str:
    """Say whether a symmetry was checked on the density, is broken, or cannot be checked; empty where there is none.

    Parameters
    ----------
    view, used
        As of `symmetry_caveat`.
    """
    if not equal_modes(view.declared_symmetry if used is None else used):
        return ""
    if used is not None and not declares(view, used):
        return f"The symmetry is {DECLARED}."
    evidence = view.symmetry_evidence
    if evidence is not None and not evidence.holds:
        return f"The declared symmetry is broken by this posterior's draws: {evidence.refuted}."
    if evidence is not None:
        unresolved = f", but for {', '.join(evidence.unresolved)}" if evidence.unresolved else ""
        whose = "The symmetry was found and"
        if not view.attribute(schema.SYMMETRY_FOUND):
            whose = "The declared symmetry was"
        return f"{whose} checked on the density, {evidence.size}{unresolved}."
    if view.network is not None:
        return "The symmetry is that of the network's architecture."
    return f"The symmetry is {UNRECORDED}."


def is_known(view: View, used: Symmetry) -> bool:
    """Whether a symmetry was checked and holds, or follows from a network's architecture."""
    evidence = view.symmetry_evidence
    if not declares(view, used):
        return False
    return view.network is not None if evidence is None else evidence.holds


def declares(view: View, symmetry: Symmetry) -> bool:
    """Whether a symmetry is the one that a posterior declares, but for blocks that make no equal modes."""
    declared = view.declared_symmetry
    return to_json(equal_modes(symmetry)) == to_json(equal_modes(declared))
