"""The notebooks run, and what is committed of them is what their texts say."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
LARGEST = 400_000
PLACE = r"(?<![\w<./])/(?:home|tmp|root|Users|usr|work|var)/"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"notebooks_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SOURCES = sorted(FOLDER.glob("[0-9][0-9]-*.py"))


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    """The script that runs notebooks; it imports Jupyter, which takes seconds in every worker that collects."""
    return load(FOLDER / "run.py")


def committed(source: Path) -> Any:
    import nbformat

    return nbformat.read(source.with_suffix(".ipynb"), as_version=4)


def texts(cell: Any) -> str:
    """All that a cell has written, pictures left out."""
    words = [output.get("text", "") for output in cell.get("outputs", [])]
    for output in cell.get("outputs", []):
        words += [str(v) for k, v in output.get("data", {}).items() if not k.startswith("image/")]
    return "\n".join(words)


@pytest.mark.full
@pytest.mark.stan
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_runs_at_quick_size(source, runner):
    runner.run(source, quick=True)


def every_fault(faults_of: Callable[[Path], Iterator[str]]) -> list[str]:
    return [f"{source.stem}: {fault}" for source in SOURCES for fault in faults_of(source)]


def test_executed_notebooks_are_of_these_texts(runner):
    def faults_of(source):
        text, kept = (
            [(cell.cell_type, cell.source, cell.metadata) for cell in notebook.cells]
            for notebook in (runner.read(source), committed(source))
        )
        if kept != text:
            yield f"run `python -m notebooks.run {source.stem}`"

    assert every_fault(faults_of) == []


def test_executed_notebooks_are_whole_small_and_name_no_place():
    def faults_of(source):
        if source.with_suffix(".ipynb").stat().st_size >= LARGEST:
            yield "too large"
        cells = [cell for cell in committed(source).cells if cell.cell_type == "code"]
        if [cell.execution_count for cell in cells] != list(range(1, len(cells) + 1)):
            yield "not executed from the top"
        for cell in cells:
            kinds = [output.output_type for output in cell.outputs]
            wrong = {
                "an error": "error" in kinds,
                "no output": not kinds and shows(cell.source),
                "stderr": "stderr" in [output.get("name") for output in cell.outputs],
                "a place": re.search(PLACE, texts(cell)),
                "an address": " at 0x" in texts(cell),
            }
            yield from (f"{fault}: {cell.source}" for fault, found in wrong.items() if found)

    assert every_fault(faults_of) == []


def shows(source: str) -> bool:
    """Return whether a cell ends with an expression, whose value a notebook shows."""
    if source.rstrip().endswith(";"):
        return False
    return isinstance(ast.parse(source).body[-1], ast.Expr)


@pytest.mark.full
def test_a_cell_that_fails_or_warns_is_named(runner):
    import nbformat

    beware = "import sys; sys.stderr.write('beware')"
    for source, words in (("1 / 0", "ZeroDivisionError"), (beware, "beware")):
        cells = [nbformat.v4.new_code_cell(source, id="cell-01")]
        with pytest.raises(runner.NotebookError, match=f"cell-01 .*{words}"):
            runner.execute(nbformat.v4.new_notebook(cells=cells), "broken")


def test_data_beside_the_programs_are_what_the_script_makes():
    made = load(FOLDER / "programs" / "make.py").data()
    assert {f"{name}.json" for name in made} == {p.name for p in FOLDER.glob("programs/*.json")}
    for name, entries in made.items():
        kept = json.loads((FOLDER / "programs" / f"{name}.json").read_text())
        assert kept.keys() == entries.keys()
        for key, value in entries.items():
            np.testing.assert_allclose(kept[key], value, rtol=1e-12)
