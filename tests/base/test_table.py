"""Tables: rows that fit, the text of their cells, and Markdown."""

import numpy as np
import pytest

from onebasin.base.table import Column, Table, TableCell, table_to_markdown


def test_a_table_refuses_rows_that_do_not_fit():
    with pytest.raises(ValueError, match=r"row of 1 cells .* 2 `columns`"):
        Table(("a", "b"), (("only",),))


def test_without_empty_columns_drops_dashes_alone():
    table = Table(("a", "b", "c"), (("x", None, 0), ("y", float("nan"), None)))
    assert table.without_empty_columns() == Table(("a", "c"), (("x", 0), ("y", None)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "yes"),
        (False, "no"),
        (None, "–"),
        ("", "–"),
        (float("nan"), "–"),
        ("`W1`", "`W1`"),
        (1.23456, "1.23"),
        (np.int64(12345), "12\u202f345"),
    ],
)
def test_a_column_writes_every_kind_of_value(value, text):
    assert Column("a").write(value) == text


def test_a_table_keeps_units_flags_notes_and_bars():
    columns = (Column("cell"), Column("R-hat", decimals=2, unit="worst"))
    rows = (("a|b", TableCell(1.234, "bad", "`mu`")), ("c", TableCell(1.0, "good")))
    assert table_to_markdown(Table(columns, rows, "What is shown")).splitlines() == [
        "**What is shown**",
        "",
        "| cell | R-hat (worst) |",
        "| --- | --- |",
        "| a\\|b | 1.23 ✗ (`mu`) |",
        "| c | 1.00 ✓ |",
    ]
