"""Draws in units of their own, so that a verdict on them does not depend on where their zero and their unit lie.

Convention: z = (x - centre) / unit. The centre is the middle of the range, the unit a power of two near half of the
range, so that dividing by it rounds nothing: sums of squares neither overflow nor vanish for doubles of any size,
and lose no digits to an offset. Ranks, and what is made of them, need none of this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from onebasin.posteriors.draws import ROUNDING

# What is computed from a constant, such as a norm or a sum of shares, differs in its last digits; so does a parameter
# whose spread is lost in the rounding of its size.
_ROUNDING = ROUNDING * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Units:
    """A centre and a unit for each parameter."""

    centre: Float[np.ndarray, " param"]  # the middle of its range
    unit: Float[np.ndarray, " param"]  # a power of two, 1 where it does not vary at all
    constant: Bool[np.ndarray, " param"]  # whether it varies by no more than rounding

    def into(self, values: Float[np.ndarray, "*lead param"]) -> Float[np.ndarray, "*lead param"]:
        """Take draws into these units."""
        out = values - self.centre
        out /= self.unit
        return out

    def mean_of(self, values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, " param"]:
        """Means of draws, as they came."""
        return self.centre + self.unit * in_rows(self.into(values)).mean(axis=1)

    def sd_of(self, values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, " param"]:
        """Standard deviations of draws (of unbiased variances), as they came."""
        return self.unit * in_rows(self.into(values)).std(axis=1, ddof=1)


def units_of(*samples: Float[np.ndarray, "_ _ param"]) -> Units:
    """Find units that one sample, or several together, need."""
    low = np.minimum.reduce([np.min(s, axis=(0, 1), initial=np.inf) for s in samples])
    high = np.maximum.reduce([np.max(s, axis=(0, 1), initial=-np.inf) for s in samples])
    half = high / 2 - low / 2  # the range itself can be infinite
    constant = half <= _ROUNDING / 2 * np.maximum(np.abs(low), np.abs(high))
    return Units(low + half, power_of_two(half), constant)


def in_rows(values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, "param all"]:
    """Put each parameter's draws in one piece, so that their sums do not depend on the parameters next to them."""
    size = values.shape[0] * values.shape[1]
    return np.ascontiguousarray(np.moveaxis(values, -1, 0)).reshape(values.shape[2], size)


def is_constant(values: Float[np.ndarray, "chain draw param"]) -> Bool[np.ndarray, " param"]:
    """Tell which parameters never vary, up to rounding."""
    return units_of(values).constant


def power_of_two(sizes: Float[np.ndarray, "*any"]) -> Float[np.ndarray, "*any"]:
    """The largest power of two that is no larger; 1 for what is zero."""
    _, exponent = np.frexp(sizes)
    return np.where(sizes > 0, np.ldexp(1.0, exponent - 1), 1.0)
