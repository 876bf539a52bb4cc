"""No import circle inside a room: neither of files nor of a room's inner folders.

Imports inside functions count: postponing one hides a circle and does not open it. Those under `TYPE_CHECKING` do not:
they name what a value is and never run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("models", "stan", "inference", "analysis", "studies")

# The table of engines stands between files of one folder: methods ask it, and it asks the engines' own parts. No
# circle of files goes through it, which the first test holds it to; folders are compared without it.
TABLES = {"inference": {"engine"}}

Graph = dict[str, set[str]]


def modules(room: Path) -> dict[str, Path]:
    """Files of a room by dotted name below it; a folder's `__init__` has the folder's."""
    names = {}
    for path in sorted(room.rglob("*.py")):
        parts = path.relative_to(room).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def running(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """Yield the relative imports that are run, wherever they stand."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from running(ast.Module(node.orelse, []))
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield node
        else:
            yield from running(node)


def files_graph(room: Path) -> Graph:
    """What each file of a room imports of the room."""
    known = modules(room)
    graph: Graph = {name: set() for name in known}
    for name, path in known.items():
        here = name.split(".") if name else []
        folder = here if path.name == "__init__.py" else here[:-1]
        for node in running(ast.parse(path.read_text(encoding="utf-8"))):
            base = folder[: len(folder) - node.level + 1] + (node.module or "").split(".")
            start = ".".join(filter(None, base))
            for alias in node.names:
                full = ".".join(filter(None, [start, alias.name]))
                graph[name].add(full if full in known else start)
        graph[name] -= {name}
    return graph


def folders_graph(files: Graph) -> Graph:
    """The same for what stands at the top of a room: its inner folders, and its own files."""
    graph: Graph = {}
    for name, imported in files.items():
        top = name.split(".")[0]
        graph.setdefault(top, set()).update(each.split(".")[0] for each in imported)
    return {top: imported - {top} for top, imported in graph.items() if top}


def circle(graph: Graph) -> str:
    """One circle of a graph, as an arrow from name to name; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " <- ".join(error.args[1])
    return ""


@pytest.mark.parametrize("room", ROOMS)
def test_files_import_each_other_without_a_circle(room):
    assert circle(files_graph(ROOT / room)) == ""


@pytest.mark.parametrize("room", ROOMS)
def test_folders_import_each_other_without_a_circle(room):
    graph = folders_graph(files_graph(ROOT / room))
    tables = TABLES.get(room, set())
    assert circle({name: graph[name] - tables for name in graph.keys() - tables}) == ""


def _plant(room: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (room / name).parent.mkdir(parents=True, exist_ok=True)
        (room / name).write_text(text)
    return room


@pytest.mark.parametrize(
    "text",
    [
        "from .b import y",
        "from . import b",
        "def f():\n    from .b import y",
        "if TYPE_CHECKING:\n    import os\nelse:\n    from .b import y",
    ],
)
def test_planted_circle_of_files_is_found(tmp_path, text):
    files = {"part/__init__.py": "", "part/a.py": text, "part/b.py": "from ..part.a import x"}
    graph = files_graph(_plant(tmp_path, files))
    assert circle(graph) in ("part.a <- part.b <- part.a", "part.b <- part.a <- part.b")
    assert circle(folders_graph(graph)) == ""


def test_circle_of_types_is_let_through(tmp_path):
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .b import y"
    assert circle(files_graph(_plant(tmp_path, {"a.py": text, "b.py": "from .a import x"}))) == ""


def test_planted_circle_of_folders_is_found(tmp_path):
    """Two folders whose files make no circle."""
    files = {
        "one/__init__.py": "",
        "one/a.py": "from ..two.b import y",
        "one/c.py": "",
        "two/__init__.py": "",
        "two/b.py": "",
        "two/d.py": "from ..one.c import z",
    }
    graph = files_graph(_plant(tmp_path, files))
    assert circle(graph) == ""
    assert circle(folders_graph(graph)) != ""
