"""The tables of docs/explanations/exact-cases.md: what the record holds, between two comments of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from scipy.stats import norm

from onebasin.base.table import Column, Row, Table, table_to_markdown
from onebasin.studies.lab.record import stamp

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "explanations" / "exact-cases.md"
RECORD = DOCS / "explanations" / "exact-cases.json"
LEVEL = 0.05
"""Probability that the largest difference of a row is beyond what it calls chance."""
WORDS = {
    "nuts numpyro": "NUTS, NumPyro",
    "nuts stan": "NUTS, Stan",
    "nuts nutpie": "NUTS, nutpie",
    "hmc numpyro": "HMC, NumPyro",
    "hmc stan": "HMC, Stan",
    "mclmc adjusted": "MCLMC, adjusted",
    "mclmc unadjusted": "MCLMC, unadjusted",
    "mean-field ADVI numpyro": "mean-field ADVI, NumPyro",
    "full-rank ADVI numpyro": "full-rank ADVI, NumPyro",
    "mean-field ADVI stan": "mean-field ADVI, Stan",
    "full-rank ADVI stan": "full-rank ADVI, Stan",
    "ensemble": "deep ensemble",
}
Rows = list[dict[str, Any]]


def written(text: str, record: dict[str, Any]) -> str:
    """The page's text with the record's tables in their place."""
    return stamp(text, tables(record))


def tables(record: dict[str, Any]) -> str:
    """Samplers and approximations, as Markdown."""
    made = _samplers(record["samplers"]), _approximations(record["approximations"])
    return "\n\n".join(map(table_to_markdown, made))


def _samplers(rows: Rows) -> Table:
    columns = (
        "sampler",
        "posteriors",
        "means and sds",
        Column("furthest", decimals=2, unit="standard errors"),
        Column("by chance up to", decimals=2, unit="standard errors"),
        Column("smallest ESS", decimals=0),
    )
    return Table(columns, tuple(_sampler(*each) for each in _by_method(rows)))


def _sampler(method: str, rows: Rows) -> Row:
    worst = max(row["worst_errors"] for row in rows)
    count = sum(row["statistics"] for row in rows)
    chance = float(norm.isf(LEVEL / 2 / count))
    least = min(row["least_ess"] for row in rows)
    return (_word(method), len(rows), count, worst, chance, least)


def _approximations(rows: Rows) -> Table:
    columns = (
        "approximation",
        "posteriors",
        Column("mean off by", decimals=2, unit="sds, median"),
        Column("mean off by", decimals=2, unit="sds, worst"),
        Column("sd ratio", decimals=2, unit="smallest"),
        Column("sd ratio", decimals=2, unit="largest"),
        Column("below the evidence", decimals=3, unit="nats, median"),
        Column("below the evidence", decimals=3, unit="nats, most"),
    )
    return Table(columns, tuple(_approximation(*each) for each in _by_method(rows)))


def _approximation(method: str, rows: Rows) -> Row:
    bias = [row["worst_bias"] for row in rows]
    short = [row["short"] for row in rows if "short" in row]
    return (
        _word(method),
        len(rows),
        median(bias),
        max(bias),
        min(row["least_spread"] for row in rows),
        max(row["most_spread"] for row in rows),
        median(short) if short else None,
        max(short) if short else None,
    )


def _by_method(rows: Rows) -> Iterator[tuple[str, Rows]]:
    for method in dict.fromkeys(row["method"] for row in rows):
        yield method, [row for row in rows if row["method"] == method]


def _word(method: str) -> str:
    return WORDS.get(method, method)
