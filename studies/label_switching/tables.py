"""The study's tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from onebasin.analysis.alignment.failure_rates import RULES, FailureRates
from onebasin.analysis.report import Cell, Column, Table

from ..lab.claims import Statement, Verdict
from .measures import Measured, Results, worst
from .recovery import Recovery
from .statements import ESS_PER_CHAIN, GOOD, HELD_OUT, LARGEST_SDS, RMS_SDS, spread, where

_VERDICTS: Mapping[Verdict, tuple[str, Literal["good", "warn", "bad"]]] = {
    "reproduces": ("holds", "good"),
    "does not reproduce": ("does not hold", "bad"),
    "unclear": ("unclear", "warn"),
}


def diagnostics_table(results: Results) -> Table:
    """Tabulate R-hat and ESS raw, aligned, held out, and of what nothing moves."""
    rows = tuple((where(cell), *_diagnostics(found)) for cell, found in results.measured.items())
    columns = (
        "posterior",
        Column("R-hat", decimals=3, unit="raw"),
        Column("R-hat", decimals=3, unit="aligned"),
        Column("R-hat", decimals=3, unit="held out"),
        Column("R-hat", decimals=3, unit="invariants"),
        Column("bulk ESS", decimals=0, unit="raw"),
        Column("bulk ESS", decimals=0, unit="aligned"),
        Column("tail ESS", decimals=0, unit="raw"),
        Column("tail ESS", decimals=0, unit="aligned"),
        Column("bulk ESS", decimals=0, unit="invariants"),
    )
    caption = (
        "The worst parameter that the symmetry moves, raw and aligned; chains aligned with a reference that "
        "they had no part in; and the worst quantity that the symmetry leaves alone"
    )
    return Table(columns, rows, caption)


def switching_table(results: Results) -> Table:
    """Tabulate basins, and how often labels change within chains by either rule."""
    rows = tuple(
        (
            where(cell),
            round(math.exp(found.log_order)),
            _count(len(found.modulo.basins)),
            spread(found.mean_labellings),
            spread(found.modulo.switching.labellings),
            found.modulo.shrinkage,
            found.modulo.switching.ratio,
            found.modulo.switching.noise_ratio,
            found.symmetry_check,
        )
        for cell, found in results.measured.items()
    )
    columns = (
        "posterior",
        Column("labellings", unit="in all"),
        Column("basins", unit="left"),
        Column("labellings", unit="a chain, by the mean"),
        Column("labellings", unit="a chain, by a Gaussian"),
        Column("sd", decimals=2, unit="aligned over raw"),
        Column("variance", decimals=2, unit="aligned over relabelled"),
        Column("variance", decimals=2, unit="the same, shuffled parts"),
        Column("log density", digits=1, unit="largest change by the symmetry"),
    )
    caption = (
        "What alignment found. Basins: groups of chains that agree after it. Shuffled parts are the yardstick "
        "for what alignment gains on noise. Before sampling the declared symmetry is tried on the log density "
        "at random points"
    )
    return Table(columns, rows, caption)


def recovery_table(results: Results) -> Table:
    """Tabulate the distance of aligned posteriors from the truth."""
    rows = tuple(
        (where(cell), *_recovery(found), found.inflation)
        for cell, found in results.measured.items()
    )
    columns = (
        "posterior",
        Column("entries"),
        Column("distance", decimals=2, unit="rms, by a Gaussian"),
        Column("distance", decimals=2, unit="largest, by a Gaussian"),
        Column("inside", decimals=2, unit="95 % intervals"),
        Column("distance", decimals=2, unit="rms, by the mean"),
        Column("distance", decimals=2, unit="largest, by the mean"),
        Column("sd", decimals=2, unit="by the mean over by a Gaussian, largest"),
    )
    caption = (
        "Aligned posterior means against the truth that made the data, matched by the group, in posterior sds; and by "
        "how much the mean leaves a posterior wider than the Gaussian does"
    )
    return Table(columns, rows, caption)


def rate_table(rates: FailureRates) -> Table:
    """Tabulate failure rates, one separation a row, means over repeats."""
    planted = rates.planted
    caption = (
        f"Share of draws whose labels come out wrong; {planted.components} parts of {planted.features} features each, "
        f"{planted.repeats} posteriors of {planted.draws} draws"
    )
    columns = (
        Column("separation", unit="sds"),
        Column("best possible", decimals=3),
        *(Column(RULES[rule], decimals=3) for rule in rates.rates),
    )
    averages = [rates.optimal.mean(axis=0), *(r.mean(axis=0) for r in rates.rates.values())]
    rows = tuple(
        (float(separation), *(float(average[place]) for average in averages))
        for place, separation in enumerate(rates.separations)
    )
    return Table(columns, rows, caption)


def claim_table(claims: Sequence[Statement]) -> Table:
    """Tabulate the claims beside what became of them."""
    rows = tuple((c.label, c.quote, c.rule, c.outcome, _verdict(c)) for c in claims)
    columns = ("claim", "in words", "a posterior counts for it if", "outcome", "verdict")
    return Table(
        columns,
        rows,
        "A claim holds if it does so on every posterior that it is about; where it does on some, it is unclear",
    )


def short_claim_table(claims: Sequence[Statement]) -> Table:
    """Tabulate the verdicts alone, for a terminal."""
    rows = tuple((c.label, c.outcome, _verdict(c)) for c in claims)
    return Table(("claim", "here", "verdict"), rows)


def _verdict(claim: Statement) -> Cell:
    return Cell(*_VERDICTS[claim.verdict])


def _diagnostics(found: Measured) -> tuple[Cell | float, ...]:
    raw, aligned, fixed = map(worst, (found.raw, found.aligned, found.modulo.invariants))
    least = ESS_PER_CHAIN * found.modulo.raw.num_chains
    return (
        _below(raw["rhat"], GOOD),
        _below(aligned["rhat"], GOOD),
        _below(found.held_out_rhat, HELD_OUT),
        _below(fixed["rhat"], GOOD),
        _above(raw["ess_bulk"], least),
        _above(aligned["ess_bulk"], least),
        _above(raw["ess_tail"], least),
        _above(aligned["ess_tail"], least),
        _above(fixed["ess_bulk"], least),
    )


def _recovery(found: Measured) -> tuple[Cell | float | None, ...]:
    mean, gaussian = found.mean_recovery, found.recovery
    if mean is None or gaussian is None:
        return (None,) * 6
    return (
        len(gaussian.names),
        _below(gaussian.rms, RMS_SDS),
        _farthest(gaussian),
        gaussian.inside,
        _below(mean.rms, RMS_SDS),
        _farthest(mean),
    )


def _farthest(gap: Recovery) -> Cell:
    return Cell(gap.largest, "good" if gap.largest <= LARGEST_SDS else "bad", f"`{gap.where}`")


def _below(value: float, limit: float) -> Cell:
    return Cell(None) if math.isnan(value) else Cell(value, "good" if value <= limit else "bad")


def _above(value: float, limit: float) -> Cell:
    return Cell(None) if math.isnan(value) else Cell(value, "good" if value >= limit else "bad")


def _count(basins: int) -> Cell:
    return Cell(basins, "good" if basins == 1 else "bad")
