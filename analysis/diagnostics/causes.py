"""Causes that draws show: chains that stand still, funnels, modes, and how many draws are missing.

Stuck: a Metropolis chain repeats its draws honestly, with runs as long as its share of repeats makes them; so a run is
judged by that share. One entry may honestly be narrow in one chain, where labels are permuted, and so the spread is
that of a whole variable.

Funnels: a scale goes with the spread of a vector, so that no step size suits both of its ends. Every centred
hierarchical model has such a pair, and most are sampled well; what makes it a cause are divergences where the vector is
narrow, energies that hardly move, or a scale that is not explored. Betancourt and Girolami 2015, Hamiltonian Monte
Carlo for hierarchical models.

Modes: chains are settled, each in a place of its own. A height is the mean log density of a chain, in nats. Two are
unlike where they differ by more than their Monte Carlo errors explain, and by more than one nat: long chains make a
tenth of a nat significant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from onebasin.posteriors.rhat_ess import bulk_ess

SHARE = 0.1
"""Share of a chain's draws that a run of equal ones has to take."""
LEAST_RUN = 3
"""Equal draws that say nothing by themselves: in short chains a tenth of the draws is less."""
NARROW = 4e-4
"""Variance of a variable in one chain over the median chain's, below which the chain does not explore it."""


@dataclass(frozen=True)
class EqualRun:
    """A run of equal draws of one entry: its chain, its first draw, its length."""

    chain: int
    first: int
    length: int


def longest_run(
    values: Float[np.ndarray, "chain draw param"],
    free: Bool[np.ndarray, " param"],
    moved: Bool[np.ndarray, "chain step"],
) -> EqualRun | None:
    """Find the longest run of equal draws that is too long to be honest, of entries that vary; None without one.

    An entry that stays at an end of its range while others move is no such run: a probability that rounds to 1; but it
    has to move in some chain. `moved` tells at which steps from one draw to the next anything moved.
    """
    draws = values.shape[1]
    same = values[:, 1:] == values[:, :-1]
    varies = ~same.all(axis=(0, 1))
    ends = (values[:, 1:] == values.min(axis=(0, 1))) | (values[:, 1:] == values.max(axis=(0, 1)))
    same &= ~(ends & moved[..., None] & varies)
    share = same.mean(axis=1)
    with np.errstate(divide="ignore"):  # the longest run that a share of repeats explains
        repeats = np.clip(np.median(share, axis=0), 0, 1 - 1e-9)
        explained = -3 * np.log(draws) / np.log(repeats)
    honest = np.minimum(np.maximum(max(SHARE * draws, LEAST_RUN), explained), 0.99 * draws)
    chains, entries = np.nonzero((share * (draws - 1) + 1 > honest) & free)
    long = []
    for chain, entry in zip(chains, entries, strict=True):
        changes = np.concatenate([[True], ~same[chain, :, entry], [True]])
        starts: Int[np.ndarray, " change"] = np.flatnonzero(changes)
        lengths = np.diff(starts)
        place = int(lengths.argmax())
        run = EqualRun(int(chain), int(starts[place]), int(lengths[place]))
        long += [run] if run.length > honest[entry] else []
    return max(long, key=lambda run: run.length, default=None)


def narrow_chains(values: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Name variables (chain, draw, *event) that hardly vary in one chain of three or more, with that chain."""
    found = {}
    for name, drawn in values.items():
        variance = np.array([chain.var(axis=0).sum() for chain in drawn])
        if len(variance) > 2 and variance.min() < NARROW * np.median(variance):
            found[name] = int(variance.argmin())
    return found


GOES_WITH = 0.5
"""Rank correlation of the scale with the vector's log mean square; with no statistics of the sampler, `ALONE`."""
ALONE = 0.6
SMALL = 0.25
"""Median rank, among all draws, of the scale at divergences, below which these lie where it is small."""
FEW, MANY = 5, 10
"""Divergences needed together with other signs, and by themselves."""
SHORT_VECTOR = 8
"""Positive variables of at most so many entries are scales entry by entry."""

Values = Mapping[str, Float[np.ndarray, "chain draw *event"]]


@dataclass(frozen=True)
class Funnel:
    """A scale (an entry of a variable) and a vector whose spread goes with it."""

    scale: str
    vector: str
    correlation: float  # of ranks, between 0 and 1
    large: bool  # whether the vector narrows where the scale is large, as with a precision
    divergences: int = 0
    rank: float = float("nan")  # median one of the scale at divergences, 0 at the narrow end
    there: int = 0  # divergences in the quarter of draws at the narrow end

    @property
    def diverges(self) -> bool:
        """Tell whether enough divergences lie at the narrow end."""
        return self.divergences >= FEW and self.rank < SMALL

    @property
    def diverges_often(self) -> bool:
        """Tell whether so many do that nothing else is needed."""
        return self.divergences >= MANY and self.rank < SMALL


def find_funnel(values: Values, diverging: Bool[np.ndarray, "chain draw"] | None) -> Funnel | None:
    """Give the pair that goes together most closely, with where the divergences lie; None where no pair does."""
    pairs = list(_pairs(values))
    if not pairs:
        return None
    best, ranks = max(pairs, key=lambda pair: pair[0].correlation)
    if diverging is None or not diverging.any():
        return best
    at = ranks[diverging.ravel()]
    there = int((at < SMALL).sum())
    return replace(best, divergences=at.size, rank=float(np.median(at)), there=there)


def _pairs(values: Values) -> Iterator[tuple[Funnel, Float[np.ndarray, " all"]]]:
    # Ranks within chains: chains in different modes differ in everything, which is no funnel.
    spreads = {}
    scales: list[tuple[str, str, Float[np.ndarray, "chain draw"]]] = []
    for name, drawn in values.items():
        flat = drawn.reshape(drawn.shape[0] * drawn.shape[1], -1)
        square = flat.var(axis=1) if flat.shape[1] > 1 else np.zeros(1)
        if square.min() > 0:  # a vector: its mean square about its mean over entries
            spreads[name] = _ranks_by_chain(np.log(square).reshape(drawn.shape[:2]))
        # Scales are scalars, and entries of short positive vectors.
        if drawn.ndim == 2:
            scales.append((name, name, drawn))
        elif drawn.ndim == 3 and drawn.shape[2] <= SHORT_VECTOR and drawn.min(initial=1.0) > 0:
            entries = range(drawn.shape[2])
            scales += [(name, f"{name}[{place}]", drawn[..., place]) for place in entries]
    for variable, name, scale in scales:
        ranks, within = _ranks(scale.ravel()), _ranks_by_chain(scale)
        for vector, spread in spreads.items():
            if vector == variable:
                continue
            r = float(np.corrcoef(within, spread)[0, 1])
            large = r < 0 and bool(scale.min() > 0)
            if abs(r) > GOES_WITH and (r > 0 or large):
                yield (Funnel(name, vector, abs(r), large), 1 - ranks if large else ranks)


def _ranks_by_chain(values: Float[np.ndarray, "chain draw"]) -> Float[np.ndarray, " all"]:
    return np.concatenate([_ranks(chain) for chain in values])


def _ranks(values: Float[np.ndarray, " all"]) -> Float[np.ndarray, " all"]:
    """Ranks from 0 to 1."""
    ranks = np.empty(values.size)
    ranks[np.argsort(values, kind="stable")] = np.arange(values.size)
    return ranks / max(values.size - 1, 1)


ERRORS = 4.5
"""Monte Carlo errors that heights have to differ by: an ESS of 30 has an error of its own."""
NATS = 1.0
"""Nats that they have to differ by."""
SETTLED_ESS, SETTLED_RHAT = 50.0, 1.1
"""ESS within a chain, and R-hat of its halves, of a chain that has settled."""
SETTLED_ESS_IF_UNLIKE = 30.0
"""ESS within a chain that is enough where heights are unlike."""
LOOKED_AT = 50
"""Worst entries that are looked at."""


@dataclass(frozen=True)
class Heights:
    """Mean log densities by chain with their errors, and the pair of chains that differs most in units of its error."""

    means: tuple[float, ...]
    errors: tuple[float, ...]
    lowest: int = 0
    highest: int = 0
    unlike: bool = False  # whether that pair differs by more than errors explain

    @property
    def gap(self) -> tuple[float, float]:
        """Difference of that pair, and its Monte Carlo error."""
        low, high = self.lowest, self.highest
        error = float(np.hypot(self.errors[low], self.errors[high]))
        return self.means[high] - self.means[low], error

    @property
    def gap_is_seen(self) -> bool:
        """Tell whether the highest and the lowest differ by more than their errors, if not by a nat."""
        both = math.sqrt(2) * max(self.errors)
        return max(self.means) - min(self.means) > ERRORS * both

    @property
    def apart(self) -> dict[str, float]:
        """The pair, how far it is apart and the error of that, to be told."""
        gap, error = self.gap
        return {"lowest": self.lowest, "highest": self.highest, "gap": gap, "error": error}


def compare_heights(means: Sequence[float], errors: Sequence[float]) -> Heights:
    """Compare chains' mean log densities, in units of their Monte Carlo errors."""
    mean, error = np.asarray(means, np.float64), np.asarray(errors, np.float64)
    apart = mean[:, None] - mean[None, :]
    both = np.hypot(error[:, None], error[None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((apart > NATS) & (apart > ERRORS * both), apart / both, -1.0)
    highest, lowest = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    unlike = bool(ratio.max() > 0)
    return Heights(tuple(means), tuple(errors), int(lowest), int(highest), unlike)


def settled(
    values: Float[np.ndarray, "chain draw param"], half_rhat: Float[np.ndarray, "chain param"]
) -> tuple[bool, bool]:
    """Tell whether chains have settled, each by itself, and whether they have if heights are known to differ.

    By the worst entries, and R-hat between the two halves of every chain.
    """
    rows = (np.ascontiguousarray(np.moveaxis(chain, -1, 0))[:, None] for chain in values)
    ess = float(np.nanmedian(np.stack([bulk_ess(chain) for chain in rows])))  # of every chain alone
    worst = np.fmax.reduce(half_rhat, axis=0)  # NaN of what is constant in every chain
    known = worst[~np.isnan(worst)]
    agrees = known.size > 0 and float(np.median(known)) < SETTLED_RHAT
    return ess >= SETTLED_ESS and agrees, ess >= SETTLED_ESS_IF_UNLIKE


def times_as_many(ess: float, needed: float, rhat: float, limit: float) -> int:
    """Return by what factor draws must grow, by ESS and by R-hat's excess over one."""
    by_ess = needed / ess if ess > 0 else 1.0
    by_rhat = (rhat - 1) / (limit - 1) if math.isfinite(rhat) else 1.0
    return max(2, math.ceil(max(by_ess, by_rhat)))
