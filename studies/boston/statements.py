"""The paper's statements on Boston Housing beside what was measured.

With fewer splits than a Wilcoxon test needs, every verdict is `unclear`; where both engines were
run, they have to say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..lab.claims import Statement, Trial, Verdict
from ..lab.study import ENGINE_WORDS, Cell
from . import paper
from .measures import MIN_SPLITS, Measured, Paired, pair

LEVEL = 0.05
FAR_LESS = 0.8
"""The mean share outside counts as far lower below this times the free one's."""

_HOLDS = {"reproduces": True, "does not reproduce": False, "unclear": None}


@dataclass(frozen=True)
class _Claim:
    label: str
    quote: str
    score: str
    words: Callable[[Paired], str]
    verdict: Callable[[Paired], Verdict]
    rule: str


def statements(measured: Mapping[Cell, Measured]) -> tuple[Statement, ...]:
    """Hold the paper's statements against the results."""
    engines = tuple(dict.fromkeys(cell.engine for cell in measured))
    return tuple(_statement(claim, measured, engines) for claim in _CLAIMS)


def _statement(
    claim: _Claim, measured: Mapping[Cell, Measured], engines: tuple[str, ...]
) -> Statement:
    pairs = {engine: pair(measured, engine, claim.score) for engine in engines}
    known = {engine: paired for engine, paired in pairs.items() if paired is not None}
    verdicts = {engine: _judge(claim, paired) for engine, paired in known.items()}
    trials = tuple(
        Trial(f"NUTS, {ENGINE_WORDS[engine]}", claim.words(paired), _HOLDS[verdicts[engine]])
        for engine, paired in known.items()
    )
    same = set(verdicts.values())
    verdict: Verdict = same.pop() if len(same) == 1 else "unclear"
    return Statement(claim.label, claim.quote, claim.rule, trials, verdict)


def _judge(claim: _Claim, paired: Paired) -> Verdict:
    return "unclear" if len(paired.free) < MIN_SPLITS else claim.verdict(paired)


def _wins(paired: Paired) -> str:
    free, constrained = paired.means
    return (
        f"lower in {paired.wins} of {_splits(paired)}; mean {free:.3f} free, "
        f"{constrained:.3f} constrained"
    )


def _splits(paired: Paired) -> str:
    number = len(paired.free)
    return f"{number} split" if number == 1 else f"{number} splits"


def _test(paired: Paired) -> str:
    p = paired.p_value
    return f"p = {p:.2g}" if p is not None else f"no test with {_splits(paired)}"


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
        "lower MSE in every split",
        "In every case the constrained version using the Givens Transform outperformed the "
        "unconstrained version (Table 1).",
        "mse",
        _wins,
        _always,
        "the MSE with Givens weights is lower in every split" + _ENOUGH,
    ),
    _Claim(
        "far fewer points outside the interval",
        "The constrained distribution has test examples outside of the 95% credible interval far "
        "less often (Table 2).",
        "outside_95",
        _wins,
        _far_less,
        f"the mean share outside the 95 % interval is below {FAR_LESS:g} times the free one's; not if it is no lower"
        + _ENOUGH,
    ),
    _Claim(
        "MSE, Wilcoxon test",
        f"{_TESTS} (MSE: {paper.P_MSE}).",
        "mse",
        _test,
        _significant,
        f"p < {LEVEL:g} in a paired two-sided test and the constrained mean is lower" + _ENOUGH,
    ),
    _Claim(
        "share outside the interval, Wilcoxon test",
        f"{_TESTS} (coverage: {paper.P_OUTSIDE}).",
        "outside_95",
        _test,
        _significant,
        f"p < {LEVEL:g} in a paired two-sided test and the constrained mean is lower" + _ENOUGH,
    ),
)
