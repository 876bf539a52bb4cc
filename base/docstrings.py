"""Docstrings in NumPy's form, read.

Convention: a section is a title underlined by hyphens; an entry of "Parameters", "Attributes" or "Raises" is a line
that is not indented, with its meaning indented below it.
"""

from __future__ import annotations

import inspect
import re

_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def sections(text: str | None) -> dict[str, str]:
    """Every section's body by its title, in order; what stands before the first one under the empty title."""
    parts = _TITLE.split(inspect.cleandoc(text or ""))
    return {"": parts[0].strip()} | {
        title: body.strip("\n") for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def entries(text: str | None, title: str) -> dict[str, str]:
    """A section's entries, whole, by their names; one entry of several names stands under each."""
    body = sections(text).get(title, "")
    out = {}
    for entry in re.split(r"\n(?=\S)", body) if body else []:
        head = entry.partition("\n")[0].partition(" : ")[0]
        for name in head.split(", "):
            out[name] = entry.rstrip()
    return out
