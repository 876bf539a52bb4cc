"""By how much a log density changes when points are moved.

A symmetry leaves a log density as it is up to rounding, whatever constants a program adds. Rounding is estimated where
it could matter: by the size of the log density, and by what the smallest possible changes of the point do to it. A
change that is within rounding is no change, and where rounding is above `BLIND` the point tells nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

ROUNDINGS = 16.0  # The ratio to the estimate of rounding above which a change counts as one.
BLIND = 0.1
"""Nats of rounding from which on a point tells nothing: a part of a model that is missed changes it by more."""
PERTURBATIONS = 3  # Smallest changes of a point that are tried, where they are needed.

Values = Mapping[str, Any]
Measure = Callable[[Values], Float[np.ndarray, " point"] | None]


@dataclass(frozen=True)
class Changes:
    """The effect of moving the points, point by point."""

    size: Float[np.ndarray, " point"]
    """(point,): Change in nats; infinite where only one of both is finite, NaN where it tells nothing."""
    real: Bool[np.ndarray, " point"]
    """(point,): Whether the change is beyond tolerance and rounding."""
    telling: Bool[np.ndarray, " point"]  # (point,): Whether the point tells anything.

    @property
    def largest(self) -> float:
        """The largest change; NaN where no point tells anything."""
        return float(self.size[self.telling].max()) if self.telling.any() else float("nan")


def changes(
    measure: Measure,
    values: Values,
    before: Float[np.ndarray, " point"],
    after: Float[np.ndarray, " point"],
    tolerance: float,
) -> Changes:
    """Compare log densities (point,) at points (point, ...) with those at the same points moved.

    `measure` is the log density, for estimates of rounding; `tolerance` are nats that a change may have in any case.
    """
    kinds = [np.asarray(value).dtype for value in values.values()]
    eps = max((float(np.finfo(k).eps) for k in kinds if k.kind == "f"), default=2.2e-16)
    before, after = (np.asarray(side, dtype=np.float64) for side in (before, after))
    finite = np.isfinite(before) & np.isfinite(after)
    with np.errstate(invalid="ignore"):
        size = np.where(finite, np.abs(after - before), np.inf)
        magnitude = np.maximum(np.abs(before), np.abs(after))
    rounding = np.where(finite, ROUNDINGS * eps * magnitude, 0.0)
    doubtful = finite & (size > np.maximum(tolerance, rounding))
    if doubtful.any():
        rounding = np.maximum(rounding, ROUNDINGS * _noise(measure, values, before, eps))
    # Neither side finite, or nothing to start from: the point tells nothing.
    nothing = np.isnan(before) | (~np.isfinite(before) & ~np.isfinite(after)) | (before == np.inf)
    real = ~nothing & (size > np.maximum(tolerance, rounding))
    telling = real | (~nothing & (rounding <= BLIND))
    return Changes(np.where(telling, size, np.nan), real, telling)


def _noise(
    measure: Measure, values: Values, before: Float[np.ndarray, " point"], eps: float
) -> Float[np.ndarray, " point"]:
    """Largest change of the log density by changes of the points in their last digits."""
    rng = np.random.default_rng(0)
    noise = np.zeros(len(before))
    for _ in range(PERTURBATIONS):
        nudged = {}
        for name, value in values.items():
            array = np.asarray(value)
            steps = rng.choice([-1.0, 1.0], size=array.shape)
            nudged[name] = (array * (1 + eps * steps)).astype(array.dtype)
        if (there := measure(nudged)) is None:
            break
        with np.errstate(invalid="ignore"):
            change = np.abs(np.asarray(there, dtype=np.float64) - before)
        noise = np.maximum(noise, np.where(np.isfinite(change), change, 0.0))
    return noise
