"""A comparison of posteriors as a table, and what it means in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..predictive.points import Points
from ..report import Column, Table
from .two_sample import MIN_DRAWS

if TYPE_CHECKING:
    from .compare import Comparison

SMALL = 0.01
"""p-value of the floor below which the truth's own halves are said to differ."""

# What is twice or nearly the same as another is left to the table of numbers: a terminal is narrow.
_COLUMNS = {
    "agreement": Column("agreement", decimals=3),
    "total_variation": Column("total variation", decimals=3, unit="halved"),
    "accuracy": Column("accuracy", decimals=3),
    "log_score": Column("log score", decimals=3, unit="nats"),
    "calibration_error": Column("calibration", decimals=3, unit="error"),
    "single_draw_accuracy": Column("accuracy", decimals=3, unit="one draw"),
    "mutual_information": Column("mutual information", decimals=3, unit="nats"),
    "mean_distance": Column("distance", decimals=2, unit="of means, in sds"),
    "rmse": Column("RMSE"),
    "coverage_50": Column("coverage", decimals=2, unit="50 %"),
    "coverage_95": Column("coverage", decimals=2, unit="95 %"),
    "crps": Column("CRPS"),
    "verdict": Column("means"),
    "max_abs_z": Column("|z|", decimals=1, unit="largest"),
    "max_abs_d": Column("|d|", decimals=2, unit="largest"),
    "energy": Column("energy", digits=2, unit="squared"),
    "energy_p": Column("p", decimals=3),
    "mmd": Column("MMD", digits=2, unit="squared"),
    "mmd_p": Column("p", decimals=3),
    "num_draws": Column("draws", decimals=0, unit="of these"),
}


@dataclass(frozen=True)
class Setting:
    """What a comparison was made of, for its notes.

    Attributes
    ----------
    truth
        Name of the truth.
    targets
        Name of each posterior's target, by the posterior's name; empty where it has none.
    points
        Where predictions were made, if anywhere.
    own_points
        Whether these are the truth's own data.
    rule
        Of the alignment, in words; empty without one.
    weighed
        Whether draws were compared in weight space.
    permutations
        Behind each p-value.
    obstacles
        Why the weights of some posteriors were not compared, by name.
    """

    truth: str
    targets: Mapping[str, str]
    points: Points | None
    own_points: bool
    rule: str
    weighed: bool
    permutations: int
    obstacles: Mapping[str, str]


def comparison_table(found: Comparison, *, caption: str = "") -> Table:
    """Tabulate a comparison, one posterior a row, without empty columns."""
    names = [str(name) for name in found.table.columns if name in _COLUMNS]
    rows = tuple(
        (f"{name} (truth)" if name == found.truth else name, *(row[c] for c in names))
        for name, row in found.table.to_dict("index").items()
    )
    columns: tuple[Column | str, ...] = ("posterior", *(_COLUMNS[name] for name in names))
    return Table(columns, rows, caption or f"against {found.truth}").without_empty_columns()


def say(setting: Setting, table: pd.DataFrame) -> tuple[str, ...]:
    """Tell what was compared with what."""
    return tuple(_sentences(setting, table))


def warn(setting: Setting, table: pd.DataFrame) -> tuple[str, ...]:
    """Tell what to beware of."""
    return tuple(_warnings(setting, table))


def _sentences(setting: Setting, table: pd.DataFrame) -> Iterator[str]:
    if setting.points is not None:
        number = len(setting.points.x)
        where = f"that `{setting.truth}` was fitted to and keeps" if setting.own_points else "given"
        scored = (
            "" if setting.points.y is not None else ", which have no labels or targets to score"
        )
        yield f"Predictions are compared at the {number} points {where}{scored}."
    if "total_variation" in table:
        yield "Total variation is half the sum of absolute differences; Xiao et al. 2023, equation 2, is the sum."
    yield (
        f"`floor` is the second half of `{setting.truth}` against its first: what lies near it cannot be "
        "told from the truth."
    )
    if setting.rule:
        yield f"{setting.rule} Labels were fitted on the first half of `{setting.truth}`."
    if setting.weighed:
        yield (
            f"Distances of draws are between the second half of `{setting.truth}` and the others, in units of "
            "the first half's standard deviations; chains are thinned to nearly independent draws."
        )
        tests = int(table["energy_p"].notna().sum())
        yield (
            f"p-values are by {setting.permutations} permutations, each for itself; there are {tests} of a kind."
        )
    for name, why in setting.obstacles.items():
        yield f"Draws of `{name}` are compared in prediction alone: {why.rstrip('.')}."


def _warnings(setting: Setting, table: pd.DataFrame) -> Iterator[str]:
    if setting.own_points and setting.points is not None:
        yield "The points are training data, which scores flatter; give others to see predictions."
    ours = setting.targets[setting.truth]
    other = [f"`{name}` ({target})" for name, target in setting.targets.items() if target != ours]
    if other and setting.points is None:  # the data of networks have been held against each other
        yield (
            f"Targets have other names than that of `{setting.truth}` ({ours}): "
            f"{', '.join(other)}. Are they the same model of the same data?"
        )
    if not setting.weighed:
        return
    few = table["num_draws"] < MIN_DRAWS
    for name, number in table.loc[few, "num_draws"].items():
        yield (
            f"`{name}` has {number:.0f} nearly independent draws of its own, too few for a p-value: sample "
            "longer, or see whether its chains mix."
        )
    floor = table["energy_p"].iloc[-1]
    if np.isfinite(floor) and floor <= SMALL:
        yield (
            f"The chains of `{setting.truth}` differ among themselves (p = {floor:.3f}): it has not mixed, and "
            "other p-values cannot be trusted."
        )
