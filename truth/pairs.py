"""Two methods compared pair by pair: the same seed, the same split of the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onebasin.base.errors import ArgumentError

CONFIDENCE = 0.95
MIN_PAIRS = 6
"""Fewer pairs cannot give a two-sided Wilcoxon test below 0.05."""


@dataclass(frozen=True)
class Pairs:
    """One measure on two sides, pair by pair."""

    first: Sequence[float]
    second: Sequence[float]  # `first`, `second`: The two sides, in the same order.

    def __post_init__(self) -> None:
        """Refuse sides of different length."""
        if len(self.first) != len(self.second):
            raise ArgumentError(
                f"`first` has {len(self.first)} values and `second` {len(self.second)}: give as many of each."
            )

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

    @property
    def interval(self) -> tuple[float, float]:
        """Student's interval of the mean difference, at `CONFIDENCE`; NaN of a single pair."""
        from scipy.stats import t

        if self.num < 2:
            return math.nan, math.nan
        half = float(t.ppf((1 + CONFIDENCE) / 2, self.num - 1)) * self.error
        return self.mean - half, self.mean + half

    @property
    def above(self) -> bool | None:
        """Tell whether the first is above the second; None where the interval holds zero."""
        low, high = self.interval
        if low > 0:
            return True
        return False if high < 0 else None

    def gains(self, margin: float) -> bool | None:
        """Tell whether the first is above; False where it is not by more than `margin`, None where that is open."""
        low, high = self.interval
        if low > 0:
            return True
        return False if high < margin else None

    @property
    def p_value(self) -> float | None:
        """Two-sided Wilcoxon test; None with fewer than `MIN_PAIRS` pairs, or no change."""
        from scipy.stats import wilcoxon

        if self.num < MIN_PAIRS or tuple(self.first) == tuple(self.second):
            return None
        # Ties and zeros go to the normal approximation.
        return float(wilcoxon(self.first, self.second).pvalue)

    def write(self, decimals: int = 2, *, unit: str = "seeds") -> str:
        """Write the mean difference with its error, and the wins."""
        error = "" if math.isnan(self.error) else f" ± {self.error:.{decimals}f}"
        return f"{self.mean:+.{decimals}f}{error}, {self.wins} of {self.num} {unit}"
