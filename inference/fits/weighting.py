"""Importance weights with adaptive proposals: adaptive multiple importance sampling (Cornuet et al. 2012).

Each round draws from a mixture of multivariate t distributions, one for the fit at every distinct optimum. The draws
of all rounds are weighted under the mixture of all proposals (deterministic mixture, Owen and Zhou 2000), so no draw
has a large weight if one proposal covers it well. Between rounds, each component is updated to the moments of the
draws that it is responsible for. While weights are uneven, the mixture also grows where they are largest (incremental
mixture importance sampling, Raftery and Bao 2010). If that is not enough, a second mixture alternates with the first:
Gaussians over a grid of the coordinates that bend the posterior (`conditional`). Finally, weights are Pareto-smoothed
(Vehtari et al. 2024).

Weights may be good although a second moment depends on a few draws in a tail. Further rounds then also draw from the
posterior times the squared distance of that quantity from its mean.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp

from onebasin.posteriors.pareto import (
    miss_a_region,
    resampled,
    smoothed,
    tails_of,
    worst_khat,
    worth,
)

from ..density.network import CountedDensity
from .conditional import GRID, BentFit, Proposals, bending
from .gaussian import NormalFit, Points, moments, t_log_densities

FREEDOM, BENT_FREEDOM, TAIL_FREEDOM = 8.0, 20.0, 2.0
"""Degrees of freedom of the usual proposals, of proposals along bends, and of proposals in tails."""
ROUNDS = 5
MORE_ROUNDS = 5  # Rounds added if a quantity's k-hat lies between `GOOD` and `LOST`.
TAIL_ROUNDS = 5  # Rounds added for the tails of quantities, unless draws miss a region.
TAIL_SHARE, TAILS, HEAVY = 0.3, 4, 0.5
"""Share of draws for tails in a tail round, maximum number of quantities, and their minimum k-hat."""
SURE, GOOD, LOST = 0.5, 0.7, 1.0
"""Limits of k-hat of a quantity: weights are surely good up to the first and good up to the second. Above the third,
more draws from the same proposals do not help."""
DEAD = 5.0  # The search ends if there are fewer effective draws after two rounds.
NEGLIGIBLE = 50.0  # Variables of draws this far below the largest weight, in nats, may be NaN.
EVEN, MOST, NEW_SHARE = 0.6, 12, 0.2
"""Effective share of draws below which a component is added; maximum number of components; share of a new component."""
NEW_NODES, HEAVIER = 8, 5.0
"""Maximum number of nodes added along bends after a round, and their minimum weight in units of the mean weight."""
UNEVEN, BENT, BENT_SIZE = 0.3, 0.07, 60
"""Proposals follow the bends of the posterior below the first effective share after all rounds, and are dropped below
the second after two such rounds. The third is the maximum number of coordinates, because a node takes twice as many
gradients as there are coordinates."""
LEAST_SHARE = 0.05  # Share of a round's draws that is divided evenly among components.

LogWeights = Float[np.ndarray, " draw"]


@dataclass(frozen=True, eq=False)
class Weighted:
    """Draws with importance weights."""

    vectors: Points  # Draws from the mixture of all proposals.
    lp: LogWeights  # Log density of the target, in nats.
    log_q: LogWeights  # Log density of the mixture, in nats.
    log_weight: LogWeights  # Pareto-smoothed, normalised.
    components: tuple[NormalFit, ...]  # the last adapted proposals, with the moments of their draws
    shares: Float[np.ndarray, " component"]  # Probabilities of the components.
    values: dict[str, np.ndarray]  # The variables (draw, ...).
    optimum: Int[np.ndarray, " draw"]  # Number of the nearest fit of the first round.
    log_mixture: Callable[[Points], LogWeights]  # Log density of the mixture at other points.

    @property
    def worth(self) -> float:
        """The effective number of draws."""
        return worth(self.log_weight)

    def resampled(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return row numbers from systematic resampling, in random order."""
        return resampled(np.exp(self.log_weight), count, rng)


@dataclass(frozen=True, eq=False)
class _Round:
    """The proposals of a round."""

    components: tuple[NormalFit, ...]
    shares: Float[np.ndarray, " component"]
    draws: int
    tails: int = 0  # Number of components for tails, which come last.
    evidence: Float[np.ndarray, " node"] | None = None
    """Log evidence of fixed components along bends."""
    bends: tuple[BentFit, ...] = ()  # Fits of the components along bends.

    @property
    def freedoms(self) -> list[float]:
        """The degrees of freedom of each component."""
        usual = len(self.components) - self.tails
        return [BENT_FREEDOM if self.bends else FREEDOM] * usual + [TAIL_FREEDOM] * self.tails

    def drawn(self, rng: np.random.Generator) -> Points:
        counts = np.floor(np.cumsum(self.shares) * self.draws + rng.uniform()).astype(int)
        counts = np.diff(np.minimum(np.append(0, counts), self.draws))
        counts[-1] += self.draws - counts.sum()
        each = zip(self.components, counts, self.freedoms, strict=True)
        return np.concatenate([c.t_points(int(n), freedom, rng) for c, n, freedom in each])


class _Draws:
    """All draws so far, with the log densities of all proposals, which are computed once."""

    def __init__(self, size: int) -> None:
        self.vectors, self.lp = np.empty((0, size)), np.empty(0)
        self.log_q = np.empty(0)  # Log density of the mixture of all rounds.
        # Every round, with its log density at all draws.
        self._past: list[tuple[_Round, LogWeights]] = []
        self._known: dict[tuple[NormalFit, float], LogWeights] = {}

    @property
    def log_ratio(self) -> LogWeights:
        """The log weights, not normalised."""
        return self.lp - self.log_q

    @property
    def recent(self) -> float:
        """The effective share of the draws of the last two rounds."""
        count = sum(r.draws for r, _ in self._past[-2:])
        return worth(self.log_ratio[-count:]) / count

    def add(self, used: _Round, vectors: Points, lp: LogWeights) -> None:
        """Add the draws of a round, and recompute all weights."""
        first = len(self.vectors)
        self.vectors, self.lp = np.concatenate([self.vectors, vectors]), np.append(self.lp, lp)
        self._past = [
            (r, np.append(old, logsumexp(self.by_component(r, first), axis=0)))
            for r, old in self._past
        ]
        self._past.append((used, logsumexp(self.by_component(used), axis=0)))
        portions = np.log([r.draws / len(self.vectors) for r, _ in self._past])
        densities = np.stack([density for _, density in self._past])
        self.log_q = logsumexp(densities + portions[:, None], axis=0)

    def log_mixture(self, points: Points) -> LogWeights:
        """Return the log density of the mixture of all rounds at points."""
        portions = [np.log(r.draws / len(self.vectors) * r.shares) for r, _ in self._past]
        keys = [key for r, _ in self._past for key in zip(r.components, r.freedoms, strict=True)]
        own: LogWeights
        own = logsumexp(t_log_densities(keys, points) + np.concatenate(portions)[:, None], axis=0)
        return own

    def by_component(self, mixture: _Round, first: int = 0) -> Float[np.ndarray, "component draw"]:
        """Return log(share * density) of each component at the draws from number `first`."""
        keys = list(zip(mixture.components, mixture.freedoms, strict=True))
        known = [len(self._known.setdefault(key, np.empty(0))) for key in keys]
        for count in set(known) - {len(self.vectors)}:
            wanted = [key for key, own in zip(keys, known, strict=True) if own == count]
            new = t_log_densities(wanted, self.vectors[count:])
            for key, row in zip(wanted, new, strict=True):
                self._known[key] = np.append(self._known[key], row)
        rows = [self._known[key][first:] for key in keys]
        return np.stack(rows) + np.log(mixture.shares)[:, None]


def weigh(
    counted: CountedDensity,
    fits: Sequence[NormalFit],
    rng: np.random.Generator,
    done: Callable[[int], None] = lambda _: None,
    *,
    optima: Sequence[NormalFit] = (),
    rounds: int = ROUNDS,
    more_rounds: int = MORE_ROUNDS,
    tail_rounds: int = TAIL_ROUNDS,
    bends: bool = True,
) -> Weighted:
    """Draw, weight and adapt in rounds. The first round draws from the fits, which are also the default `optima`.

    After each round, `done` is called with its number. If k-hat of a quantity is undecided, up to `more_rounds` follow
    with twice as many draws. If it is still not surely good, up to `tail_rounds` follow for its tail, unless draws
    miss a region. With `bends`, proposals follow the bends of the posterior if weights are still uneven after
    `rounds`, or almost useless after two.
    """
    count = max(1000, 20 * counted.size)
    current = _Round(tuple(fits), np.full(len(fits), 1 / len(fits)), count)
    draws = _Draws(counted.size)
    number, began, most, tails = 0, 0, rounds, False
    other, before = current, 0.0
    while number < most:
        used = _with_tails(counted, current, draws) if tails else current
        new = used.drawn(rng)
        draws.add(used, new, counted.log_density(new))
        (far,) = np.nonzero(draws.log_ratio < draws.log_ratio.max() - NEGLIGIBLE)
        if len(far):
            draws.lp[far[~_computed(counted.constrain(draws.vectors[far]))]] = -np.inf
        number += 1
        done(number)
        if not np.isfinite(draws.lp).any():
            break
        held = worth(draws.log_ratio) / len(draws.lp)
        dead = number == 2 and held * len(draws.lp) < DEAD
        # Two rounds along bends show whether these proposals help. If so, both mixtures alternate and use all draws.
        tried = number == began + 2 and bool(current.bends)
        if tried and draws.recent < max(BENT, before):
            current = other
        elif tried or (number > began + 2 and other.bends != current.bends):
            current, other = other, current
        current = _adapted(current, draws)
        few = held < EVEN  # Another component may make weights more even.
        if few and (current.bends or (not tails and len(current.components) < MOST)):
            current = _with_heaviest(current, draws)
        if bends and not began and (dead or (number == rounds and held < UNEVEN)):
            began, other, before = number, current, draws.recent
            current = _along_bends(counted, fits, count, rng) or current
        if dead and not current.bends:
            break
        if number == most < rounds + more_rounds + tail_rounds and not tails:
            worst = worst_khat(counted.constrain(draws.vectors), draws.log_ratio)
            if number == rounds and (few or GOOD < worst < LOST):
                most += more_rounds
            elif SURE < worst < np.inf and not miss_a_region(draws.log_ratio, draws.log_ratio):
                most, tails = most + tail_rounds, True
            current, other = (replace(each, draws=2 * count) for each in (current, other))
    vectors, lp, log_q = draws.vectors, draws.lp, draws.log_q
    values = counted.constrain(vectors)
    there = np.isfinite(lp) | _computed(values)
    vectors, lp, log_q = vectors[there], lp[there], log_q[there]
    values = {name: each[there] for name, each in values.items()}
    log_weight = smoothed(lp - log_q)
    # The mixture without bends, which has few components.
    whole = other if current.bends else current
    nearest = np.argmax([fit.log_density(vectors) for fit in optima or fits], axis=0)
    components, shares = whole.components, whole.shares
    return Weighted(
        vectors, lp, log_q, log_weight, components, shares, values, nearest, draws.log_mixture
    )


def _along_bends(
    counted: CountedDensity, fits: Sequence[NormalFit], draws: int, rng: np.random.Generator
) -> _Round | None:
    """Return a mixture over one grid of bending coordinates per fit; None if the posterior has no bends."""
    if counted.size > BENT_SIZE:
        return None
    bends, found = list[BentFit](), Proposals()
    for fit in fits:
        held, grid = bending(counted, fit, rng), Proposals()
        while held and not grid:  # Fix fewer coordinates if the grid is too large.
            bent = BentFit(counted, fit, held)
            grid = bent.grid(GRID // len(fits))
            held.pop()
        if not grid:
            return None
        bends.append(bent)
        found += grid
    return _of_evidence(_Round((), np.empty(0), draws, bends=tuple(bends)), found)


def _of_evidence(current: _Round, found: Proposals) -> _Round:
    """Add components whose shares are proportional to their evidence."""
    components, evidence = zip(*found, strict=True)
    known = np.append(current.evidence if current.evidence is not None else [], evidence)
    shares = np.exp(known - logsumexp(known))
    before = len(current.components)
    shares[:before] = current.shares * shares[:before].sum()
    grown = (*current.components, *components)
    return replace(current, components=grown, shares=_at_least(shares), evidence=known)


def _at_least(shares: Float[np.ndarray, " component"]) -> Float[np.ndarray, " component"]:
    """Mix shares with equal shares, so that each has at least its part of `LEAST_SHARE`."""
    return (1 - LEAST_SHARE) * shares / shares.sum() + LEAST_SHARE / len(shares)


def _computed(values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return for each draw whether all its variables are finite."""
    return np.all([np.isfinite(v).reshape(len(v), -1).all(axis=1) for v in values.values()], axis=0)


def _with_tails(counted: CountedDensity, current: _Round, draws: _Draws) -> _Round:
    """Add components in the tails of the quantities whose squares have the largest k-hat.

    Each has the moments of the draws, additionally weighted by the squared distance of the quantity from its mean.
    """
    there = np.isfinite(draws.log_ratio)
    points, log_ratio = draws.vectors[there], draws.log_ratio[there]
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
    sure = [tail for tail in tails if tail is not None]
    if not sure:
        return current
    shares = np.full(len(sure), TAIL_SHARE / len(sure))
    return replace(
        current,
        components=(*current.components, *sure),
        shares=np.concatenate([(1 - TAIL_SHARE) * current.shares, shares]),
        tails=len(sure),
    )


def _with_heaviest(current: _Round, draws: _Draws) -> _Round:
    """Add a component at the largest weight, with the spread of nearby draws.

    The mixture can thus follow a curved posterior (incremental mixture importance sampling, Raftery and Bao 2010).
    """
    points, log_ratio = draws.vectors, draws.log_ratio
    size, weights = points.shape[1], np.exp(_tempered(log_ratio, 1.0))
    if current.bends:
        return _with_bent(current, points, weights)
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


def _with_bent(current: _Round, points: Points, weights: Float[np.ndarray, " draw"]) -> _Round:
    """Add nodes at the largest weights, each along the bend of the nearest fit."""
    heaviest = np.argsort(-weights)[:NEW_NODES]
    heaviest = heaviest[weights[heaviest] > HEAVIER / len(weights)]
    apart = [np.square(bent.fit.standard(points[heaviest])).sum(axis=1) for bent in current.bends]
    nearest = np.argmin(apart, axis=0)
    found = [
        pair
        for number, bent in enumerate(current.bends)
        if (nearest == number).any()
        for pair in bent.at(points[heaviest[nearest == number]])
    ]
    return _of_evidence(current, found) if found else current


def _adapted(current: _Round, draws: _Draws) -> _Round:
    """Update each component to the moments of the draws that it is responsible for, with tempered weights."""
    points, log_weights = draws.vectors, draws.log_ratio
    size = points.shape[1]
    wanted = min(10 * size + 50, len(points) / 2)
    each = draws.by_component(current)
    responsible = np.exp(each - logsumexp(each, axis=0))
    own = responsible * np.exp(_tempered(log_weights, wanted))
    if current.evidence is not None:
        known = np.exp(current.evidence - logsumexp(current.evidence))
        return replace(current, shares=_at_least(known + own.sum(axis=1)))
    components = []
    for component, weights in zip(current.components, own, strict=True):
        total = weights.sum()
        count = total**2 / (weights**2).sum() if total > 0 else 0.0
        enough = count > min(size + 2, wanted / 4) and total > 1e-6
        found = moments(points, weights, component, max(0.0, 2 * size - count)) if enough else None
        components.append(found or component)
    plain = responsible @ np.exp(log_weights - logsumexp(log_weights))
    return replace(current, components=tuple(components), shares=_at_least(plain))


def _tempered(log_weights: LogWeights, wanted: float) -> LogWeights:
    """Raise weights to the largest power up to 1 that gives the wanted number of effective draws; normalise them."""
    finite = np.where(np.isfinite(log_weights), log_weights, -1e300)
    finite = np.maximum(finite - finite.max(), -1e300)
    if worth(finite) < wanted:
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if worth(middle * finite) >= wanted else (low, middle)
        finite = low * finite
    return finite - logsumexp(finite)
