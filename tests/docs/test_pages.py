"""Pages name only files, names and commands that exist; their Python compiles; they are short and plain."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import onebasin as ob
from onebasin.cli.main import main

from ..reference.docstrings import MODULES, PUBLIC
from ..test_structure import IDIOMS
from .running import PAGES, ROOT

ROOMS = ("base", "models", "posteriors", "stan", "analysis", "inference", "truth", "studies", "cli")
GROUPS = ("bridgestan", "cmdstan", "truth")
"""Commands that have subcommands."""
WRITTEN = {ROOT / "docs" / "results" / "index.md"}
"""Written by `make docs`, which fails where a link leads nowhere; absent until the site is built."""


WORDS = 42_400
"""Words of all pages below `docs/` but `docs/results`, code, tables and comments included (`wc -w`). To add some,
remove others."""


def assert_every_page(faults_of: Callable[[Path, str], Iterator[object]]) -> None:
    """Check every page, and list all faults at once."""
    faults = [
        f"{page.relative_to(ROOT)}: {fault}"
        for page in PAGES
        for fault in faults_of(page, page.read_text(encoding="utf-8"))
    ]
    assert not faults, "\n".join(faults)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def prose(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def test_links_lead_somewhere():
    def faults_of(page, text):
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose(text)):
            leads_to = (page.parent / link).resolve()
            if "://" not in link and leads_to not in WRITTEN and not leads_to.exists():
                yield link

    assert_every_page(faults_of)


def test_named_files_exist():
    folders = (*ROOMS, "tests", "docs", "benchmarks", "onebasin")

    def faults_of(page, text):
        if page.name == "CONTRIBUTING.md":
            return  # it names files of its worked examples
        for name in re.findall(r"`([a-z_]+/[\w./-]*)`", prose(text)):
            ours = not {"NAME", "KEY"} & set(re.findall("[A-Z]+", name)) and not name.endswith(
                ".hpp"
            )  # a pattern; Stan's own headers
            if ours and name.split("/")[0] in folders and not (ROOT / name).exists():
                yield name

    assert_every_page(faults_of)


def resolve(dotted: str) -> object:
    """Return the object of a name such as ``inference.contracts.density.LogDensity``, below `onebasin`."""
    value: object = importlib.import_module("onebasin")
    done = "onebasin"
    for part in dotted.split("."):
        done = f"{done}.{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(done)
    return value


def test_named_objects_exist():
    def faults_of(page, text):
        rooms = "|".join(ROOMS)
        for name in re.findall(rf"`(?:onebasin\.)?((?:{rooms})(?:\.\w+)+)[`(]", prose(text)):
            if name.split(".")[-1] not in ("py", "nc", "md", "json"):
                try:
                    resolve(name)
                except ImportError:
                    yield name
        for name, inner in re.findall(r"\bob\.(\w+)(?:\.(\w+))?", text):
            if name not in ob.__all__ or (
                name in MODULES and inner not in ("", "NAME", *dir(getattr(ob, name)))
            ):
                yield f"ob.{name}.{inner}"

    assert_every_page(faults_of)


def test_python_compiles_and_imports_no_room_as_a_package():
    def faults_of(page, text):
        for block in blocks(text, "python"):
            try:
                nodes = list(ast.walk(ast.parse(block)))
            except SyntaxError as error:
                yield f"{error}: {block}"
                continue
            for node in nodes:
                if isinstance(node, ast.Import | ast.ImportFrom) and imports_a_room(node):
                    yield block

    assert_every_page(faults_of)


def imports_a_room(node: ast.Import | ast.ImportFrom) -> bool:
    """Return whether an import takes a room for a top-level package."""
    modules = (
        [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
    )
    return any(str(module).split(".")[0] in ROOMS for module in modules)


def test_commands_exist_with_their_options(capfd):
    known: dict[tuple[str, ...], set[str] | None] = {}

    def options(names: tuple[str, ...]) -> set[str] | None:
        if names not in known:
            capfd.readouterr()
            code = main([*names, "--help"])
            found = set(re.findall(r"--[a-z-]+", capfd.readouterr().out))
            known[names] = None if code else found
        return known[names]

    def faults_of(page, text):
        lines = "\n".join(blocks(text, "sh")).splitlines()
        shown = [line.split("#")[0] for line in lines if line.startswith("onebasin ")]
        shown += re.findall(r"`(onebasin [a-z][^`]*)`", prose(text))
        for line in shown:
            words = shlex.split(line)[1:]
            names = [word for word in words[:2] if re.fullmatch(r"[a-z]+", word)]
            method = re.findall(r"--method \w+", line)[:1]
            there = options(
                (*(names if names[0] in GROUPS else names[:1]), *" ".join(method).split())
            )
            if there is None or not {word for word in words if word.startswith("--")} <= there:
                yield line

    assert_every_page(faults_of)
    assert ("diagnose",) in known


def test_documentation_is_short():
    results = set((ROOT / "docs" / "results").glob("*.md"))
    pages = set((ROOT / "docs").rglob("*.md")) - results
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= WORDS


def test_prose_is_plain_english():
    """Idioms that readers stumble over; code, and names in it, are no prose."""

    def faults_of(page, text):
        if page in WRITTEN:
            return
        for token in MarkdownIt().enable("table").parse(text):
            for child in token.children or ():
                if child.type == "text" and (found := IDIOMS.search(child.content)):
                    yield f"{found.group()!r} in {child.content!r}"

    assert_every_page(faults_of)


def test_every_public_name_is_listed():
    text = (ROOT / "docs" / "reference" / "index.md").read_text()
    assert set(re.findall(r"`ob\.([\w.]+)`", text)) == PUBLIC | MODULES | {"__version__"}
    assert len(set(ob.__all__) - MODULES - {"__version__"}) <= 50


def test_every_public_name_is_loaded_and_explains_itself():
    for name in ob.__all__:
        value = getattr(ob, name)
        assert name.startswith("__") or (
            value.__name__ in (name, f"onebasin.{name}") and value.__doc__
        ), name
        assert name in dir(ob)
    with pytest.raises(AttributeError, match="nutz"):
        ob.nutz  # noqa: B018


def test_map_of_the_rooms_names_every_inner_folder():
    text = (ROOT / "docs" / "developing" / "architecture.md").read_text()
    for room in ROOMS:
        for folder in (ROOT / room).iterdir():
            if (folder / "__init__.py").exists():
                assert f"`{room}/{folder.name}/`" in text, folder
