"""The paper's statements beside what was measured; every verdict follows from numbers by a rule.

A statement is tried in several comparisons (engine, pair of parametrisations, family of ADVI). It
reproduces if it holds in all of them, does not if it holds in none, and is unclear otherwise, or
where the chains of NUTS do not agree on the predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from ..heldout import Gap
from ..lab.claims import Statement, Trial, judge
from ..lab.study import ENGINE_WORDS, METHOD_WORDS, Cell
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


def statements(results: Results) -> tuple[Statement, ...]:
    """Hold the paper's statements against the results."""
    low, high = f"{MARGIN:g}", f"{1 / MARGIN:g}"
    fewer = f"constrained over free is below {low}"
    return (
        _statement(
            "fewer effective samples, parameters",
            _FEWER,
            f"smallest bulk ESS of a parameter, {fewer}",
            _ratios(results, lambda m: m.parameter_ess, lambda ratio: ratio < MARGIN),
        ),
        _statement(
            "fewer effective samples, predictions",
            _FEWER,
            f"median bulk ESS of f over the held-out points, {fewer}",
            _ratios(results, lambda m: m.held_out.median_ess, lambda ratio: ratio < MARGIN),
        ),
        _statement(
            "lower tree depth",
            _SHALLOWER,
            f"the mean depth is lower by more than {DEPTH_MARGIN:g} and by more than two standard "
            "errors (from the chains' means)",
            _depths(results),
        ),
        _statement(
            "easier to sample",
            _EASIER,
            f"median bulk ESS of f per 1000 gradients, constrained over free is above {high}",
            _ratios(results, lambda m: m.ess_per_1000_gradients, lambda ratio: ratio > 1 / MARGIN),
        ),
        _statement(
            "ADVI of free weights is biased",
            _BIASED,
            f"its predictive mean is off NUTS's by more than {SHIFT:g} posterior sds (root mean "
            f"square over the held-out points), or its sd of f is outside {low} to {high} times "
            "NUTS's",
            list(_biases(results)),
        ),
        _statement(
            "ADVI gains by the constraint, estimates",
            _ACCURATE,
            f"distance of its predictive mean from NUTS's in posterior sds, {fewer}",
            list(_gains(results, lambda gap: gap.in_sds)),
        ),
        _statement(
            "ADVI gains by the constraint, uncertainties",
            _ACCURATE,
            f"absolute log ratio of its sd of f to NUTS's, {fewer}",
            list(_gains(results, lambda gap: abs(math.log(gap.sd_ratio)))),
        ),
    )


def _statement(label: str, quote: str, rule: str, trials: list[Trial]) -> Statement:
    return Statement(label, quote, rule, tuple(trials), judge([t.holds for t in trials]))


def _cell_pairs(results: Results, *methods: str) -> Iterable[tuple[Cell, Cell]]:
    engines = dict.fromkeys(cell.engine for cell in results.measured)
    for method in methods:
        for without, constrained in PAIRS:
            for engine in engines:
                a, b = (results.find(p, method, engine) for p in (without, constrained))
                if a is not None and b is not None:
                    yield a, b


def _ratios(
    results: Results,
    number: Callable[[Measured], float],
    holds: Callable[[float], bool],
) -> list[Trial]:
    trials = []
    for free, constrained in _cell_pairs(results, "nuts"):
        a, b = (number(results.measured[cell]) for cell in (free, constrained))
        words = f"{_short(a)} to {_short(b)}, ratio {b / a:.2f}"
        trusted = _trusted(results, free, constrained)
        trials.append(Trial(_pair(free, constrained), words, holds(b / a) if trusted else None))
    return trials


def _depths(results: Results) -> list[Trial]:
    trials = []
    for free, constrained in _cell_pairs(results, "nuts"):
        (a, error_a), (b, error_b) = (results.measured[c].depth for c in (free, constrained))
        error = math.hypot(error_a, error_b)
        lower = b - a < -max(DEPTH_MARGIN, 2 * error if math.isfinite(error) else math.inf)
        trusted = _trusted(results, free, constrained)
        words = f"{a:.2f} to {b:.2f}, standard error {error:.2f}"
        trials.append(Trial(_pair(free, constrained), words, lower if trusted else None))
    return trials


def _biases(results: Results) -> Iterable[Trial]:
    for cell, gap in results.gaps.items():
        if cell.problem == "free":
            words = f"off by {gap.in_sds:.2f} sds, sd ratio {gap.sd_ratio:.2f}"
            spread = MARGIN <= gap.sd_ratio <= 1 / MARGIN
            biased = gap.in_sds > SHIFT or not spread
            yield Trial(cell.label, words, biased if _trusted(results, cell) else None)


def _gains(results: Results, number: Callable[[Gap], float]) -> Iterable[Trial]:
    for free, constrained in _cell_pairs(results, "meanfield", "fullrank"):
        if free in results.gaps and constrained in results.gaps:
            a, b = number(results.gaps[free]), number(results.gaps[constrained])
            trusted = _trusted(results, free, constrained)
            holds = b < MARGIN * a if trusted else None
            yield Trial(_pair(free, constrained), f"{a:.2f} to {b:.2f}", holds)


def _pair(free: Cell, constrained: Cell) -> str:
    rest = f"{METHOD_WORDS[free.method]}, {ENGINE_WORDS[free.engine]}"
    return f"{free.problem} to {constrained.problem}, {rest}"


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _trusted(results: Results, *cells: Cell) -> bool:
    """Tell whether the chains of NUTS agree on f with these parametrisations and engines."""
    found = (results.find(c.problem, "nuts", c.engine) for c in cells)
    return all(c is not None and results.measured[c].held_out.worst_rhat <= MAX_RHAT for c in found)
