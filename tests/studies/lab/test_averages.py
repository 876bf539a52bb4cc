"""Averages over the rows of a frame that have something in common."""

from onebasin.studies.lab import Frame, select
from onebasin.studies.lab.frame import averages

ROWS = Frame.of(
    [
        {"model": "a", "by": "vi", "error": 1.0, "seconds": 3},
        {"model": "a", "by": "vi", "error": 2.0, "seconds": 5},
        {"model": "b", "by": "vi", "error": None, "seconds": 1},
        {"model": "b", "by": "nuts", "error": 7.0, "seconds": 9},
    ]
)


def test_rows_alike_become_one_with_means_and_extremes():
    over = averages(
        select("cells", by="vi"), ("model",), mean=("error", "unknown"), largest=("seconds",)
    )
    assert list(over({"cells": ROWS})) == [
        {"model": "a", "datasets": 2, "error": 1.5, "unknown": None, "max_seconds": 5},
        {"model": "b", "datasets": 1, "error": None, "unknown": None, "max_seconds": 1},
    ]


def test_no_rows_give_none():
    assert list(averages("cells", ("model",), mean=("error",))({})) == []
