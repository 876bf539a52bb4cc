"""The page's figures are there, and its tables are those of the record, which holds every case."""

from __future__ import annotations

import json

from benchmarks.exact.__main__ import IMAGES
from benchmarks.exact.cases import ALL
from benchmarks.exact.page import PAGE, RECORD, written


def test_figures_are_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    names = [path.name for path in IMAGES.glob("exact-*.png")]
    assert len(names) == 4
    assert all(f"../images/{name}" in text for name in names)


def test_tables_are_those_of_the_record():
    text, record = PAGE.read_text(encoding="utf-8"), json.loads(RECORD.read_text(encoding="utf-8"))
    assert written(text, record) == text
    assert [row["case"] for row in record["cases"]] == list(ALL)


def test_the_tables_follow_from_the_record():
    """A number that is changed in the record is another one on the page."""
    text, record = PAGE.read_text(encoding="utf-8"), json.loads(RECORD.read_text(encoding="utf-8"))
    record["approximations"][0]["worst_bias"] = 99.0
    assert "99.00" in written(text, record)
