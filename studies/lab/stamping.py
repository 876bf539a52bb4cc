"""The part of a hand-written page that follows from a record alone, between two comments."""

from __future__ import annotations

from onebasin.base.errors import ArgumentError

BEGIN, END = "<!-- from the record: begins -->", "<!-- from the record: ends -->"


def stamp(page: str, said: str) -> str:
    """Put what a record says into a page, between the markers.

    Raises
    ------
    ValueError
        If the page lacks one of them.
    """
    before, began, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (began and ended):
        raise ArgumentError(
            f"`page` lacks {END if began else BEGIN}; it takes what the record says there."
        )
    return f"{before}{BEGIN}\n\n{said}\n\n{END}{after}"
