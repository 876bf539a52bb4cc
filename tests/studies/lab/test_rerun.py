"""A run made again from its manifest, and some cells of a study alone."""

import json
from pathlib import Path

import pytest

from onebasin.models.data import load_data
from onebasin.studies.lab import Options
from onebasin.studies.lab.record import RESULTS
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


def test_inputs_of_a_cell_are_taken_with_it():
    study = find("compact-representation")
    settings = study.configure(Options(quick=True))
    made = next(cell for cell in study.cells(settings) if cell.inputs)
    keys = [cell.key for cell in only(study, [made.key]).cells(settings)]
    assert set(made.inputs) < set(keys)
    assert keys[-1] == made.key


@pytest.fixture
def few_points(monkeypatch):
    """Every point at which a teacher is predicted costs the time of its ESS."""
    monkeypatch.setattr(
        design, "teacher_data", lambda seed, noise: load_data(STUDY, seed=seed, num_test=6)
    )


@pytest.mark.slow
@pytest.mark.usefixtures("few_points")
def test_parts_of_a_study_add_up_in_its_folder(onebasin, here, sampler):
    command = ("study", STUDY, *TOY, "--out", "run", "--json", "--only")
    assert onebasin(*command, "free.nuts.*").code == 0
    answer = onebasin(*command, "givens.nuts.*")
    assert answer.code == 0, answer.err
    assert {row["key"] for row in answer.json["frames"]["cells"]} == {
        "free.nuts.numpyro", "givens.nuts.numpyro",
    }  # fmt: skip
    assert len(sampler.calls) == 2


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


def _change(path: Path) -> None:
    findings = json.loads(path.read_text())
    findings["frames"]["cells"][0]["mse"] += 1e-12
    path.write_text(json.dumps(findings))


def test_what_is_no_manifest_another_study_or_no_cell_is_refused(onebasin, here):
    Path("empty").mkdir()
    kept = ("--rerun", RESULTS / "relu-teacher.json")
    for words, said in (
        ((STUDY, "--rerun", "empty"), "neither the folder of a finished run nor a record"),
        (("boston", *kept), "of the study relu-teacher"),
        ((STUDY, *kept, "--draws", "10"), "options that change what is run"),
        ((STUDY, *TOY, "--only", "free.nuts.stam", "--out", "run"), "only` is 'free.nuts.stam'"),
    ):
        answer = onebasin("study", *words)
        assert answer.code == 1
        assert said in " ".join(answer.err.split())
