"""What is measured on every split's test part."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.analysis.diagnostics.result import Diagnosis
from onebasin.analysis.predictive.scores import PredictiveScores
from onebasin.analysis.report import Run, describe_run

from ..heldout import predict_held_out
from ..lab.study import Cell, Outcomes
from .design import Config, parts, target

MIN_SPLITS = 6
"""Fewer paired splits cannot give a two-sided Wilcoxon test below 0.05."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One cell's numbers; the posterior itself is too large to keep them all.

    Attributes
    ----------
    scores : PredictiveScores
        On the test part, in standardised units.
    y_sd, log_scale : float
        Data units in a standardised one, and what to take off a log score for data units.
    diagnosis : Diagnosis
        Of the parameters.
    prediction_rhat, prediction_ess : float
        Largest R-hat, and median bulk ESS, of f over the test points.
    made : Run
        How the posterior was made.
    """

    scores: PredictiveScores
    y_sd: float
    log_scale: float
    diagnosis: Diagnosis
    prediction_rhat: float
    prediction_ess: float
    made: Run

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain types."""
        return {
            "scores": self.scores.to_dict(),
            "mse_data_units": self.mse_data_units,
            "log_score_data_units": self.log_score_data_units,
            "diagnosis": self.diagnosis.summary(),
            "warnings": list(self.diagnosis.warnings),
            "prediction_rhat": self.prediction_rhat,
            "prediction_ess": self.prediction_ess,
        }

    @property
    def mse_data_units(self) -> float:
        """Mean squared error in the square of $1,000."""
        return self.scores.mse * self.y_sd**2

    @property
    def log_score_data_units(self) -> float:
        """Log score of the target in $1,000; NaN without one."""
        score = self.scores.log_score
        return math.nan if score is None else score - self.log_scale


@dataclass(frozen=True)
class Paired:
    """One score of two parametrisations over the same splits.

    Attributes
    ----------
    free, constrained : tuple of float
        The score, split by split.
    """

    free: tuple[float, ...]
    constrained: tuple[float, ...]

    @property
    def wins(self) -> int:
        """Splits in which the constrained one is lower."""
        return sum(b < a for a, b in zip(self.free, self.constrained, strict=True))

    @property
    def means(self) -> tuple[float, float]:
        """Means over the splits."""
        return sum(self.free) / len(self.free), sum(self.constrained) / len(self.constrained)

    @property
    def p_value(self) -> float | None:
        """Paired two-sided Wilcoxon test; None with fewer than `MIN_SPLITS` splits, or no change."""
        if len(self.free) < MIN_SPLITS or self.free == self.constrained:
            return None
        # Ties and zeros, which shares of 101 points have, go to the normal approximation.
        return float(wilcoxon(self.free, self.constrained).pvalue)


def measure_all(config: Config, outcomes: Outcomes) -> dict[Cell, Measured]:
    """Measure every cell, one posterior in memory at a time."""
    return {cell: _measure(config, cell, outcomes) for cell in outcomes}


def pair(
    measured: Mapping[Cell, Measured], engine: str, score: str, constrained: str = "givens"
) -> Paired | None:
    """Pair a score of the free and a constrained parametrisation over the splits that have both."""
    by_place = {
        (c.problem, c.split): getattr(m.scores, score)
        for c, m in measured.items()
        if c.engine == engine
    }
    splits = sorted({c.split or 1 for c in measured})
    both = [s for s in splits if ("free", s) in by_place and (constrained, s) in by_place]
    if not both:
        return None
    return Paired(
        tuple(by_place["free", s] for s in both), tuple(by_place[constrained, s] for s in both)
    )


def _measure(config: Config, cell: Cell, outcomes: Outcomes) -> Measured:
    tree = outcomes.tree(cell)
    data = parts(config.seed, cell.split or 1)
    held_out = predict_held_out(tree, target(config, cell).model, data.test.x, data.test.y)
    (y_sd,) = data.standardiser.inverse_sd(np.ones(1))
    return Measured(
        scores=held_out.scores,
        y_sd=float(y_sd),
        log_scale=data.standardiser.log_scale,
        diagnosis=diagnose(tree),
        prediction_rhat=held_out.worst_rhat,
        prediction_ess=held_out.median_ess,
        made=describe_run(cell.label, tree),
    )
