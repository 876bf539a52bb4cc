"""The symmetry of a posterior: given by the caller, declared in its file, or found in its draws.

All code that judges, aligns, compares or plots a posterior modulo a symmetry calls `resolve`. Quantities that are
computed from components, such as responsibilities, move with the elements of a candidate.

Moved draws are checked on the log density, if the posterior's view has one (`View.log_density`): if it stays the same,
up to rounding, at every draw, the draws support the symmetry; otherwise moved draws leave the posterior. Without a log
density, unmoved quantities that change with the labels are the evidence.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import xarray as xr
from jaxtyping import Bool

from onebasin.base.card import in_brief
from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import (
    Block,
    Group,
    Symmetry,
    equal_modes,
    spell,
    to_json,
    variables_of,
)
from onebasin.models.symmetry.elements import Element, labels_of, on_arrays
from onebasin.models.symmetry.evidence import DECLARED, UNRECORDED, changes
from onebasin.posteriors import schema
from onebasin.posteriors.draws import event_shapes
from onebasin.posteriors.view import Posterior, View, as_view

from ..summaries.summary import deciding, every_few, looked_at
from .candidates import (
    MOST,
    Candidate,
    apart,
    companions,
    families,
    followers,
    in_one_order,
    numbered,
    numbers_in,
    of_another,
    recorded_companions,
    recurring,
    tied,
    ties_chains,
    unlike,
    with_tuples,
)
from .discover import discover
from .sorting import Slot, Values, closer, moved_values, slots

TOLERANCE = 1e-8  # Allowed change in nats, in addition to rounding.
SECONDS = 20.0
"""Seconds after which no more draws are compared; the compared draws are spread evenly."""
BATCH = 500  # Draws that are compared together.
TRIED = 24  # Draws at which blocks are tried before alignment.
_NAMED, LISTED = 4, 6
"""Maximum numbers of chains or variables, and of quantities, in a sentence."""


class LeavesPosterior(ArgumentError):
    """Draws that cannot be moved; `reason` is a sentence without the advice."""

    def __init__(self, argument: str, words: str, reason: str, advice: str) -> None:
        super().__init__(f"`{argument}` cannot be aligned by {words}. {reason} {advice}")
        self.reason = reason


@dataclass(frozen=True)
class DensityCheck:
    """The number of moved draws and of those whose log densities were compared, or why none were compared."""

    moved: int
    compared: int = 0
    seconds: float = 0.0
    unchecked: str = ""

    @property
    def sentence(self) -> str:
        """The result as a sentence; empty if nothing was moved."""
        if self.unchecked:
            return f"The alignment was not checked on the log density: {self.unchecked}."
        if not self.moved:
            return ""
        which = f"all {self.moved:,} moved draws"
        if self.compared < self.moved:
            which = f"all {self.compared:,} draws checked, of {self.moved:,} that moved"
        return (
            f"Alignment leaves the log density unchanged at {which}, up to rounding (checked in "
            f"{self.seconds:.2g} s)."
        )


def compare_densities(
    view: View, moved: Mapping[str, xr.DataArray], where: Bool[np.ndarray, "chain draw"], words: str
) -> DensityCheck:
    """Compare the log density at all moved draws, or at evenly spaced ones if that takes too long.

    `moved` has the aligned variables, `where` marks the moved draws, and `words` name the symmetry. A change raises an
    error.
    """
    rows, began = np.flatnonzero(where), time.perf_counter()
    if not len(rows):
        return DensityCheck(0)
    first = {n: _rows(view.arrays[n], rows) for n in parameters_of(view)}
    then = first | {n: _rows(moved[n], rows) for n in first if n in moved}
    batches = -(-len(rows) // BATCH)
    size = np.full(len(rows), np.nan)
    real = np.zeros(len(rows), bool)
    for batch in range(batches):
        some = slice(batch, None, batches)
        before, after = ({n: v[some] for n, v in side.items()} for side in (first, then))
        if isinstance(found := _differences(view, before, after), str):
            return DensityCheck(len(rows), unchecked=found)
        size[some], real[some] = found
        if time.perf_counter() - began > SECONDS:
            break
    if real.any():
        worst = int(np.where(real, np.nan_to_num(size, posinf=np.inf), -1.0).argmax())
        chain, draw = divmod(int(rows[worst]), view.num_draws)
        chains = sorted({str(row // view.num_draws) for row in rows[real]}, key=int)
        reason = (
            f"It changes the log density of {int(real.sum()):,} of {len(rows):,} moved draws, in "
            f"chain{'s' * (len(chains) > 1)} {in_brief(chains, _NAMED)}, by up to {size[worst]:.3g} nats (chain "
            f"{chain}, draw {draw}): aligned draws would not follow the posterior."
        )
        raise LeavesPosterior(view.argument, words, reason, advice(view))
    told = int(np.isfinite(size).sum())
    silent = "" if told else "it is infinite or too imprecise at the stored draws"
    return DensityCheck(len(rows), told, time.perf_counter() - began, silent)


def changed_by(view: View, symmetry: Sequence[Block]) -> str | None:
    """Describe how blocks change the log density at some draws; empty if they do not, None if that is unknown.

    Each block is tried alone, with random elements.
    """
    count = view.num_chains * view.num_draws
    rows = np.unique(np.linspace(0, count - 1, min(TRIED, count)).round().astype(int))
    names = dict.fromkeys([*parameters_of(view), *variables_of(symmetry)])
    values = {n: _rows(view.arrays[n], rows) for n in names if view.log_density}
    before = {n: values[n] for n in parameters_of(view) if n in values}
    for block in symmetry:
        group = Group((block,), event_shapes(view.posterior, block.variables))
        element = group.random(np.random.default_rng(0), (len(rows),))
        after = before | group.act(element, values) if values else {}
        found = _differences(view, before, {n: after[n] for n in before})
        if isinstance(found, str) or not np.isfinite(found[0]).any():
            return None
        size, real = found
        if real.any():
            return (
                f"Moving only {in_brief(block.variables, _NAMED)} changes the log density by {size[real].max():.3g} "
                "nats."
            )
    return ""


def parameters_of(view: View) -> tuple[str, ...]:
    """Name the parameters whose draws are real numbers."""
    variables = {n: view.arrays[n] for n in view.kinds.named("parameter")}
    lead = set(schema.SAMPLE_DIMS)
    return tuple(n for n, v in variables.items() if lead <= set(v.dims) and v.dtype.kind == "f")


def _differences(
    view: View, before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[np.ndarray, Bool[np.ndarray, " draw"]] | str:
    """Return the changes of the log density at each draw, and whether they are real; or why there are none."""
    log_density = view.log_density
    if log_density is None:
        return "its program or model is not available"

    def measure(values: Mapping[str, Any]) -> np.ndarray:
        named = {
            name: (
                (*schema.SAMPLE_DIMS, *(f"{name}_dim_{at}" for at in range(v.ndim - 1))),
                v[None],
            )
            for name, v in values.items()
        }
        return np.asarray(log_density(xr.Dataset(named)), dtype=np.float64)[0]

    try:
        found = changes(measure, before, measure(before), measure(after), TOLERANCE)
    except Exception as error:  # A user's log density may raise any error.
        words = str(error).splitlines() or [type(error).__name__]
        return f"it could not be evaluated ({words[0].rstrip('.')})"
    return found.size, found.real


def _rows(variable: xr.DataArray, rows: np.ndarray) -> np.ndarray:
    values = variable.transpose(*schema.SAMPLE_DIMS, ...).values
    return np.asarray(values.reshape(-1, *values.shape[2:])[rows])


def check_left_behind(
    view: View, symmetry: Symmetry, element: Element, allocations: Collection[str]
) -> None:
    """Check draws that move by elements (chain, draw) of a symmetry that was not checked on a density.

    Raises
    ------
    LeavesPosterior
        If quantities change with the labels that are neither moved nor renumbered as `allocations`.
    """
    moved = {*variables_of(symmetry), *allocations}
    drawn = {n for n, v in view.arrays.items() if v.dtype.kind in "biuf" and "draw" in v.dims}
    names = [name for name in parameters_of(view) if name in drawn - moved]
    ours = sorted(drawn & moved)
    step = every_few(view, [*names, *ours])
    thin = tuple(on_arrays(part, lambda a: a[:, ::step]) for part in element)
    rows = [labels_of(part) for part in thin]
    labels = [numbered(each.reshape(*each.shape[:2], -1)) for each in rows if each.size]
    looked = looked_at(view, names, step)
    others = {n: np.where(np.isfinite(v), v, 0.0) for n, v in looked.items()}
    left = recorded_companions(view, moved) or followers(labels, others, sure=True)
    if others and not left and any(map(recurring, labels)):
        values = looked_at(view, ours, step)
        shapes = {name: value.shape[2:] for name, value in values.items()}
        aligned = Group(symmetry, shapes).act(thin, values)
        left = tuple(name for own in labels for name in tied(own, aligned, others))
    if left:
        raise LeavesPosterior(
            view.argument,
            spelt(symmetry),
            f"These quantities change with the labels, but alignment would not move them: {in_brief(left, LISTED)}.",
            advice(view),
        )


def advice(view: View) -> str:
    """Advise what to declare instead of a part of a symmetry."""
    words = [f"`{word}`" for word in view.found_symmetry.get("exchangeable") or ()]
    if words:
        return f"Declare {' and '.join(words)}, found on the log density before sampling."
    if view.found_symmetry.get("blocks") == [] and not view.found_symmetry.get("open"):
        return (
            "The search on the log density found nothing to declare. The modes may be unrelated: their weights are "
            "estimated by `ob.sample_modes`."
        )
    return (
        "Declare all parameters that move together in one block; `onebasin symmetry` looks for them in a program "
        "with its data."
    )


def spelt(symmetry: Symmetry) -> str:
    """Write blocks as declarations."""
    try:
        return " and ".join(f"`{spell(block)}`" for block in symmetry)
    except ArgumentError:  # A declaration cannot contain some names.
        return ", ".join(variables_of(symmetry))


NAMED = 6  # Maximum number of names in a sentence.
MOST_ALONG = 4
"""Maximum number of arrays that are tried with a candidate, in all combinations."""

Source = Literal["given", "declared", "refuted", "found", "partial", "none"]


@dataclass(frozen=True, eq=False)
class Resolved:
    """The symmetry of a posterior and its origin.

    Its `source` is "given" by the caller; "declared" in the file; "refuted" if declared but broken by the draws;
    "found" in the draws; "partial" if the draws show only a part; or "none". `caveat` and `status` are sentences on
    its check on the density; each may be empty.
    """

    blocks: Symmetry  # Including scalings of a network; empty if the draws refute it.
    source: Source
    candidates: tuple[Candidate, ...]  # All that were found; `blocks` has the certain ones.
    in_file: bool  # The file declares all blocks with equal modes.
    known: bool  # It was checked and holds, or follows from a network's architecture.
    caveat: str
    status: str
    reason: str = ""  # For "partial", a sentence on the quantities that cannot be moved.
    alone: bool = False  # For "partial": nothing else belongs to it, so the draws show modes.

    @property
    def equal_modes(self) -> Symmetry:
        """The blocks that make equal modes: all except scalings."""
        return equal_modes(self.blocks)

    @property
    def words(self) -> tuple[str, ...]:
        """Declarations of the blocks that were found."""
        return tuple(each.word for each in self.candidates if each.certain)


def resolve(posterior: Posterior, given: Any = None, *, look: bool = False) -> Resolved:
    """Return a posterior's symmetry: the given one, as blocks or words, or else the declared one.

    With `look`, the draws are searched if there is neither.
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
        # With a log density, the alignment reports the check.
        told = "" if view.log_density else f"The file does not declare this symmetry; {DECLARED}."
        return Resolved(blocks, source, candidates, False, False, told, _if_any(used, told))
    known = view.network is not None if evidence is None else evidence.holds
    status = _if_any(used, _status(view))
    caveat = "" if view.network is not None else f"The symmetry is {UNRECORDED}."
    caveat = _if_any(used, caveat if evidence is None else evidence.sentence)
    return Resolved(blocks, source, candidates, True, known, caveat, status)


def _fitting(view: View) -> Symmetry:
    """Return the symmetry that a file declares; the error names the file if its variables do not fit."""
    shapes = event_shapes(view.posterior)
    for block in view.declared_symmetry:
        try:
            if shapes.keys() >= {*block.variables}:
                block.check(shapes)
        except ArgumentError as error:
            fault = str(error).partition(". ")[0].rstrip(".")
            raise ArgumentError(
                f"The attribute 'symmetry' of `{view.argument}` does not fit the variables: {fault}. Delete "
                "the attribute, or give a symmetry."
            ) from error
    return view.declared_symmetry


def judged(
    view: View, candidates: tuple[Candidate, ...], values: Mapping[str, np.ndarray]
) -> tuple[tuple[Candidate, ...], str, bool]:
    """Judge candidates by the density, or else by the file's record and the draws.

    Returns
    -------
    tuple
        The candidates, extended by vectors of equal components if the density requires it; the reason why they are not
        a symmetry, empty if there is none; and whether they are not a part of a symmetry either.
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
        reason = f"{in_brief(ordered, NAMED)} has its components in the same order at every draw."
    else:  # Look for moved variables, or a log density, that still differ.
        own = [(name, v, each) for each in wider for name, v in each.values.items()]
        lp = view.stat(schema.LP)
        if lp is not None and np.isfinite(lp).all():
            step = -(-view.num_draws // wider[0].labels.shape[1])
            own += [(schema.LP, lp[:, ::step], each) for each in wider]
        differ = tuple(dict.fromkeys(n for n, v, each in own if unlike(v, each.labels)))
        if differ:
            reason = f"Labellings still differ in {in_brief(differ, NAMED)} after alignment."
            alone = True
    return candidates if changed else wider, reason, alone


def _kept(view: View, candidate: Candidate, wider: Candidate) -> Candidate | None:
    """Choose slots that may move along, or some components, so that the log density is unchanged; None without any."""
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
    """Describe how a file's declared symmetry was checked."""
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
    return f"{whose} checked against the log density, {evidence.size}{unresolved}."


NO_WORSE = 1.01
"""Maximum ratio of variances after and before for vectors that move along."""
LOOKED_AT = 100
"""Maximum number of draws per chain that are used."""


def with_quantities(view: View, candidate: Candidate, known: Sequence[str]) -> Candidate:
    """Add transformed parameters and generated quantities that come closer to a candidate among `known`."""
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
        whole = slot.mirrors or not slot.axes  # Perhaps mirrored at a different point.
        if not whole or not followers([labels], {slot.name: moved}):
            also.append(slot)
    # A quantity of equal components comes no closer, but its correlation with them follows the labels.
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
    """Add parameters with as many components that are nearly equal and agree after the move.

    These are arrays, and if separate parameters move, others whose names have the same numbers, or whose correlations
    with them follow the labels.
    """
    if candidate.turns:
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
    """Yield slots of quantities with as many components, or that mirror two.

    If only some places change, yield only arrays with one axis of components.
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
