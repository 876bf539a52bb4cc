"""No import circle: neither of files, nor of folders inside a package.

Imports inside functions count: postponing one hides a circle and does not open it. Those under `TYPE_CHECKING` count
too: who must know a type must know its file. A package's loose files are a folder of their own. Its face, `__init__`,
only hands names on and is left out of the graph of folders.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from .test_layers import MAY_IMPORT

ROOT = Path(__file__).parents[1]
PACKAGES = tuple(MAY_IMPORT)
LOOSE = "(loose files)"

Graph = dict[str, set[str]]


def modules(package: Path) -> dict[str, Path]:
    """Files of a package by dotted name below it; a folder's `__init__` has the folder's."""
    names = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def relative(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """Yield the relative imports, wherever they stand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield node


def files_graph(package: Path) -> Graph:
    """Return the files of the package that each of its files imports."""
    known = modules(package)
    graph: Graph = {name: set() for name in known}
    for name, path in known.items():
        here = name.split(".") if name else []
        folder = here if path.name == "__init__.py" else here[:-1]
        for node in relative(ast.parse(path.read_text(encoding="utf-8"))):
            base = folder[: len(folder) - node.level + 1] + (node.module or "").split(".")
            start = ".".join(filter(None, base))
            for alias in node.names:
                full = ".".join(filter(None, [start, alias.name]))
                graph[name].add(full if full in known else start)
        graph[name] -= {name}
    return graph


def folders_graph(package: Path, files: Graph) -> Graph:
    """Return the same of the package's inner folders; its loose files are one."""
    known = modules(package)

    def folder(name: str) -> str:
        loose = "." not in name and known[name].name != "__init__.py"
        return LOOSE if loose else name.split(".")[0]

    graph: Graph = {}
    for name, imported in files.items():
        if name:
            graph.setdefault(folder(name), set()).update(folder(each) for each in imported if each)
    return {top: imported - {top} for top, imported in graph.items()}


def circle(graph: Graph) -> str:
    """Return one circle of a graph, as an arrow from name to name; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " <- ".join(error.args[1])
    return ""


@pytest.mark.parametrize("package", PACKAGES)
def test_files_import_each_other_without_a_circle(package):
    assert circle(files_graph(ROOT / package)) == ""


@pytest.mark.parametrize("package", PACKAGES)
def test_folders_import_each_other_without_a_circle(package):
    files = files_graph(ROOT / package)
    assert circle(folders_graph(ROOT / package, files)) == ""


def _plant(package: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    return package


@pytest.mark.parametrize(
    "text",
    [
        "from .b import y",
        "from . import b",
        "def f():\n    from .b import y",
        "if TYPE_CHECKING:\n    from .b import y",
    ],
)
def test_planted_circle_of_files_is_found(tmp_path, text):
    files = {"part/__init__.py": "", "part/a.py": text, "part/b.py": "from ..part.a import x"}
    graph = files_graph(_plant(tmp_path, files))
    assert circle(graph) in ("part.a <- part.b <- part.a", "part.b <- part.a <- part.b")
    assert circle(folders_graph(tmp_path, graph)) == ""


def test_loose_files_are_a_folder(tmp_path):
    files = {"a.py": "from .part.b import x", "c.py": "", "part/b.py": "from ..c import y"}
    files["part/__init__.py"] = ""
    graph = files_graph(_plant(tmp_path, files))
    assert circle(graph) == ""
    assert LOOSE in circle(folders_graph(tmp_path, graph))


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
    assert circle(folders_graph(tmp_path, graph)) != ""
