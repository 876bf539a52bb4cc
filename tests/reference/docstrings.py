"""The entries of the reference: public names, and the classes that public functions return."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import onebasin as ob

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
DIRECTIVE = re.compile(
    r"^\.\. auto(?:function|class|exception):: onebasin\.(\S+)\n((?: +\S.*\n)*)", re.M
)

MODULES = {"approximations", "errors", "networks", "plot", "stan", "truth"}
"""Modules with public names."""
PUBLIC = (
    set(ob.__all__) - MODULES - {"__version__"}
    | {f"{m}.{name}" for m in MODULES - {"stan"} for name in getattr(ob, m).__all__}
    | {"stan.StanError", "stan.cmdstan_model", "stan.open_library"}
) - {"truth.Reference"}
"""All public names except rarely needed ones of `stan`, and a class of results."""


def object_of(dotted: str) -> Any:
    """Return the object with a name below `onebasin`, such as ``nuts`` or ``models.target.Target``."""
    path, _, name = dotted.rpartition(".")
    return getattr(import_module(f"onebasin.{path}") if path else ob, name)


def directives() -> list[tuple[str, bool]]:
    """Return every name whose docstring a page shows, and whether the page shows its members too."""
    text = "".join(page.read_text() for page in PAGES)
    return [(name, ":members:" in options) for name, options in DIRECTIVE.findall(text)]


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Return the public methods and properties that a class itself defines."""
    for name, value in vars(cls).items():
        if name.startswith("_"):
            continue
        function = getattr(value, "fget", None) or getattr(value, "func", None)
        function = function or getattr(value, "__func__", value)
        if inspect.isfunction(function):
            yield name, function


def documented() -> dict[str, Any]:
    """Return all objects with a docstring in the reference, by name."""
    out = {}
    for name, with_members in directives():
        value = out[name] = object_of(name)
        if with_members:
            out |= {f"{name}.{member}": function for member, function in members(value)}
    return out
