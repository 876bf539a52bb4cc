"""Tables of diagnoses and scores, their cells flagged against the limits of the diagnosis."""

import math
from collections.abc import Mapping

import pandas as pd

from ..diagnosis import Diagnosis, Extreme
from ..prediction import PredictiveScores
from .page import Cell, Column, Flag, Table, Value

Row = tuple[Cell | Value, ...]


def health_table(diagnoses: Mapping[str, Diagnosis], *, caption: str = "") -> Table:
    """Tabulate, one posterior a row, whether the draws can be trusted."""
    columns = (
        "posterior",
        "method",
        Column("draws"),
        Column("R-hat", decimals=3, unit="largest"),
        Column("bulk ESS", decimals=0, unit="smallest"),
        Column("tail ESS", decimals=0, unit="smallest"),
        Column("divergences", unit="draws"),
        Column("tree depth", decimals=1, unit="mean"),
        Column("saturated", unit="draws"),
        Column("E-BFMI", decimals=2, unit="smallest"),
        Column("R-hat of lp", decimals=3),
        Column("k-hat", decimals=2),
        Column("ELBO", decimals=1, unit="nats, last"),
    )
    rows = tuple(_health_row(name, diagnosis) for name, diagnosis in diagnoses.items())
    return Table(columns, rows, caption).without_empty_columns()


def cost_table(diagnoses: Mapping[str, Diagnosis], *, caption: str = "") -> Table:
    """Tabulate, one posterior a row, what the draws cost."""
    columns = (
        "posterior",
        Column("wall time", unit="s"),
        Column("warmup", unit="s, all chains"),
        Column("sampling", unit="s, all chains"),
        Column("gradients"),
        Column("acceptance", decimals=2, unit="mean"),
        Column("ESS per second", unit="smallest bulk ESS"),
        Column("ESS per 1000 gradients", unit="smallest bulk ESS"),
    )
    rows = tuple(_cost_row(name, diagnosis) for name, diagnosis in diagnoses.items())
    return Table(columns, rows, caption).without_empty_columns()


def parameter_table(diagnosis: Diagnosis, *, worst: int | None = None, caption: str = "") -> Table:
    """Tabulate parameters, the worst ones (by R-hat, then by bulk ESS) where `worst` is given."""
    table = diagnosis.parameters
    if worst is not None:
        table = worst_parameters(diagnosis).head(worst)
    columns = (
        "parameter",
        Column("mean"),
        Column("sd"),
        Column("MCSE", digits=2, unit="of the mean"),
        Column("R-hat", decimals=3),
        Column("bulk ESS", decimals=0),
        Column("tail ESS", decimals=0),
    )
    rows = tuple(_parameter_row(str(name), row, diagnosis) for name, row in table.iterrows())
    return Table(columns, rows, caption).without_empty_columns()


def worst_parameters(diagnosis: Diagnosis) -> pd.DataFrame:
    """Sort the parameters that vary, largest R-hat first, then smallest bulk ESS."""
    varying = diagnosis.parameters.drop(index=list(diagnosis.constants))
    return varying.sort_values(["rhat", "ess_bulk"], ascending=[False, True], na_position="last")


def score_table(scores: Mapping[str, PredictiveScores], *, caption: str = "") -> Table:
    """Tabulate predictive scores, one posterior a row."""
    columns = (
        "posterior",
        Column("points"),
        Column("RMSE"),
        Column("log score", decimals=3, unit="nats"),
        Column("50 % coverage", decimals=2),
        Column("95 % coverage", decimals=2),
        Column("outside 95 %", decimals=2),
        Column("50 % width"),
        Column("95 % width"),
    )
    rows = tuple(
        (
            name,
            score.num_obs,
            score.rmse,
            score.log_score,
            score.coverage_50,
            score.coverage_95,
            score.outside_95,
            score.width_50,
            score.width_95,
        )
        for name, score in scores.items()
    )
    return Table(columns, rows, caption).without_empty_columns()


def _health_row(name: str, diagnosis: Diagnosis) -> Row:
    sampler, fit, limits = diagnosis.sampler, diagnosis.variational, diagnosis.limits
    bfmi = min(sampler.bfmi, default=None) if sampler else None
    lp_rhat = sampler.lp_rhat if sampler else None
    return (
        name,
        " ".join(part for part in (diagnosis.engine, diagnosis.method) if part),
        f"{diagnosis.num_chains} × {diagnosis.num_draws}",
        _extreme(diagnosis.rhat, diagnosis.rhat.value <= limits.rhat),
        _extreme(diagnosis.ess_bulk, diagnosis.ess_bulk.value >= diagnosis.min_ess),
        _extreme(diagnosis.ess_tail, diagnosis.ess_tail.value >= diagnosis.min_ess),
        _count(sampler.divergences if sampler else None, "bad"),
        sampler.mean_tree_depth if sampler else None,
        _count(sampler.saturated if sampler else None, "warn"),
        _judged(bfmi, bfmi is not None and bfmi >= limits.bfmi),
        _judged(lp_rhat, lp_rhat is not None and lp_rhat <= limits.rhat),
        _judged(fit.khat, fit.khat <= fit.khat_limit) if fit else None,
        fit.elbo if fit else None,
    )


def _cost_row(name: str, diagnosis: Diagnosis) -> Row:
    numbers = diagnosis.summary()
    columns = ("wall_time", "warmup_seconds", "sampling_seconds", "gradient_evaluations")
    shown = (*columns, "acceptance_rate", "ess_per_second")
    per_gradient = 1000 * diagnosis.ess_per_gradient
    return (name, *(numbers[column] for column in shown), per_gradient)


def _parameter_row(name: str, row: pd.Series, diagnosis: Diagnosis) -> Row:
    limit = diagnosis.min_ess
    return (
        f"`{name}`",
        row["mean"],
        row["sd"],
        row["mcse_mean"],
        _judged(row["rhat"], row["rhat"] <= diagnosis.limits.rhat),
        _judged(row["ess_bulk"], row["ess_bulk"] >= limit),
        _judged(row["ess_tail"], row["ess_tail"] >= limit),
    )


def _judged(value: float | None, good: bool, note: str = "") -> Cell:
    if value is None or math.isnan(value):
        return Cell(None)
    return Cell(float(value), "good" if good else "bad", note)


def _extreme(extreme: Extreme, good: bool) -> Cell:
    return _judged(extreme.value, good, f"`{extreme.parameter}`")


def _count(number: int | None, flag: Flag) -> Cell:
    return Cell(number, "" if number is None else flag if number else "good")
