"""What a comparison of posteriors returns: one row a posterior, and what the rows mean in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from onebasin.base.card import Card
from onebasin.base.jsonable import json_safe
from onebasin.base.showing import Shown

from .cards import of_comparison, sentences

WEIGHTS = ("energy", "energy_p", "mmd", "mmd_p", "num_draws")
MOMENTS = ("max_abs_z", "max_abs_d", "verdict")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """Posteriors beside a truth.

    Attributes
    ----------
    kind : str
        `classification`, `regression`, or `parameters` where the posteriors are of no network.
    truth : str
        Name of the posterior that the others are held against.
    table : DataFrame
        One row a posterior, the truth first, and `floor` last. Columns of a classification: agreement, total_variation
        (halved), total_variation_sum (not), accuracy, log_score, calibration_error, brier,
        single_draw_accuracy, mutual_information. Of a regression: mean_distance (root mean square over points,
        in the truth's standard deviations of f), rmse, coverage_50, coverage_95, crps, log_score. Of
        parameters: max_abs_z, max_abs_d and verdict, of `moments.compare_moments`. Always:
        energy, energy_p, mmd, mmd_p of `two_sample.two_sample`, and num_draws, the draws that these
        are of (for the floor, of its second part). NaN where there is nothing to say.
    notes : tuple of str
        What was compared, in words.
    warnings : tuple of str
        What to beware of, in words.
    """

    kind: str
    truth: str
    table: pd.DataFrame
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """A sentence on each posterior, in the table's order."""
        return tuple(f"`{name}`: {said}" for name, said in sentences(self))

    def _card(self) -> Card:
        return of_comparison(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain types for JSON, numbers that are not finite as None."""
        rows = [{"posterior": name, **row} for name, row in self.table.to_dict("index").items()]
        fields = ("kind", "truth", "notes", "warnings")
        return json_safe({name: getattr(self, name) for name in fields} | {"posteriors": rows})
