"""Short chains from weighted draws, which stay where they are in distribution if the draws are the posterior's.

Weights see nothing where no proposal goes. A chain that starts at a draw goes there by the gradient: a posterior that
is wider than all proposals, or shifted, shows in ranks that drift. Moves are Hamiltonian, in one metric for
all chains: one that was chosen by the start would not leave the posterior as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..density.counted import CountedDensity
from .gaussian import Matrix, Points
from .peaks import square_root
from .weighting import Weighted

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


CHAINS = 64
"""Which are moved together."""
BATCHES = 8
"""Times as many chains at most, where the first leave it open whether they drift."""
OPEN = (3.0, 4.5)
"""Standard errors of the largest drift between which it is open."""
TRANSITIONS = 5
LEAPFROGS = 4
STEP = 0.38
"""Largest step, four of which are a quarter of a normal's period."""


def drift(
    counted: CountedDensity, weighted: Weighted, rng: np.random.Generator
) -> dict[str, Float[np.ndarray, "statistic ..."]]:
    """Return by how many standard errors locations and spreads moved: of each variable (2, *event).

    Under the weighted draws' own distribution, ranks among them are uniform before and after the moves: a mean rank of
    1/2 and a mean distance from it of 1/4, with the errors of that many independent draws.
    """
    ranks: dict[str, np.ndarray] = {}
    for _ in range(BATCHES):
        starts = weighted.vectors[weighted.resampled(CHAINS, rng)]
        new = _ranks_of(weighted, counted.constrain(_moved(counted, weighted, starts, rng)))
        ranks = {n: np.concatenate([ranks.get(n, r[:0]), r]) for n, r in new.items()}
        found = {n: _scores(r, weighted.worth) for n, r in ranks.items()}
        worst = max(np.nanmax(np.abs(scores), initial=0.0) for scores in found.values())
        if not OPEN[0] < worst < OPEN[1]:
            break
    return found


def _scores(
    ranks: Float[np.ndarray, chain * event], worth: float
) -> Float[np.ndarray, statistic * event]:
    """Standard errors by which mean ranks, and mean distances from their middle, differ from those of no move.

    The errors are those of the chains, and of the weighted draws among which they are ranked.
    """
    count = 1 / (1 / len(ranks) + 1 / worth)
    location = (ranks.mean(axis=0) - 0.5) * np.sqrt(12 * count)
    spread = (np.abs(ranks - 0.5).mean(axis=0) - 0.25) * np.sqrt(48 * count)
    still = (ranks == 0.5).all(axis=0)  # an entry that is the same in all draws
    return np.where(still, 0.0, np.stack([location, spread]))


def _ranks_of(weighted: Weighted, ends: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Ranks (chain, *event) of chains' ends among the weighted draws."""
    weights, found = np.exp(weighted.log_weight), {}
    for name, values in weighted.values.items():
        flat, end = values.reshape(len(values), -1), ends[name].reshape(len(ends[name]), -1)
        ranks = []
        for own, at in zip(flat.T, end.T, strict=True):
            order = np.argsort(own)
            below = np.append(0.0, np.cumsum(weights[order]))
            # The weight of draws below each end, and half of that of draws that are equal.
            left, right = (np.searchsorted(own[order], at, side=side) for side in ("left", "right"))
            ranks.append((below[left] + below[right]) / 2 / below[-1])
        found[name] = np.stack(ranks, axis=1).reshape(end.shape[0], *values.shape[1:])
    return found


def _moved(
    counted: CountedDensity, weighted: Weighted, points: Points, rng: np.random.Generator
) -> Points:
    """The chains after their transitions."""
    size = points.shape[1]
    # A square root of the inverse of the components' mean precision, which suits the narrowest.
    inverses = [np.linalg.inv(each.root) for each in weighted.components]
    root = square_root(np.mean([inverse.T @ inverse for inverse in inverses], axis=0))[0]
    here = MovedChains.at(counted, points)
    for _ in range(TRANSITIONS):
        step = min(STEP, 0.9 * size**-0.25) * rng.uniform(0.7, 1.1)
        momentum = rng.standard_normal(points.shape)
        here, _ = transition(counted, here, root, momentum, step, LEAPFROGS, rng)
    return here.points
