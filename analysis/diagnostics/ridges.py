"""Ridges: slow parameters of which a sum, a difference or a product is known far better than each of them.

All skills of a Bradley-Terry model may rise together, an intercept may rise where its effects fall, `a` may grow where
`b` in `a * b` shrinks: the prior alone tells them apart. Chains cross such a ridge fast and go along it slowly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float

from ..summaries.deciding import rhat_of_entries
from ..summaries.summary import bulk_ess
from .causes import LOOKED_AT
from .measure import Facts

NARROW = 0.02
"""Variance of a combination within chains, over that of its terms, up to which these lie on a ridge."""
ROUNDING = 1e-12
"""The same ratio, below which a combination is a constant, as the sum of a simplex is."""
MOST_TERMS = 4
"""Slow parameters that are also combined all at once: of more of them, chance makes a narrow combination."""
PAIRS = 10
"""Pairs that are looked at: of the closest entries of two variables, or of one."""
HALF = 0.1
"""The same ratio within each half of the draws, as two modes that chains go between have no ridge of their own."""
LEAST_HALF = 0.05
"""Share of the draws of a half that is looked at."""
FASTER = 4.0
"""Least factor by which a combination has more effective draws than the slowest of its terms."""


@dataclass(frozen=True)
class Ridge:
    """A combination of slow parameters that is known far better than each of them.

    Its standard deviation is `narrower` times smaller than that of any term; of products those of logarithms.
    """

    names: tuple[str, ...]  # terms or factors
    combination: str  # a formula, or words where coefficients are not all 1 or -1
    known: float  # bulk ESS
    narrower: float

    def holds(self, *names: str) -> bool:
        """Tell whether these entries, or entries of these variables, are among its terms."""
        return {*names} <= {*self.names, *map(_variable, self.names)}


def ridge_of(facts: Facts) -> Ridge | None:
    """Find the narrowest combination of slow parameters that chains agree about, with enough effective draws.

    Sums and differences are looked at, and products and quotients of parameters that keep their sign. A combination of
    different variables, as of an intercept and its effects, comes before one within a variable.
    """
    names = tuple(facts.bad.sort_values("ess_bulk").index[:LOOKED_AT])
    if not names:
        return None
    values = facts.columns(names)
    kept = (values > 0).all(axis=(0, 1)) | (values < 0).all(axis=(0, 1))
    factors = [name for name, keeps in zip(names, kept, strict=True) if keeps]
    words = (" * ", " / ", "a product of powers of ")
    found = [*_ridges(facts, names, values, (" + ", " - ", "a weighted sum of "))]
    found += _ridges(facts, factors, np.log(np.abs(values[..., kept])), words)
    return max(
        found, key=lambda each: (len({*map(_variable, each.names)}), each.narrower), default=None
    )


def _ridges(
    facts: Facts,
    names: Sequence[str],
    values: Float[np.ndarray, "chain draw param"],
    words: tuple[str, str, str],
) -> Iterator[Ridge]:
    """Give combinations of these that are narrow within chains, and fast; `words` write them."""
    within = values - values.mean(axis=1, keepdims=True)
    sd = within.std(axis=(0, 1))
    sd[sd == 0] = 1.0
    ess = facts.table["ess_bulk"].reindex(names).to_numpy()
    for terms, weights in _candidates(within / sd, names):
        # With coefficients of one size if that will do.
        for factor in (np.sign(weights * weights[0]), weights / sd[terms]):
            width = (within[..., terms] @ factor).std() / np.abs(factor * sd[terms]).min()
            drawn = (values[..., terms] @ factor)[..., None]
            known = float(bulk_ess(drawn)[0])
            fast = known >= max(facts.raw.min_ess, FASTER * ess[terms].min())
            agrees = not rhat_of_entries(drawn)[0] > facts.rhat_limit
            narrow = ROUNDING < width**2 <= NARROW and _is_one(values[..., terms] * factor)
            if narrow and fast and agrees:
                there = [names[term] for term in terms]
                listed = " and ".join(f"`{name}`" for name in there)
                signs = (words[0] if each > 0 else words[1] for each in factor[1:])
                formula = there[0] + "".join(s + n for s, n in zip(signs, there[1:], strict=True))
                plain = np.ptp(np.abs(factor)) == 0
                text = f"`{formula}`" if plain else words[2] + listed
                yield Ridge(tuple(there), text, known, float(1 / width))
                break


def _is_one(terms: Float[np.ndarray, "chain draw term"]) -> bool:
    """Tell whether a combination is narrow in both halves of the draws too, between which the first term differs most.

    The halves are those of least variance within them (Otsu 1979), which are modes where there are two.
    """
    flat = terms.reshape(-1, terms.shape[2])
    flat = flat[flat[:, 0].argsort()] - flat.mean(axis=0)
    count = np.arange(1, len(flat))
    between = np.cumsum(flat[:, 0])[:-1] ** 2 / (count * (len(flat) - count))
    halves = np.split(flat, [int(between.argmax()) + 1])
    return all(
        half.sum(axis=1).var() <= HALF * half.var(axis=0).min()
        for half in halves
        if len(half) >= LEAST_HALF * len(flat)
    )


def _variable(entry: str) -> str:
    return entry.partition("[")[0]


def _candidates(
    units: Float[np.ndarray, "chain draw param"], names: Sequence[str]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Give terms and their weights, in standard deviations: of close pairs, and of all of a few."""
    count = units.shape[2]
    flat = units.reshape(len(units) * units.shape[1], count)
    together = flat.T @ flat / len(flat)
    if not np.isfinite(together).all():
        return
    closest: dict[frozenset[str], tuple[int, int]] = {}
    for pair in sorted(combinations(range(count), 2), key=lambda pair: -abs(together[pair])):
        closest.setdefault(frozenset(_variable(names[place]) for place in pair), pair)
    for pair in list(closest.values())[:PAIRS]:
        yield np.array(pair), np.array([1.0, -np.sign(together[pair])])
    if 2 < count <= MOST_TERMS:
        yield np.arange(count), np.linalg.eigh(together)[1][:, 0]
