"""The study's tables."""

from __future__ import annotations

import math

from onebasin.analysis.report import Cell, Column, Table

from ..heldout import BOUND
from ..lab.study import ENGINE_WORDS
from .design import CHARTS
from .measures import SEAM, Measured, Results
from .statements import SHIFT

_RHAT = 1.01
_OF_F = (
    Column("R-hat of f", decimals=3, unit="worst point"),
    Column("bulk ESS of f", decimals=0, unit="median point"),
    Column("tree depth", decimals=2, unit="mean"),
    Column("ESS of f", digits=3, unit="per 1000 gradients"),
)


def agreement_table(results: Results) -> Table:
    """Tabulate how far apart the engines' NUTS are."""
    rows = tuple(
        (
            name,
            found.num_quantities,
            Cell(found.largest, "good" if found.largest <= BOUND else "bad", f"at `{found.where}`"),
            Cell(found.beyond, "bad" if found.beyond else "good"),
            Cell(found.rhat, "good" if found.rhat <= _RHAT else "warn"),
        )
        for name, found in results.agreements.items()
    )
    columns = (
        "parametrisation",
        Column("compared", unit="means"),
        Column("largest difference", decimals=2, unit="MCSE"),
        Column("beyond", unit=f"{BOUND:g} MCSE"),
        Column("R-hat", decimals=3, unit="largest"),
    )
    return Table(
        columns,
        rows,
        "NUTS in Stan against NUTS in NumPyro: means of f at the held-out points and of `sigma`, "
        "none of which notices swapped or rescaled units",
    )


def sampling_table(results: Results) -> Table:
    """Tabulate what NUTS made of every parametrisation."""
    rows = tuple(
        (
            f"{cell.problem}, {ENGINE_WORDS[cell.engine]}",
            found.diagnosis.rhat.value,
            found.parameter_ess,
            *_of_f(found),
        )
        for cell, found in results.sampled().items()
    )
    columns = (
        "posterior",
        Column("R-hat", decimals=3, unit="worst parameter"),
        Column("bulk ESS", decimals=0, unit="worst parameter"),
        *_OF_F,
    )
    return Table(
        columns,
        rows,
        "NUTS: parameters, which swapped units spoil, and predictions f, which they do not",
    )


def prediction_table(results: Results) -> Table:
    """Tabulate the scores of every cell at the held-out points."""
    rows = tuple(
        (
            cell.label,
            found.held_out.scores.rmse,
            found.held_out.scores.log_score,
            found.held_out.scores.coverage_50,
            found.held_out.scores.coverage_95,
            found.held_out.scores.width_95,
            found.bias,
            found.error,
        )
        for cell, found in results.measured.items()
    )
    columns = (
        "posterior",
        Column("RMSE", unit="of the data"),
        Column("log score", decimals=3, unit="nats"),
        Column("coverage", decimals=2, unit="50 % interval"),
        Column("coverage", decimals=2, unit="95 % interval"),
        Column("width", unit="95 % interval"),
        Column("bias", decimals=3, unit="of the true function"),
        Column("error", decimals=3, unit="rms, true function"),
    )
    return Table(columns, rows, "Predictions at the held-out points")


def variational_table(results: Results) -> Table:
    """Tabulate how far every variational fit's predictions are from those of NUTS."""
    rows = []
    for cell, found in results.gaps.items():
        summary = results.measured[cell].diagnosis.summary()
        fit = results.measured[cell].diagnosis.variational
        rows.append(
            (
                cell.label,
                Cell(found.in_sds, "warn" if found.in_sds > SHIFT else "good"),
                found.floor_in_sds,
                found.rms,
                found.sd_ratio,
                found.predictive_sd_ratio,
                summary["khat"],
                summary["elbo"],
                None if fit is None or fit.converged is None else fit.converged,
            )
        )
    columns = (
        "posterior",
        Column("shift of the mean", decimals=2, unit="posterior sds, rms"),
        Column("by chance", decimals=2, unit="posterior sds, rms"),
        Column("shift", decimals=3, unit="units of y, rms"),
        Column("sd of f", decimals=2, unit="ratio to NUTS"),
        Column("predictive sd", decimals=2, unit="ratio to NUTS"),
        Column("k-hat", decimals=2),
        Column("ELBO", decimals=1, unit="nats, last"),
        "converged",
    )
    return Table(
        columns, tuple(rows), "ADVI against NUTS with the same parametrisation, held-out points"
    )


def chart_table(results: Results) -> Table:
    """Tabulate the charts of unit-norm weights side by side."""
    rows = tuple(
        (
            f"{cell.problem}, {ENGINE_WORDS[cell.engine]}",
            found.at_seam,
            found.crossings,
            *_of_f(found),
        )
        for chart in CHARTS
        for cell, found in results.charts().items()
        if cell.problem == chart
    )
    columns = (
        "chart",
        Column("at the seam", decimals=3, unit="share of draws"),
        Column("crossings", decimals=1, unit="per 1000 draws"),
        *_OF_F,
    )
    return Table(
        columns,
        rows,
        f"One posterior in three charts. At the seam: a unit's longitude within {SEAM:g} of ±π. "
        "Crossings: a unit lies on one side of the seam and at the next draw on the other",
    )


def _of_f(found: Measured) -> tuple[Cell | float, ...]:
    """Cells under the columns of `_OF_F`."""
    return (
        _judged(found.held_out.worst_rhat),
        found.held_out.median_ess,
        found.depth[0],
        found.ess_per_1000_gradients,
    )


def _judged(rhat: float) -> Cell:
    if math.isnan(rhat):
        return Cell(None)
    return Cell(rhat, "good" if rhat <= _RHAT else "bad")
