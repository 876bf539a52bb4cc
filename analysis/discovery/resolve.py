"""The symmetry of a posterior: the one that was given, the one that its file declares, or the one that its draws show.

Everything that judges, aligns, compares or draws a posterior modulo a symmetry asks `resolve`. Quantities that are
computed of components, such as responsibilities, move with the elements of a candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from onebasin.base.card import in_brief
from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Symmetry, equal_modes, to_json
from onebasin.models.symmetry.evidence import DECLARED, UNRECORDED
from onebasin.posteriors import schema
from onebasin.posteriors.draws import event_shapes
from onebasin.posteriors.view import Posterior, View, as_view

from ..summaries.judged_draws import deciding, looked_at
from .candidates import MOST, Candidate, apart, families, numbers_in, of_few_places, with_tuples
from .companions import (
    companions,
    followers,
    in_one_order,
    of_another,
    recorded_companions,
    tied,
    ties_chains,
    unlike,
)
from .density import changed_by
from .discover import discover
from .slots import Slot, Values, slots
from .sorting import closer, moved_values

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
        blocks = _fitting(view)
        source = "declared" if blocks else "none"
    if look and not blocks and source != "given":
        names, _ = deciding(view)
        values = looked_at(view, names)
        values = {name: np.where(np.isfinite(v), v, 0.0) for name, v in values.items()}
        found = discover(values, independent=view.is_independent)
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
        # Where a log density is at hand, the alignment says what came of it.
        told = "" if view.log_density else f"The file does not declare this symmetry; {DECLARED}."
        return Resolved(blocks, source, candidates, False, False, told, _if_any(used, told))
    known = view.network is not None if evidence is None else evidence.holds
    status = _if_any(used, _status(view))
    caveat = "" if view.network is not None else f"The symmetry is {UNRECORDED}."
    caveat = _if_any(used, caveat if evidence is None else evidence.sentence)
    return Resolved(blocks, source, candidates, True, known, caveat, status)


def _fitting(view: View) -> Symmetry:
    """Return the symmetry that a file declares; an ArgumentError names the file where its variables do not fit."""
    shapes = event_shapes(view.posterior)
    for block in view.declared_symmetry:
        try:
            if shapes.keys() >= {*block.variables}:
                block.check(shapes)
        except ArgumentError as error:
            words = str(error).removeprefix("`symmetry` ")
            raise ArgumentError(
                f"`{view.argument}` has an attribute 'symmetry' that {words} Delete the attribute, or give a symmetry."
            ) from error
    return view.declared_symmetry


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


NO_WORSE = 1.01
"""Variance after over before up to which a vector comes no further apart."""
LOOKED_AT = 100
"""Draws of each chain that are looked at."""


def with_quantities(view: View, candidate: Candidate, known: Sequence[str]) -> Candidate:
    """Let a candidate, found among `known`, move transformed parameters and generated quantities that come closer."""
    count = candidate.permutation.shape[1]
    step = -(-view.num_draws // count)
    rows = np.unique(np.linspace(0, count - 1, min(count, LOOKED_AT)).round().astype(int))
    values: dict[str, np.ndarray] = {}
    for name in (n for n in view.variables if n not in known):
        timed = set(schema.SAMPLE_DIMS) <= set(view.arrays[name].dims)
        if timed and view.arrays[name].dtype.kind == "f":
            drawn = view.arrays[name].isel(draw=rows * step)
            array = np.asarray(drawn.transpose(*schema.SAMPLE_DIMS, ...).values, np.float64)
            values |= {name: array} if array.size and np.isfinite(array).all() else {}
    possible = list(_possible(values, candidate))
    values = with_tuples(values, [slot.members for slot in possible if slot.members])
    places = [s for s in possible if values[s.name].var(axis=(0, 1)).mean() > 0]
    elements = list(zip(candidate.permutation[:, rows], candidate.signs[:, rows], strict=True))
    labels, also = candidate.labels[:, rows], []
    for slot in closer(candidate.slots, places, values, elements):
        moved = moved_values(slot, values[slot.name], elements)
        whole = slot.mirrors or not slot.axes  # perhaps about another point
        if not whole or not followers([labels], {slot.name: moved}):
            also.append(slot)
    # Where components are alike, a quantity of them comes no closer, but its correlation with them follows the labels.
    aligned = {name: v[:, rows] for name, v in candidate.values.items()}
    moved_too = {name for slot in also for name in slot.names}
    held = set(tied(labels, aligned, {n: v for n, v in values.items() if n not in moved_too}))
    signs = candidate.slots[0].signed
    for slot in (s for s in places if s.axes and s.signed <= signs and held.issuperset(s.names)):
        moved = moved_values(slot, values[slot.name], elements)
        if not (tied(labels, aligned, {slot.name: moved}) or moved_too & {*slot.names}):
            also.append(slot)
            moved_too |= {*slot.names}
    return replace(candidate, slots=(*candidate.slots, *also))


def with_alike(candidate: Candidate, values: Values) -> Candidate:
    """Let parameters of as many components move along that agree once moved, as components that are alike do.

    These are arrays, and, where separate parameters move, others whose names have the same numbers, or whose
    correlations with those follow the labels.
    """
    if candidate.turns:  # by rotations, no order of components
        return candidate
    elements = list(zip(candidate.permutation, candidate.signs, strict=True))
    others = {n: v for n, v in values.items() if n not in candidate.values}
    counted = {numbers_in(slot.members) for slot in candidate.slots} - {()}
    separate = any(slot.members for slot in candidate.slots)
    held = {*tied(candidate.labels, candidate.values, others)} if separate else set()

    def may_move(slot: Slot) -> bool:
        known = numbers_in(slot.members) in counted or held >= {*slot.members}
        return bool(slot.axes) and not slot.signed and (not slot.members or known)

    possible = list(filter(may_move, _possible(others, candidate)))
    stacked = with_tuples(others, [slot.members for slot in possible if slot.members])
    best: dict[str, tuple[float, Slot, np.ndarray]] = {}
    for slot in possible:
        v = stacked[slot.name]
        moved = moved_values(slot, v, elements)
        ratio = moved.var(axis=(0, 1)).sum() / max(v.var(axis=(0, 1)).sum(), 1e-300)
        if ratio < best.get(slot.name, (NO_WORSE,))[0]:
            best[slot.name] = (float(ratio), slot, moved)
    found = {s: moved for _, s, moved in best.values() if not unlike(moved, candidate.labels)}
    moved_too = apart(found, {slot.name: moved for slot, moved in found.items()})
    order = list(values)
    every = sorted((*candidate.slots, *found), key=lambda slot: order.index(slot.names[0]))
    return replace(candidate, slots=tuple(every), values={**candidate.values, **moved_too})


def _possible(values: Values, candidate: Candidate) -> Iterator[Slot]:
    """Yield slots in which quantities may have as many components, or mirror two.

    Where some places alone change, these are arrays with one axis of components: no word has places of others.
    """
    size = candidate.size
    flat = {name: v.reshape(-1, *v.shape[2:]) for name, v in values.items()}
    alike_slots = (slot for slot in slots(flat) if slot.size == size)
    if candidate.places:
        yield from (slot for slot in alike_slots if len(slot.axes) == 1)
        return
    yield from alike_slots
    shapes: dict[tuple[int, ...], list[str]] = {}
    for name, v in flat.items():
        shapes.setdefault(v.shape[1:], []).append(name)
        if size == 2 and v.ndim == 1 and v.min() > 0 and v.max() < 1:
            yield Slot(name, (), 2, complement=True)
        if size == 2 and v.min() < 0 < v.max():
            yield Slot(name, (), 2, reflected=True)
    for alike in shapes.values():
        tuples = combinations(alike[:MOST], 2) if size == 2 else families(alike)
        yield from (Slot("~".join(m), (0,), size, members=m) for m in tuples if len(m) == size)
