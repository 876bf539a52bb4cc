"""The rooms are held to their order, read from the source: imports run downwards, what one place knows stays there."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# What each package may import besides itself.
MAY_IMPORT = {
    "base": set(),
    "models": {"base"},
    "posteriors": {"base", "models"},
    "stan": {"base", "models", "posteriors"},
    "analysis": {"base", "models", "posteriors"},
    "inference": {"base", "models", "posteriors", "stan"},
    "truth": {"base", "models", "posteriors", "stan", "analysis", "inference"},
    "studies": {"base", "models", "posteriors", "stan", "analysis", "inference", "truth"},
    "cli": {"base", "models", "posteriors", "stan", "analysis", "inference", "truth", "studies"},
}
LIBRARY = sorted(set(MAY_IMPORT) - {"studies", "cli", "truth"})

# Parts that `import onebasin.models` must not load: other engines, plots, and packages read for their data.
HEAVY = ["arviz", "cmdstanpy", "httpstan", "matplotlib", "mlxtend", "pandas", "sklearn", "xarray"]


@cache
def parsed(path: Path) -> ast.Module:
    """Read a file of the project: many tests look at each."""
    return ast.parse(path.read_text(encoding="utf-8"))


def modules_named(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and module of every import, wherever it stands, dots of relative ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "onebasin":
            yield from ((node.lineno, f"onebasin.{alias.name}") for alias in node.names)
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
        for line, module in modules_named(parsed(path)):
            where = f"{path.relative_to(root)}:{line}"
            if module.startswith("."):
                if len(module) - len(module.lstrip(".")) > depth:
                    found.append(f"{where}: {module} leaves the room")
                continue
            top, _, rest = module.partition(".")
            inner = rest.split(".")[0]
            if top in MAY_IMPORT:
                found.append(f"{where}: {module} is nobody's package, import onebasin.{module}")
            elif top != "onebasin":
                continue
            elif inner == room:
                found.append(f"{where}: {module} is inside the room, import it relatively")
            elif inner not in MAY_IMPORT:
                found.append(f"{where}: {module} is for users, import from a room")
            elif inner not in MAY_IMPORT[room]:
                found.append(f"{where}: {room} may not import {module}")
    return found


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_room_imports_only_downwards(room):
    assert (ROOT / room / "__init__.py").is_file()
    assert faults(ROOT, room) == []


@pytest.mark.parametrize(
    ("room", "source", "fault"),
    [
        ("base", "import onebasin.models", "base may not import onebasin.models"),
        ("models", "from onebasin.posteriors import schema", "may not import onebasin.posteriors"),
        ("truth", "from onebasin.studies import lab", "truth may not import onebasin.studies"),
        ("models", "import onebasin.stan", "models may not import onebasin.stan"),
        ("models", "from onebasin import stan", "models may not import onebasin.stan"),
        ("models", "from onebasin.inference.mcmc.nuts import nuts", "may not import onebasin.inf"),
        ("models", "def f():\n    from onebasin.analysis import a", "may not import onebasin.a"),
        ("models", "import numpy, onebasin.cli.main", "may not import onebasin.cli.main"),
        ("stan", "import onebasin.inference as i", "stan may not import onebasin.inference"),
        ("inference", "from onebasin.analysis.diagnose import x", "inference may not import"),
        ("analysis", "from onebasin.stan import program", "analysis may not import onebasin.stan"),
        ("analysis", "import onebasin.inference", "analysis may not import onebasin.inference"),
        ("models", "importlib.import_module('onebasin.stan.home')", "import onebasin.stan.home"),
        ("models", "from ...stan import home", "...stan leaves the room"),
        ("models", "from onebasin.models.network import Network", "import it relatively"),
        ("inference", "from models.target import Target", "import onebasin.models.target"),
        ("studies", "import onebasin as ob", "onebasin is for users, import from a room"),
        ("studies", "from onebasin import nuts", "onebasin.nuts is for users"),
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
        ("inference", "from onebasin.models.target import Target\nfrom onebasin.stan import home"),
        ("studies", "from onebasin import models, stan, inference, analysis"),
        ("models", "import stanio\nimport modelsmith"),
    ],
)
def test_downward_imports_are_let_through(tmp_path, room, source):
    part = tmp_path / room / "part"
    part.mkdir(parents=True)
    (part / "module.py").write_text(source)
    assert faults(tmp_path, room) == []


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "docs"])
def test_nothing_beside_the_rooms_imports_them_by_their_bare_names(folder):
    found = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, module in modules_named(parsed(path))
        if module.split(".")[0] in MAY_IMPORT
    ]
    assert found == []


def test_models_import_nothing_heavy():
    script = f"import sys, onebasin.models.data; print(*sorted(set({HEAVY}) & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []


def loads_whole(tree: ast.AST, package: str) -> bool:
    """Whether a package is imported itself before the first of its parts, or none of its parts is."""
    for _, module in modules_named(tree):
        if module.split(".")[0] == package:
            return module == package
    return True


def test_numpyro_is_loaded_whole_before_a_part_of_it():
    """ArviZ leaves a module that loads when it is used: Python then loads a part asked for first a second time."""
    found = [
        str(path.relative_to(ROOT))
        for room in MAY_IMPORT
        for path in sorted((ROOT / room).rglob("*.py"))
        if not loads_whole(parsed(path), "numpyro")
    ]
    assert found == []


def test_models_run_where_arviz_was_imported_first():
    script = (
        "import arviz_base; from onebasin.inference.density.stan_vectors import StanVectors; "
        "import numpyro; print(hasattr(numpyro.distributions, 'distribution'))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["True"]


BLOCKS = {"Block", "Complement", "Counterparts", "Exchangeable", "Flip", "Rescalable", "Rotation"}


def asked_kinds(tree: ast.AST) -> list[int]:
    """List the lines that ask for the kind of a symmetry's block, which blocks answer for themselves."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("isinstance", "issubclass")
        and BLOCKS & {getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(node)}
    ]


def attribute_words() -> set[str]:
    """The attributes of a posterior: the words of `posteriors.schema` below its heading of attributes."""
    text = (ROOT / "posteriors" / "schema.py").read_text(encoding="utf-8")
    return set(re.findall(r'^[A-Z_]+ = "([a-z_]+)"$', text[text.index("TARGET =") :], re.MULTILINE))


def spelled_attributes(tree: ast.AST, words: set[str]) -> list[int]:
    """List the lines that read or write an attribute of a posterior by a word of their own."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            holder, key = node.value, node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            holder, key = node.func.value, node.args[0]
        else:
            continue
        named = isinstance(key, ast.Constant) and key.value in words
        if named and ast.unparse(holder).split(".")[-1] in ("attrs", "attributes"):
            found.append(node.lineno)
    return found


def lines_of(find: Callable[[ast.AST], list[int]], *, but: str) -> list[str]:
    """Where something stands in the rooms, one place aside."""
    return [
        f"{path.relative_to(ROOT)}:{line}"
        for room in MAY_IMPORT
        for path in sorted((ROOT / room).rglob("*.py"))
        if not path.is_relative_to(ROOT / but)
        for line in find(parsed(path))
    ]


def test_blocks_are_not_told_apart_outside_their_folder():
    assert lines_of(asked_kinds, but="models/symmetry") == []


def test_only_the_schema_spells_attributes_of_a_posterior():
    words = attribute_words()
    assert {"symmetry", "model", "wall_time", "alignment"} <= words
    assert lines_of(lambda tree: spelled_attributes(tree, words), but="posteriors/schema.py") == []


def test_planted_kinds_and_spellings_are_caught():
    assert asked_kinds(ast.parse("isinstance(block, blocks.Exchangeable)")) == [1]
    assert asked_kinds(ast.parse("isinstance(block, (A, Complement))")) == [1]
    assert asked_kinds(ast.parse("isinstance(block, Network)\nExchangeable({})")) == []
    for text in ('tree.attrs["model"]', 'attrs.get("model", "")', 'x.attrs["model"] = 1'):
        assert spelled_attributes(ast.parse(text), {"model"}) == [1]
    assert spelled_attributes(ast.parse('x["model"]\ntree.attrs["mine"]'), {"model"}) == []


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
        for line in prints(parsed(path))
    ]
    assert found == []


def test_planted_print_is_caught():
    assert prints(ast.parse("def f(x):\n    print(x)\n")) == [2]
