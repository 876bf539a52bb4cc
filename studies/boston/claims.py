"""The paper's statements on Boston Housing, each tried in every engine on the splits that have both networks.

With fewer splits than a Wilcoxon test needs, every comparison is void.
"""

from collections.abc import Callable

from onebasin.analysis.compare.pairs import MIN_PAIRS

from ..lab import ENGINE_WORDS, Claim, Pairs, paired
from . import paper

LEVEL = 0.05
FAR_LESS = 0.8
"""The mean share outside counts as far lower below this times the free one's."""


def _claim(
    label: str,
    quote: str,
    score: str,
    words: Callable[[Pairs], str],
    holds: Callable[[Pairs], bool | None],
    rule: str,
) -> Claim:
    def tried(pairs: Pairs) -> tuple[str, bool | None]:
        return words(pairs), holds(pairs) if pairs.num >= MIN_PAIRS else None

    test = paired(
        "cells",
        score,
        "problem",
        "free",
        "givens",
        tried,
        by="split",
        same=("engine",),
        where=lambda row: f"NUTS, {ENGINE_WORDS[row['engine']]}",
    )
    return Claim(label, quote, f"{rule}; unclear with fewer than {MIN_PAIRS} splits", test)


def _wins(pairs: Pairs) -> str:
    free, constrained = pairs.means
    return f"lower in {pairs.wins} of {splits(pairs.num)}; mean {free:.3f} free, {constrained:.3f} constrained"


def splits(number: int) -> str:
    """Count splits in words."""
    return f"{number} split" if number == 1 else f"{number} splits"


def _test(pairs: Pairs) -> str:
    p = pairs.p_value
    return f"p = {p:.2g}" if p is not None else f"no test with {splits(pairs.num)}"


def _always(pairs: Pairs) -> bool:
    return pairs.wins == pairs.num


def _far_less(pairs: Pairs) -> bool | None:
    free, constrained = pairs.means
    if constrained < FAR_LESS * free:
        return True
    return None if constrained < free else False


def _significant(pairs: Pairs) -> bool:
    free, constrained = pairs.means
    return pairs.p_value is not None and pairs.p_value < LEVEL and constrained < free


_TESTS = (
    "Paired Wilcoxon tests of the MSE and coverage using the unconstrained versus the constrained "
    "models results in p-values of 0.009 and 0.003"
)
_SIGNIFICANT = f"p < {LEVEL:g} in a paired two-sided test and the constrained mean is lower"
CLAIMS = (
    _claim(
        "lower MSE in every split",
        "In every case the constrained version using the Givens Transform outperformed the "
        "unconstrained version (Table 1).",
        "mse",
        _wins,
        _always,
        "the MSE with Givens weights is lower in every split",
    ),
    _claim(
        "far fewer points outside the interval",
        "The constrained distribution has test examples outside of the 95% credible interval far less often (Table 2).",
        "outside_95",
        _wins,
        _far_less,
        f"the mean share outside the 95 % interval is below {FAR_LESS:g} times the free one's; not if it is no lower",
    ),
    _claim(
        "MSE, Wilcoxon test",
        f"{_TESTS} (MSE: {paper.P_MSE}).",
        "mse",
        _test,
        _significant,
        _SIGNIFICANT,
    ),
    _claim(
        "share outside the interval, Wilcoxon test",
        f"{_TESTS} (coverage: {paper.P_OUTSIDE}).",
        "outside_95",
        _test,
        _significant,
        _SIGNIFICANT,
    ),
)
