"""The paper's statements on Boston Housing beside what was measured.

With fewer splits than a Wilcoxon test needs, every verdict is `unclear`; where both engines were
run, they have to say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..study import ENGINE_WORDS, Cell, Statement, Verdict
from . import paper
from .measures import MIN_SPLITS, Measured, Paired, pair

LEVEL = 0.05
FAR_LESS = 0.8
"""The mean share outside counts as far lower below this times the free one's."""


@dataclass(frozen=True)
class _Claim:
    quote: str
    aspect: str
    score: str
    words: Callable[[Paired], str]
    verdict: Callable[[Paired], Verdict]
    rule: str


def statements(measured: Mapping[Cell, Measured]) -> tuple[Statement, ...]:
    """Hold the paper's statements against the results."""
    engines = tuple(dict.fromkeys(cell.engine for cell in measured))
    found = []
    for claim in _CLAIMS:
        pairs = {engine: pair(measured, engine, claim.score) for engine in engines}
        known = {engine: paired for engine, paired in pairs.items() if paired is not None}
        words = "; ".join(f"{ENGINE_WORDS[e]}: {claim.words(p)}" for e, p in known.items())
        verdicts = {_judge(claim, paired) for paired in known.values()}
        verdict: Verdict = verdicts.pop() if len(verdicts) == 1 else "unclear"
        words = words or "not measured in this run"
        found.append(Statement(claim.quote, claim.aspect, words, verdict, claim.rule))
    return tuple(found)


def _judge(claim: _Claim, paired: Paired) -> Verdict:
    return "unclear" if len(paired.free) < MIN_SPLITS else claim.verdict(paired)


def _wins(paired: Paired) -> str:
    free, constrained = paired.means
    return (
        f"lower in {paired.wins} of {len(paired.free)} splits; mean {free:.3f} free, "
        f"{constrained:.3f} constrained"
    )


def _test(paired: Paired) -> str:
    p = paired.p_value
    return f"p = {p:.2g}" if p is not None else f"no test with {len(paired.free)} splits"


def _always(paired: Paired) -> Verdict:
    return "reproduces" if paired.wins == len(paired.free) else "does not reproduce"


def _far_less(paired: Paired) -> Verdict:
    free, constrained = paired.means
    if constrained < FAR_LESS * free:
        return "reproduces"
    return "unclear" if constrained < free else "does not reproduce"


def _significant(paired: Paired) -> Verdict:
    free, constrained = paired.means
    small = paired.p_value is not None and paired.p_value < LEVEL
    return "reproduces" if small and constrained < free else "does not reproduce"


_ENOUGH = f"; unclear with fewer than {MIN_SPLITS} splits"
_TESTS = (
    "Paired Wilcoxon tests of the MSE and coverage using the unconstrained versus the constrained "
    "models results in p-values of 0.009 and 0.003"
)
_CLAIMS = (
    _Claim(
        "In every case the constrained version using the Givens Transform outperformed the "
        "unconstrained version (Table 1).",
        "MSE on the test part, standardised units",
        "mse",
        _wins,
        _always,
        "the MSE with Givens weights is lower in every split" + _ENOUGH,
    ),
    _Claim(
        "The constrained distribution has test examples outside of the 95% credible interval far "
        "less often (Table 2).",
        "share of test points outside the 95 % interval",
        "outside_95",
        _wins,
        _far_less,
        f"the mean share is below {FAR_LESS:g} times the free one's; not if it is no lower"
        + _ENOUGH,
    ),
    _Claim(
        f"{_TESTS} (MSE: {paper.P_MSE}).",
        "MSE, paired two-sided Wilcoxon test",
        "mse",
        _test,
        _significant,
        f"p < {LEVEL:g} and the constrained mean is lower" + _ENOUGH,
    ),
    _Claim(
        f"{_TESTS} (coverage: {paper.P_OUTSIDE}).",
        "share outside the 95 % interval, paired two-sided Wilcoxon test",
        "outside_95",
        _test,
        _significant,
        f"p < {LEVEL:g} and the constrained mean is lower" + _ENOUGH,
    ),
)
