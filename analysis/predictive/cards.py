"""Scores of predictions as a card: whether intervals hold what they should, then errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from onebasin.base.card import Card, Facts, Part, Words, number

if TYPE_CHECKING:
    from .regression import PredictiveScores

CHANCE = 0.99
"""Share of honest predictions whose coverage lies within what is called chance."""


def of_scores(scores: PredictiveScores) -> Card:
    """Sentences, then numbers."""
    return Card(f"Predictions of {scores.num_obs:,} points", tuple(_of_scores(scores)))


def _of_scores(scores: PredictiveScores) -> Iterator[Part]:
    yield Words(
        f"The predictive mean misses by {number(scores.rmse)} (root mean square, in the units of `y`), and the central "
        f"95 % interval holds {100 * scores.coverage_95:.3g} % of the points: {_coverage(scores)}."
    )
    log_score, share = scores.log_score, scores.explained_variance
    yield Facts.of(
        ("RMSE", number(scores.rmse)),
        ("explained", "" if share is None else f"{100 * share:.3g} % of the variance of `y`"),
        ("CRPS", number(scores.crps)),
        ("log score", "" if log_score is None else f"{number(log_score, 4)} nats a point"),
        ("inside 50 %", f"{100 * scores.coverage_50:.3g} %, mean width {number(scores.width_50)}"),
        ("inside 95 %", f"{100 * scores.coverage_95:.3g} %, mean width {number(scores.width_95)}"),
        ("draws", f"{scores.num_draws:,}"),
    )
    if log_score is None:
        yield Words("No log score: give the `log_likelihood` of the points for one.", small=True)


def _coverage(scores: PredictiveScores) -> str:
    """Hold the coverage against what independent points would have by chance."""
    from scipy.stats import binom

    if not 0 <= scores.coverage_95 <= 1:
        return "whether that is enough cannot be judged"
    low, high = (end / scores.num_obs for end in binom.interval(CHANCE, scores.num_obs, 0.95))
    chance = f"of as many independent points, {100 * low:.3g} to {100 * high:.3g} % would be within chance"
    if scores.coverage_95 < low:
        return f"too few, so that the predictions are too sure of themselves ({chance})"
    if scores.coverage_95 > high:
        return f"too many, so that the predictions are not sure enough of themselves ({chance})"
    return f"as many as there should be ({chance})"
