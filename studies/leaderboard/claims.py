"""What is claimed of the methods, and tried on every reference that they were run on."""

from __future__ import annotations

from onebasin.models.card import number

from ..lab import Claim, Frames, Row, each, read
from ..lab.comparisons import Finding

NARROW = 0.9
"""Ratio of sds below which a parameter's spread is called too small."""


def _of(*methods: str):
    def rows(frames: Frames) -> list[Row]:
        found = read("cells", frames)
        return [row for row in found if row["method"] in methods and not row["recorded"]]

    return rows


def _where(row: Row) -> str:
    return f"{row['problem']}, {row['label']}"


def _agrees(row: Row) -> Finding:
    if row["verdict"] == "cannot be judged":
        return "cannot be judged", None
    words = f"{row['verdict']}; |z| at most {number(row['largest_z'], 3)}, means within {number(row['worst'], 2)} sds"
    return words, row["verdict"] in ("agrees", "agrees in part")


def _differs(row: Row) -> Finding:
    if row["verdict"] == "cannot be judged":
        return "cannot be judged", None
    low, middle = number(row["sd_low"], 2), number(row["sd_ratio"], 2)
    words = f"{row['verdict']}; sds at least {low} of the reference's, median {middle}"
    return words, row["verdict"] == "differs" and row["sd_low"] < NARROW


CLAIMS = (
    Claim(
        "NUTS samples the references",
        "NUTS of every engine agrees with the references, which were made from other seeds.",
        "the run agrees with its reference as far as Monte Carlo error can see",
        each(_of("nuts", "nuts-stan", "nuts-nutpie"), _agrees, where=_where),
    ),
    Claim(
        "so does HMC",
        "HMC with trajectories of one length agrees with the references.",
        "the run agrees with its reference as far as Monte Carlo error can see",
        each(_of("hmc"), _agrees, where=_where),
    ),
    Claim(
        "mean-field ADVI is too narrow",
        "Independent coordinates make some parameter's spread too small.",
        f"the fit differs from its reference, and some parameter's sd is below {NARROW:g} of the reference's",
        each(_of("meanfield"), _differs, where=_where),
    ),
)
