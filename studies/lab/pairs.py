"""Two methods compared pair by pair (the same seed, the same split of the data), and how sure the difference is.

The interval is Student's, of the mean over pairs, at 95 %; of a ratio it is that of the mean logarithm. The p-value is
Wilcoxon's, paired and two-sided.

Random splits of one data set share rows, so that the plain interval is too narrow: `overlap` widens it by the
correction of Nadeau and Bengio 2003, Inference for the generalization error, Machine Learning 52, equation 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

CONFIDENCE = 0.95
MIN_PAIRS = 6
"""Fewer pairs cannot give a two-sided Wilcoxon test below 0.05."""
Holds = bool | Literal["open"] | None
"""Result of a comparison: True if the claim holds; open where numbers do not say, None where it cannot be judged."""
Side = Literal["below", "above"]
Scale = Literal["difference", "ratio"]


@dataclass(frozen=True)
class Effect:
    """A mean over pairs, and how sure it is."""

    estimate: float
    low: float
    high: float  # `low`, `high`: ends of the interval; NaN of a single pair.
    null: float  # What no effect would be.
    p_value: float | None  # None with too few pairs, or no change.
    pairs: int

    def lies(self, side: Side) -> Holds:
        """Tell whether it lies on this side of no effect; open where the interval holds it, None with too few pairs."""
        if self.pairs < MIN_PAIRS or math.isnan(self.low):
            return None
        if self.high < self.null:
            return side == "below"
        return side == "above" if self.low > self.null else "open"


def effect_of(
    values: Sequence[float] | np.ndarray, null: float = 0.0, *, overlap: float = 0.0
) -> Effect:
    """Measure the mean of some values against `null`; `overlap` is the test part over the training part of splits."""
    from scipy.stats import t, wilcoxon

    numbers, num = np.asarray(values, float), len(values)
    mean, half = float(numbers.mean()), math.nan
    if num > 1:
        error = float(numbers.std(ddof=1)) * math.sqrt(1 / num + overlap)
        half = float(t.ppf((1 + CONFIDENCE) / 2, num - 1)) * error
    tested = num >= MIN_PAIRS and bool((numbers != null).any())
    p_value = float(wilcoxon(numbers - null).pvalue) if tested else None
    return Effect(mean, mean - half, mean + half, null, p_value, num)


@dataclass(frozen=True)
class Pairs:
    """One measure on two sides, pair by pair."""

    first: Sequence[float]
    second: Sequence[float]  # `first`, `second`: The two sides, in the same order.

    @property
    def num(self) -> int:
        """Pairs."""
        return len(self.first)

    @property
    def differences(self) -> np.ndarray:
        """The first less the second."""
        return np.asarray(self.first, float) - np.asarray(self.second, float)

    @property
    def wins(self) -> int:
        """Pairs in which the first is above the second."""
        return int((self.differences > 0).sum())

    @property
    def means(self) -> tuple[float, float]:
        """Means of either side."""
        return sum(self.first) / self.num, sum(self.second) / self.num

    @property
    def mean(self) -> float:
        """Mean difference."""
        return float(self.differences.mean())

    @property
    def error(self) -> float:
        """Standard error of the mean difference; NaN of a single pair."""
        if self.num < 2:
            return math.nan
        return float(self.differences.std(ddof=1) / np.sqrt(self.num))

    def gains(self, margin: float = 0.0) -> Holds:
        """Tell whether the first is above; False where it is not by more than `margin`, None of a single pair."""
        if self.num < 2:
            return None
        found = effect_of(self.differences)
        if found.low > 0:
            return True
        return False if found.high < margin else "open"

    def change(self, scale: Scale = "difference", *, overlap: float = 0.0) -> Effect:
        """Measure the second of each pair against the first: less it, or over it."""
        a, b = np.asarray(self.first, float), np.asarray(self.second, float)
        if scale == "difference":
            return effect_of(b - a, overlap=overlap)
        found = effect_of(np.log(b / a), overlap=overlap)
        estimate, low, high = (math.exp(v) for v in (found.estimate, found.low, found.high))
        return Effect(estimate, low, high, 1.0, found.p_value, found.pairs)

    def write(self, decimals: int = 2) -> str:
        """Write the mean difference with its error, and the wins over seeds."""
        error = "" if math.isnan(self.error) else f" ± {self.error:.{decimals}f}"
        return f"{self.mean:+.{decimals}f}{error}, {self.wins} of {self.num} seeds"
