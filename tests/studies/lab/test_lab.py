"""Frames, folders of runs, and a whole study, run and recorded."""

import importlib.util
import json
import os
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from onebasin.base.errors import InUse, StudyError
from onebasin.inference import Nuts
from onebasin.studies import registry
from onebasin.studies.lab import run as running
from onebasin.studies.lab import study as lab
from onebasin.studies.lab.run import RESULTS, Run, read_results

TOY = Path(__file__).parents[3] / "docs" / "developing" / "toy_study.py"


def test_frames_hold_what_json_keeps_and_are_asked_by_values():
    rows = [
        {"a": np.float64(0.1), "b": np.arange(2), "c": float("nan")},
        {"d": (np.int64(3), True)},
    ]
    frame = lab.frame_of(rows)
    kept = lab.rows_of("x", {"x": frame})
    assert kept == [
        {"a": 0.1, "b": [0, 1], "c": None, "d": None},
        {"a": None, "b": None, "c": None, "d": [3, True]},
    ]
    assert type(kept[0]["a"]) is float
    # A whole number next to a missing one stays one.
    counts = lab.frame_of([{"m": "a", "n": 1}, {"m": "b", "n": None}, {"m": "a", "n": 3}])
    assert json.dumps(counts["n"].tolist()) == "[1, null, 3]"
    assert lab.find(counts, m="b") == {"m": "b", "n": None}
    assert lab.find(counts, m="c") is None
    assert len(lab.where(counts, m=("a", "b"), n=3)) == 1
    frames = {"cells": counts}
    assert lab.rows_of("others", frames) == []
    assert len(lab.select("cells", "n", m="a")(frames)) == 2
    assert len(lab.select("cells", "absent")(frames)) == len(lab.select("others", m=1)(frames)) == 0
    assert lab.rows_of(lambda f: ({"n": n} for n in f["cells"]["n"]), frames)[2] == {"n": 3}


@dataclass(frozen=True)
class Config:
    seed: int = 0
    engines: tuple[str, ...] = ("stan",)
    nuts: Nuts = Nuts()  # noqa: RUF009


def opened(
    path: Path, config: Config | None = None, *, force: bool = False
) -> AbstractContextManager[Run]:
    config = config or Config()
    return running.opened(path, study="toy", config=config, command=["onebasin"], force=force)


@pytest.mark.parametrize(
    "other", [Config(seed=1), Config(engines=("stan", "numpyro")), Config(nuts=Nuts(draws=999))]
)
def test_settings_are_told_apart_by_every_field(tmp_path, other):
    for _ in range(2):
        with opened(tmp_path, replace(Config())):
            pass
    with pytest.raises(StudyError, match="a run with different settings"), opened(tmp_path, other):
        pass


def test_what_is_there_is_refused_or_replaced_by_force(tmp_path):
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(StudyError, match="contains other files"), opened(tmp_path):
        pass
    with opened(tmp_path, force=True):
        assert (tmp_path / "notes.txt").read_text() == "precious"
    path = tmp_path / "notes.txt"
    with pytest.raises(StudyError, match="is a file: name a folder"), opened(path, force=True):
        pass
    with opened(tmp_path / "run") as run:
        (run.posteriors / "a.nuts.stan.nc").touch()
    with opened(tmp_path / "run"):
        assert (run.posteriors / "a.nuts.stan.nc").exists()
    with opened(tmp_path / "run", force=True):
        assert not (run.posteriors / "a.nuts.stan.nc").exists()


def test_two_runs_on_one_folder_do_not_meet(tmp_path):
    path = tmp_path / "run"
    with opened(path) as run:
        (run.posteriors / "kept").touch()
        says = rf"`--out` is .*run, which process {os.getpid()} "
        with pytest.raises(InUse, match=says), opened(path, Config(seed=1), force=True):
            pass
        assert (run.posteriors / "kept").exists()
        assert json.loads((path / "run.json").read_text())["status"] == "running"
    assert sorted(os.listdir(path)) == ["posteriors", "run.json"]


def test_a_record_that_was_changed_by_hand_is_refused(tmp_path):
    record = json.loads((RESULTS / "boston.json").read_text(encoding="utf-8"))
    path = tmp_path / "boston.json"
    path.write_text(json.dumps(record | {"seconds": 0.0}))
    with pytest.raises(StudyError, match="checksum is wrong"):
        read_results(path, "boston")


@pytest.fixture
def toy(monkeypatch) -> ModuleType:
    """The study of the guide, in the table of studies."""
    spec = importlib.util.spec_from_file_location("toy_study", TOY)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "toy_study", module)
    spec.loader.exec_module(module)
    entry = registry.StudyEntry("toy_study", "Nobody", "two posteriors")
    monkeypatch.setattr(registry, "STUDIES", {**registry.STUDIES, "toy": entry})
    return module


def test_study_of_the_guide_runs_and_is_recorded(toy, onebasin, here, monkeypatch):
    monkeypatch.setattr("onebasin.studies.lab.run.RESULTS", here / "results")
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
