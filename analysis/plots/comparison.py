"""Posteriors beside the one that they are held against: their distances, and how they score."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from onebasin.base.checks import check_class
from onebasin.base.errors import ArgumentError
from onebasin.base.numbers import format_number

from ..compare.result import Comparison
from ..compare.words import FLOOR
from ..figures.comparison import Measure, draw_comparison
from ..figures.picture import Picture

MEASURES = {
    "total_variation": Measure("total variation of predictions", better="smaller"),
    "agreement": Measure("agreement of classes", better="larger"),
    "mean_distance": Measure("distance of mean predictions (sds)", better="smaller"),
    "max_abs_d": Measure("largest difference of means (sds)", better="smaller"),
    "energy": Measure("energy distance of draws", better="smaller"),
    "mmd": Measure("maximum mean discrepancy", better="smaller"),
    "log_score": Measure("log score (nats)", better="larger"),
    "rmse": Measure("RMSE (units of y)", better="smaller"),
    "crps": Measure("CRPS (units of y)", better="smaller"),
    "coverage_50": Measure("coverage of 50 % intervals", ideal=0.5),
    "coverage_95": Measure("coverage of 95 % intervals", ideal=0.95),
    "accuracy": Measure("accuracy", better="larger"),
    "calibration_error": Measure("calibration error", better="smaller"),
    "brier": Measure("Brier score", better="smaller"),
    "mutual_information": Measure("mutual information (nats)"),
    "single_draw_accuracy": Measure("accuracy of one draw", better="larger"),
}
_DEFAULT = {
    "regression": ("mean_distance", "energy", "log_score", "coverage_95"),
    "classification": ("total_variation", "energy", "log_score", "calibration_error"),
    "parameters": ("max_abs_d", "energy"),
}


def plot_comparison(comparison: Comparison, *, measures: Sequence[str] | None = None) -> Picture:
    """Draw what `compare` found: a row a posterior, a panel a measure.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    measures : sequence of str, optional
        Columns of its table; by default distances, and scores where predictions were scored.

    Returns
    -------
    matplotlib.figure.Figure
        Of distances the floor is hollow, in the truth's row: the truth's halves from each other, below which nothing
        can be told apart. Dashed: the floor, the truth's own score, or the coverage that is right.

    Raises
    ------
    TypeError
        If it is not what `compare` returned.
    ValueError
        If a measure is no column of the table, or there is none.

    Examples
    --------
    >>> other = ob.fit_gaussian(ob.align(posterior).posterior).sample(300)
    >>> comparison = ob.compare({"NUTS": posterior, "Gaussian": other}, truth="NUTS", permutations=99)
    >>> figure = ob.plot_comparison(comparison, measures=["energy"])
    """
    check_class("comparison", comparison, Comparison, remedy="give what `compare` returned")
    table = comparison.table
    known = [name for name in MEASURES if name in table and table[name].notna().any()]
    unknown = [name for name in measures or () if name not in known]
    if unknown:
        raise ArgumentError(
            f"`measures` asks for {unknown[0]!r}, which the comparison does not have; choose among {', '.join(known)}."
        )
    chosen = measures or [name for name in _DEFAULT[comparison.kind] if name in known]
    if not chosen:
        raise ArgumentError(
            "`comparison` holds no number: compare with weights=True, or give `x` and `y`."
        )
    rows = [str(name) for name in table.index if name != FLOOR]
    panels = {MEASURES[name]: table[name] for name in chosen}
    figure = draw_comparison(panels, rows, truth=comparison.truth, floor=FLOOR)
    told = [_in_words(measure, values, rows) for measure, values in panels.items()]
    return figure.on_paper(f"Held against {comparison.truth}. {' '.join(told)}")


def _in_words(measure: Measure, values: pd.Series, rows: Sequence[str]) -> str:
    told = [f"{name} {format_number(values[name])}" for name in rows if pd.notna(values[name])]
    if FLOOR in values and pd.notna(values[FLOOR]):
        told.append(f"the floor {format_number(values[FLOOR])}")
    return f"{measure.label}: {', '.join(told)}."
