"""What an alignment matched its draws with, ready to be given to the draws of another posterior.

A mean says where parts are; the weights say how well each entry is known there, without which a loosely known one
carries draws to another label. So another posterior is matched with both, in units of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

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
