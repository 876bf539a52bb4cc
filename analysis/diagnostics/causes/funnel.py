"""Funnels: a scale that goes with the spread of a vector, so that no step size suits both of its ends.

Every centred hierarchical model has such a pair, and most are sampled well; what makes it a cause are divergences where
the vector is narrow, energies that hardly move, or a scale that is not explored. Betancourt and Girolami 2015,
Hamiltonian Monte Carlo for hierarchical models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

GOES_WITH = 0.5
"""Rank correlation of the scale with the vector's log mean square; with no statistics of the sampler, `ALONE`."""
ALONE = 0.6
SMALL = 0.25
"""Median rank, among all draws, of the scale at divergences, below which these lie where it is small."""
FEW, MANY = 5, 10
"""Divergences needed beside other signs, and by themselves."""
SHORT_VECTOR = 8
"""Positive variables of at most so many entries are scales entry by entry."""

Values = Mapping[str, Float[np.ndarray, "chain draw *event"]]


@dataclass(frozen=True)
class Funnel:
    """A scale and a vector whose spread goes with it.

    Attributes
    ----------
    scale, variable : str
        The scale's entry, the name of its variable.
    vector : str
        What becomes narrow.
    correlation : float
        Rank correlation, between 0 and 1.
    large : bool
        Whether the vector narrows where the scale is large, as with a precision.
    divergences, rank : int, float
        How many there are, and the median rank of the scale at them, 0 at the narrow end; NaN without any.
    there : int
        Divergences in the quarter of draws at the narrow end.
    """

    scale: str
    variable: str
    vector: str
    correlation: float
    large: bool
    divergences: int = 0
    rank: float = float("nan")
    there: int = 0

    @property
    def diverges(self) -> bool:
        """Whether enough divergences lie at the narrow end."""
        return self.divergences >= FEW and self.rank < SMALL

    @property
    def diverges_often(self) -> bool:
        """Whether so many do that nothing else is needed."""
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
    return replace(
        best, divergences=at.size, rank=float(np.median(at)), there=int((at < SMALL).sum())
    )


def _pairs(values: Values) -> Iterator[tuple[Funnel, Float[np.ndarray, " all"]]]:
    # Ranks within chains: chains in different modes differ in everything, which is no funnel.
    spreads = {
        name: _ranks_by_chain(spread)
        for name, v in values.items()
        if (spread := _spread(v)) is not None
    }
    for variable, name, scale in _scales(values):
        ranks, within = _ranks(scale.ravel()), _ranks_by_chain(scale)
        for vector, spread in spreads.items():
            if vector == variable:
                continue
            r = float(np.corrcoef(within, spread)[0, 1])
            large = r < 0 and bool(scale.min() > 0)
            if abs(r) > GOES_WITH and (r > 0 or large):
                yield (
                    Funnel(name, variable, vector, abs(r), large),
                    1 - ranks if large else ranks,
                )


def _scales(values: Values) -> Iterator[tuple[str, str, Float[np.ndarray, "chain draw"]]]:
    """Scalars, and entries of short positive vectors: variable, name, draws."""
    for name, drawn in values.items():
        if drawn.ndim == 2:
            yield name, name, drawn
        elif drawn.ndim == 3 and drawn.shape[2] <= SHORT_VECTOR and drawn.min(initial=1.0) > 0:
            for place in range(drawn.shape[2]):
                yield name, f"{name}[{place}]", drawn[..., place]


def _spread(
    drawn: Float[np.ndarray, "chain draw *event"],
) -> Float[np.ndarray, "chain draw"] | None:
    """Log mean square of a vector about its mean over entries, draw by draw; None where it is no vector."""
    flat = drawn.reshape(drawn.shape[0] * drawn.shape[1], -1)
    if flat.shape[1] < 2:
        return None
    square = flat.var(axis=1)
    return np.log(square).reshape(drawn.shape[:2]) if square.min() > 0 else None


def _ranks_by_chain(values: Float[np.ndarray, "chain draw"]) -> Float[np.ndarray, " all"]:
    return np.concatenate([_ranks(chain) for chain in values])


def _ranks(values: Float[np.ndarray, " all"]) -> Float[np.ndarray, " all"]:
    """Ranks from 0 to 1."""
    ranks = np.empty(values.size)
    ranks[np.argsort(values, kind="stable")] = np.arange(values.size)
    return ranks / max(values.size - 1, 1)
