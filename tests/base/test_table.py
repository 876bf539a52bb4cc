"""Tables: rows that fit, the text of their cells, numbers, and Markdown."""

import math

import numpy as np
import pytest

from onebasin.base.table import Column, Table, TableCell, format_number, table_to_markdown


def test_a_table_refuses_rows_that_do_not_fit():
    with pytest.raises(ValueError, match=r"row of 1 cell\(s\) .* 2 column\(s\)"):
        Table(("a", "b"), (("only",),))


def test_without_empty_columns_drops_dashes_alone():
    table = Table(("a", "b", "c"), (("x", None, 0), ("y", float("nan"), None)))
    assert table.without_empty_columns() == Table(("a", "c"), (("x", 0), ("y", None)))


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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.0, "0.00"), (1.234567, "1.23"), (-1.234567, "−1.23"), (0.0123456, "0.0123")),
        *((9.996, "10.0"), (123.456, "123"), (12_345.6, "12,346"), (1_234_567.0, "1.23·10⁶")),
        *((0.0000123, "1.23·10⁻⁵"), (7, "7"), (1_234_567, "1,234,567"), (None, "–")),
        *((np.int64(-4000), "−4,000"), (math.nan, "–"), (math.inf, "∞"), (-math.inf, "−∞")),
    ],
)
def test_format_number_writes_three_digits(value, text):
    assert format_number(value) == text
