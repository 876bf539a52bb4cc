"""What README and docs name is there: links, files, names, commands; what they show in Python compiles."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from pathlib import Path

import pytest

import onebasin as ob
from onebasin.cli.main import main

ROOT = Path(__file__).parents[1]
ROOMS = ("models", "stan", "inference", "analysis", "studies")
GROUPS = ("bridgestan", "cmdstan", "truth")
"""Commands that have commands of their own."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WRITTEN = {ROOT / "docs" / "results" / "index.md"}
"""What `make docs` writes, which fails where a link leads nowhere; it is there only once the site was built."""
page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def prose(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


@page
def test_links_lead_somewhere(path):
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose(path.read_text())):
        if "://" not in link:
            leads_to = (path.parent / link).resolve()
            assert leads_to in WRITTEN or leads_to.exists(), link


@page
def test_files_that_are_named_exist(path):
    folders = (*ROOMS, "tests", "docs", "benchmarks", "onebasin")
    for name in re.findall(r"`([a-z_]+/[\w./-]*)`", prose(path.read_text())):
        ours = "NAME" not in name and not name.endswith(".hpp")  # a pattern; Stan's own headers
        if ours and name.split("/")[0] in folders:
            assert (ROOT / name).exists(), name


def resolve(dotted: str) -> object:
    """The object of a name such as ``inference.contracts.density.LogDensity``, below `onebasin`."""
    value: object = importlib.import_module("onebasin")
    done = "onebasin"
    for part in dotted.split("."):
        done = f"{done}.{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(done)
    return value


@page
def test_names_that_are_named_exist(path):
    text = path.read_text()
    rooms = "|".join(ROOMS)
    for name in re.findall(rf"`(?:onebasin\.)?((?:{rooms})(?:\.\w+)+)[`(]", prose(text)):
        if name.split(".")[-1] not in ("py", "nc", "md", "json"):
            resolve(name)
    for name in re.findall(r"\bob\.(\w+)", text):
        assert name in ob.__all__, name


@page
def test_python_compiles_and_uses_public_names(path):
    for block in blocks(path.read_text(), "python"):
        for node in ast.walk(ast.parse(block)):
            assert not (isinstance(node, ast.Import | ast.ImportFrom) and names_a_room(node)), block


def names_a_room(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether an import takes a room for a package of its own."""
    modules = (
        [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
    )
    return any(str(module).split(".")[0] in ROOMS for module in modules)


@page
def test_commands_exist_with_their_options(path, capfd):
    lines = "\n".join(blocks(path.read_text(), "sh")).splitlines()
    shown = [line.split("#")[0] for line in lines if line.startswith("onebasin ")]
    shown += re.findall(r"`(onebasin [a-z][^`]*)`", prose(path.read_text()))
    for line in shown:
        words = shlex.split(line)[1:]
        names = [word for word in words[:2] if re.fullmatch(r"[a-z]+", word)]
        names = names if names[0] in GROUPS else names[:1]
        capfd.readouterr()
        assert main([*names, "--help"]) == 0, line
        known = set(re.findall(r"--[a-z-]+", capfd.readouterr().out))
        assert {word for word in words if word.startswith("--")} <= known, line


def test_every_public_name_is_listed():
    text = (ROOT / "docs" / "reference" / "index.md").read_text()
    assert set(re.findall(r"`ob\.(\w+)`", text)) == set(ob.__all__)
    assert len(ob.__all__) < 90


def test_every_public_name_is_loaded_and_explains_itself():
    for name in ob.__all__:
        value = getattr(ob, name)
        assert name.startswith("__") or (value.__name__ == name and value.__doc__), name
        assert name in dir(ob)
    with pytest.raises(AttributeError, match="nutz"):
        ob.nutz  # noqa: B018


def test_map_of_the_rooms_names_every_inner_folder():
    text = (ROOT / "docs" / "developing" / "architecture.md").read_text()
    for room in ROOMS:
        for folder in (ROOT / room).iterdir():
            if (folder / "__init__.py").exists():
                assert f"`{room}/{folder.name}/`" in text, folder
