"""A run made again from its manifest, some cells of a study alone, and a damaged record."""

import json
from pathlib import Path

import pytest

from onebasin.base.errors import StudyError
from onebasin.models.data import load_data
from onebasin.studies.lab import Options
from onebasin.studies.lab.record import RESULTS, read_record
from onebasin.studies.lab.study import find, only
from onebasin.studies.relu_teacher import design

STUDY = "relu-teacher"
TOY = ("--engine", "numpyro", "--chains", "2", "--warmup", "20", "--draws", "20")
ONE = ("--only", "free.nuts.numpyro")


def test_cells_are_named_by_patterns():
    study = find(STUDY)
    some = only(study, ["*set03.free.nuts.*", "noise1-set01.givens.*.stan"])
    keys = {cell.key for cell in some.cells(study.configure(Options(full=True)))}
    assert keys == {
        f"noise{noise}-set03.free.nuts.{engine}"
        for noise in ("1", "0.5")
        for engine in ("numpyro", "stan")
    } | {f"noise1-set01.givens.{method}.stan" for method in ("nuts", "meanfield", "fullrank")}


@pytest.fixture
def few_points(monkeypatch):
    """Every point at which a teacher is predicted costs the time of its ESS."""
    monkeypatch.setattr(
        design, "teacher_data", lambda seed, noise: load_data(STUDY, seed=seed, num_test=6)
    )


@pytest.mark.full
@pytest.mark.usefixtures("few_points")
def test_rerun_of_one_cell_has_the_recorded_numbers(onebasin, here, sampler):
    """The first run is the record, the second is made from its manifest, by the same seed."""
    first = onebasin("study", STUDY, *TOY, *ONE, "--out", "run")
    assert first.code == 0, first.err
    again = onebasin("study", STUDY, "--rerun", "run", *ONE, "--out", "again")
    assert again.code == 0, again.err
    assert "numbers of 1 cells are those recorded" in " ".join(again.out.split())
    _change(Path("run/findings.json"))
    other = onebasin("study", STUDY, "--rerun", "run", *ONE, "--out", "again")
    assert other.code == 1
    assert "other numbers" in " ".join(other.err.split())


def test_a_record_that_was_changed_by_hand_is_refused(tmp_path):
    record = json.loads((RESULTS / "boston.json").read_text(encoding="utf-8"))
    path = tmp_path / "boston.json"
    path.write_text(json.dumps(record | {"seconds": 0.0}))
    with pytest.raises(StudyError, match="checksum is wrong"):
        read_record(path)


def _change(path: Path) -> None:
    findings = json.loads(path.read_text())
    findings["frames"]["cells"][0]["mse"] += 1e-12
    path.write_text(json.dumps(findings))
