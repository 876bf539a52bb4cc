"""What the experiment of one Gaussian between two modes computes, and at what size."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onebasin.models.checks import check_count, check_positive, check_seed

from .descent import Descent
from .optima import LARGEST_RATIO


@dataclass(frozen=True)
class InterpolationSettings:
    """What is computed.

    Parameters
    ----------
    sigmas : tuple of float
        Standard deviations of the components.
    largest : float
        Ratio of alpha to sigma up to which optima are followed.
    points : int
        Ratios at which they are, besides those of the descents and a few above the threshold.
    descent : Descent
        The descents of every sigma.
    ratios : tuple of float
        Ratios at which they are made, rising.
    seeds : int
        Descents a ratio.
    noisy : tuple of Descent
        Ways to descend whose thresholds are compared, at sigma 1.
    noisy_ratios : tuple of float
        Ratios at which they are, rising.
    noisy_seeds : int
        Descents a ratio.
    times : tuple of float
        Times after which an exact descent is stopped, in units of sigma^2.
    seed : int
        Of all draws.

    Raises
    ------
    ValueError
        If a number is out of range, or ratios do not rise.
    """

    sigmas: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0)
    largest: float = 4.5
    points: int = 181
    descent: Descent = field(default_factory=Descent)
    ratios: tuple[float, ...] = (
        *(0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.3, 2.35, 2.4, 2.45, 2.5),
        *(2.6, 2.75, 3.0, 3.25, 3.5, 4.0, 4.5),
    )
    seeds: int = 4
    noisy: tuple[Descent, ...] = (
        Descent(100, 0.02, 10_000),
        Descent(10, 0.01, 20_000),
        Descent(10, 0.1, 2_000),
        Descent(1, 0.01, 20_000),
        Descent(10, 0.2, 1_000),
    )
    noisy_ratios: tuple[float, ...] = tuple(round(2.2 + 0.05 * k, 2) for k in range(17))
    noisy_seeds: int = 16
    times: tuple[float, ...] = (10.0, 30.0, 100.0, 300.0, 1000.0)
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("points", "seeds", "noisy_seeds"):
            check_count(name, getattr(self, name), least=2)
        check_seed(self.seed)
        for name in ("sigmas", "times"):
            for value in getattr(self, name):
                check_positive(name, value)
        for name in ("ratios", "noisy_ratios"):
            _check_ratios(name, getattr(self, name))
        _check_ratios("largest", (self.largest,))


def _check_ratios(name: str, ratios: tuple[float, ...]) -> None:
    low, high = 0.0, LARGEST_RATIO
    if not ratios or min(ratios) <= low or max(ratios) > high or any(np.diff(ratios) <= 0):
        raise ValueError(
            f"`{name}` is {ratios!r}; give ratios of alpha to sigma that rise, above {low:g} and at most {high:g}."
        )


QUICK = InterpolationSettings(
    points=46,
    descent=Descent(20, 0.05, 2_000),
    ratios=(0.5, 1.0, 1.5, 2.0, 2.3, 2.5, 3.0, 3.5, 4.5),
    seeds=2,
    noisy=(Descent(20, 0.05, 2_000), Descent(10, 0.2, 1_000)),
    noisy_ratios=(2.2, 2.3, 2.4, 2.5, 2.6, 2.7, 2.8, 2.9, 3.0),
    noisy_seeds=8,
    times=(10.0, 100.0, 1000.0),
)
"""Seconds where the default takes a minute."""
