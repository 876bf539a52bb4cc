"""Tables of diagnoses, parameters and comparisons, with flags that follow the limits of the diagnosis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from onebasin.base.table import Column, Flag, Row, RowGroup, Table, TableCell, Value, format_number
from onebasin.posteriors.draws import variable_of

from ..compare.comparison import Comparison
from ..diagnostics.measure import DECIMALS
from ..diagnostics.result import AlignedDiagnosis, Diagnosis
from ..diagnostics.verdict import FLAGS, Extreme, Outcome
from ..summaries.sampler import NAN

# Columns that nearly repeat another column are left out, because terminals are narrow.
_COMPARED = {
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
    "num_draws": Column("draws", decimals=0, unit="of these"),
}


def health_table(diagnoses: Mapping[str, Diagnosis], *, caption: str = "") -> Table:
    """Tabulate the checks of posteriors, one row each."""
    limits = {
        column: tuple(
            {limit for each in diagnoses.values() for limit in each.numbers.limits_of(column)}
        )
        for column in ("rhat", "ess_bulk", "ess_tail")
    }
    bfmi = tuple({each.limits.bfmi for each in diagnoses.values()})
    khats = tuple({each.variational.khat_limit for each in diagnoses.values() if each.variational})
    columns = (
        "posterior",
        Column("R-hat", decimals=3, unit="largest", limits=limits["rhat"]),
        Column("bulk ESS", decimals=0, unit="smallest", limits=limits["ess_bulk"]),
        Column("tail ESS", decimals=0, unit="smallest", limits=limits["ess_tail"]),
        Column("divergences", unit="draws"),
        Column("tree depth", decimals=1, unit="mean"),
        Column("saturated", unit="draws"),
        Column("E-BFMI", decimals=2, unit="smallest", limits=bfmi),
        Column("R-hat", decimals=3, unit="of lp", limits=limits["rhat"]),
        Column("k-hat", decimals=2, limits=khats),
        Column("ELBO", decimals=1, unit="nats, last"),
    )
    rows = tuple(_health_row(name, diagnosis) for name, diagnosis in diagnoses.items())
    return Table(columns, rows, caption).without_empty_columns()


def cost_table(diagnoses: Mapping[str, Diagnosis]) -> Table:
    """Tabulate the cost of posteriors, one row each."""
    columns = (
        "posterior",
        Column("wall time", unit="s"),
        Column("warmup", unit="s, all chains"),
        Column("sampling", unit="s, all chains"),
        Column("gradients"),
        Column("acceptance", decimals=2, unit="mean"),
        Column("ESS / second", unit="smallest bulk"),
        Column("ESS / 1000 gradients", unit="smallest bulk"),
    )
    shown = (
        *("wall_time", "warmup_seconds", "sampling_seconds", "gradient_evaluations"),
        *("acceptance_rate", "ess_per_second"),
    )
    rows = []
    for name, diagnosis in diagnoses.items():
        numbers = diagnosis.summary()
        costs = [*(numbers[column] for column in shown), 1000 * diagnosis.ess_per_gradient]
        rows.append((name, *costs))
        if diagnosis.is_shown_aligned:
            times = diagnosis.shown["ess_bulk"].min() / diagnosis.ess_bulk.value
            rows.append((f"{name}, aligned", *costs[:-2], *(times * each for each in costs[-2:])))
    return Table(columns, tuple(rows)).without_empty_columns()


def aligned_table(diagnosis: AlignedDiagnosis) -> Table:
    """Tabulate the worst R-hat and ESS of raw draws, of aligned draws and of label-free quantities."""
    moved = diagnosis.raw.parameters.reindex(diagnosis.aligned.parameters.index)
    rows: list[tuple[str, float | None, float | None, float | None]] = [
        ("raw, moved parameters", *_worst(moved)),
        ("aligned, moved parameters", *_worst(diagnosis.aligned.parameters)),
    ]
    if len(diagnosis.invariants):
        rows.append(("not moved by the symmetry", *_worst(diagnosis.invariants)))
    columns = (
        "draws",
        Column("R-hat", decimals=3, unit="largest"),
        Column("bulk ESS", decimals=0, unit="smallest"),
        Column("tail ESS", decimals=0, unit="smallest"),
    )
    return Table(columns, tuple(rows), "modulo symmetry")


def comparison_table(comparison: Comparison) -> Table:
    """Tabulate a comparison, with one row per posterior."""
    names = [str(name) for name in comparison.table.columns if name in _COMPARED]
    rows = tuple(
        (f"{name} (truth)" if name == comparison.truth else name, *(row[c] for c in names))
        for name, row in comparison.table.to_dict("index").items()
    )
    columns: tuple[Column | str, ...] = ("posterior", *(_COMPARED[name] for name in names))
    return Table(columns, rows, f"Compared with {comparison.truth}").without_empty_columns()


MEANS = 20
"""Number of parameters whose means are tabulated."""


def means_table(comparison: Comparison, most: int = MEANS) -> Table | None:
    """Tabulate the means that differ most, in the order of the model. Return None for networks."""
    table = comparison.means
    if table.empty:
        return None
    apart = [f"z {name}" for name in comparison.moments]
    order = table[apart].abs().max(axis=1).sort_values(ascending=False, na_position="last").index
    first = [n for found in comparison.moments.values() for n in found.spreads]
    shown = {*[*dict.fromkeys((*first, *order))][:most]}
    columns: list[Column | str] = ["parameter"]
    columns += [Column(f"{word} {comparison.truth}") for word in ("mean", "sd")]
    for name in comparison.moments:
        columns += [Column(f"mean {name}"), Column(f"sd {name}"), Column(f"z {name}", decimals=1)]
        columns.append(Column(f"sd ratio {name}", decimals=2))

    def cells(name: str, row: str) -> Iterator[TableCell | Value]:
        found = comparison.moments[name]
        own = found.table.loc[row]
        yield float(own["mean_b"])
        yield float(own["sd_b"])
        judged = abs(own["z"]) > found.z_bound, bool(own["spread"])
        ends = f"({own['sd_ratio_low']:.2f} to {own['sd_ratio_high']:.2f})"
        notes = ("not judged", "") if own["gated"] else ("", ends if own["sd_ratio"] > 0 else "")
        for value, bad, note in zip((own["z"], own["sd_ratio"]), judged, notes, strict=True):
            flag: Flag = "warn" if own["gated"] else "bad" if bad else "good"
            yield TableCell(float(value), flag if value == value else "", note)

    both = [f"mean {comparison.truth}", f"sd {comparison.truth}"]
    rows = tuple(
        (
            str(r),
            *map(float, table.loc[r, both]),
            *(c for n in comparison.moments for c in cells(n, r)),
        )
        for r in table.index
        if r in shown
    )
    more = f"; {most} of {len(table)} parameters, which differ most" if len(table) > most else ""
    half = f" ({comparison.truth}: second half of its chains only)" if comparison.halved else ""
    return Table(tuple(columns), rows, f"Posterior means and sds{half}{more}")


def _worst(table: pd.DataFrame) -> tuple[float, float, float]:
    return table["rhat"].max(), table["ess_bulk"].min(), table["ess_tail"].min()


def _health_row(name: str, diagnosis: Diagnosis) -> Row:
    sampler, fit = diagnosis.sampler, diagnosis.variational
    draws = f"{diagnosis.num_chains}\u00a0×\u00a0{diagnosis.num_draws}"

    def cell(value: float | None, outcome: Outcome | None, note: str = "") -> TableCell:
        known = value is not None and not math.isnan(value)
        flag = FLAGS[outcome] if outcome and (known or outcome == "failed") else ""
        return TableCell(value if known else None, flag, note)

    def checked(check: str, value: float | None) -> TableCell:
        return cell(value, diagnosis.outcome_of(check))

    def worst(column: str, check: str) -> TableCell:
        table = diagnosis.numbers.decisive if len(diagnosis.numbers.decisive) else diagnosis.shown
        found = Extreme.of(table[column], smallest=column != "rhat")
        if found.parameter is None or not diagnosis.has_chains:
            return checked(check, None if found.parameter is None else found.value)
        outcome = diagnosis.numbers.outcome(column, found.value, found.parameter)
        return cell(found.value, outcome, f"`{found.parameter}`")

    lp = NAN if sampler is None else sampler.lp_rhat
    lp_outcome = diagnosis.outcome_of("log density")
    # The check of the log density covers R-hat and ESS, but only R-hat is shown here.
    if not math.isnan(lp):
        lp_outcome = diagnosis.limits.outcome("rhat", lp)
    return (
        TableCell(name, note=" ".join((diagnosis.engine, diagnosis.method, draws)).strip()),
        worst("rhat", "R-hat"),
        worst("ess_bulk", "bulk ESS"),
        worst("ess_tail", "tail ESS"),
        checked("divergences", sampler.divergences if sampler else None),
        sampler.mean_tree_depth if sampler else None,
        checked("tree depth", sampler.reached_max_treedepth if sampler else None),
        checked("E-BFMI", sampler.min_bfmi if sampler else None),
        cell(lp, lp_outcome),
        checked("k-hat", fit.khat) if fit else None,
        fit.elbo if fit else None,
    )


OPEN = 16
"""Largest number of rows in a table whose groups start unfolded."""

_BEFORE = "rhat_before"
"""Name of the column with R-hat before alignment."""
_PLACES = {
    "median": Column("median"),
    "q5": Column("5 %"),
    "q95": Column("95 %"),
    "mean": Column("mean"),
    "sd": Column("sd"),
    "mcse_mean": Column("MCSE", digits=2, unit="of the mean"),
    "mcse_sd": Column("MCSE", digits=2, unit="of the sd"),
    _BEFORE: Column("R-hat", decimals=3, unit="as sampled"),
}


def quantity_table(diagnosis: Diagnosis, table: pd.DataFrame, *, caption: str) -> Table:
    """Tabulate quantities in the order of the table, with the flags of the diagnosis."""
    rows = tuple(_rows(diagnosis, table))
    return Table(_columns(diagnosis, table, "quantity"), rows, caption).without_empty_columns()


def grouped_table(
    diagnosis: Diagnosis, table: pd.DataFrame, *, raw: pd.DataFrame | None = None, caption: str
) -> Table:
    """Tabulate parameters by variable. The entries of an array fold under a row for the variable.

    Numbers have the flags of the diagnosis. Given `raw`, the table before alignment, add a column with its R-hat.
    """
    if raw is not None:
        table = table.assign(**{_BEFORE: raw["rhat"].reindex(table.index)})
    rows = dict(zip(map(str, table.index), _rows(diagnosis, table), strict=True))
    by_variable: dict[str, list[str]] = {}
    for name in rows:
        by_variable.setdefault(variable_of(name, diagnosis.kinds.of), []).append(name)
    alone = tuple(rows[names[0]] for variable, names in by_variable.items() if names == [variable])
    groups = tuple(
        RowGroup(
            _heading(diagnosis, variable, table.loc[names]),
            tuple(rows[name] for name in names),
            open=len(rows) <= OPEN,
        )
        for variable, names in by_variable.items()
        if names != [variable]
    )
    columns = _columns(diagnosis, table, "parameter")
    return Table(columns, alone, caption, groups=groups).without_empty_columns()


def _columns(diagnosis: Diagnosis, table: pd.DataFrame, heading: str) -> tuple[Column | str, ...]:
    limits = diagnosis.numbers.limits_of
    unit = "aligned" if _BEFORE in table else ""
    return (
        heading,
        *(column for name, column in _PLACES.items() if name in table),
        Column("R-hat", decimals=3, unit=unit, limits=limits("rhat")),
        Column("bulk ESS", decimals=0, limits=limits("ess_bulk")),
        Column("tail ESS", decimals=0, limits=limits("ess_tail")),
    )


def _rows(diagnosis: Diagnosis, table: pd.DataFrame) -> Iterator[Row]:
    places = [name for name in _PLACES if name in table]
    for name, row in zip(map(str, table.index), table.to_dict("records"), strict=True):
        judged = (_judged(diagnosis, column, row[column], name) for column in DECIMALS)
        yield (f"`{name}`", *(float(row[place]) for place in places), *judged)


def _heading(diagnosis: Diagnosis, variable: str, table: pd.DataFrame) -> Row:
    """Return a row with the worst numbers of a variable and its number of entries."""
    entries = f"{format_number(len(table))} entries; worst shown"
    worst = {c: Extreme.of(table[c], smallest=c != "rhat").value for c in DECIMALS}
    judged = (_judged(diagnosis, c, value, str(table.index[0])) for c, value in worst.items())
    return (
        TableCell(f"`{variable}`", note=entries if len(table) > 1 else "1 entry"),
        *(
            Extreme.of(table[name]).value if name == _BEFORE else None
            for name in _PLACES
            if name in table
        ),
        *judged,
    )


def _judged(diagnosis: Diagnosis, column: str, value: float, entry: str) -> TableCell:
    """Flag a number only if it does not pass, because many ticks would hide a single cross."""
    if np.isnan(value):
        return TableCell(None)
    if not diagnosis.has_chains:  # The ESS of independent draws does not show quality.
        return TableCell(float(value))
    outcome = diagnosis.numbers.outcome(column, value, entry)
    return TableCell(float(value), "" if outcome == "passed" else FLAGS[outcome])
