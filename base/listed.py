"""Load a module's public names on first use, from a stub next to it.

lazy_loader does this for packages, but supports neither single modules nor functions that are defined elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def attach(
    module: str, package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return a module's `__getattr__`, `__dir__` and `__all__`, by its `__name__`, `__package__` and `__file__`.

    The stub of the same name imports the names; `new = old` in it renames one.
    """
    places: dict[str, tuple[str, str]] = {}
    for node in ast.parse(Path(file).with_suffix(".pyi").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            where = "." * node.level + (node.module or "")
            places |= {name.name: (where, name.name) for name in node.names}
        elif isinstance(node, ast.Assign):
            (new,), old = node.targets, node.value
            assert isinstance(new, ast.Name) and isinstance(old, ast.Name)
            places[new.id] = places.pop(old.id)
    names = sorted(places)

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"{module} has no `{name}`; it has {', '.join(names)}.")
        where, found = places[name]
        return getattr(import_module(where, package), found)

    return load, lambda: names, names
