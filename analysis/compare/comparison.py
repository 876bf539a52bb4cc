"""The result of a comparison of posteriors: one row per posterior, its meaning in words, notes and warnings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from onebasin.base.card import Card, Shown, Words, in_brief, number
from onebasin.base.table import Table
from onebasin.base.text import json_safe
from onebasin.models.symmetry.blocks import spelt_options

from .comparable import CommonFrame
from .distances import MIN_DRAWS, SHIFT, MomentComparison

if TYPE_CHECKING:
    from ..predictive.predictions import Points
    from .comparable import Shared


BASELINE = "baseline"
"""Name of the row that compares the two halves of the truth."""
SMALL = 0.01
"""Largest p-value at which distributions are said to differ."""
PREDICTIONS = {
    "total_variation": "class probabilities differ by {} in total variation",
    "mean_distance": "mean predictions lie {} sds away",
}
SHOWN = 6
"""Maximum number of names in a sentence."""


@dataclass(frozen=True, eq=False)
class Account:
    """The facts of a comparison, from which sentences are made."""

    table: pd.DataFrame
    truth: str
    targets: Mapping[str, str]  # Name of each posterior's target.
    points: Points | None  # The points at which predictions are compared, if any.
    own_points: bool  # Whether these are the truth's training data.
    rule: str  # The alignment rule in words.
    caveat: str  # The part of the symmetry that was not checked.
    permutations: int  # 0 if draws were not compared.
    shared: Shared | None  # None for chosen variables and network weights.
    obstacles: Mapping[str, str]  # By name, why weights were not compared.
    labels: Mapping[str, tuple[str, ...]]  # By name, declarations of a symmetry seen in the chains.
    unmixed: Sequence[str]  # Parameters on which the truth's own chains disagree.
    unusable: Mapping[str, str]  # By name, why a posterior cannot be used.
    found: str  # A sentence on a symmetry found in draws, or "".
    copies: Sequence[str]  # Posteriors that share a chain with the truth.

    def notes(self) -> Iterator[str]:
        """Yield sentences that explain the points, draws and tests of the comparison."""
        truth, points = self.truth, self.points
        if points is not None:
            where = f"on which `{truth}` was fitted" if self.own_points else "given"
            scored = "" if points.y is not None else ", which have no labels or targets to score"
            yield f"Predictions are compared at the {len(points.x)} points {where}{scored}."
        if "total_variation" in self.table:
            yield "Total variation is half the sum of absolute differences. Xiao et al. 2023, equation 2, is the sum."
        yield (
            f"Baseline (`baseline`): the distance between the two halves of `{truth}`. Values this small are noise."
        )
        if self.rule:
            yield f"{self.rule} Labels were fitted on the first half of `{truth}`."
        if self.caveat:
            yield self.caveat
        if self.permutations:
            yield (
                f"Distances between draws compare the second half of `{truth}` and the others, in units of "
                "the first half's standard deviations; chains are thinned to nearly independent draws."
            )
            tests = int(self.table["energy_p"].notna().sum())
            yield (
                f"p-values use {self.permutations} permutations each and are not corrected for multiple testing "
                f"({tests} test{'s' * (tests > 1)} of each kind)."
            )
        if self.shared is not None and self.shared.only_in:
            sides: dict[str, list[str]] = {}
            for variable, name in self.shared.only_in.items():
                sides.setdefault(name, []).append(variable)
            held = "; ".join(f"`{n}` has {in_brief(names, SHOWN)}" for n, names in sides.items())
            yield f"Not compared, because not every posterior has them in the same shape: {held}."
        for name, why in self.obstacles.items():
            yield f"Draws of `{name}` are compared only by their predictions: {why.rstrip('.')}."

    def warnings(self) -> Iterator[str]:
        """Yield sentences that warn about problems of the comparison."""
        table, truth = self.table, self.truth
        if self.found:
            yield self.found
        for name, why in self.unusable.items():
            yield f"`{name}`: {why}"
        if self.own_points and self.points is not None:
            yield (
                "These points are training data, where scores are optimistic; give other points to judge "
                "predictions."
            )
        targets = dict.fromkeys(self.targets.values())
        if len(targets) > 1 and self.points is None:  # For networks, the data were compared.
            yield (
                f"The posteriors come from targets with different names ({in_brief([*targets])}). Are they the same "
                "model of the same data?"
            )
        for name in self.copies:
            yield (
                f"`{name}` and `{truth}` share all or many draws of a chain, so their agreement is not evidence. "
                "Compare runs with different seeds."
            )
        for name, words in self.labels.items():
            if words:
                yield (
                    f"Chains of `{name}` and `{truth}` have their labels in different orders and are compared "
                    f"unaligned. Compare them modulo the symmetry: {spelt_options(words)}."
                )
        if self.shared is not None and self.shared.with_labels:
            yield (
                f"Left out: {in_brief(self.shared.with_labels, SHOWN)}. The symmetry does not move them, but they "
                "may be indexed by component, and then their means depend on the labelling. To compare one, declare "
                "it with the components."
            )
        if self.unmixed:
            yield (
                f"The chains of `{truth}` have not mixed: R-hat is too high for {in_brief(self.unmixed, SHOWN)}. "
                "No posterior can agree with a reference whose own chains disagree; see `onebasin diagnose`."
            )
        if not self.permutations:
            return
        few = table["num_draws"] < MIN_DRAWS
        for name, count in table.loc[few, "num_draws"].items():
            yield (
                f"`{name}` has {count:.0f} nearly independent draws, too few for a p-value: sample longer, or check "
                "whether its chains mix."
            )
        baseline = table["energy_p"].iloc[-1]
        if not np.isfinite(baseline) and not few.any():
            yield (
                f"The halves of `{truth}` have too few draws for a p-value, so it is not known whether the "
                "chains of this posterior agree. Do not trust the other p-values; sample longer."
            )
        if np.isfinite(baseline) and baseline <= SMALL:
            yield (
                f"The chains of `{truth}` differ among themselves (p = {baseline:.3f}): it has not mixed, and "
                "other p-values cannot be trusted."
            )


WEIGHTS = ("energy", "energy_p", "num_draws")
MOMENTS = ("max_abs_z", "max_abs_d", "verdict")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """The result of comparing posteriors with a truth.

    Attributes
    ----------
    kind : str
        `classification`, `regression`, or `parameters` for posteriors without a network.
    truth : str
        Name of the posterior with which the others are compared.
    table : DataFrame
        One row per posterior, the truth first, `baseline` last. Columns of a classification: agreement, total_variation
        (halved), total_variation_sum (not halved), accuracy, log_score, calibration_error, brier, single_draw_accuracy,
        mutual_information. Of a regression: mean_distance (root mean square over points, in the truth's standard
        deviations of f), rmse, coverage_50, coverage_95, crps, log_score. Of parameters: max_abs_z, max_abs_d and
        verdict of `compare_moments`. Always: energy and energy_p of `two_sample`, and num_draws, the number of draws
        used (for `baseline`, of the second part). NaN if a value is not available.
    notes : tuple of str
        Sentences that explain the points, draws and tests.
    warnings : tuple of str
        Sentences that warn about problems of the comparison.
    moments : mapping of str to MomentComparison
        Comparison of each posterior's means with those of the truth, by parameter; empty for networks.
    halved : bool
        Whether the truth's means use only the second half of its chains.
    frame : CommonFrame, optional
        Variables, labelling and scale used to compare draws; None if only predictions were compared.
    """

    kind: str
    truth: str
    table: pd.DataFrame
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    moments: Mapping[str, MomentComparison] = field(default_factory=dict)
    halved: bool = False
    frame: CommonFrame | None = None

    @property
    def means(self) -> pd.DataFrame:
        """Means and sds of the truth and of the other posteriors, one row per parameter.

        The table also has z of the difference of means, and the ratio of sds with its 95 % interval.
        """
        if not self.moments:
            return pd.DataFrame()
        columns: dict[str, pd.Series] = {}
        for name, found in self.moments.items():
            if not columns:
                columns |= {
                    f"mean {self.truth}": found.table["mean_a"],
                    f"sd {self.truth}": found.table["sd_a"],
                }
            own = {"mean": "mean_b", "sd": "sd_b", "z": "z", "sd ratio": "sd_ratio"}
            own |= {"ratio from": "sd_ratio_low", "ratio to": "sd_ratio_high"}
            columns |= {f"{word} {name}": found.table[column] for word, column in own.items()}
        return pd.DataFrame(columns)

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence per posterior, in the order of the table."""
        return tuple(f"`{name}`: {said}" for name, said in sentences(self))

    def _card(self) -> Card:
        table = self.table
        shown = [*table.index.drop(BASELINE)[: MOST + 1], BASELINE]
        known = [name for name in _MEASURES if name in table and table[name].notna().any()]
        rows = tuple(
            (_MEASURES[name], *(number(table[name].loc[one]) for one in shown)) for name in known
        )
        more = f", {MOST} of {len(table) - 2} posteriors" if len(table) - 2 > MOST else ""
        words = [Words(sentence, name=name) for name, sentence in sentences(self)]
        warnings = [Words(sentence, flag="warn") for sentence in self.warnings]
        notes = [Words(sentence, small=True) for sentence in self.notes]
        on_its_side = Table(("", *map(str, shown)), rows, f"{self.kind}{more}")
        return Card(f"Compared with {self.truth}", (*words, *warnings, on_its_side, *notes))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain types for JSON. Numbers that are not finite become None."""
        rows = [{"posterior": name, **row} for name, row in self.table.to_dict("index").items()]
        fields = ("kind", "truth", "notes", "warnings")
        means = {name: found.to_dict() for name, found in self.moments.items()}
        answers = dict(sentences(self))
        whole = {name: getattr(self, name) for name in fields}
        return json_safe(whole | {"answers": answers, "posteriors": rows, "moments": means})


MOST = 8
"""Maximum number of posteriors to show."""
WEAK = 0.05
"""Largest p-value at which distributions are said to differ possibly."""
_MEASURES = {
    "agreement": "same class as the truth",
    "total_variation": "total variation",
    "mean_distance": "distance of means (sds)",
    "accuracy": "accuracy",
    "rmse": "RMSE",
    "log_score": "log score (nats a point)",
    "calibration_error": "calibration error",
    "brier": "Brier score",
    "crps": "CRPS",
    "coverage_95": "inside 95 % intervals",
    "max_abs_z": "largest |z| of means",
    "max_abs_d": "largest |d| of means (sds)",
    "energy": "energy distance",
    "energy_p": "p-value",
    "num_draws": "nearly independent draws",
}


def sentences(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Describe in words how the predictions and draws of each posterior differ from the truth."""
    table = comparison.table
    baseline = table.loc[BASELINE]
    unmixed = any(found.unmixed for found in comparison.moments.values())
    mixed = not (baseline.get("energy_p", math.nan) <= SMALL or unmixed)
    for name, row in table.drop(index=[comparison.truth, BASELINE]).iloc[:MOST].iterrows():
        said = []
        for measure, text in PREDICTIONS.items():
            if measure in row and math.isfinite(row[measure]):
                apart, halves = number(row[measure], 2), number(baseline[measure], 2)
                said.append(
                    f"{text.format(apart)}, the two halves of `{comparison.truth}` by {halves}"
                )
                break
        found = comparison.moments.get(str(name))
        said += [] if found is None else [_moments(found)]
        draws = _draws(row, mixed, float(baseline.get("energy", math.nan)), comparison.truth)
        said += [draws] if draws else []
        yield str(name), f"{'; '.join(said)}." if said else "Nothing could be compared."


def _moments(found: MomentComparison) -> str:
    if found.verdict == "differ":
        trusted = found.table.loc[~found.table["gated"]]
        beyond, said = int((trusted["z"].abs() > found.z_bound).sum()), []
        if spreads := found.spreads:
            many = "an sd differs" if len(spreads) == 1 else f"{len(spreads)} sds differ"
            row = found.table.loc[spreads[0]]
            ratio, low, high = (number(row[f"sd_ratio{end}"], 2) for end in ("", "_low", "_high"))
            most = f"that of `{spreads[0]}` is {ratio} times the truth's ({low} to {high})"
            said.append(f"{many}: {most}")
        if beyond:
            worst = str(trusted["z"].abs().idxmax())
            most = f"that of `{worst}` by {number(abs(trusted.loc[worst, 'd']), 2)} sds"
            one, several = f"a mean differs, {most}", f"{beyond} means differ, {most} most clearly"
            said.append(one if beyond == 1 else several)
        return "; ".join(said)
    seen = f"a shift by {SHIFT:g} sds would be seen with probability {number(found.power, 2)}"
    if found.verdict == "agree":
        ratios = found.table["sd_ratio"].dropna()
        spread = f"; ratios of sds are {ratios.min():.2f} to {ratios.max():.2f}"
        return (
            f"means agree within their Monte Carlo errors ({seen}){spread if len(ratios) else ''}"
        )
    if not found.gated:
        return f"no difference of means was detected, but there are too few draws to call them equal ({seen})"
    total = len(found.table)
    return (
        f"no difference of means was detected, but {len(found.gated)} of {total} could not be judged, because the "
        f"ESS is too small or chains disagree ({in_brief(found.gated, SHOWN)})"
    )


def _draws(row: pd.Series, mixed: bool, halves: float, truth: str) -> str:
    p = row.get("energy_p", math.nan)
    if not math.isfinite(p):
        measured = math.isfinite(row.get("energy", math.nan))
        return "the joint distributions could not be tested" if measured else ""
    if not mixed:
        return "the joint distributions are not compared, because the reference's own chains differ"
    if p <= SMALL:
        return f"the joint distributions differ (energy test, p = {number(p, 2)})"
    if p <= WEAK and row["energy"] <= halves:
        near = f"energy distance {number(row['energy'], 2)}, halves {number(halves, 2)}, p = {number(p, 2)}"
        return (
            f"the joint distributions differ no more than the two halves of `{truth}` do ({near})"
        )
    if p <= WEAK:
        return f"the joint distributions may differ (energy test, p = {number(p, 2)})"
    return (
        f"no difference of the joint distributions was detected (energy test, p = {number(p, 2)})"
    )
