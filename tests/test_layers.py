"""The rooms are held to their order: imports, read from the source, run only downwards."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# What each room may import besides itself.
MAY_IMPORT = {
    "models": set(),
    "stan": {"models"},
    "inference": {"models", "stan"},
    "analysis": {"models"},
    "studies": {"models", "stan", "inference", "analysis"},
}
LIBRARY = sorted(set(MAY_IMPORT) - {"studies"})

# Parts that `import models` must not load: other engines, plots, and packages read for their data.
HEAVY = ["arviz", "cmdstanpy", "httpstan", "matplotlib", "mlxtend", "pandas", "sklearn", "xarray"]


def modules_named(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and module of every import, wherever it stands, dots of relative ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in (
            "import_module",
            "__import__",
        ):
            literal = [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)]
            yield from ((node.lineno, name) for name in literal if isinstance(name, str))


def faults(root: Path, room: str) -> list[str]:
    """List the imports of a room that are not allowed, as `file:line: reason`."""
    found = []
    for path in sorted((root / room).rglob("*.py")):
        depth = len(path.relative_to(root).parts) - 1
        for line, module in modules_named(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path.relative_to(root)}:{line}"
            if module.startswith("."):
                if len(module) - len(module.lstrip(".")) > depth:
                    found.append(f"{where}: {module} leaves the room")
                continue
            top = module.split(".")[0]
            if top == room:
                found.append(f"{where}: {module} is inside the room, import it relatively")
            elif top in MAY_IMPORT and top not in MAY_IMPORT[room]:
                found.append(f"{where}: {room} may not import {module}")
    return found


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_room_imports_only_downwards(room):
    assert (ROOT / room / "__init__.py").is_file()
    assert faults(ROOT, room) == []


@pytest.mark.parametrize(
    ("room", "source", "fault"),
    [
        ("models", "import stan", "models may not import stan"),
        ("models", "from inference.nuts import nuts", "models may not import inference.nuts"),
        ("models", "def f():\n    from analysis import align", "models may not import analysis"),
        ("models", "import numpy, studies.cli", "models may not import studies.cli"),
        ("stan", "import inference as i", "stan may not import inference"),
        ("inference", "from analysis.diagnose import rhat", "inference may not import analysis"),
        ("analysis", "from stan import program", "analysis may not import stan"),
        ("analysis", "import inference", "analysis may not import inference"),
        ("models", "import importlib\nimportlib.import_module('stan.home')", "import stan.home"),
        ("models", "from ...stan import home", "...stan leaves the room"),
        ("models", "from models.network import Network", "import it relatively"),
    ],
)
def test_planted_upward_import_is_caught(tmp_path, room, source, fault):
    part = tmp_path / room / "part"
    part.mkdir(parents=True)
    (part / "module.py").write_text(source)
    assert len(faults(tmp_path, room)) == 1
    assert fault in faults(tmp_path, room)[0]


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("models", "import numpy\nfrom ..network import Network\nfrom . import choices"),
        ("inference", "from models.target import Target\nfrom stan import home"),
        ("studies", "import models, stan, inference, analysis"),
        ("models", "import stanio\nimport modelsmith"),
    ],
)
def test_downward_imports_are_let_through(tmp_path, room, source):
    part = tmp_path / room / "part"
    part.mkdir(parents=True)
    (part / "module.py").write_text(source)
    assert faults(tmp_path, room) == []


@pytest.mark.parametrize("module", ["models", "onebasin.models.data"])
def test_models_import_nothing_heavy(module):
    script = f"import sys, {module}; print(*sorted(set({HEAVY}) & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []


def prints(tree: ast.AST) -> list[int]:
    """List the lines that call `print`."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]


@pytest.mark.parametrize("room", LIBRARY)
def test_library_rooms_do_not_print(room):
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for line in prints(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_planted_print_is_caught():
    assert prints(ast.parse("def f(x):\n    print(x)\n")) == [2]
