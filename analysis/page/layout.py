"""A page's parts, each with what the template needs to show it: its kind, its anchor, its picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from onebasin.base.errors import ArgumentTypeError
from onebasin.base.text import shown

from .cells import Column, Table
from .page import AnswerCard, Code, Details, FigureItem, FigureRow, Note, Part, Section, Stat, Stats
from .pictures import embed
from .rows import body, flagged


class Layout:
    """Lays out the parts of one page; numbers its tables and figures, so that ids are unlike one another."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def sections(self, sections: Sequence[Section]) -> list[dict[str, Any]]:
        """Lay out all sections."""
        return [
            {
                "anchor": f"section-{place}",
                "title": section.title,
                "parts": [self.part(part) for part in section.all_parts],
            }
            for place, section in enumerate(sections, start=1)
        ]

    def answer(self, card: AnswerCard) -> dict[str, Any]:
        """Lay out an answer card; what is to be declared is listed where no remedy says it."""
        verdict = card.verdict
        said = " ".join(cause.remedy for cause in verdict.causes)
        return {
            "card": card,
            "verdict": verdict,
            "stats": [_stat(stat) for stat in card.stats],
            "declare": [words for words in verdict.exchangeable if words not in said],
        }

    def part(self, part: Part) -> dict[str, Any]:
        """Lay out one part, with those inside it."""
        match part:
            case str():
                return {"kind": "text", "text": part}
            case Note():
                return {"kind": "note", "note": part}
            case Table():
                return {"kind": "table", **self._table(part)}
            case FigureItem():
                return {"kind": "figure", **self._figure(part)}
            case FigureRow():
                return {"kind": "figures", "figures": [self._figure(f) for f in part.figures]}
            case Stats():
                return {"kind": "stats", "stats": [_stat(item) for item in part.items]}
            case Code():
                return {"kind": "code", "text": shown(part.text.expandtabs(4), lines=True)}
            case Details():
                inside = [self.part(each) for each in part.parts]
                return {"kind": "details", "details": part, "parts": inside}
        raise ArgumentTypeError(
            f"`parts` has {part!r}: give texts, notes, tables, figures, rows of figures, key figures, code or details."
        )

    def _table(self, table: Table) -> dict[str, Any]:
        return {
            "anchor": f"table-{next(self._numbers)}",
            "caption": table.caption,
            "columns": table.headings,
            "classes": [
                " ".join(name for name, has in (("number", number), ("flagged", flag)) if has)
                for number, flag in zip(table.numeric, flagged(table), strict=True)
            ],
            "body": body(table),
            "sortable": table.sortable and len(table.all_rows) > 1,
        }

    def _figure(self, item: FigureItem) -> dict[str, Any]:
        picture = embed(item.figure, prefix=f"f{next(self._numbers)}", alt=item.alt)
        return {"picture": picture, "caption": item.caption}


def _stat(stat: Stat) -> dict[str, Any]:
    return {"stat": stat, "value": Column(stat.label, decimals=stat.decimals).write(stat.value)}
