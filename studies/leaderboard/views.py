"""The tables: methods beside each reference, and methods over all of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onebasin.analysis.compare.reference.result import FLAGS
from onebasin.base.table import TableCell

from .. import lab
from ..lab import Field, Frame, Frames, Row, View

SDS = "sds"
_AGREES = ("agrees", "agrees in part")


def _verdict(row: Row) -> TableCell:
    return TableCell(row["verdict"], FLAGS[row["verdict"]])


def _method(row: Row) -> TableCell:
    return TableCell(row["label"], note="recorded" if row["recorded"] else "")


def best_first(frames: Frames) -> list[Row]:
    """Rows by reference, and of each by the worst error of a mean; what cannot be judged comes last."""
    rows = lab.read("cells", frames)
    return [
        row
        for reference in (rows.levels("problem") if len(rows) else ())
        for row in sorted(rows.where(problem=reference), key=_error)
    ]


def _error(row: Row) -> tuple[bool, float]:
    worst = row.get("worst")
    return row["verdict"] == "cannot be judged", float("inf") if worst is None else worst


ERRORS = (
    Field(
        "mean off by", "worst", decimals=3, unit="sds, worst", note=lambda row: f"`{row['where']}`"
    ),
    Field("mean off by", "median", decimals=3, unit="sds, median"),
    Field("5, 95 % off by", "tail", decimals=2, unit="sds, worst"),
    Field("sd ratio", "sd_ratio", decimals=2, unit="median"),
    Field("sd ratio", "sd_low", decimals=2, unit="smallest"),
    Field("prediction", "prediction", digits=2, unit="distance"),
    Field("by chance", "prediction_floor", digits=2, unit="halves"),
    Field("gradients", "gradients"),
    Field("time", "seconds", unit="s"),
)

BOARD = View(
    "Every method beside every reference, the smallest error first",
    (Field("reference", "problem"), Field("method", _method), Field("verdict", _verdict), *ERRORS),
    over=best_first,
    drop_empty=True,
)


def board_of(reference: str) -> View:
    """The methods beside one reference."""
    return View(
        "The smallest error first",
        (Field("method", _method), Field("verdict", _verdict), *ERRORS),
        over=lambda frames: Frame.of(best_first(frames)).where(problem=reference),
        drop_empty=True,
    )


def over_all(frames: Frames) -> Iterator[Row]:
    """A row a method: on how many references it agrees, and what that costs."""
    rows, failures = lab.read("cells", frames), lab.read("failures", frames)
    failed = [row["key"] for row in failures]
    for method in rows.levels("method") if len(rows) else ():
        own = rows.where(method=method)
        verdicts = own.column("verdict")
        yield {
            "label": own.rows[0]["label"],
            "recorded": own.rows[0]["recorded"],
            "agrees": sum(verdict in _AGREES for verdict in verdicts),
            "differs": verdicts.count("differs"),
            "unjudged": verdicts.count("cannot be judged"),
            "failed": sum(f".{method}." in key for key in failed),
            **{name: _median(own, name) for name in ("worst", "sd_ratio", "gradients", "seconds")},
        }


def _median(rows: Frame, column: str) -> float | None:
    values = rows.column(column)
    return float(np.median(values)) if values else None


OVER_ALL = View(
    "Every method over all references that it is for; medians over these",
    (
        Field("method", _method),
        Field("agrees", "agrees", unit="references"),
        Field("differs", "differs"),
        Field("cannot be judged", "unjudged"),
        Field("failed", "failed"),
        Field("mean off by", "worst", decimals=2, unit="sds, worst"),
        Field("sd ratio", "sd_ratio", decimals=2),
        Field("gradients", "gradients"),
        Field("time", "seconds", unit="s"),
    ),
    over=over_all,
)
REASONS = View(
    "Every verdict in words",
    (Field("reference", "problem"), Field("method", _method), Field("what was found", "said")),
    over=best_first,
)

VIEWS = (OVER_ALL, BOARD, lab.CLAIMS, lab.TRIALS, REASONS, lab.FAILURES)
SHOWN = (BOARD, OVER_ALL, lab.FAILURES)
