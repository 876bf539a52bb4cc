"""References from draws: one draw, a mean, a diagonal Gaussian.

Sums are taken about a shift (one draw), so that variances lose no digits. A variance is at least
1e-6 of its variable's mean one and 1e-12 of the squared scale, or of the squared spread where that is less (features
are in units in which it is about 1): a single draw has none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from .costs import Reference

Arrays = dict[str, np.ndarray]


def about(mean: Mapping[str, np.ndarray], scales: Mapping[str, float]) -> Reference:
    """Reference with one weight for a whole variable: 1 / scale^2."""
    weight = {name: np.asarray(scale**-2.0) for name, scale in scales.items()}
    return Reference({name: np.asarray(mean[name], np.float64) for name in scales}, weight)


@dataclass(eq=False)
class Moments:
    """Sums over aligned draws, filled chunk by chunk.

    Parameters
    ----------
    shift : mapping of str to array (*event)
        Close to the draws.
    """

    shift: Mapping[str, np.ndarray]
    count: int = 0
    first: Arrays = field(default_factory=dict)
    second: Arrays = field(default_factory=dict)

    def add(self, values: Mapping[str, np.ndarray], *, squares: bool) -> None:
        """Take in draws (draw, *event)."""
        self.count += len(next(iter(values.values())))
        for name, array in values.items():
            gap = array - self.shift[name].astype(array.dtype)
            self.first[name] = self.first.get(name, 0.0) + gap.sum(axis=0, dtype=np.float64)
            if squares:
                total = np.einsum("i...,i...->...", gap, gap, dtype=np.float64)
                self.second[name] = self.second.get(name, 0.0) + total

    def merge(self, other: Moments) -> None:
        """Take in the sums of other draws, about the same shift."""
        self.count += other.count
        for own, theirs in ((self.first, other.first), (self.second, other.second)):
            for name, total in theirs.items():
                own[name] = own.get(name, 0.0) + total

    def mean(self) -> Arrays:
        """Means."""
        return {n: np.asarray(self.shift[n] + s / self.count) for n, s in self.first.items()}

    def gaussian(
        self, scales: Mapping[str, float], of_one_variance: Collection[str] = ()
    ) -> Reference:
        """Diagonal Gaussian: half the distance in its standard deviations, plus their logarithms.

        Parameters
        ----------
        scales : mapping of str to float
            Of every variable.
        of_one_variance : collection of str
            Variables all of whose entries have their mean variance.

        References
        ----------
        Stephens 2000, Dealing with label switching in mixture models, JRSS B 62(4), section 4.
        """
        weight, logs = {}, 0.0
        for name, scale in scales.items():
            gap = self.first[name] / self.count
            variance = np.maximum(self.second[name] / self.count - gap**2, 0.0)
            least = max(1e-6 * float(variance.mean()), 1e-12 * min(scale, 1.0) ** 2)
            variance = np.maximum(variance, least)
            shared = np.asarray(variance.mean()) if name in of_one_variance else variance
            weight[name] = np.asarray(1 / shared)
            logs += float(np.log(np.broadcast_to(shared, variance.shape)).sum())
        return Reference(self.mean(), weight, offset=0.5 * logs, factor=0.5)
