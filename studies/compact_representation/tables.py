"""The study's tables."""

from __future__ import annotations

from onebasin.analysis.report import Cell, Column, Table

from .design import ALIGNMENTS
from .measures import Measured, Results
from .paper import TABLE_1

AGREEMENT_GOAL, VARIATION_GOAL = 0.98, 0.05
"""What one Gaussian should reach: agreement at least, halved total variation at most."""
STRETCH_VARIATION, STRETCH_ACCURACY = 0.025, 0.01
"""And beyond: halved total variation, with a single draw's accuracy within this of HMC's."""
GAIN_GOAL = 1.5
"""By how much the iterated mean's total variation should be below that of one draw as reference."""

RULES = {
    "paper": "activations, one draw (the paper's)",
    "one-draw": "whole units, one draw",
    "mean": "whole units, iterated mean",
    "gaussian": "whole units, iterated Gaussian",
}


def table_one(results: Results) -> Table:
    """Tabulate the paper's Table 1, its numbers beside ours."""
    rows = []
    for name, theirs in TABLE_1.items():
        if name not in results.measured:
            continue
        ours = results.measured[name]
        with_mean = theirs.mean_accuracy is not None
        rows.append(
            (
                f"{ours.row.group.split(',')[0]}: {ours.row.label}",
                ours.averaged.agreement,
                theirs.agreement,
                ours.averaged.total_variation,
                theirs.total_variation,
                100 * ours.averaged.accuracy,
                theirs.accuracy,
                100 * ours.mean.accuracy if with_mean else None,
                theirs.mean_accuracy,
            )
        )
    columns = (
        "posterior",
        Column("agreement", decimals=4, unit="here"),
        Column("agreement", decimals=4, unit="paper"),
        Column("total variation", decimals=4, unit="here, halved"),
        Column("total variation", decimals=4, unit="paper, halved"),
        Column("accuracy", decimals=2, unit="%, here"),
        Column("accuracy", decimals=2, unit="%, paper"),
        Column("accuracy of the mean", decimals=2, unit="%, here"),
        Column("accuracy of the mean", decimals=2, unit="%, paper"),
    )
    return Table(
        columns,
        tuple(rows),
        "The paper's Table 1. Its network is 784-512-10 on all of MNIST, so that numbers need not agree; "
        "directions should",
    )


def row_table(results: Results) -> Table:
    """Tabulate every row with every measure."""
    truth = results.measured["hmc"]
    rows = tuple(_row(found, truth) for found in results.measured.values())
    columns = (
        "representation",
        Column("agreement", decimals=4),
        Column("total variation", decimals=4, unit="halved"),
        Column("total variation", decimals=4, unit="eq. 2"),
        Column("accuracy", decimals=4, unit="averaged"),
        Column("log score", decimals=3, unit="nats"),
        Column("calibration error", decimals=3),
        Column("accuracy", decimals=4, unit="one draw"),
        Column("mutual information", decimals=3, unit="nats"),
        Column("agreement", decimals=4, unit="of the mean"),
        Column("total variation", decimals=4, unit="of the mean, halved"),
        Column("accuracy", decimals=4, unit="of the mean"),
    )
    return Table(columns, rows, _CAPTION)


_CAPTION = (
    "Predictions of every representation against all of HMC's draws. ✓ marks one Gaussian with agreement of at "
    f"least {AGREEMENT_GOAL:g} and halved total variation of at most {VARIATION_GOAL:g}. `Raw draws` and the MAP "
    "are means over 20 and 10 choices; they show how little agreement and total variation ask for: look "
    "at the accuracy of one draw and at the mutual information too"
)


_ONE_BASIN = ("vi", "refined", "distilled")
"""Rows of draws that are in one basin by construction."""


def _row(found: Measured, truth: Measured) -> tuple:
    averaged, mean = found.averaged, found.mean
    # The mean of draws that carry labels of their own says nothing; that of q_i is the paper's.
    aligned = found.row.settings.kind == "gaussian" or found.row.name in _ONE_BASIN
    return (
        f"{found.row.label} [{found.row.group.split(',')[0]}]",
        averaged.agreement,
        Cell(averaged.total_variation, "good" if reaches_goal(found) else ""),
        2 * averaged.total_variation,
        averaged.accuracy,
        averaged.log_score,
        averaged.calibration_error,
        found.draw_accuracy,
        found.mutual_information,
        mean.agreement if aligned else None,
        mean.total_variation if aligned else None,
        mean.accuracy if aligned else None,
    )


def reaches_goal(found: Measured) -> bool:
    """Whether one Gaussian reaches agreement and total variation that it should."""
    gaussian = found.row.group.startswith(("one Gaussian", "VI"))
    near = found.averaged.total_variation <= VARIATION_GOAL
    return gaussian and near and found.averaged.agreement >= AGREEMENT_GOAL


def reaches_stretch(found: Measured, truth: Measured) -> bool:
    """Whether it also keeps the spread: total variation, and accuracy of a single draw."""
    near = found.averaged.total_variation <= STRETCH_VARIATION
    alike = abs(found.draw_accuracy - truth.draw_accuracy) <= STRETCH_ACCURACY
    return reaches_goal(found) and near and alike


def alignment_table(results: Results) -> Table:
    """Tabulate what each way of aligning HMC's draws gives."""
    of_rule = {
        "paper": "hmc-qr",
        "one-draw": "one-draw",
        "mean": "mean-diag",
        "gaussian": "gauss-diag",
    }
    rows = []
    for rule in ALIGNMENTS:
        if of_rule[rule] not in results.measured:
            continue
        found, moved = results.measured[of_rule[rule]], results.switching.get(rule, {})
        changed = moved.get("reassigned", {})
        rows.append(
            (
                RULES[rule],
                found.mean.agreement,
                found.mean.total_variation,
                found.averaged.total_variation,
                moved.get("ratio"),
                moved.get("noise_ratio"),
                moved.get("prior_ratio"),
                *(changed.get(lag) for lag in ("1", "20", "100")),
            )
        )
    columns = (
        "alignment of HMC's draws",
        Column("agreement", decimals=4, unit="of the mean"),
        Column("total variation", decimals=4, unit="of the mean, halved"),
        Column("total variation", decimals=4, unit="of q_r, halved"),
        Column("spread", decimals=3, unit="aligned / raw"),
        Column("spread", decimals=3, unit="shuffled units"),
        Column("spread", decimals=3, unit="prior draws"),
        Column("units that moved", decimals=3, unit="1 draw later"),
        Column("units that moved", decimals=3, unit="20 draws later"),
        Column("units that moved", decimals=3, unit="100 draws later"),
    )
    return Table(
        columns,
        tuple(rows),
        "How far alignment goes: spread is the variance of aligned draws over that of randomly relabelled ones. "
        "Where draws from the prior, which have no basin, shrink as much, one basin is no picture of the "
        "posterior; nor is it where units change places within a chain",
    ).without_empty_columns()


def goal_table(results: Results) -> Table:
    """Tabulate the goals that were set for one Gaussian."""
    truth = results.measured["hmc"]
    gaussians = [m for m in results.measured.values() if m.row.group.startswith(("one G", "VI"))]
    rows = []
    if gaussians:
        best = min(gaussians, key=lambda m: m.averaged.total_variation)
        said = f"{best.averaged.agreement:.4f} and {best.averaged.total_variation:.4f}, {best.row.label}"
        goal = f"agreement at least {AGREEMENT_GOAL:g}, halved total variation at most {VARIATION_GOAL:g}"
        rows.append((goal, said, _verdict(any(map(reaches_goal, gaussians)))))
        kept = [m for m in gaussians if reaches_stretch(m, truth)]
        shown = min(kept or [best], key=lambda m: m.averaged.total_variation)
        gap = shown.draw_accuracy - truth.draw_accuracy
        said = f"{shown.averaged.total_variation:.4f} and {gap:+.4f}, {shown.row.label}"
        goal = (
            f"halved total variation at most {STRETCH_VARIATION:g} with one draw's accuracy within "
            f"{STRETCH_ACCURACY:g} of HMC's"
        )
        rows.append((goal, said, _verdict(bool(kept))))
    gain = mean_gain(results)
    if gain is not None:
        goal = f"the iterated mean's total variation {GAIN_GOAL:g} times below that of one draw as reference"
        rows.append((goal, f"{gain:.2f} times", _verdict(gain >= GAIN_GOAL)))
    return Table(("goal", "measured", "reached"), tuple(rows), "What was asked of one Gaussian")


def mean_gain(results: Results) -> float | None:
    """Total variation of the mean with one draw as reference, over that of the iterated mean."""
    if not {"one-draw", "mean-diag"} <= set(results.measured):
        return None
    before, after = (results.measured[n].mean.total_variation for n in ("one-draw", "mean-diag"))
    return before / after


def _verdict(reached: bool) -> Cell:
    return Cell("yes", "good") if reached else Cell("no", "bad")


def swaps_table(results: Results) -> Table:
    """Tabulate what became of initial weights that were permuted before training."""
    columns = (
        Column("transpositions before", decimals=0),
        Column("transpositions after", decimals=1, unit="mean over runs"),
        Column("sd", decimals=1, unit="over runs"),
        Column("distance", digits=3, unit="as trained"),
        Column("distance", digits=3, unit="aligned"),
        Column("barrier", digits=3, unit="as trained, nats"),
        Column("barrier", digits=3, unit="aligned, nats"),
    )
    caption = "Pairs of networks trained from one initialisation, the second permuted (the paper's Figure 3)"
    if "swaps" not in results.trees:
        return Table(columns, (), caption)
    found = results.trees["swaps"]["swaps"].to_dataset()
    rows = tuple(
        (
            int(found["before"][k]),
            float(found["after"][:, k].mean()),
            float(found["after"][:, k].std()),
            *(float(found[name][:, k].mean()) for name in _SWAPS),
        )
        for k in range(found.sizes["swap"])
    )
    return Table(columns, rows, caption)


_SWAPS = ("distance_raw", "distance_aligned", "barrier_raw", "barrier_aligned")
