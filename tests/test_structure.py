"""The source: imports point down and never in a circle, one place knows a thing, and the words are plain."""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = (
    *("base", "models", "posteriors", "stan", "analysis"),
    *("inference", "truth", "studies", "cli"),
)
"""Each may import those before it, but for `analysis`, which knows no engine."""
FORBIDDEN = {("analysis", "stan")}
IDIOMS = re.compile(
    r"\b(?:h[eo]ld(?:s|ing)? .{0,20}against|beside|for want of|mend(?:s|ed|ing)?|anew|reckon|no proof"
    r"|of one's own|told of|gone on (?:with|from))\b",
    re.IGNORECASE,
)
RECORDED = ("references to hold this one against",)
"""Sentences that records of studies hold, which stay as they are."""


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def files(package: str, root: Path = ROOT) -> list[Path]:
    return sorted((root / package).rglob("*.py"))


def imported_by_name(node: ast.AST) -> str:
    """Return the module that `import_module` imports; "" of anything else, and of a name that is computed."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        return next((str(a.value) for a in node.args[:1] if isinstance(a, ast.Constant)), "")
    return ""


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and module of every import wherever it stands, with the dots of relative ones."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "onebasin":
            yield from ((node.lineno, f"onebasin.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")
        elif name := imported_by_name(node):
            yield node.lineno, name


def upward(package: str, root: Path = ROOT) -> list[str]:
    """List the imports of a package that leave it for another place than a lower package."""
    found = []
    for path in files(package, root):
        depth = len(path.relative_to(root).parts) - 1
        for line, module in imported(parsed(path)):
            if module.startswith("."):
                wrong = len(module) - len(module.lstrip(".")) > depth
            else:
                top, _, rest = module.partition(".")
                inner = rest.split(".")[0]
                lower = PACKAGES[: PACKAGES.index(package)]
                allowed = inner in lower and (package, inner) not in FORBIDDEN
                wrong = top in PACKAGES or (top == "onebasin" and not allowed)
            if wrong:
                found.append(f"{path.relative_to(root)}:{line}: {module}")
    return found


def circle(package: Path, *, folders: bool) -> str:
    """Return a circle of a package's files, or of its folders (its loose files are one), as an arrow; "" without one.

    Imports inside functions and under `TYPE_CHECKING` count, and those by `import_module`: postponing one hides a
    circle and does not open it. Places of implementations, which `engines` finds by their names, are data.
    """
    known = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        known[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph: dict[str, set[str]] = defaultdict(set)

    def node(name: str) -> str:
        loose = "." not in name and known[name].name != "__init__.py"
        return name if not folders else "(loose files)" if loose else name.split(".")[0]

    for name, path in known.items():
        here = [part for part in name.split(".") if part]
        inside = here if path.name == "__init__.py" else here[:-1]
        for statement in ast.walk(parsed(path)):
            names = [""]
            if isinstance(statement, ast.ImportFrom):
                names = [alias.name for alias in statement.names]
                module = "." * statement.level + (statement.module or "")
            else:
                module = imported_by_name(statement)
            module = re.sub(rf"^onebasin\.{package.name}\b", "." * (len(inside) + 1), module)
            level = len(module) - len(module.lstrip("."))
            if not level:
                continue
            start = ".".join([*inside[: len(inside) - level + 1], module.lstrip(".")]).strip(".")
            for imports in names:
                full = f"{start}.{imports}".strip(".")
                target = full if full in known else start
                if not folders or (name and target):  # a package's face only hands names on
                    graph[node(name)] |= {node(target)} - {node(name)}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " <- ".join(error.args[1])
    return ""


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_down_and_never_in_a_circle(package):
    assert upward(package) == []
    assert circle(ROOT / package, folders=False) == ""
    assert circle(ROOT / package, folders=True) == ""


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("base", "import onebasin.models"),
        ("models", "from onebasin import stan"),
        ("models", "def f():\n    from onebasin.analysis import a"),
        ("analysis", "from onebasin.stan import program"),
        ("models", "importlib.import_module('onebasin.stan.home')"),
        ("models", "from ...stan import home"),
        ("inference", "from models.target import Target"),
        ("studies", "import onebasin as ob"),
    ],
)
def test_a_planted_import_is_found(tmp_path, package, source):
    (tmp_path / package / "part").mkdir(parents=True)
    module = tmp_path / package / "part" / "module.py"
    module.write_text(source)
    assert len(upward(package, tmp_path)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "from .b import y",
        "def f():\n    from . import b",
        "def f():\n    import_module('.b', __package__)",
    ],
)
def test_a_planted_circle_is_found(tmp_path, text):
    """Of two folders whose files make none, and of two files."""
    for case in ("folders", "files"):
        for folder, other in (("one", "two"), ("two", "one")):
            (part := tmp_path / case / folder).mkdir(parents=True)
            (part / "__init__.py").touch()
            (part / "a.py").write_text(text)
            back = case == "files" and folder == "one"
            (part / "b.py").write_text("from .a import x" if back else f"from ..{other}.c import x")
            (part / "c.py").touch()
    assert circle(tmp_path / "folders", folders=False) == ""
    assert circle(tmp_path / "folders", folders=True) != ""
    assert circle(tmp_path / "files", folders=False) != ""


def test_packages_are_imported_by_their_installed_name():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for folder in ("tests", "benchmarks", "docs")
        for path in files(folder)
        for line, module in imported(parsed(path))
        if module.split(".")[0] in PACKAGES
    ]
    assert found == []


@pytest.mark.full
def test_models_import_nothing_heavy_and_load_numpyro_whole():
    """ArviZ leaves a module that loads when it is used: Python then loads a part asked for first a second time."""
    heavy = {"arviz", "cmdstanpy", "httpstan", "matplotlib", "mlxtend", "pandas", "sklearn"}
    script = (
        f"import sys, onebasin.models.data; print(*sorted({heavy} & set(sys.modules)))\n"
        "import arviz_base; from onebasin.inference.density.stan_vectors import StanVectors\n"
        "import numpyro; print(hasattr(numpyro.distributions, 'distribution'))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


BLOCKS = {"Block", "Complement", "Counterparts", "Exchangeable", "Flip", "Rescalable", "Rotation"}


def asks_kind(node: ast.AST) -> bool:
    """Return whether a call asks for the kind of a symmetry's block, which blocks answer for themselves."""
    names = {getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(node)}
    asked = isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass")
    return asked and bool(BLOCKS & names)


@cache
def attributes() -> frozenset[str]:
    """Return the attributes of a posterior that `posteriors.schema` has names for."""
    text = (ROOT / "posteriors" / "schema.py").read_text(encoding="utf-8")
    below = text[text.index("TARGET =") :]
    return frozenset(re.findall(r'^[A-Z_]+ = "([a-z_]+)"$', below, re.MULTILINE))


def spells_attribute(node: ast.AST) -> bool:
    """Return whether an attribute of a posterior is read or written by a word instead of the schema's name."""
    if isinstance(node, ast.Subscript):
        holder, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        holder, key = node.func.value, node.args[0]
    else:
        return False
    word = getattr(key, "value", None)
    if not isinstance(word, str) or word not in attributes():
        return False
    return ast.unparse(holder).split(".")[-1] in ("attrs", "attributes")


@pytest.mark.parametrize(
    ("wrong", "apart", "planted"),
    [
        (asks_kind, "models/symmetry", "isinstance(block, (A, blocks.Complement))"),
        (spells_attribute, "posteriors/schema.py", 'tree.attrs.get("model", "")'),
    ],
    ids=["kinds of blocks", "attributes of posteriors"],
)
def test_one_place_knows(wrong, apart, planted):
    assert any(wrong(node) for node in ast.walk(ast.parse(planted)))
    found = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        for package in PACKAGES
        for path in files(package)
        if not path.is_relative_to(ROOT / apart)
        for node in ast.walk(parsed(path))
        if wrong(node)
    ]
    assert found == []


def worn(source: str) -> list[str]:
    """List the docstrings, strings and comments of a file that do not say things plainly."""
    tree = ast.parse(source)
    strings = [
        n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]
    alone = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}  # as docstrings stand
    opening = re.compile(r"\s*(?:What|How|Where|Whether)\b")
    found = [
        f"{s.lineno}: {s.value[:30]}" for s in strings if id(s) in alone and opening.match(s.value)
    ]
    texts = [(s.lineno, s.value) for s in strings if not s.value.isidentifier()]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            texts.append((token.start[0], token.string))
    for line, text in texts:
        if not any(sentence in text for sentence in RECORDED):
            words = " ".join(re.sub(r"`[^`]*`", "``", text).split())
            found += [f"{line}: {idiom[0]}" for idiom in IDIOMS.finditer(words)]
    return found


def test_words_are_plain():
    assert worn('"""What it does."""') and worn("x = 1  # beside the other")
    assert worn('beside = ["beside"]\n"""The argument `beside`."""') == []
    found = {
        str(path.relative_to(ROOT)): faults
        for package in PACKAGES
        for path in files(package)
        if (faults := worn(path.read_text(encoding="utf-8")))
    }
    assert found == {}
