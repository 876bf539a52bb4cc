"""The log density of draws that were moved, compared with that of the same draws as they came.

A posterior's view may bring along the log density of what it is of (`View.log_density`). What keeps it, up to
rounding, at every draw is a symmetry of that posterior as far as its draws reach; what does not leaves the posterior.
Without a log density, quantities that change with the labels and are not moved tell.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Bool

from onebasin.base.card import in_brief
from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Block, Symmetry
from onebasin.models.symmetry.changes import Values, changes
from onebasin.models.symmetry.elements import Element, labels_of, on_arrays
from onebasin.models.symmetry.group import Group
from onebasin.models.symmetry.words import spell
from onebasin.posteriors import schema
from onebasin.posteriors.draws import event_shapes
from onebasin.posteriors.view import View

from ..summaries.judged_draws import every_few, looked_at
from .companions import followers, recorded_companions, recurring, tied
from .slots import numbered

TOLERANCE = 1e-8
"""Nats; what rounding does comes on top."""
SECONDS = 20.0
"""After which no more draws are compared; those compared are spread evenly over all."""
BATCH = 500
"""Draws that are compared at once."""
TRIED = 24
"""Draws at which blocks are tried before draws are aligned by them."""
_NAMED, LISTED = 4, 6
"""Chains or variables that a sentence lists, and quantities."""


class LeavesPosterior(ArgumentError):
    """Draws that cannot be moved; `reason` says why in a sentence, without the advice."""

    def __init__(self, argument: str, words: str, reason: str, advice: str) -> None:
        super().__init__(f"`{argument}` cannot be aligned by {words}. {reason} {advice}")
        self.reason = reason


@dataclass(frozen=True)
class DensityCheck:
    """Numbers of draws that were moved and whose log density was compared, and why not if none."""

    moved: int
    compared: int = 0
    seconds: float = 0.0
    unchecked: str = ""

    @property
    def sentence(self) -> str:
        """The outcome in a sentence; empty where nothing was moved."""
        if self.unchecked:
            return f"The alignment was not checked on the log density: {self.unchecked}."
        if not self.moved:
            return ""
        which = f"all {self.moved:,}"
        if self.compared < self.moved:
            which = f"{self.compared:,} of {self.moved:,}"
        return (
            f"Alignment leaves the log density unchanged at {which} moved draws, up to rounding "
            f"({self.seconds:.2g} s)."
        )


def compare_densities(
    view: View, moved: Mapping[str, xr.DataArray], where: Bool[np.ndarray, "chain draw"], words: str
) -> DensityCheck:
    """Compare the log density at all draws that were moved, in even steps where that takes too long.

    A change at a draw is refused. `moved` holds the aligned variables, `where` tells which draws were moved, and
    `words` by what.
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
            f"It changes the log density of {int(real.sum()):,} of {len(rows):,} moved draws, in chain"
            f"{'s' * (len(chains) > 1)} {in_brief(chains, _NAMED)}, by up to {size[worst]:.3g} nats (chain {chain}, "
            f"draw {draw}): the draws would leave the posterior."
        )
        raise LeavesPosterior(view.argument, words, reason, advice(view))
    told = int(np.isfinite(size).sum())
    silent = "" if told else "it is finite, or precise enough, at no draw as stored"
    return DensityCheck(len(rows), told, time.perf_counter() - began, silent)


def changed_by(view: View, symmetry: Sequence[Block]) -> str | None:
    """Tell how blocks change the log density at some draws; empty where they do not, None where that is not known.

    Each block is tried alone, by random elements.
    """
    count = view.num_chains * view.num_draws
    rows = np.unique(np.linspace(0, count - 1, min(TRIED, count)).round().astype(int))
    moved = {n for block in symmetry for n in block.variables}
    names = dict.fromkeys([*parameters_of(view), *moved])
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
                f"Moving {in_brief(block.variables, _NAMED)} alone changes the log density by {size[real].max():.3g} "
                "nats."
            )
    return ""


def parameters_of(view: View) -> tuple[str, ...]:
    """Name the parameters whose draws are real numbers."""
    variables = {n: view.arrays[n] for n in view.kinds.named("parameter")}
    lead = set(schema.SAMPLE_DIMS)
    return tuple(n for n, v in variables.items() if lead <= set(v.dims) and v.dtype.kind == "f")


def _differences(
    view: View, before: Values, after: Values
) -> tuple[np.ndarray, Bool[np.ndarray, " draw"]] | str:
    """Changes of the log density draw by draw, and which are real; or why it could not be evaluated."""
    log_density = view.log_density
    if log_density is None:
        return "no program or model of it is at hand"

    def measure(values: Values) -> np.ndarray:
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
    except Exception as error:  # whatever it is, the draws are what they are
        words = str(error).splitlines() or [type(error).__name__]
        return f"it could not be evaluated ({words[0].rstrip('.')})"
    return found.size, found.real


def _rows(variable: xr.DataArray, rows: np.ndarray) -> np.ndarray:
    values = variable.transpose(*schema.SAMPLE_DIMS, ...).values
    return np.asarray(values.reshape(-1, *values.shape[2:])[rows])


def check_left_behind(
    view: View, symmetry: Symmetry, element: Element, allocations: Collection[str]
) -> None:
    """Refuse to move draws by elements (chain, draw) of a symmetry that nobody has checked on a density.

    Raises
    ------
    LeavesPosterior
        If quantities that it does not move, nor renumbers as `allocations`, change with the labels.
    """
    moved = {name for block in symmetry for name in block.variables}
    moved |= {*allocations}
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
            f"Alignment would leave what changes with the labels behind: {in_brief(left, LISTED)}.",
            advice(view),
        )


def advice(view: View) -> str:
    """Say what to declare in place of a part of a symmetry."""
    words = [f"`{word}`" for word in view.found_symmetry.get("exchangeable") or ()]
    if words:
        return f"Declare {' and '.join(words)}, found on the log density before sampling."
    if view.found_symmetry.get("blocks") == []:
        return (
            "The search on the log density found nothing to declare: they may be separate modes, whose masses "
            "`ob.sample_modes` estimates."
        )
    return "Declare all that moves together in one block; `onebasin symmetry` looks for it in a program with its data."


def spelt(symmetry: Symmetry) -> str:
    """Write blocks as they are declared."""
    try:
        return " and ".join(f"`{spell(block)}`" for block in symmetry)
    except ArgumentError:  # a name that no word can hold
        return ", ".join(dict.fromkeys(n for block in symmetry for n in block.variables))
