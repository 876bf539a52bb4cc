"""Tables of a report as Markdown."""

from __future__ import annotations

from .cells import Column, Table, TableCell

_MARKS = {"": "", "good": " ✓", "warn": " !", "bad": " ✗"}


def table_to_markdown(table: Table) -> str:
    """Write a table as Markdown, its caption above it."""
    columns = table.headings
    heading = [f"{c.name} ({c.unit})" if c.unit else c.name for c in columns]
    rows = [[_text(cell, c) for cell, c in zip(row, columns, strict=True)] for row in table.cells]
    lines = [_line(heading), _line(["---"] * len(columns)), *map(_line, rows)]
    caption = [f"**{table.caption}**", ""] if table.caption else []
    return "\n".join([*caption, *lines])


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _text(cell: TableCell, column: Column) -> str:
    note = f" ({cell.note})" if cell.note else ""
    return f"{column.write(cell.value)}{_MARKS[cell.flag]}{note}"
