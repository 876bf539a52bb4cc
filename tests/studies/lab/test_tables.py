"""The tables of a study: means and changes with intervals against SciPy, and numbers that are missing."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_1samp

from onebasin.studies.lab.study import Change, Summary, frame_of, mean_with_interval

FREE = (1.0, 1.2, 0.9, 1.1, 1.3, 0.8, 1.05)
LOWER = (0.7, 0.9, 0.5, 0.9, 0.8, 0.55, 0.6)
BAD = [math.nan, math.inf, -math.inf, None]


def frames(first=FREE, second=LOWER):
    return {
        "cells": frame_of(
            {"level": level, "seed": seed, "engine": "stan", "score": score}
            for level, scores in (("before", first), ("after", second))
            for seed, score in enumerate(scores)
        )
    }


def changes(scale="difference", **more):
    change = Change("level", (("before", "after"),), "seed", scale)
    return Summary("Changes", {"score": "score"}, by=("engine",), change=change, **more)


def test_intervals_are_those_of_scipy():
    (row,) = changes().rows(frames())
    wanted = ttest_1samp(np.subtract(LOWER, FREE), 0).confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx(tuple(wanted))
    assert row["here"] == pytest.approx(np.mean(LOWER) - np.mean(FREE))
    assert (row["of"], row["numbers"], row["left out"]) == ("before to after, Stan", 7, 0)
    # Splits that share rows widen the interval.
    (shared,) = changes(overlap=0.25).rows(frames())
    factor = np.sqrt((1 / 7 + 0.25) / (1 / 7))
    assert shared["high"] - shared["low"] == pytest.approx(factor * (row["high"] - row["low"]))
    # A ratio is that of mean logarithms.
    (row,) = changes("ratio").rows(frames())
    logs = np.log(np.divide(LOWER, FREE))
    wanted = ttest_1samp(logs, 0).confidence_interval(0.95)
    assert row["here"] == pytest.approx(np.exp(logs.mean()))
    assert (row["low"], row["high"]) == pytest.approx(tuple(np.exp(wanted)))
    # A share lies between 0 and 1, and so does its interval.
    share = mean_with_interval([True, True, False])
    assert share == pytest.approx((2 / 3, *binomtest(2, 3).proportion_ci(method="wilson")))
    assert mean_with_interval([2.5]) == (2.5, None, None)
    assert mean_with_interval([]) == (None, None, None)


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("scale", ["difference", "ratio"])
def test_pairs_without_a_number_are_left_out_and_counted(value, side, scale):
    rows = [
        {**row, "score": value} if (row["level"], row["seed"]) == (side, 1) else row
        for row in frames()["cells"].to_dict("records")
    ]
    (found,) = changes(scale).rows({"cells": frame_of(rows)})
    assert (found["numbers"], found["left out"]) == (6, 1)
    kept = {"cells": frame_of(row for row in rows if row["seed"] != 1)}
    assert changes(scale).rows(kept)[0]["here"] == found["here"]


@pytest.mark.parametrize("value", BAD)
def test_means_leave_out_what_is_missing_in_lists_too(value):
    rows = {"cells": frame_of([{"of": "a", "x": value, "y": [1.0, value, 3.0], "z": None}])}
    measures = {"x": "x", "y": "y", "sum": lambda row: row["x"] + 1, "z": "z"}
    found = {row["measure"]: row for row in Summary("All", measures, by=("of",)).rows(rows)}
    assert (found["y"]["here"], found["y"]["numbers"], found["y"]["left out"]) == (2.0, 2, 1)
    assert found.keys() == {"y"}  # nobody measured the others


def test_rows_that_are_not_trusted_are_left_out_and_counted():
    table = changes(trusted=lambda frames, row: row["seed"] != 3)
    (row,) = table.rows(frames())
    assert (row["numbers"], row["left out"]) == (6, 1)
    (row,) = changes(trusted=lambda frames, row: False).rows(frames())
    assert (row["here"], row["numbers"], row["left out"]) == (None, 0, 7)


def test_lists_are_paired_entry_by_entry_and_printed_numbers_stand_beside():
    rows = {"fits": frame_of([{"m": "a", "x": [1.0, 2.0, 3.0]}, {"m": "b", "x": [1.5, 2.5, 4.0]}])}
    table = Summary(
        "Fits", {"x": "x"}, by=(), over="fits", change=Change("m", (("a", "b"),)),
        printed=lambda row: {"x": "higher" if row["m"] == "b" else "lower"},
    )  # fmt: skip
    (row,) = table.rows(rows)
    assert (row["of"], row["printed"], row["here"]) == ("a to b", "higher", pytest.approx(2 / 3))
    shown = table(rows)
    assert shown.texts[0][:4] == ["a to b", "x", "higher", "0.6667"]
