"""What a part of the study hands to the page: sections, tables, statements, sentences and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onebasin.analysis.report import Section, Table

from ..lab.claims import Statement


@dataclass(frozen=True)
class Part:
    """One experiment's conclusions.

    Attributes
    ----------
    name : str
        Key of its numbers in the record's JSON.
    headline : tuple of str
        The result in a sentence or two.
    section : Section
        Of the page: text, tables and figures.
    statements : tuple of Statement
        The paper's statements beside what was measured.
    tables : tuple of Table
        All tables, for the record; those of the section among them.
    shown : tuple of Table
        Tables for the terminal.
    data : mapping
        All numbers, of plain types.
    """

    name: str
    headline: tuple[str, ...]
    section: Section
    statements: tuple[Statement, ...] = ()
    tables: tuple[Table, ...] = ()
    shown: tuple[Table, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
