"""The paper's statements beside what was measured; every verdict follows from numbers by a rule.

A statement is tried in several comparisons (engine, pair of parametrisations, family of ADVI). It
reproduces if it holds in all of them, does not if it holds in none, and is unclear otherwise, or
where the chains of NUTS do not agree on the predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..study import ENGINE_WORDS, METHOD_WORDS, Cell, Statement, judge
from .measures import Measured, Results

PAIRS = (("free", "givens"), ("ordered", "givens+ordered"))
"""Without and with the unit-norm constraint, all else equal."""
MARGIN = 0.8
"""A ratio counts as lower below this, and as higher above its inverse."""
DEPTH_MARGIN = 0.1
"""Levels by which a mean tree depth must be lower, besides two standard errors."""
MAX_RHAT = 1.05
"""Where the R-hat of f is above this, NUTS itself is not the truth, and a comparison is void."""
SHIFT = 0.25
"""Root mean square shift, in posterior sds, above which a predictive mean is called biased."""

_FEWER = (
    "In practice, we found the number of effective samples [...] to be lower in the constrained "
    "case."
)
_SHALLOWER = (
    "In practice, we found the [...] average NUTS tree depth to be lower in the constrained case."
)
_EASIER = (
    "Using unit vectors via the Givens Transform results in a much more well-behaved posterior "
    "that is easier to sample from [...]."
)
_BIASED = (
    "This posterior is [...] difficult for VI to approximate, which results in biased posterior "
    "predictive distributions of new samples."
)
_ACCURATE = (
    "This amounts to more accurate estimates and posterior predictive uncertainties of new data."
)


@dataclass(frozen=True)
class _Trial:
    """One comparison: its words, and whether the statement holds in it; None if NUTS failed."""

    words: str
    holds: bool | None


def statements(results: Results) -> tuple[Statement, ...]:
    """Hold the paper's statements against the results."""
    low, high = f"{MARGIN:g}", f"{1 / MARGIN:g}"
    return (
        _statement(
            _FEWER,
            "parameters: smallest bulk ESS",
            _ratios(results, lambda m: m.parameter_ess, lambda ratio: ratio < MARGIN),
            f"constrained over free is below {low}",
        ),
        _statement(
            _FEWER,
            "predictions f: median bulk ESS over the held-out points",
            _ratios(results, lambda m: m.prediction_ess, lambda ratio: ratio < MARGIN),
            f"constrained over free is below {low}",
        ),
        _statement(
            _SHALLOWER,
            "mean tree depth",
            _depths(results),
            f"lower by more than {DEPTH_MARGIN:g} and by more than two standard errors (from the "
            "chains' means)",
        ),
        _statement(
            _EASIER,
            "median bulk ESS of f per 1000 gradients",
            _ratios(results, lambda m: m.ess_per_1000_gradients, lambda ratio: ratio > 1 / MARGIN),
            f"constrained over free is above {high}",
        ),
        _statement(
            _BIASED,
            "ADVI against NUTS, free weights",
            list(_biases(results)),
            f"the predictive mean is off by more than {SHIFT:g} posterior sds (root mean square "
            f"over the held-out points), or the sd of f is outside {low} to {high} times NUTS's",
        ),
        _statement(
            _ACCURATE,
            "estimates by ADVI: distance of the predictive mean from NUTS, in posterior sds",
            list(_gains(results, lambda gap: gap.in_sds)),
            f"constrained over free is below {low}",
        ),
        _statement(
            _ACCURATE,
            "uncertainties by ADVI: absolute log ratio of the sd of f to NUTS's",
            list(_gains(results, lambda gap: abs(math.log(gap.sd_ratio)))),
            f"constrained over free is below {low}",
        ),
    )


def _statement(quote: str, aspect: str, trials: list[_Trial], rule: str) -> Statement:
    measured = "; ".join(trial.words for trial in trials) or "not measured in this run"
    sure = [trial.holds for trial in trials if trial.holds is not None]
    tail = f". Holds in {sum(sure)} of {len(sure)}." if sure else "."
    if len(sure) < len(trials):
        doubtful = len(trials) - len(sure)
        tail += f" In {doubtful} the chains of NUTS disagree on f (R-hat above {MAX_RHAT:g})."
    return Statement(quote, aspect, measured + tail, judge([t.holds for t in trials]), rule)


def _nuts_pairs(results: Results) -> Iterable[tuple[Cell, Cell]]:
    yield from _cell_pairs(results, ("nuts",))


def _cell_pairs(results: Results, methods: Sequence[str]) -> Iterable[tuple[Cell, Cell]]:
    engines = dict.fromkeys(cell.engine for cell in results.measured)
    for method in methods:
        for without, constrained in PAIRS:
            for engine in engines:
                pair = (results.find(p, method, engine) for p in (without, constrained))
                a, b = pair
                if a is not None and b is not None:
                    yield a, b


def _ratios(
    results: Results,
    number: Callable[[Measured], float],
    holds: Callable[[float], bool],
) -> list[_Trial]:
    trials = []
    for free, constrained in _nuts_pairs(results):
        a, b = (number(results.measured[cell]) for cell in (free, constrained))
        words = f"{_pair(free, constrained)} {_short(a)} to {_short(b)}"
        trusted = _trusted(results, free, constrained)
        trials.append(_Trial(words, holds(b / a) if trusted else None))
    return trials


def _depths(results: Results) -> list[_Trial]:
    trials = []
    for free, constrained in _nuts_pairs(results):
        (a, error_a), (b, error_b) = (results.measured[c].depth for c in (free, constrained))
        error = math.hypot(error_a, error_b)
        lower = b - a < -max(DEPTH_MARGIN, 2 * error if math.isfinite(error) else math.inf)
        trusted = _trusted(results, free, constrained)
        words = f"{_pair(free, constrained)} {a:.2f} to {b:.2f}"
        trials.append(_Trial(words, lower if trusted else None))
    return trials


def _biases(results: Results) -> Iterable[_Trial]:
    for cell, gap in results.gaps.items():
        if cell.parametrisation == "free":
            words = (
                f"{METHOD_WORDS[cell.method]}, {ENGINE_WORDS[cell.engine]}: shift "
                f"{gap.in_sds:.2f} sd, sd ratio {gap.sd_ratio:.2f}"
            )
            spread = MARGIN <= gap.sd_ratio <= 1 / MARGIN
            biased = gap.in_sds > SHIFT or not spread
            yield _Trial(words, biased if _trusted(results, cell) else None)


def _gains(results: Results, number: Callable) -> Iterable[_Trial]:
    for free, constrained in _cell_pairs(results, ("meanfield", "fullrank")):
        if free in results.gaps and constrained in results.gaps:
            a, b = number(results.gaps[free]), number(results.gaps[constrained])
            words = f"{_pair(free, constrained, with_method=True)} {a:.2f} to {b:.2f}"
            trusted = _trusted(results, free, constrained)
            yield _Trial(words, b < MARGIN * a if trusted else None)


def _pair(free: Cell, constrained: Cell, *, with_method: bool = False) -> str:
    method = f"{METHOD_WORDS[free.method]}, " if with_method else ""
    engine = ENGINE_WORDS[free.engine]
    return f"{free.parametrisation} to {constrained.parametrisation}, {method}{engine}:"


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _trusted(results: Results, *cells: Cell) -> bool:
    """Tell whether the chains of NUTS agree on f with these parametrisations and engines."""
    found = (results.find(c.parametrisation, "nuts", c.engine) for c in cells)
    return all(c is not None and results.measured[c].prediction_rhat <= MAX_RHAT for c in found)
