"""One self-contained HTML page with answer cards, tables, figures, and how every number was made.

`report` writes the page of one or more posteriors, which `posterior_report` builds; a study builds its own
from the parts (`Report`, `Section`, `Table`, `FigureItem`, `Details`, ...: see `page`). `render` gives the HTML,
`write` a file.
"""

from .cells import Column, RowGroup, Table, TableCell
from .inline import InlineReport, report
from .numbers import format_number
from .page import (
    AnswerCard,
    Code,
    Details,
    FigureItem,
    FigureRow,
    Note,
    Part,
    Provenance,
    Report,
    Section,
    Stat,
    Stats,
)
from .posteriors import posterior_report
from .provenance import describe_run
from .render import OutputError, claimed, put, render, write
from .tables import aligned_table, comparison_table, cost_table, health_table, parameter_table

__all__ = [
    "AnswerCard",
    "Code",
    "Column",
    "Details",
    "FigureItem",
    "FigureRow",
    "InlineReport",
    "Note",
    "OutputError",
    "Part",
    "Provenance",
    "Report",
    "RowGroup",
    "Section",
    "Stat",
    "Stats",
    "Table",
    "TableCell",
    "aligned_table",
    "claimed",
    "comparison_table",
    "cost_table",
    "describe_run",
    "format_number",
    "health_table",
    "parameter_table",
    "posterior_report",
    "put",
    "render",
    "report",
    "write",
]
