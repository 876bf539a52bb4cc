"""Tables of a report as Markdown."""

from __future__ import annotations

from analysis.report import Cell, Column, Table, format_number

_MARKS = {"": "", "good": " ✓", "warn": " !", "bad": " ✗"}


def table_to_markdown(table: Table) -> str:
    """Write a table as Markdown, its caption above it."""
    columns = [c if isinstance(c, Column) else Column(c) for c in table.columns]
    heading = [f"{c.name} ({c.unit})" if c.unit else c.name for c in columns]
    rows = [[_text(cell, c) for cell, c in zip(row, columns, strict=True)] for row in table.rows]
    lines = [_line(heading), _line(["---"] * len(columns)), *map(_line, rows)]
    caption = [f"**{table.caption}**", ""] if table.caption else []
    return "\n".join([*caption, *lines])


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _text(entry: object, column: Column) -> str:
    cell = entry if isinstance(entry, Cell) else Cell(entry)  # type: ignore[arg-type]
    value = cell.value
    if isinstance(value, bool):
        text = "yes" if value else "no"
    elif value is None or isinstance(value, str):
        text = value or "–"
    else:
        text = format_number(value, digits=column.digits, decimals=column.decimals)
    note = f" ({cell.note})" if cell.note else ""
    return f"{text}{_MARKS[cell.flag]}{note}"
