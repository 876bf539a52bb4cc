"""The rule by which draws were aligned, and what they were matched with.

Aligned marginals depend on the rule where components overlap. A target's mean says where parts are; its weights say how
well each entry is known there, without which a loosely known one carries draws to another label. So another posterior
is matched with both, in units of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from onebasin.base.checks import check_count, check_seed, choose
from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Rotation, Symmetry, blocks_of

from .costs import AlignmentReference
from .units import GAUGES, Arrays, FeatureUnits

REFERENCES = ("draw", "mean", "gaussian")
COSTS = ("weights", "activations")
_SAID = {
    "draw": "chain {0}, draw {1}",
    "mean": "the mean of the aligned draws, iterated from chain {0}, draw {1}",
    "gaussian": "a diagonal Gaussian fitted to the aligned draws, iterated from chain {0}, draw {1}",
    "posterior": "the mean of another posterior",
    "alignment": "what another posterior's draws were aligned with",
}


@dataclass(frozen=True)
class AlignmentRule:
    """The choices that decide an alignment, besides the draws and their symmetry, checked: arguments of `align`.

    A `reference` may also be `posterior`, another one's mean, or `alignment`, which another one's draws were matched
    with.
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
        """Check words and numbers."""
        choose("reference", self.reference, (*REFERENCES, "posterior", "alignment"))
        choose("cost", self.cost, COSTS)
        choose("gauge", self.gauge, GAUGES)
        check_count("restarts", self.restarts, most=10**6)
        check_count("max_sweeps", self.max_sweeps, most=10**6)
        check_seed(self.seed)

    def to_json(self) -> str:
        """The rule as JSON text."""
        return json.dumps(asdict(self))

    def describe(self, symmetry: Symmetry) -> str:
        """Say the rule in plain words."""
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
    """A reference, and the units that it is in: those of the features that were matched with it."""

    reference: AlignmentReference
    units: FeatureUnits

    @classmethod
    def of(cls, centre: Mapping[str, Any], scale: Mapping[str, Any]) -> AlignmentTarget:
        """Make a target from a diagonal Gaussian that is known by its numbers, such as a kept reference's labelling.

        `centre` and `scale` are means and standard deviations (*event) of every variable that the symmetry moves; a
        scale that is missing, of another shape than its centre or not positive is refused.
        """
        means = {name: np.asarray(value, np.float64) for name, value in centre.items()}
        sds = {name: np.asarray(scale.get(name, np.nan), np.float64) for name in means}
        for name, sd in sds.items():
            if sd.shape != means[name].shape or not (sd > 0).all():
                raise ArgumentError(
                    f"`scale` of {name} must be positive and of shape {means[name].shape}, as its centre is; got "
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
        """The centres, as features came."""
        return self.units.back(self.reference.mean)

    def into(self, units: FeatureUnits) -> AlignmentReference:
        """The same reference in the units of other draws: every draw costs what it would have cost."""
        ours = self.reference
        ratio = {name: units.unit[name] / self.units.unit[name] for name in ours.mean}
        logs = sum(np.size(mean) * math.log(ratio[name]) for name, mean in ours.mean.items())
        return AlignmentReference(
            units.into(self.centre),
            {name: np.asarray(weight * ratio[name] ** 2) for name, weight in ours.weight.items()},
            ours.offset if ours.factor == 1.0 else ours.offset - logs,
            ours.factor,
        )
