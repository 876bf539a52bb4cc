"""A claim never reproduces outright where numbers are missing or not finite: what is left decides in part."""

import math

import numpy as np
import pytest

from onebasin.studies.lab.claims import Claim, contrast, each
from onebasin.studies.lab.effects import changes
from onebasin.studies.lab.frame import Frame

BAD = [math.nan, math.inf, -math.inf, None]


def verdict(test, rows):
    return Claim("label", "quote", "rule", test).on({"cells": Frame.of(rows)}).verdict


def rows(value, kind="after"):
    """Two levels and three seeds, one number of which is bad."""
    return [
        {"level": level, "seed": seed, "score": 1.0 + (level == "after")}
        | ({"score": value} if (level, seed) == (kind, 1) else {})
        for level in ("before", "after")
        for seed in range(3)
    ]


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("kind", ["before", "after"])
def test_rows_that_differ_in_a_factor(value, kind):
    test = contrast(
        "cells", "level", [("before", "after")],
        lambda a, b: ("words", b["score"] / a["score"] > 1.5),
        same=("seed",), where=lambda a, b: str(a["seed"]),
    )  # fmt: skip
    assert verdict(test, rows(2.0)) == "reproduces"
    assert verdict(test, rows(value, kind)) == "reproduces in part"  # by the two other seeds


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize(
    "holds",
    [
        lambda row: row["score"] > 0.5,
        lambda row: not row["score"] > 9,
        lambda row: row.get("score") is None or row["score"] > 0.5,
        lambda row: np.mean([row["score"], 3.0]) > 0.5,
        lambda row: f"{row['score']:.2f}" != "",
    ],
)
def test_rows_one_by_one(value, holds):
    test = each("cells", lambda row: ("words", holds(row)), where="level")
    assert verdict(test, rows(1.0)) == "reproduces"
    assert verdict(test, rows(value)) != "reproduces"
    nested = [{"level": "a", "other": {"scores": [1.0, value]}}]  # count too
    test = each("cells", lambda row: ("words", len(row["other"]["scores"]) == 2), where="level")
    assert verdict(test, nested) == "unclear"


@pytest.mark.parametrize("value", BAD)
def test_pairs_without_a_number_are_left_out_and_counted(value):
    test = changes(
        "cells", "score", "level", [("before", "after")], "above",
        scale="difference", by="seed", same=(), where=lambda a, b: "all",
    )  # fmt: skip
    (trial,) = test({"cells": Frame.of(rows(value))})
    assert (trial.pairs, trial.left_out, trial.holds) == (2, 1, None)
