"""Quantities that are computed of components, such as responsibilities: they move with the elements of a candidate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from onebasin.posteriors import schema
from onebasin.posteriors.view import View

from .candidate import Candidate
from .counterparts import MOST, apart, families, numbers_in, with_tuples
from .moving import closer, moved_values
from .partial import followers, tied, unlike
from .slots import Slot, Values, slots

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
    also = []
    for slot in closer(candidate.slots, places, values, elements):
        moved = moved_values(slot, values[slot.name], elements)
        whole = slot.mirrors or not slot.axes  # perhaps about another point
        if not whole or not followers([candidate.labels[:, rows]], {slot.name: moved}):
            also.append(slot)
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
