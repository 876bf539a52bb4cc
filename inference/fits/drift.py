"""Short chains from weighted draws. Their distribution stays the same if the draws come from the posterior.

Weights cannot reveal regions without proposals, but chains that follow the gradient can. If the posterior is wider
than all proposals, or shifted, the ranks of the chains drift. Moves are Hamiltonian, with metrics common to all
chains, because a metric that depends on the start would not preserve the posterior.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from onebasin.posteriors.pareto import CLAIMED, TAIL, resampled, tails_of

from ..density.network import CountedDensity
from .gaussian import Matrix, NormalFit, Points, moments, square_root
from .weighting import Weighted

Chain = Float[np.ndarray, " chain"]


@dataclass(frozen=True, eq=False)
class MovedChains:
    """The positions of several chains."""

    points: Points
    heights: Chain  # Log densities at the points, in nats.
    slopes: Points  # Gradients of the log density at the points.

    @classmethod
    def at(cls, counted: CountedDensity, points: Points) -> MovedChains:
        """Evaluate the log density at the points."""
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

    `root` (param, param) is a square root of the inverse metric, `momentum` (chain, param) is standard normal, and
    `step` is one step size, or one per chain (chain, 1). Return the new positions, and the change of the log density
    minus the kinetic energy after each step (leapfrog, chain), in nats, -inf if it is not a number.
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


CHAINS, LEAST_CHAINS, LEAST_SHARE = 128, 16, 0.005
"""Number of chains, minimum number of them per optimum, and minimum weight of an optimum where chains start."""
TRANSITIONS, MOST = 4, 60
"""Number of transitions between checks of the errors, and maximum number of transitions."""
LEAPFROGS = 3
STEP, STEP_OF_MANY = 0.52, 1.2
"""Largest step, a twelfth of a standard normal's period; in n coordinates at most the second times n^(-1/4)."""
HEAVIEST, BOOST = 4, 3.0
"""Number of entries with the heaviest tails, and the factor by which more chains start in those tails."""
SEEN, GROWN, CERTAIN = 2.0, 3.0, 6.0
"""Ratios to the standard error of a change: for a detectable claimed error, a tail that grew, and a certain change."""


@dataclass(frozen=True, eq=False)
class Drift:
    """The changes of the statistics of ranks with their errors, and the gaps of the draws."""

    changes: dict[str, Float[np.ndarray, "value statistic ..."]]
    gaps: tuple[NormalFit, ...]  # Moments of the chains in regions with few draws.


def drift(counted: CountedDensity, weighted: Weighted, rng: np.random.Generator) -> Drift:
    """Move chains from weighted draws, and compare their ranks among the draws before and after.

    Ranks among draws of the posterior stay uniform under any number of moves. Chains start at every optimum, because
    they rarely move between optima, and more often in the heaviest tails, beyond which proposals may miss probability.
    They continue until an error of the claimed size would be detected. The errors include the noise of the chains and
    of the weighted draws among which they are ranked.
    """
    every = {name: _Ranks(values, weighted.log_weight) for name, values in weighted.values.items()}
    rows, weights, strata = _starts(weighted, every, rng)
    here = MovedChains.at(counted, weighted.vectors[rows])
    roots = _metrics(weighted)
    sums, found = {name: np.zeros(1) for name in every}, {}
    visited: list[Points] = []
    for number in range(1, MOST + 1):
        root = roots[number % len(roots)]
        step = min(STEP, STEP_OF_MANY * len(root) ** -0.25) * rng.uniform(0.7, 1.1)
        momentum = rng.standard_normal(here.points.shape)
        here = transition(counted, here, root, momentum, step, LEAPFROGS, rng)[0]
        values = counted.constrain(here.points)
        visited.append(here.points)
        sums = {name: sums[name] + ranks.statistics(values[name]) for name, ranks in every.items()}
        here = _exchanged(counted, weighted, here, rng)
        if number % TRANSITIONS:
            continue
        found = {n: _change(sums[n] / number, number, r, weights, strata) for n, r in every.items()}
        change, error = np.concatenate([f.reshape(2, 4, -1) for f in found.values()], axis=2)
        change, claimed = np.abs(change), np.array(CLAIMED)[:, None]
        open_ = (error > claimed / SEEN) | (change > claimed)
        if not open_.any() or ((change > CERTAIN * error) & (change > claimed)).any():
            break
    own = {name: ranks.errors for name, ranks in every.items()}
    changes = {n: np.stack([f[0], np.hypot(f[1], own[n])]) for n, f in found.items()}
    points = np.concatenate(visited[len(visited) // 2 :])
    return Drift(changes, tuple(_gaps(changes, points, every, counted)))


def _gaps(
    changes: dict[str, np.ndarray],
    points: Points,
    every: dict[str, _Ranks],
    counted: CountedDensity,
) -> Iterator[NormalFit]:
    """Yield Gaussians for the points that chains visited in the tails that grew most, if the growth is certain."""
    grown: list[tuple[float, np.ndarray]] = []
    values = counted.constrain(points)
    for name, (change, error) in changes.items():
        tails = every[name].statistics(values[name])[2:].reshape(2, len(points), -1)
        size, noise = change[2:].reshape(2, -1), error[2:].reshape(2, -1)
        for end, entry in np.argwhere((size > CLAIMED[2]) & (size > GROWN * noise)):
            grown.append((size[end, entry], tails[end, :, entry] > 0))
    for _, there in sorted(grown, key=lambda each: -each[0])[:HEAVIEST]:
        count = int(there.sum())
        fit = moments(points[there], np.ones(count)) if count > points.shape[1] else None
        if fit is not None:
            yield fit


class _Ranks:
    """Ranks of values among the weighted draws of a variable, from 0 to 1."""

    def __init__(self, values: Float[np.ndarray, "draw ..."], log_weight: np.ndarray) -> None:
        flat, weights = values.reshape(len(values), -1), np.exp(log_weight)
        self.shape = values.shape[1:]
        order = np.argsort(flat, axis=0)
        self.sorted = np.take_along_axis(flat, order, axis=0)
        self.below = np.vstack([np.zeros(flat.shape[1]), np.cumsum(weights[order], axis=0)])
        own = self.statistics(values)
        self.tails = own[2:].any(axis=0).reshape(len(values), -1).T  # (entry, draw).
        self.expected = np.tensordot(own, weights, (1, 0))
        centred = own - self.expected[:, None]
        self.variances = np.tensordot(centred**2, weights, (1, 0))
        self.errors = np.sqrt(np.tensordot(centred**2, weights**2, (1, 0)))

    def statistics(
        self, values: Float[np.ndarray, "point ..."]
    ) -> Float[np.ndarray, "statistic point ..."]:
        """Return ranks, their distances from the middle, and whether they lie in the lower or upper tail."""
        flat = values.reshape(len(values), -1)
        ranks = np.empty(flat.shape)
        for entry, (own, below) in enumerate(zip(self.sorted.T, self.below.T, strict=True)):
            # A rank is the weight of draws below the value, plus half the weight of draws equal to it.
            left, right = (np.searchsorted(own, flat[:, entry], side=s) for s in ("left", "right"))
            ranks[:, entry] = (below[left] + below[right]) / 2 / below[-1]
        ranks = ranks.reshape(len(values), *self.shape)
        return np.stack([ranks, np.abs(ranks - 0.5), ranks < TAIL, ranks > 1 - TAIL])


def _starts(
    weighted: Weighted, every: dict[str, _Ranks], rng: np.random.Generator
) -> tuple[Int[np.ndarray, " chain"], Chain, Int[np.ndarray, " chain"]]:
    """Return the rows where chains start, the weight of each chain, and its stratum: the optimum at which it starts."""
    weights, boost = np.exp(weighted.log_weight), np.ones(len(weighted.lp))
    heavy: list[tuple[float, np.ndarray]] = []
    for name, values in weighted.values.items():
        khats = tails_of(values, weighted.lp - weighted.log_q, weighted.log_weight).square.ravel()
        tails = zip(khats, every[name].tails, strict=True)
        heavy += [(k, tail) for k, tail in tails if not np.isnan(k)]
    for _, tail in sorted(heavy, key=lambda each: -each[0])[:HEAVIEST]:
        boost[tail] = 1 + BOOST
    rows, shares, numbers = [], [], []
    for number in np.unique(weighted.optimum):
        own = np.flatnonzero(weighted.optimum == number)
        share = weights[own].sum()
        if share < LEAST_SHARE:
            continue
        count = max(LEAST_CHAINS, round(CHAINS * share))
        chosen = own[resampled(weights[own] * boost[own], count, rng)]
        rows.append(chosen)
        shares.append(share * (1 / boost[chosen]) / (1 / boost[chosen]).sum())
        numbers.append(np.full(count, number))
    total = np.concatenate(shares)
    return np.concatenate(rows), total / total.sum(), np.concatenate(numbers)


def _change(
    means: Float[np.ndarray, "statistic chain ..."],
    transitions: int,
    ranks: _Ranks,
    weights: Chain,
    strata: Int[np.ndarray, " chain"],
) -> Float[np.ndarray, "value statistic ..."]:
    """Return differences between the weighted mean statistics of chains and draws, and their errors within strata."""
    change = np.tensordot(means, weights, (1, 0)) - ranks.expected
    # If no chain visits a tail, use the error of independent draws.
    least, found = 1 / transitions * ranks.variances * (weights**2).sum(), 0.0
    for number in np.unique(strata):
        own = strata == number
        mine, each = weights[own], means[:, own]
        centre = np.tensordot(each, mine / mine.sum(), (1, 0))[:, None]
        count = own.sum()
        found = found + np.tensordot((each - centre) ** 2, mine**2, (1, 0)) * count / (count - 1)
    return np.stack([change, np.sqrt(np.maximum(found, least))])


def _metrics(weighted: Weighted) -> list[Matrix]:
    """Return square roots of two inverse metrics, for the narrowest component and for all draws at an optimum.

    Chains alternate between them: the first moves well where the posterior is narrow, the second where it is wide.
    """
    inverses = [np.linalg.inv(each.root) for each in weighted.components]
    narrow = square_root(np.mean([inverse.T @ inverse for inverse in inverses], axis=0))[0]
    centred = weighted.vectors.copy()
    weights = np.exp(weighted.log_weight)
    for number in np.unique(weighted.optimum):
        own = weighted.optimum == number
        if weights[own].sum() > 0:
            centred[own] -= np.average(centred[own], axis=0, weights=weights[own])
    whole = moments(centred, weights)
    return [narrow] if whole is None else [narrow, whole.root]


def _exchanged(
    counted: CountedDensity, weighted: Weighted, here: MovedChains, rng: np.random.Generator
) -> MovedChains:
    """Propose a draw from the mixture to each chain in a Metropolis step."""
    rows = rng.integers(len(weighted.lp), size=len(here.heights))
    gain = (weighted.lp - weighted.log_q)[rows]
    gain -= here.heights - weighted.log_mixture(here.points)
    (taken,) = np.nonzero(np.log(rng.uniform(size=len(rows))) < gain)
    points, heights, slopes = here.points.copy(), here.heights.copy(), here.slopes.copy()
    points[taken] = weighted.vectors[rows[taken]]
    if len(taken):
        heights[taken], slopes[taken] = counted.gradient(points[taken])
    return MovedChains(points, heights, slopes)
