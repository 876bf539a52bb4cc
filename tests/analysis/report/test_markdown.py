"""Tables as Markdown."""

from onebasin.base.table import Column, Table, TableCell, table_to_markdown


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
