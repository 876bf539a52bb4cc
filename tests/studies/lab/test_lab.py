"""Frames; and a whole study, run and recorded."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from onebasin.studies import lab, registry

TOY = Path(__file__).parents[3] / "docs" / "developing" / "toy_study.py"

CELLS = lab.Frame.of(
    {"problem": problem, "engine": engine, "seed": seed, "ess": ess}
    for problem, engine, seed, ess in (
        ("free", "stan", 1, 100.0),
        ("free", "stan", 2, 120.0),
        ("free", "numpyro", 1, 80.0),
        ("tied", "stan", 1, 50.0),
        ("tied", "stan", 2, 40.0),
        ("tied", "numpyro", 1, 90.0),
    )
)


def test_frame_holds_what_json_keeps():
    rows = [
        {"a": np.float64(0.1), "b": np.arange(2), "c": float("nan")},
        {"d": (np.int64(3), True)},
    ]
    frame = lab.Frame.of(rows)
    assert frame.rows == (
        {"a": 0.1, "b": [0, 1], "c": None, "d": None},
        {"a": None, "b": None, "c": None, "d": [3, True]},
    )
    assert type(frame.rows[0]["a"]) is float
    assert lab.Frame.from_json(json.loads(json.dumps(frame.rows))) == frame
    assert lab.Frame.from_json(json.loads(json.dumps(frame.table))) == frame
    assert lab.Frame.from_json(lab.Frame().table) == lab.Frame()


def test_frame_is_asked_by_values():
    assert [row["ess"] for row in CELLS.where(problem="free", engine=("stan", "numpyro"))] == [
        100.0, 120.0, 80.0,
    ]  # fmt: skip
    assert CELLS.find(problem="tied", seed=2)["ess"] == 40.0
    assert CELLS.find(problem="loose") is None
    assert CELLS.row(problem="tied") is CELLS.rows[3]
    with pytest.raises(
        KeyError, match=r"`wanted` is \{'problem': 'loose'\}, which none of 6 rows has"
    ):
        CELLS.row(problem="loose")
    assert CELLS.levels("engine") == ("stan", "numpyro")
    some = lab.Frame.of([{"x": 1, "y": None}, {"x": 2, "y": 0.0}])
    assert some.known("y").column("x") == [2]
    assert not some.known("z")
    assert some.column("y") == [0.0]
    # Rows are taken by name, by values or by function.
    frames = {"cells": CELLS}
    assert lab.read("cells", frames) is CELLS
    assert len(lab.read("others", frames)) == 0
    assert len(lab.read(lab.select("cells", problem="tied"), frames)) == 3
    few = lab.read(lambda f: (row for row in f["cells"] if row["ess"] > 90), frames)
    assert few.column("ess") == [100.0, 120.0]


@pytest.fixture
def toy(monkeypatch) -> ModuleType:
    """The study of the guide, in the table of studies."""
    spec = importlib.util.spec_from_file_location("toy_study", TOY)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "toy_study", module)
    spec.loader.exec_module(module)
    entry = registry.StudyEntry("toy_study", "Nobody", "two posteriors")
    with_toy = {**registry.STUDIES, "toy": entry}
    monkeypatch.setattr(registry, "STUDIES", with_toy)
    monkeypatch.setattr("onebasin.studies.registry.STUDIES", with_toy)
    return module


def test_study_of_the_guide_runs_and_is_recorded(toy, onebasin, here, monkeypatch):
    monkeypatch.setattr("onebasin.studies.lab.record.RESULTS", here / "results")
    answer = onebasin("study", "toy", "--out", "run", "--record", "--json")
    assert answer.code == 0, answer.err
    rows = [row for table in answer.json["tables"] for row in table["rows"]]
    found = {(row["of"], row["measure"]): row for row in rows}
    narrower = found["few to many", "posterior sd"]
    assert (narrower["printed"], narrower["here"]) == (0.5, pytest.approx(0.5, rel=0.15))
    assert [row["num_obs"] for row in answer.json["frames"]["cells"]] == [25, 100]
    assert "| few to many | posterior sd | 0.5" in Path("run/tables.md").read_text()
    shown = onebasin("study", "toy", "--show")
    assert shown.code == 0, shown.err
    assert "few to many" in shown.out
    assert onebasin("study", "toy", "--show", "--out", "nowhere").code == 1
    assert len(TOY.read_text().splitlines()) < 90
