"""What an alignment matched its draws with, ready to be given to the draws of another posterior.

A mean says where parts are; the weights say how well each entry is known there, without which a loosely known one
carries draws to another label. So another posterior is matched with both, in units of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError

from .costs import Reference
from .units import Arrays, FeatureUnits


@dataclass(frozen=True, eq=False)
class Target:
    """A reference, and the units that it is in.

    Attributes
    ----------
    reference : Reference
        Centres and weights.
    units : FeatureUnits
        Of the features that were matched with it.
    """

    reference: Reference
    units: FeatureUnits

    @classmethod
    def of(cls, centre: Mapping[str, Any], scale: Mapping[str, Any]) -> Target:
        """What is matched with a diagonal Gaussian that is known by its numbers, such as a kept reference's labelling.

        Parameters
        ----------
        centre, scale : mapping of str to array (*event)
            Means and standard deviations, of every variable that the symmetry moves.

        Raises
        ------
        ValueError
            If a scale is missing, of another shape than its centre or not positive.
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
        return cls(Reference(means, weight, offset, factor=0.5), units)

    @property
    def centre(self) -> Arrays:
        """The centres, as features came."""
        return self.units.back(self.reference.mean)

    def into(self, units: FeatureUnits) -> Reference:
        """The same reference in the units of other draws: every draw costs what it would have cost."""
        ours = self.reference
        ratio = {name: units.unit[name] / self.units.unit[name] for name in ours.mean}
        logs = sum(np.size(mean) * math.log(ratio[name]) for name, mean in ours.mean.items())
        return Reference(
            units.into(self.centre),
            {name: np.asarray(weight * ratio[name] ** 2) for name, weight in ours.weight.items()},
            ours.offset if ours.factor == 1.0 else ours.offset - logs,
            ours.factor,
        )
