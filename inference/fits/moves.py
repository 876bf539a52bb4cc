"""Hamiltonian moves of many chains at once, in one metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..density.counted import CountedDensity
from .gaussian import Matrix, Points

Chain = Float[np.ndarray, " chain"]


@dataclass(frozen=True, eq=False)
class MovedChains:
    """The places of several chains."""

    points: Points
    heights: Chain  # log densities there, in nats
    slopes: Points  # gradients of the log density

    @classmethod
    def at(cls, counted: CountedDensity, points: Points) -> MovedChains:
        """Evaluate the log density at the places."""
        return cls(points, *counted.gradient(points))


def transition(
    counted: CountedDensity,
    here: MovedChains,
    root: Matrix,
    momentum: Points,
    step: float | Float[np.ndarray, "chain 1"],
    leapfrogs: int,
    rng: np.random.Generator,
) -> tuple[MovedChains, Float[np.ndarray, "leapfrog chain"]]:
    """Move every chain along a trajectory, and accept or reject its end.

    `root` (param, param) is a square root of the inverse metric, `momentum` (chain, param) is standard normal, and the
    step is that of all chains, or of each (chain, 1). Return where the chains are now; and (leapfrog, chain) the
    change of the log density minus the kinetic energy, in nats, after each step: -inf where there is no number.
    """
    before = here.heights - 0.5 * (momentum**2).sum(axis=1)
    place, height, slope = here.points, here.heights, here.slopes
    gains = np.empty((leapfrogs, len(momentum)))
    with np.errstate(all="ignore"):
        for number in range(leapfrogs):
            momentum = momentum + step / 2 * slope @ root
            place = place + step * momentum @ root.T
            height, slope = counted.gradient(place)
            momentum = momentum + step / 2 * slope @ root
            gain = height - 0.5 * (momentum**2).sum(axis=1) - before
            gains[number] = np.where(np.isnan(gain), -np.inf, gain)
        accepted = np.log(rng.uniform(size=len(momentum))) < gains[-1]
    keep = accepted[:, None]
    moved = MovedChains(
        np.where(keep, place, here.points),
        np.where(accepted, height, here.heights),
        np.where(keep, slope, here.slopes),
    )
    return moved, gains
