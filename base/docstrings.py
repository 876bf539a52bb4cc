"""Docstrings in NumPy's form, read and completed: what several classes or methods have alike is written once.

Convention: a section is a title underlined by hyphens; an entry of "Parameters", "Attributes" or "Raises" is a line
that is not indented, with its meaning indented below it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

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


def completed(text: str | None, title: str, wanted: Mapping[str, str]) -> str:
    """A docstring whose section has these entries, in this order, and after them those of its own that are not named.

    Parameters
    ----------
    text : str or None
        The docstring.
    title : str
        "Parameters" or "Raises".
    wanted : mapping
        Name to entry, for a name that the docstring has no entry of; its own are kept.
    """
    parts, own = sections(text), entries(text, title)
    merged = {name: own.get(name, entry) for name, entry in wanted.items()} | own
    parts[title] = "\n".join(dict.fromkeys(merged.values()))
    order = sorted(parts, key=lambda part: _ORDER.index(part) if part in _ORDER else len(_ORDER))
    return "\n\n".join(
        f"{part}\n{'-' * len(part)}\n{parts[part]}" if part else parts[part] for part in order
    )


_ORDER = (
    "",
    "Parameters",
    "Attributes",
    "Returns",
    "Raises",
    "See Also",
    "Notes",
    "References",
    "Examples",
)
"""NumPy's order of sections."""
