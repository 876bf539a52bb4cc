"""An alignment: its rule, its reference, the cost and group element of each draw, and the aligned posterior.

The cost of a draw x for a reference (m, w) is the weighted squared distance

    sum over entries e of w[e] (x[e] - m[e])^2,

with w = 1 / scale^2 (Ainsworth, Hayase and Srinivasa 2023, equation 1, all variables of a block at once), or with the
inverse variances of a diagonal Gaussian. The Gaussian's negative log density is half of the distance plus half the sum
of log variances (Stephens 2000, section 4, the loss of his algorithm for a Gaussian). Both costs are sums over
components, so a single block is a linear assignment problem.

References come from draws: one draw, a mean, or a diagonal Gaussian. Sums are taken about a shift (one draw), so that
variances do not lose precision. Variances have a minimum, because a single draw has no variance: 1e-6 of the variable's
mean variance, and 1e-12 of the squared scale or, if smaller, of the squared spread (about 1 in the units of features).

A target has a mean and weights. The weights express how precisely each entry is known. Without them, an imprecise entry
could carry draws to a different label.

Arrays of elements are (chain, draw, component). Entry j of a permutation is the number that component j had in the draw
as sampled. `Alignment.to_dataset` makes a group for the posterior's file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import product
from operator import itemgetter
from pathlib import Path
from tempfile import gettempdir
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from onebasin.base.card import Card, FactList, Part, Shown, Words
from onebasin.base.checks import check_count, check_seed, choose
from onebasin.base.files.netcdf import PIECE, is_in_file
from onebasin.models.symmetry.blocks import (
    Block,
    Group,
    Rotation,
    Symmetry,
    axes_of,
    blocks_of,
    in_words,
    to_json,
    variables_of,
)
from onebasin.models.symmetry.elements import Element, Rotated, labels_of, on_arrays
from onebasin.posteriors import schema
from onebasin.posteriors.draws import event_shapes
from onebasin.posteriors.scratch import Room, close_with, with_axes_of
from onebasin.posteriors.view import View

from ..discovery.resolve import DensityCheck, compare_densities, resolve, spelt
from .draws import Allocation, Arrays, allocations_in, renumbered
from .features import GAUGES, FeatureUnits


@dataclass(frozen=True, eq=False)
class AlignmentReference:
    """Centres (*event) and weights, either one per variable or (*event).

    The cost of a draw is `factor` times its distance plus `offset`. For a negative log density, `factor` is 1/2 and
    `offset` contains its other terms. Otherwise they are 1 and 0.
    """

    mean: Mapping[str, np.ndarray]
    weight: Mapping[str, np.ndarray]
    offset: float = 0.0
    factor: float = 1.0


def distance(
    values: Mapping[str, np.ndarray], reference: AlignmentReference, names: tuple[str, ...]
) -> Float[np.ndarray, " draw"]:
    """Return the weighted squared distance of draws (draw, *event) to the reference."""
    total = 0.0
    for name in names:
        gap = values[name] - reference.mean[name].astype(values[name].dtype)
        rows = gap.reshape(len(gap), -1)
        weight = np.asarray(reference.weight[name])
        if weight.ndim:
            square = (rows * rows) @ weight.ravel().astype(rows.dtype)
        else:
            square = np.einsum("ij,ij->i", rows, rows) * float(weight)
        total = total + square.astype(np.float64)
    return np.asarray(total)


class Term(NamedTuple):
    """Coefficients of a variable or of its square in the cost; `target` is (place, rest)."""

    name: str
    axis: int
    target: np.ndarray
    signed: bool = False
    square: bool = False


class Targets(NamedTuple):
    """A reference prepared for one block: the terms and the constant cost (place, 1) of each place."""

    terms: tuple[Term, ...]
    constant: np.ndarray


def targets(
    values: Mapping[str, np.ndarray], block: Block, reference: AlignmentReference
) -> Targets:
    """Prepare a reference for `cost_matrices`, in the precision of the draws (draw, *event).

    Every variable has exactly one axis that the block permutes.
    """
    terms, constant = [], np.zeros(1)
    for name, places in block.axes.items():
        (axis,) = axes_of(places)
        mean, weight = reference.mean[name], np.asarray(reference.weight[name])
        if not weight.ndim and name not in block.flipped:
            # A common offset adds the same cost to every assignment, but a large one loses precision.
            mean = mean - mean.mean(axis=axis, keepdims=True)
        # With this constant, a component's cheapest place is also the nearest.
        constant = constant + _by_place(weight * mean**2, axis).sum(axis=1)
        factors = [(-2 * weight * mean, name in block.flipped, False)]
        if weight.ndim:  # Otherwise the sum of w x^2 is the same for every place.
            factors.append((weight, False, True))
        for factor, signed, square in factors:
            target = _by_place(factor.astype(values[name].dtype), axis)
            terms.append(Term(name, axis, target, signed, square))
    return Targets(tuple(terms), constant[:, None])


def cost_matrices(
    values: Mapping[str, np.ndarray], aim: Targets
) -> tuple[
    Float[np.ndarray, "draw place component"], Float[np.ndarray, "draw place component"] | None
]:
    """Return the cost of component i (column) at place j (row), up to a constant, and the better signs.

    The signs are None if no component may flip.
    """
    fixed: list[_Factors] = []
    signed: list[_Factors] = []
    for term in aim.terms:
        drawn, target = values[term.name], term.target
        rows = np.moveaxis(drawn**2 if term.square else drawn, term.axis + 1, -1)
        rows = rows if rows.ndim == 3 else rows.reshape(len(rows), -1, rows.shape[-1])
        (signed if term.signed else fixed).append((target, rows))
    like = values[aim.terms[0].name]
    ones = np.ones_like(like, shape=(len(like), 1, len(aim.constant)))
    costs = _product([*fixed, (aim.constant.astype(like.dtype), ones)])
    if not signed:
        return costs, None
    gain = _product(signed)
    signs = np.where(gain <= 0, 1.0, -1.0)
    costs -= np.abs(gain).astype(costs.dtype, copy=False)
    return costs, signs


_Factors = tuple[np.ndarray, np.ndarray]
"""(place, rest) or (draw, place, rest) of the reference, and (draw, rest, component) of the draws."""


def _product(factors: list[_Factors]) -> np.ndarray:
    """Sum matrix products (draw, place, component)."""
    total = np.matmul(*factors[0])
    for more in factors[1:]:
        total += np.matmul(*more).astype(total.dtype, copy=False)
    return total


def _by_place(values: np.ndarray, axis: int) -> np.ndarray:
    front = np.moveaxis(values, axis, 0)
    return front.reshape(len(front), -1)


def about(mean: Mapping[str, np.ndarray], scales: Mapping[str, float]) -> AlignmentReference:
    """Return a reference with one weight per variable: 1 / scale^2."""
    weight = {name: np.asarray(scale**-2.0) for name, scale in scales.items()}
    return AlignmentReference({name: np.asarray(mean[name], np.float64) for name in scales}, weight)


@dataclass(eq=False)
class Moments:
    """Sums of aligned draws and of their squares about a nearby shift (*event), added up chunk by chunk."""

    shift: Mapping[str, np.ndarray]
    squares: bool
    count: int = 0
    first: Arrays = field(default_factory=dict)
    second: Arrays = field(default_factory=dict)

    def add(self, values: Mapping[str, np.ndarray]) -> None:
        """Add draws (draw, *event)."""
        self.count += len(next(iter(values.values())))
        for name, array in values.items():
            gap = array - self.shift[name].astype(array.dtype)
            self.first[name] = self.first.get(name, 0.0) + gap.sum(axis=0, dtype=np.float64)
            if self.squares:
                total = np.einsum("i...,i...->...", gap, gap, dtype=np.float64)
                self.second[name] = self.second.get(name, 0.0) + total

    def merge(self, other: Moments) -> None:
        """Add the sums of other draws, taken about the same shift."""
        self.count += other.count
        for own, theirs in ((self.first, other.first), (self.second, other.second)):
            for name, total in theirs.items():
                own[name] = own.get(name, 0.0) + total

    def mean(self) -> Arrays:
        """Return the mean of each variable."""
        return {n: np.asarray(self.shift[n] + s / self.count) for n, s in self.first.items()}

    def gaussian(self, scales: Mapping[str, float]) -> AlignmentReference:
        """Return the reference for a diagonal Gaussian.

        Its cost is half the squared standardised distance plus the logarithms of the standard deviations.

        Source: Stephens 2000, Dealing with label switching in mixture models, JRSS B 62(4), section 4.
        """
        weight, logs = {}, 0.0
        for name, scale in scales.items():
            gap = self.first[name] / self.count
            variance = np.maximum(self.second[name] / self.count - gap**2, 0.0)
            least = max(1e-6 * float(variance.mean()), 1e-12 * min(scale, 1.0) ** 2)
            variance = np.maximum(variance, least)
            weight[name] = np.asarray(1 / variance)
            logs += float(np.log(variance).sum())
        return AlignmentReference(self.mean(), weight, offset=0.5 * logs, factor=0.5)


REFERENCES = ("draw", "mean", "gaussian")
COSTS = ("weights", "activations")
_SAID = {
    "draw": "chain {0}, draw {1}",
    "mean": "the mean of the aligned draws, iterated from chain {0}, draw {1}",
    "gaussian": "a diagonal Gaussian fitted to the aligned draws, iterated from chain {0}, draw {1}",
    "posterior": "the mean of another posterior",
    "alignment": "the reference of another alignment",
}


@dataclass(frozen=True)
class AlignmentRule:
    """The arguments of `align` that determine an alignment, after validation.

    `reference` can also be ``posterior`` (the mean of another posterior) or ``alignment`` (the reference of another
    alignment).
    """

    reference: str = "gaussian"
    reference_draw: tuple[int, int] = (0, 0)
    cost: str = "weights"
    scales: Mapping[str, float] = field(default_factory=dict)
    gauge: str = "balanced"
    restarts: int = 1
    max_sweeps: int = 15
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the arguments."""
        choose("reference", self.reference, (*REFERENCES, "posterior", "alignment"))
        choose("cost", self.cost, COSTS)
        choose("gauge", self.gauge, GAUGES)
        check_count("restarts", self.restarts, most=10**6)
        check_count("max_sweeps", self.max_sweeps, most=10**6)
        check_seed(self.seed)

    def to_json(self) -> str:
        """Return the rule as JSON text."""
        return json.dumps(asdict(self))

    def describe(self, symmetry: Symmetry) -> str:
        """Describe the rule in words."""
        blocks = "; ".join(block.describe() for block in symmetry)
        reference = _SAID[self.reference].format(*self.reference_draw)
        text = f"Modulo {blocks}. "
        if rotated := blocks_of(symmetry, Rotation):
            names = " and ".join(block.loadings for block in rotated)
            text += f"Every draw is rotated to the varimax optimum of {names}, without row normalisation. "
        text += f"Every draw is matched with {reference}, by "
        if self.cost == "activations":
            text += "the squared distance of hidden activations."
        else:
            scales = ", ".join(f"{name} by {scale:.4g}" for name, scale in self.scales.items())
            text += f"the squared distance between whole components, with variables divided by scales ({scales})."
        return text


@dataclass(frozen=True, eq=False)
class AlignmentTarget:
    """A reference with its units."""

    reference: AlignmentReference
    units: FeatureUnits

    @property
    def centre(self) -> Arrays:
        """The centres in the units of the variables."""
        return self.units.back(self.reference.mean)

    def into(self, units: FeatureUnits) -> AlignmentReference:
        """Convert the reference to the units of other draws without changing the cost of a draw."""
        ours = self.reference
        ratio = {name: units.unit[name] / self.units.unit[name] for name in ours.mean}
        logs = sum(np.size(mean) * math.log(ratio[name]) for name, mean in ours.mean.items())
        return AlignmentReference(
            units.into(self.centre),
            {name: np.asarray(weight * ratio[name] ** 2) for name, weight in ours.weight.items()},
            ours.offset if ours.factor == 1.0 else ours.offset - logs,
            ours.factor,
        )


_SMALLEST = {"permutation": np.int32, "signs": np.int8, "swapped": np.int8}
"""Integer types in which the arrays of an element are stored."""
PerDraw = Float[np.ndarray, "chain draw"]


@dataclass(frozen=True, eq=False, repr=False)
class Alignment(Shown):
    """A posterior whose draws all have the same labelling.

    Attributes
    ----------
    source : View
        The posterior as sampled.
    symmetry : Symmetry
        The blocks by which the draws were aligned.
    rule : AlignmentRule
        The rule; `text` describes it in words.
    found : tuple of str
        Declarations of the symmetry's blocks if the symmetry was found in the draws; empty if it was declared.
    element : Element
        One group element per draw, leading axes (chain, draw).
    target : AlignmentTarget
        The reference: the centre and weight of each entry.
    cost : tuple of float
        Mean cost of a draw after each sweep, relative to that sweep's reference.
    converged : bool
        Whether the last sweep moved no component.
    distance_before, distance_after : array (chain, draw)
        Squared distance to the reference before and after alignment. Variables are divided by their scales, and
        positive scalings are removed.
    """

    source: View
    symmetry: Symmetry
    rule: AlignmentRule
    element: Element
    target: AlignmentTarget
    cost: tuple[float, ...]
    converged: bool
    distance_before: PerDraw
    distance_after: PerDraw
    found: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The rule in words."""
        return self.rule.describe(self.symmetry)

    @cached_property
    def reference(self) -> Mapping[str, np.ndarray]:
        """The centre of the reference, by variable."""
        return self.target.centre

    @property
    def sweeps(self) -> int:
        """Number of sweeps."""
        return len(self.cost)

    @cached_property
    def caveat(self) -> str:
        """A sentence on the part of the symmetry that was not checked; empty if all was checked."""
        checked = self.density is not None and self.density.compared
        if self.found:
            words = " and ".join(f"`{word}`" for word in self.found)
            told = (
                f"Labels switch in the draws, but no symmetry is declared. Declare {words} before the next run, and "
                "onebasin checks it on the log density."
            )
            if self.density:
                return told
            return f"{told} The alignment itself was not checked, because there is no log density."
        if self.density is not None and self.density.unchecked:
            return self.density.sentence
        return "" if checked else self.unchecked

    @cached_property
    def unchecked(self) -> str:
        """A sentence on the unchecked part of the symmetry, without integers that are renumbered."""
        resolved, evidence = resolve(self.source, self.symmetry), self.source.symmetry_evidence
        if evidence is None or not (resolved.in_file and self.allocations):
            return resolved.caveat
        left = tuple(name for name in evidence.left_behind if name not in self.allocations)
        return replace(evidence, left_behind=left).sentence

    @property
    def rotates(self) -> bool:
        """Check whether components were rotated."""
        return bool(blocks_of(self.symmetry, Rotation))

    @property
    def group(self) -> Group:
        """The group of the symmetry, acting on this posterior."""
        names = {*variables_of(self.symmetry)}
        return Group(self.symmetry, event_shapes(self.source.posterior, names))

    @cached_property
    def relabelled(self) -> Bool[np.ndarray, "chain draw"]:
        """Mask of draws whose labels were changed by alignment."""
        lead = self.distance_after.shape
        changed = np.zeros(lead, bool)
        for part, none in zip(self.element, self.group.identity(lead), strict=True):
            own, still = (
                p.matrix if isinstance(p, Rotated) else labels_of(p) for p in (part, none)
            )
            changed |= (own != still).any(axis=(-2, -1))
        return changed

    @cached_property
    def allocations(self) -> Mapping[str, Allocation]:
        """Integer variables that index components and are renumbered."""
        moved = {*variables_of(self.symmetry)}
        return allocations_in(self.source, self.element, moved)

    @cached_property
    def density(self) -> DensityCheck | None:
        """A comparison of the log density before and after alignment; None without a log density.

        Raises
        ------
        ValueError
            If alignment changes the log density.
        """
        if self.source.log_density is None or not all(b.keeps_density for b in self.symmetry):
            return None
        words = spelt(self.symmetry)
        return compare_densities(self.source, self._moved, self.relabelled, words)

    @cached_property
    def posterior(self) -> xr.DataTree:
        """The aligned posterior with all its groups; computed on first access.

        Statistics of the draws (`lp`, `energy`, ...) are those of the draws as sampled. Permutations, signs and
        complements do not change them. Rescaling would change `lp`, which includes the prior.
        """
        tree = self.source.tree.copy()
        also = renumbered(self.source.posterior, self.allocations, self.element)
        moved = self.source.posterior.assign({**self._moved, **also})
        tree[schema.POSTERIOR] = xr.DataTree(moved)
        if self._room.filed is not None:
            close_with(tree, self._room.filed)
        tree.attrs |= {
            schema.SYMMETRY: to_json(self.symmetry),
            schema.ALIGNMENT: self.rule.to_json(),
            schema.ALIGNMENT_RULE: self.text,
            schema.ALIGNMENT_SWEEPS: self.sweeps,
            schema.ALIGNMENT_CONVERGED: int(self.converged),
        }
        if not resolve(self.source, self.symmetry).in_file:  # It is on other blocks.
            tree.attrs.pop(schema.SYMMETRY_EVIDENCE, None)
        return tree

    @cached_property
    def _as_sampled(self) -> dict[str, xr.DataArray]:
        """The variables of the symmetry, with axes chain and draw first."""
        every = self.source.posterior
        names = [str(n) for n in every if any(n in block.variables for block in self.symmetry)]
        return {name: every[name].transpose(*schema.SAMPLE_DIMS, ...) for name in names}

    @cached_property
    def _room(self) -> Room:
        """The moved draws, on disk if the source is a large file."""
        first = self._as_sampled
        chains, draws = next(iter(first.values())).shape[:2]
        filed = any(map(is_in_file, first.values()))
        room = Room(chains, draws, Path(gettempdir()) if filed else None)
        rows = max(1, PIECE * draws * chains // sum(v.nbytes for v in first.values()))
        for chain, start in product(range(chains), range(0, draws, rows)):
            place = (chain, slice(start, start + rows))
            own = tuple(on_arrays(part, itemgetter(place)) for part in self.element)
            pieces = {name: v.variable[place].values for name, v in first.items()}
            room.put(chain, start, {schema.POSTERIOR: self.group.act(own, pieces)})
        return room

    @cached_property
    def _moved(self) -> dict[str, xr.DataArray]:
        """The variables of the symmetry, moved by the elements."""
        made = {}
        for name, values in self._room.group(schema.POSTERIOR).items():
            like = self._as_sampled[name]
            new = (
                with_axes_of(values, like)
                if isinstance(values, xr.DataArray)
                else like.copy(data=values)
            )
            made[name] = new.transpose(*self.source.posterior[name].dims)
        return made

    def to_dataset(self) -> xr.Dataset:
        """Return elements, reference, distances and costs as the group `alignment` of a file."""
        variables: dict[str, Any] = {}
        for place, part in enumerate(self.element):
            for word, array in part._asdict().items():
                if array is not None:
                    own = (f"block{place}_part", f"block{place}_from")
                    dims = (*schema.SAMPLE_DIMS, *own)[: array.ndim]
                    kept = array.astype(_SMALLEST.get(word, array.dtype))
                    variables[f"block{place}_{word}"] = (dims, kept)
        for name, array in self.reference.items():
            dims = tuple(f"reference_{name}_dim_{axis}" for axis in range(array.ndim))
            variables[f"reference_{name}"] = (dims, array)
        for side in ("distance_before", "distance_after"):
            variables[side] = (schema.SAMPLE_DIMS, getattr(self, side))
        variables["cost"] = (("sweep",), np.asarray(self.cost))
        facts: dict[str, Any] = {"symmetry": to_json(self.symmetry), "rule": self.rule.to_json()}
        facts |= {"text": self.text, "converged": int(self.converged)}
        return xr.Dataset(variables, attrs=facts)

    def _card(self) -> Card:
        moved, draws = self.relabelled.mean(), self.distance_after.size
        before, after = self.distance_before.mean(), self.distance_after.mean()
        what = "No draw had to be moved"
        if moved:
            what = f"{100 * moved:.3g} % of {draws:,} draws were moved: their squared distance to the reference "
            what += f"fell to {100 * after / before:.2g} %"
        parts: list[Part] = [Words(f"{what}. `diagnose` judges the aligned draws.")]
        if not self.converged:
            more = (
                f"Components still moved in the last of {self.sweeps} sweeps: raise `max_sweeps`."
            )
            parts.append(Words(more, flag="warn"))
        facts = FactList.of(
            ("modulo", in_words(self.symmetry)),
            ("found", ", ".join(f"`{word}`" for word in self.found)),
            ("renumbered", ", ".join(self.allocations)),
            ("sweeps", str(self.sweeps)),
        )
        checked = self.density.sentence if self.density else ""
        small = [Words(text, small=True) for text in (checked, self.caveat, self.text) if text]
        return Card("Aligned draws", (*parts, facts, *small), "" if self.converged else "warn")

    def to_tree(self) -> xr.DataTree:
        """Return the aligned posterior, including the group `alignment`."""
        tree = self.posterior.copy()
        tree[schema.ALIGNMENT] = xr.DataTree(self.to_dataset())
        close_with(tree, self.posterior)
        return tree
