"""From the cells' posteriors to tables, figures, findings and a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from onebasin.analysis.figures.cells import plot_cells
from onebasin.analysis.report import Cell as TableCell
from onebasin.analysis.report import (
    Column,
    FigureItem,
    Report,
    Section,
    Table,
    cost_table,
    health_table,
)
from onebasin.analysis.report.definitions import DIAGNOSTICS, PREDICTION

from ..lab.claims import Statement
from ..lab.legacy import count_verdicts, statement_table, trial_table, verdict_table
from ..lab.study import ENGINE_WORDS, Cell, Findings, Outcomes
from . import paper
from .design import HIDDEN, Config
from .measures import MIN_SPLITS, Measured, Paired, measure_all, pair
from .statements import statements

TITLE = f"Boston Housing, {HIDDEN} ReLU units, free and constrained"
RHAT_GOOD, RHAT_USABLE = 1.01, 1.05
_SCORES = {"mse": "MSE", "outside_95": "outside the 95 % interval"}


def conclude(config: Config, outcomes: Outcomes) -> Findings:
    """Measure, judge, and lay out the page."""
    measured = measure_all(config, outcomes)
    judged = statements(measured)
    said = headline(config, measured, judged)
    splits, summary = split_table(measured), summary_table(measured)
    tables = (statement_table(judged), trial_table(judged), summary, splits)
    return Findings(
        headline=said,
        statements=judged,
        shown=(summary, verdict_table(judged)),
        tables=tables,
        report=_page(measured, judged, said),
        data={"cells": {cell.key: m.to_dict() for cell, m in measured.items()}},
    )


def headline(
    config: Config, measured: Mapping[Cell, Measured], judged: tuple[Statement, ...]
) -> tuple[str, ...]:
    """Say the result in a few sentences."""
    splits = f"{config.splits} {'split' if config.splits == 1 else 'splits'}"
    said = [f"{count_verdicts(judged)[:-1]}, on {splits}."]
    for engine in config.engines:
        mse, outside = (pair(measured, engine, score) for score in _SCORES)
        if mse is not None and outside is not None:
            said.append(
                f"{ENGINE_WORDS[engine]}: mean test MSE {mse.means[0]:.3f} with free and "
                f"{mse.means[1]:.3f} with Givens weights (standardised), and "
                f"{100 * outside.means[0]:.1f} % and {100 * outside.means[1]:.1f} % of the test "
                "points outside the 95 % interval."
            )
    worst = max((m.prediction_rhat for m in measured.values()), default=math.nan)
    said.append(f"The largest R-hat of any prediction is {worst:.2f}.")
    return tuple(said)


def summary_table(measured: Mapping[Cell, Measured]) -> Table:
    """Tabulate means over splits and tests, the paper's own beside ours."""
    rows = []
    engines = tuple(dict.fromkeys(cell.engine for cell in measured))
    printed = {"mse": paper.MSE, "outside_95": paper.OUTSIDE}
    for score, name in _SCORES.items():
        ours = {f"here, {ENGINE_WORDS[e]}": pair(measured, e, score) for e in engines}
        theirs = {"the paper's table": Paired(printed[score]["free"], printed[score]["givens"])}
        rows += [
            (name, source, len(p.free), *p.means, p.wins, p.p_value)
            for source, p in (theirs | ours).items()
            if p is not None
        ]
    columns = (
        "score",
        "source",
        Column("splits"),
        Column("free", decimals=3, unit="mean"),
        Column("givens", decimals=3, unit="mean"),
        Column("givens lower", unit="splits"),
        Column("p", digits=2, unit="paired Wilcoxon"),
    )
    return Table(
        columns,
        tuple(rows),
        "Means over splits. The paper's rows are recomputed from its printed tables, by the same "
        "code: there the MSE is equal in one split, and the tests differ from those in its text",
    )


def split_table(measured: Mapping[Cell, Measured]) -> Table:
    """Tabulate every cell."""
    rows = tuple(
        (
            cell.label,
            m.scores.mse,
            m.mse_data_units,
            m.scores.outside_95,
            m.scores.coverage_50,
            m.scores.log_score,
            TableCell(m.prediction_rhat, _rhat_flag(m.prediction_rhat)),
            m.prediction_ess,
        )
        for cell, m in measured.items()
    )
    columns = (
        "posterior",
        Column("MSE", decimals=3, unit="standardised"),
        Column("MSE", decimals=2, unit="($1,000)²"),
        Column("outside", decimals=2, unit="95 % interval"),
        Column("coverage", decimals=2, unit="50 % interval"),
        Column("log score", decimals=3, unit="nats, standardised"),
        Column("R-hat of f", decimals=3, unit="worst point"),
        Column("bulk ESS of f", decimals=0, unit="median point"),
    )
    return Table(columns, rows, "Every split, on its test part of 101 tracts")


def _rhat_flag(rhat: float) -> Literal["", "good", "warn", "bad"]:
    if math.isnan(rhat):
        return ""
    return "good" if rhat <= RHAT_GOOD else "warn" if rhat <= RHAT_USABLE else "bad"


def _page(
    measured: Mapping[Cell, Measured], judged: tuple[Statement, ...], said: tuple[str, ...]
) -> Report:
    diagnoses = {cell.label: m.diagnosis for cell, m in measured.items()}
    sections = (
        Section(
            "The question",
            text=f"Does the constraint that removes a ReLU network's scaling freedom make a "
            f"network of {HIDDEN} hidden units predict better? Section 4.2 of Pourzanjani, Jiang "
            "and Petzold (2017) says so for the Boston Housing data, with NUTS on 15 random 80/20 "
            "splits. The paper does not state its priors, its splits or the length of its chains; "
            "here priors are N(0, 1), the noise is inferred, and inputs and target are "
            "standardised on the training part.",
        ),
        Section(
            "What the paper says, and what was measured",
            text=f"With fewer than {MIN_SPLITS} splits a comparison is void: no paired test could "
            "come out.",
            tables=(statement_table(judged), trial_table(judged), summary_table(measured)),
        ),
        Section("Split by split", tables=(split_table(measured),), figures=_dot_plots(measured)),
        Section(
            "Can the draws be trusted?",
            text="R-hat and ESS of single parameters condemn chains that number the units "
            "differently; the table above has those of the predictions.",
            tables=(
                health_table(diagnoses, caption="Health of the chains, parameters alone"),
                cost_table(diagnoses, caption="Cost"),
            ),
        ),
    )
    return Report(
        title=TITLE,
        lede=" ".join(said),
        sections=sections,
        provenance=tuple(m.made for m in measured.values()),
        definitions=DIAGNOSTICS + PREDICTION,
    )


def _dot_plots(measured: Mapping[Cell, Measured]) -> tuple[FigureItem, ...]:
    plots = {
        "mse": ("mean squared error, standardised units", None),
        "outside_95": ("share of test points outside the 95 % interval", 0.05),
    }
    items = []
    for score, (x_label, limit) in plots.items():
        groups: dict[str, dict[str, float]] = {}
        for cell, m in measured.items():
            group = groups.setdefault(f"{cell.problem}, {ENGINE_WORDS[cell.engine]}", {})
            group[f"split {cell.split}"] = getattr(m.scores, score)
        if groups:
            figure = plot_cells(groups, x_label=x_label, limit=limit)
            caption = f"{x_label[0].upper()}{x_label[1:]}, split by split."
            alt = f"Dot plot of the {x_label}, for {', '.join(groups)}"
            items.append(FigureItem(figure, caption, alt))
    return tuple(items)
