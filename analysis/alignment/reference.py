"""The rule of an alignment, its reference, and the cost of assigning a component of a draw to a place.

The cost of a draw x for a reference (m, w) is the weighted squared distance

    sum over entries e of w[e] (x[e] - m[e])^2,

with w = 1 / scale^2 (Ainsworth, Hayase and Srinivasa 2023, equation 1, all variables of a block at once), or the
inverse variances of a diagonal Gaussian. Its negative log density is half of the distance plus half the sum of log
variances (Stephens 2000, section 4, the loss behind his algorithm for a Gaussian). Both are additive over components,
so that one block is a linear assignment problem.

References come from draws: one draw, a mean, or a diagonal Gaussian. Sums are taken about a shift (one draw), so that
variances lose no digits. A variance is at least 1e-6 of its variable's mean variance and 1e-12 of the squared scale, or
of the squared spread if that is smaller (about 1 in the units of features), because a single draw has no variance.

If components overlap, aligned marginals depend on the rule. A target's mean says where components are; its weights say
how precisely each entry is known. Without the weights, an imprecise entry would carry draws to a different label. So
another posterior is matched with both, in its own units.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from onebasin.base.checks import check_count, check_seed, choose
from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Block, Rotation, Symmetry, axes_of, blocks_of

from .draws import Arrays
from .features import GAUGES, FeatureUnits


@dataclass(frozen=True, eq=False)
class AlignmentReference:
    """Centres (*event) and weights, one weight per variable or (*event).

    The cost of a draw is `factor` times its distance, 1 or 1/2 for a negative log density, plus `offset`, the other
    terms of the density.
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
    """A factor of a variable or of its square; `target` is (place, rest)."""

    name: str
    axis: int
    target: np.ndarray
    signed: bool = False
    square: bool = False


class Targets(NamedTuple):
    """A reference prepared for one block: the terms, and the constant cost of each place (place, 1)."""

    terms: tuple[Term, ...]
    constant: np.ndarray


def targets(
    values: Mapping[str, np.ndarray], block: Block, reference: AlignmentReference
) -> Targets:
    """Prepare a reference for `cost_matrices`, in the precision of the draws (draw, *event).

    Every variable has one axis in the block, which permutes.
    """
    terms, constant = [], np.zeros(1)
    for name, places in block.axes.items():
        (axis,) = axes_of(places)
        mean, weight = reference.mean[name], np.asarray(reference.weight[name])
        if not weight.ndim and name not in block.flipped:
            # A common level costs every assignment the same, but loses digits if it is large.
            mean = mean - mean.mean(axis=axis, keepdims=True)
        # This constant makes a component's cheapest place the nearest one.
        constant = constant + _by_place(weight * mean**2, axis).sum(axis=1)
        factors = [(-2 * weight * mean, name in block.flipped, False)]
        if weight.ndim:  # otherwise the sum of w x^2 is the same for every place
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
    """Return costs of component i (column) at place j (row), up to a constant, and the better signs.

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
    """Sums of aligned draws, and of their squares, about a nearby shift (*event), filled chunk by chunk."""

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
        """Add the sums of other draws about the same shift."""
        self.count += other.count
        for own, theirs in ((self.first, other.first), (self.second, other.second)):
            for name, total in theirs.items():
                own[name] = own.get(name, 0.0) + total

    def mean(self) -> Arrays:
        """Return the means."""
        return {n: np.asarray(self.shift[n] + s / self.count) for n, s in self.first.items()}

    def gaussian(self, scales: Mapping[str, float]) -> AlignmentReference:
        """Return a diagonal Gaussian: half the distance in its standard deviations, plus their logarithms.

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
    """The arguments of `align` that decide an alignment, checked.

    A `reference` may also be `posterior`, the mean of another posterior, or `alignment`, the reference of another
    alignment.
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
            text += (
                f"the squared distance of whole components, variables divided by scales ({scales})."
            )
        return text


@dataclass(frozen=True, eq=False)
class AlignmentTarget:
    """A reference with its units."""

    reference: AlignmentReference
    units: FeatureUnits

    @classmethod
    def of(cls, centre: Mapping[str, Any], scale: Mapping[str, Any]) -> AlignmentTarget:
        """Make a target from the means and standard deviations (*event) of a diagonal Gaussian."""
        means = {name: np.asarray(value, np.float64) for name, value in centre.items()}
        sds = {name: np.asarray(scale.get(name, np.nan), np.float64) for name in means}
        for name, sd in sds.items():
            if sd.shape != means[name].shape or not (sd > 0).all():
                raise ArgumentError(
                    f"`scale` of {name} must be positive and have the shape of its centre, {means[name].shape}; got "
                    f"{str(scale.get(name))[:60]}."
                )
        offset = float(sum(np.log(sd).sum() for sd in sds.values()))
        weight = {name: sd**-2.0 for name, sd in sds.items()}
        zero = {name: np.zeros_like(mean) for name, mean in means.items()}
        spread = {name: float(np.sqrt(np.mean(sd**2))) for name, sd in sds.items()}
        units = FeatureUnits(zero, dict.fromkeys(means, 1.0), spread)
        return cls(AlignmentReference(means, weight, offset, factor=0.5), units)

    @property
    def centre(self) -> Arrays:
        """The centres in the units of the variables."""
        return self.units.back(self.reference.mean)

    def into(self, units: FeatureUnits) -> AlignmentReference:
        """Convert the reference to the units of other draws, so that every draw keeps its cost."""
        ours = self.reference
        ratio = {name: units.unit[name] / self.units.unit[name] for name in ours.mean}
        logs = sum(np.size(mean) * math.log(ratio[name]) for name, mean in ours.mean.items())
        return AlignmentReference(
            units.into(self.centre),
            {name: np.asarray(weight * ratio[name] ** 2) for name, weight in ours.weight.items()},
            ours.offset if ours.factor == 1.0 else ours.offset - logs,
            ours.factor,
        )
