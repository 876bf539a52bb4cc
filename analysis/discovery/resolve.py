"""The symmetry of a posterior: the one that was given, the one that its file declares, or the one that its draws show.

Everything that judges, aligns, compares or draws a posterior modulo a symmetry asks `resolve`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from onebasin.base.card import in_brief
from onebasin.models.symmetry.blocks import Symmetry, equal_modes, to_json
from onebasin.models.symmetry.evidence import DECLARED, UNRECORDED
from onebasin.posteriors import schema
from onebasin.posteriors.view import Posterior, View, as_view

from ..summaries.deciding import deciding, looked_at
from .candidate import Candidate, of_few_places
from .density import changed_by
from .discover import discover
from .partial import companions, in_one_order, of_another, recorded_companions, ties_chains, unlike
from .quantities import with_alike, with_quantities

NAMED = 6
"""Names that a sentence lists."""
MOST_ALONG = 4
"""Arrays that are tried along with a candidate at most, in all sets."""

Source = Literal["given", "declared", "refuted", "found", "partial", "none"]


@dataclass(frozen=True, eq=False)
class Resolved:
    """The symmetry of a posterior and its origin.

    Its `source` is "given" by the caller; "declared" in the file; "refuted", declared and broken by the draws; "found"
    by the draws alone; "partial", of which the draws show a part; or "none", neither given, declared nor found.
    `caveat` is a sentence to read before relying on it, and `status` one that says whether it was checked on the
    density; each is empty where there is nothing to say.
    """

    blocks: Symmetry  # scalings of a network among them; empty where the draws refute it
    source: Source
    candidates: tuple[Candidate, ...]  # all that a search showed; `blocks` has the certain ones
    in_file: bool  # whether the file declares it, but for blocks that make no equal modes
    known: bool  # whether it was checked and holds, or follows from a network's architecture
    caveat: str
    status: str
    reason: str = ""  # of "partial", in a sentence: what moves along and cannot be moved
    alone: bool = False  # of "partial": nothing else may belong to it, so that the draws show modes

    @property
    def equal_modes(self) -> Symmetry:
        """The blocks that make equal modes: all but scalings."""
        return equal_modes(self.blocks)

    @property
    def words(self) -> tuple[str, ...]:
        """The words to declare a symmetry that was found; else empty."""
        return tuple(each.word for each in self.candidates if each.certain)

    @property
    def few_places(self) -> tuple[str, ...]:
        """The words for the components alone that change places in the draws, where others do not; else empty."""
        return tuple(each.word for each in of_few_places(self.candidates))


def resolve(posterior: Posterior, given: Any = None, *, look: bool = False) -> Resolved:
    """Decide which symmetry a posterior has: blocks or words of them that were given come first, the file's own second.

    `look` has the draws searched where there are neither.
    """
    view = as_view(posterior)
    evidence = view.symmetry_evidence
    candidates: tuple[Candidate, ...] = ()
    source: Source
    if given is not None:
        blocks, source = view.as_symmetry(given), "given"
    elif evidence is not None and not evidence.holds:
        blocks, source = (), "refuted"
    else:
        blocks = view.declared_symmetry
        source = "declared" if blocks else "none"
    if look and not blocks and source != "given":
        names, _ = deciding(view)
        values = looked_at(view, names)
        values = {name: np.where(np.isfinite(v), v, 0.0) for name, v in values.items()}
        found = discover(values)
        certain = tuple(each for each in found if each.certain)
        certain, reason, alone = judged(view, certain, values)
        if not reason:
            certain = tuple(with_quantities(view, each, names) for each in certain)
        candidates = (*certain, *(each for each in found if not each.certain))
        blocks = tuple(each.block for each in candidates if each.certain)
        source = "found" if blocks else source
        if reason:
            return Resolved((), "partial", candidates, False, False, "", "", reason, alone)
    used = blocks if source in ("given", "found") else view.declared_symmetry
    in_file = to_json(equal_modes(used)) == to_json(equal_modes(view.declared_symmetry))
    if not in_file:
        told = f"You gave this symmetry; {DECLARED}."
        return Resolved(blocks, source, candidates, False, False, told, _if_any(used, told))
    known = view.network is not None if evidence is None else evidence.holds
    status = _if_any(used, _status(view))
    caveat = "" if view.network is not None else f"The symmetry is {UNRECORDED}."
    caveat = _if_any(used, caveat if evidence is None else evidence.sentence)
    return Resolved(blocks, source, candidates, True, known, caveat, status)


def judged(
    view: View, candidates: tuple[Candidate, ...], values: Mapping[str, np.ndarray]
) -> tuple[tuple[Candidate, ...], str, bool]:
    """Judge candidates by the density, else by the file's record and the draws.

    Returns
    -------
    tuple
        The candidates, with vectors whose parts are alike where the density wants these moved along; why they are no
        symmetry by themselves, empty where nothing speaks against them; whether they are no part of another one either.
    """
    changed = changed_by(view, [each.block for each in candidates])
    if changed == "":
        return candidates, "", False
    taken = {name for candidate in candidates for name in candidate.values}
    wider = tuple(
        with_alike(each, {n: v for n, v in values.items() if n in each.values or n not in taken})
        for each in candidates
    )
    if changed:
        kept = [_kept(view, *both) for both in zip(candidates, wider, strict=True)]
        if None not in kept:
            return tuple(filter(None, kept)), "", False
    moved = [name for candidate in wider for name in candidate.values]
    recorded = recorded_companions(view, moved)
    left = (*companions(wider, values), *of_another(candidates, values))
    reason, alone = "", False
    if changed:
        both = zip(wider, candidates, strict=True)
        more = recorded or any(len(w.slots) > len(c.slots) for w, c in both)
        reason, alone = changed, not more and (not left or ties_chains(candidates))
    elif recorded or left:
        verb = "differ" if recorded or len(left) > 1 else "differs"
        reason = f"{in_brief(recorded or left, NAMED)} {verb} between labellings in the same way."
    elif ordered := in_one_order(wider, values):
        reason = f"{in_brief(ordered, NAMED)} has its parts in one order at every draw."
    else:  # what differs though it was moved, and the log density if it does
        own = [(name, v, each) for each in wider for name, v in each.values.items()]
        lp = view.stat(schema.LP)
        if lp is not None and np.isfinite(lp).all():
            step = -(-view.num_draws // wider[0].labels.shape[1])
            own += [(schema.LP, lp[:, ::step], each) for each in wider]
        differ = tuple(dict.fromkeys(n for n, v, each in own if unlike(v, each.labels)))
        if differ:
            reason = f"Labellings differ in {in_brief(differ, NAMED)} after alignment, too."
            alone = True
    return candidates if changed else wider, reason, alone


def _kept(view: View, candidate: Candidate, wider: Candidate) -> Candidate | None:
    """Choose what keeps the log density: some of what may move along, or of the components; None if nothing does."""
    more = [slot for slot in wider.slots if slot not in candidate.slots][:MOST_ALONG]
    for count in reversed(range(len(more) + 1)):
        for also in combinations(more, count):
            names = {n for slot in (*candidate.slots, *also) for n in slot.names}
            own = replace(
                wider,
                slots=tuple(s for s in wider.slots if names >= {*s.names}),
                values={n: v for n, v in wider.values.items() if n in names},
            )
            for each in (own, own.few_places):
                if each is not None and changed_by(view, [each.block]) == "":
                    return each
    return None


def _if_any(symmetry: Symmetry, sentence: str) -> str:
    return sentence if equal_modes(symmetry) else ""


def _status(view: View) -> str:
    """Say how the symmetry that a file declares was checked."""
    evidence = view.symmetry_evidence
    if evidence is None:
        if view.network is not None:
            return "The symmetry is that of the network's architecture."
        return f"The symmetry is {UNRECORDED}."
    if not evidence.holds:
        return f"The declared symmetry is broken by this posterior's draws: {evidence.refuted}."
    unresolved = f", but for {', '.join(evidence.unresolved)}" if evidence.unresolved else ""
    found = view.attribute(schema.SYMMETRY_FOUND)
    whose = "The symmetry was found and" if found else "The declared symmetry was"
    return f"{whose} checked on the density, {evidence.size}{unresolved}."
