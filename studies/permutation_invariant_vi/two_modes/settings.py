"""What the experiment of one Gaussian between two modes computes, and at what size."""

from dataclasses import field

import numpy as np

from onebasin.base.errors import ArgumentError
from onebasin.base.settings import Count, Positive, Seed, Several, settings

from .quadrature import LARGEST_RATIO


@settings
class Descent:
    """How to descend."""

    samples: Count = 100  # Points of q a step, M.
    learning_rate: Positive = 0.02  # In units of sigma^2.
    steps: Count = 10_000  # Steps.

    @property
    def noise(self) -> float:
        """Rate over samples: the variance of what a step adds is in proportion to it."""
        return self.learning_rate / self.samples


@settings
class InterpolationSettings:
    """What is computed."""

    sigmas: tuple[Positive, ...] = (0.25, 0.5, 1.0, 2.0)  # Standard deviations of the components.
    largest: float = 4.5  # Ratio of alpha to sigma up to which optima are followed.
    points: Several = 181
    """Ratios at which they are, besides those of the descents and a few above the threshold."""
    descent: Descent = field(default_factory=Descent)  # The descents of every sigma.
    ratios: tuple[float, ...] = (
        *(0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.3, 2.35, 2.4, 2.45, 2.5),
        *(2.6, 2.75, 3.0, 3.25, 3.5, 4.0, 4.5),
    )
    """Ratios at which they are made, rising."""
    seeds: Several = 4  # Descents a ratio.
    noisy: tuple[Descent, ...] = (
        Descent(100, 0.02, 10_000),
        Descent(10, 0.01, 20_000),
        Descent(10, 0.1, 2_000),
        Descent(1, 0.01, 20_000),
        Descent(10, 0.2, 1_000),
    )
    """Ways to descend whose thresholds are compared, at sigma 1."""
    noisy_ratios: tuple[float, ...] = tuple(round(2.2 + 0.05 * k, 2) for k in range(17))
    """Ratios at which they are, rising."""
    noisy_seeds: Several = 16  # Descents a ratio.
    times: tuple[Positive, ...] = (10.0, 30.0, 100.0, 300.0, 1000.0)
    """Times after which an exact descent is stopped, in units of sigma^2."""
    seed: Seed = 0  # Of all draws.

    def __post_init__(self) -> None:
        """Refuse ratios that do not rise, or that quadrature does not reach."""
        every = {"ratios": self.ratios, "noisy_ratios": self.noisy_ratios}
        for name, ratios in {**every, "largest": (self.largest,)}.items():
            rising = bool(ratios) and bool((np.diff(ratios) > 0).all())
            if not rising or min(ratios) <= 0 or max(ratios) > LARGEST_RATIO:
                raise ArgumentError(
                    f"`{name}` is {ratios!r}; give ratios of alpha to sigma that rise, above 0 and at most "
                    f"{LARGEST_RATIO:g}."
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
