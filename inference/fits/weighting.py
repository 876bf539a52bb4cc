"""Importance weights by proposals that adapt: adaptive multiple importance sampling (Cornuet et al. 2012).

Each round draws from a mixture of multivariate t distributions, one at every distinct optimum's fit. All draws of all
rounds are weighted under the mixture of all proposals (deterministic mixture, Owen and Zhou 2000), so that no draw's
weight is larger than that under the proposal which suits it best. Between rounds each component takes the moments of
the draws that it is responsible for, and the mixture grows where the weights are largest while they are uneven
(incremental mixture importance sampling, Raftery and Bao 2010). At the end the weights are Pareto-smoothed (Vehtari et
al. 2024).

Weights may be good while a second moment rests on a few draws in a tail. Further rounds then also draw where the
posterior times the squared distance of such a quantity from its mean lies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp

from onebasin.posteriors.weights import miss_a_region, smoothed, tails_of, worst_khat, worth

from ..density.counted import CountedDensity
from .gaussian import NormalFit, Points, moments

FREEDOM, TAIL_FREEDOM = 8.0, 2.0
"""Degrees of freedom of the proposals, whose tails are heavier than a normal's, and of those at tails."""
ROUNDS = 5
MORE_ROUNDS = 5
"""Rounds that are added where a quantity's k-hat lies between what is good and what is lost."""
TAIL_ROUNDS = 5
"""Rounds that are added for the tails of quantities, unless draws miss a region."""
TAIL_SHARE, TAILS, HEAVY = 0.3, 4, 0.5
"""Share of the draws of such a round for tails, of how many quantities, and their least k-hat."""
SURE, GOOD, LOST = 0.6, 0.7, 1.0
"""k-hat up to which weights of a quantity are surely good, up to which they are good, and from which on more draws of
the same proposals do not help."""
DEAD = 5.0
"""Draws that weights are worth after two rounds, below which no further round is worth its price."""
NEGLIGIBLE = 50.0
"""Nats below the largest weight from which on a draw whose variables are no numbers has none."""
EVEN, MOST, NEW_SHARE = 0.6, 12, 0.2
"""Share of the draws that weights are worth, below which a component is added; the most components; its share."""
LEAST_SHARE = 0.05
"""Share of a round's draws that the components share evenly, whatever their weights."""

LogWeights = Float[np.ndarray, " draw"]


@dataclass(frozen=True, eq=False)
class Weighted:
    """Draws with importance weights."""

    vectors: Points  # draws from the mixture of all proposals
    lp: LogWeights  # log density of the target, in nats
    log_q: LogWeights  # and that of the mixture
    log_weight: LogWeights  # Pareto-smoothed, normalised
    # The last proposals, with the moments of the draws that each is responsible for.
    components: tuple[NormalFit, ...]
    shares: Float[np.ndarray, " component"]  # of the probability, up to `LEAST_SHARE`
    values: dict[str, np.ndarray]  # the variables (draw, ...) at the draws

    @property
    def worth(self) -> float:
        """Independent draws that the weights are worth."""
        return worth(self.log_weight)

    def resampled(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Rows by systematic resampling, in random order."""
        return resampled(np.exp(self.log_weight), count, rng)


def resampled(
    weights: Float[np.ndarray, " row"], count: int, rng: np.random.Generator
) -> Int[np.ndarray, " draw"]:
    """Choose rows, each as often as its weight says, rounded up or down, in random order."""
    ends = np.cumsum(weights)
    places = (np.arange(count) + rng.uniform()) / count * ends[-1]
    rows = np.minimum(np.searchsorted(ends, places, side="right"), len(ends) - 1)
    return rng.permutation(rows)


@dataclass(frozen=True, eq=False)
class _Round:
    """A round's proposals, the share of each, its number of draws, and how many proposals, the last, are for tails."""

    components: tuple[NormalFit, ...]
    shares: Float[np.ndarray, " component"]
    draws: int
    tails: int = 0

    @property
    def freedoms(self) -> list[float]:
        """Degrees of freedom of each component."""
        usual = len(self.components) - self.tails
        return [FREEDOM] * usual + [TAIL_FREEDOM] * self.tails

    def by_component(self, points: Points) -> Float[np.ndarray, "component point"]:
        """Log of share times density, of each component."""
        pairs = zip(self.components, self.freedoms, strict=True)
        each = [c.t_log_density(points, freedom) for c, freedom in pairs]
        return np.stack(each) + np.log(self.shares)[:, None]

    def drawn(self, rng: np.random.Generator) -> Points:
        counts = np.floor(np.cumsum(self.shares) * self.draws + rng.uniform()).astype(int)
        counts = np.diff(np.minimum(np.append(0, counts), self.draws))
        counts[-1] += self.draws - counts.sum()
        each = zip(self.components, counts, self.freedoms, strict=True)
        return np.concatenate([c.t_points(int(n), freedom, rng) for c, n, freedom in each])


def weigh(
    counted: CountedDensity,
    fits: Sequence[NormalFit],
    rng: np.random.Generator,
    done: Callable[[int], None] = lambda _: None,
    *,
    rounds: int = ROUNDS,
    more_rounds: int = MORE_ROUNDS,
    tail_rounds: int = TAIL_ROUNDS,
) -> Weighted:
    """Draw, weigh and adapt, a round after the other; first from the fits, one a distinct optimum.

    After each of `rounds`, `done` is called with its number. There are up to `more_rounds` more, of twice as many
    draws, where the weights of a quantity leave it open whether they are good; and `tail_rounds` for its tail where
    they are not surely good by then, unless draws miss a region.
    """
    count = max(1000, 20 * counted.size)
    current = _Round(tuple(fits), np.full(len(fits), 1 / len(fits)), count)
    past: list[_Round] = []
    vectors, lp = np.empty((0, counted.size)), np.empty(0)
    densities = np.empty((0, 0))  # of every round's proposals at all draws
    log_q = np.empty(0)
    number, most, tails = 0, rounds, False
    while number < most:
        used = _with_tails(counted, current, vectors, lp - log_q) if tails else current
        new = used.drawn(rng)
        old = logsumexp(used.by_component(vectors), axis=0) if len(vectors) else np.empty(0)
        past.append(used)
        at_new = np.stack([logsumexp(r.by_component(new), axis=0) for r in past])
        densities = np.hstack(
            [np.vstack([densities.reshape(len(past) - 1, len(vectors)), old]), at_new]
        )
        vectors = np.concatenate([vectors, new])
        lp = np.concatenate([lp, counted.log_density(new)])
        total = sum(r.draws for r in past)
        portions = np.log([r.draws / total for r in past])
        log_q = logsumexp(densities + portions[:, None], axis=0)
        (far,) = np.nonzero(lp - log_q < (lp - log_q).max() - NEGLIGIBLE)
        if len(far):
            lp[far[~_computed(counted.constrain(vectors[far]))]] = -np.inf
        number += 1
        done(number)
        if not np.isfinite(lp).any():
            break
        if number == 2 and worth(lp - log_q) < DEAD:
            break
        current = _adapted(current, vectors, lp - log_q)
        few = worth(lp - log_q) < EVEN * len(lp)  # a component more may change that
        if few and not tails and len(current.components) < MOST:
            current = _with_heaviest(current, vectors, lp - log_q)
        if number == most < rounds + more_rounds + tail_rounds and not tails:
            worst = worst_khat(counted.constrain(vectors), lp - log_q)
            if number == rounds and (few or GOOD < worst < LOST):
                most += more_rounds
            elif SURE < worst < np.inf and not miss_a_region(lp - log_q, lp - log_q):
                most, tails = most + tail_rounds, True
            current = replace(current, draws=2 * count)
    values = counted.constrain(vectors)
    there = np.isfinite(lp) | _computed(values)
    vectors, lp, log_q = vectors[there], lp[there], log_q[there]
    values = {name: each[there] for name, each in values.items()}
    log_weight = smoothed(lp - log_q)
    return Weighted(vectors, lp, log_q, log_weight, current.components, current.shares, values)


def _computed(values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Tell of each draw whether its variables are numbers, which they may not be far out."""
    return np.all([np.isfinite(v).reshape(len(v), -1).all(axis=1) for v in values.values()], axis=0)


def _with_tails(
    counted: CountedDensity, current: _Round, points: Points, log_ratio: LogWeights
) -> _Round:
    """Add components at the tails of the quantities whose squares have the largest k-hat.

    Each has the moments of the draws by their weight times the squared distance of the quantity from its mean.
    """
    points, log_ratio = points[np.isfinite(log_ratio)], log_ratio[np.isfinite(log_ratio)]
    log_weight = smoothed(log_ratio)
    found: list[tuple[float, np.ndarray]] = []
    for values in counted.constrain(points).values():
        khats = np.atleast_1d(tails_of(values, log_ratio, log_weight).square).ravel()
        columns = values.reshape(len(values), -1).T
        found += [(k, v) for k, v in zip(khats, columns, strict=True) if HEAVY < k < np.inf]
    found.sort(key=lambda each: -each[0])
    wanted = min(10 * points.shape[1] + 50, len(points) / 2)
    tails = []
    for _, column in found[:TAILS]:
        with np.errstate(divide="ignore"):
            tilt = 2 * np.log(np.abs(column - np.average(column, weights=np.exp(log_weight))))
        tails.append(moments(points, np.exp(_tempered(log_weight + tilt, wanted))))
    there = [tail for tail in tails if tail is not None]
    if not there:
        return current
    shares = np.full(len(there), TAIL_SHARE / len(there))
    return replace(
        current,
        components=(*current.components, *there),
        shares=np.concatenate([(1 - TAIL_SHARE) * current.shares, shares]),
        tails=len(there),
    )


def _with_heaviest(current: _Round, points: Points, log_ratio: LogWeights) -> _Round:
    """Add a component where the weight is largest, with the spread of the draws next to it.

    A mixture that grows where its density is too low follows a curved posterior, which one component an optimum cannot
    (incremental mixture importance sampling, Raftery and Bao 2010).
    """
    size, weights = points.shape[1], np.exp(_tempered(log_ratio, 1.0))
    whole = moments(points, np.exp(_tempered(log_ratio, min(10 * size + 50, len(points) / 2))))
    if whole is None:
        return current
    standard = whole.standard(points)
    centre = int(weights.argmax())
    near = np.square(standard - standard[centre]).sum(axis=1)
    near = np.argsort(near)[: min(20 * size + 50, len(points) // 4)]
    found = moments(points[near], weights[near] + 1 / len(points))
    if found is None:
        return current
    found = replace(found, loc=points[centre])
    shares = np.append((1 - NEW_SHARE) * current.shares, NEW_SHARE)
    return replace(current, components=(*current.components, found), shares=shares)


def _adapted(current: _Round, points: Points, log_weights: LogWeights) -> _Round:
    """Give each component the moments of the draws that it is responsible for, by tempered weights."""
    size = points.shape[1]
    wanted = min(10 * size + 50, len(points) / 2)
    each = current.by_component(points)
    responsible = np.exp(each - logsumexp(each, axis=0))
    own = responsible * np.exp(_tempered(log_weights, wanted))
    components = []
    for component, weights in zip(current.components, own, strict=True):
        total = weights.sum()
        count = total**2 / (weights**2).sum() if total > 0 else 0.0
        enough = count > min(size + 2, wanted / 4) and total > 1e-6
        found = moments(points, weights, component, max(0.0, 2 * size - count)) if enough else None
        components.append(found or component)
    plain = responsible @ np.exp(log_weights - logsumexp(log_weights))
    shares = (1 - LEAST_SHARE) * plain / plain.sum() + LEAST_SHARE / len(plain)
    return replace(current, components=tuple(components), shares=shares)


def _tempered(log_weights: LogWeights, wanted: float) -> LogWeights:
    """Weights to the largest power up to 1 at which they are worth so many draws; their sum is 1."""
    finite = np.where(np.isfinite(log_weights), log_weights, -1e300)
    finite = np.maximum(finite - finite.max(), -1e300)
    if worth(finite) < wanted:
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if worth(middle * finite) >= wanted else (low, middle)
        finite = low * finite
    return finite - logsumexp(finite)
