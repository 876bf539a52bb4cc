"""The tables of the study."""

from __future__ import annotations

from collections.abc import Iterable

from .. import lab
from ..lab import Field, Frames, Row, View, read
from ..lab.tables import Tabulate

ALL = View(
    "Verdicts: what was seen, and what would have been. Networks' rows simulate from the same random numbers, so that "
    "chance in one shows in others",
    (
        Field("calibration", "label"),
        Field("verdict", "verdict", flag=lambda word: "good" if word == "calibrated" else "warn"),
        Field("judged", "usable", unit="simulations"),
        Field("outside", lambda row: f"{row['outside']} of {row['quantities']}", unit="quantities"),
        Field(
            "sd", lambda row: _percent(row["seen_ratio"]), decimals=0, unit="%, seen if wrong by"
        ),
        Field("mean", "seen_shift", decimals=2, unit="sd, seen if wrong by"),
        Field("failed", "failed"),
        Field("unconverged", "unconverged"),
        Field("divergent", "divergent", unit="simulations"),
    ),
)


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * (ratio - 1)


def _wrong(frames: Frames) -> Iterable[Row]:
    return [row for row in read("cells", frames) if row["outside"]]


WORST = View(
    "By how much: the test quantity whose ranks are furthest from uniform",
    (
        Field("calibration", "label"),
        Field("quantity", "worst"),
        Field("p", "worst_p", digits=2),
        Field("posterior", "worst_sentence"),
    ),
    over=_wrong,
)


def _outside(frames: Frames) -> Iterable[Row]:
    return [row for row in read("quantities", frames) if row["outside"]]


OUTSIDE = View(
    "Every test quantity that left its band: shift of truths from posterior means, and their spread, in posterior sds",
    (
        Field("calibration", "label"),
        Field("quantity", "quantity"),
        Field("p", "p_value", digits=2),
        Field("shift", "shift", decimals=2),
        Field("from", "shift_low", decimals=2),
        Field("to", "shift_high", decimals=2),
        Field("spread", "ratio", decimals=2),
        Field("from", "ratio_low", decimals=2),
        Field("to", "ratio_high", decimals=2),
    ),
    over=_outside,
)
VIEWS: tuple[Tabulate, ...] = (ALL, WORST, lab.CLAIMS, OUTSIDE, lab.TRIALS, lab.FAILURES)
SHOWN: tuple[Tabulate, ...] = (ALL, WORST, lab.CLAIM_VERDICTS)
