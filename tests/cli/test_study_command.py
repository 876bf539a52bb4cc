"""`onebasin study`: folders, resuming, options, records; with samplers that answer at once."""

import json
import re
from pathlib import Path

import pytest

from onebasin.inference import Nuts
from onebasin.models.load_data import load_data
from onebasin.studies.registry import STUDIES

SMALL = ("--chains", "2", "--warmup", "10", "--draws", "40")
GIVENS = ("--parametrisations", "givens", "--engine", "stan")


def interrupted(call):
    """Stop a study at the first cell: what is asked of the sampler is known."""
    raise KeyboardInterrupt


@pytest.fixture
def teacher(onebasin, here, sampler, monkeypatch):
    """Run three cells of the two-unit teacher in the folder `run`, without figures."""

    def few_points(seed, noise_sd=1.0):
        return load_data("relu-teacher", seed=seed, noise_sd=noise_sd, num_test=6)

    monkeypatch.setattr("onebasin.studies.relu_teacher.design.teacher_data", few_points)
    monkeypatch.setattr("onebasin.studies.relu_teacher.figures.METHODS", ())
    words = ("study", "relu-teacher", "--out", "run", *SMALL, *GIVENS)
    return lambda *more: onebasin(*words, *more)


def test_list_names_every_study(onebasin):
    answer = onebasin("study", "--list")
    assert answer.code == 0
    assert re.search(r"^relu-teacher +two ReLU units", answer.out)
    names = [entry["name"] for entry in onebasin("study", "--list", "--json").json]
    assert names == list(STUDIES)
    assert {"relu-teacher", "boston"} <= set(names)


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (["--seed", "3"], {"seed": 3}),
        (["--chains", "3"], {"settings": Nuts(chains=3, warmup=10, draws=40)}),
        (["--draws", "41"], {"settings": Nuts(chains=2, warmup=10, draws=41)}),
        (["--no-progress"], {"progress": False}),
    ],
)
def test_every_option_changes_the_calls(teacher, sampler, words, changed):
    before = {"seed": 0, "engine": "stan", "progress": True}
    before["settings"] = Nuts(chains=2, warmup=10, draws=40)
    sampler.calls.clear()

    sampler.before = interrupted
    answer = teacher("--parametrisations", "givens_seamless", "--force", *words)
    assert answer.code == 130, answer.err
    (first,) = sampler.calls
    assert {name: first[name] for name in before} == before | changed


def test_killed_run_goes_on_to_the_same_result(teacher, sampler, onebasin):
    whole = teacher("--json").json
    calls = len(sampler.calls)
    sampler.calls.clear()

    def kill(call):
        if len(sampler.calls) == 3:
            raise KeyboardInterrupt

    sampler.before = kill
    fixed = ("study", "relu-teacher", "--out", "other", *SMALL, *GIVENS, "--json")
    answer = onebasin(*fixed)
    assert answer.code == 130
    assert "2 of 3 cells are finished" in answer.err
    assert json.loads(Path("other/run.json").read_text())["status"] == "interrupted"
    sampler.before = lambda call: None
    sampler.calls.clear()
    again = onebasin(*fixed).json
    assert len(sampler.calls) == calls - 2
    assert {**again, "folder": "run"} == whole
    assert json.loads(Path("other/run.json").read_text())["status"] == "done"


def test_error_of_a_sampler_fails_the_study_at_its_end_and_is_recorded(teacher, sampler):
    def fail(call):
        raise RuntimeError("the compiler is gone")

    sampler.before = fail
    answer = teacher()
    assert answer.code == 1
    assert "the compiler is gone" in answer.err
    record = json.loads(Path("run/run.json").read_text())
    assert record["status"] == "failed"
    assert "RuntimeError: the compiler is gone" in record["message"]


def test_record_is_stamped_with_all_that_it_takes_to_repeat_it(
    teacher, onebasin, monkeypatch, here
):
    monkeypatch.setattr("onebasin.studies.lab.run.RESULTS", here / "results")
    monkeypatch.setattr("sys.argv", ["onebasin", "study", "x", "--out", "run", "--record"])
    answer = teacher("--record")
    assert answer.code == 0
    path = Path("results/relu-teacher.json")
    numbers = json.loads(path.read_text())
    assert numbers["command"] == "onebasin study x"
    assert numbers["config"]["seed"] == 0
    assert numbers["seconds"] == pytest.approx(3 * 1.5)
    assert {"versions", "machine", "commit", "sha256"} <= set(numbers)
    assert str(here) not in path.read_text()
    shown = onebasin("study", "relu-teacher", "--show", "--json").json
    assert shown["frames"] == teacher("--json").json["frames"]
    other = onebasin("study", "boston", "--show", "--out", "run").err
    assert "of the study relu-teacher" in " ".join(other.split())
    assert onebasin("study", "relu-teacher", "--show", "--record").code == 2
    before = path.read_text()
    assert teacher("--record", "--quick", "--force").code == 0  # beside it, not over it
    assert Path("results/relu-teacher-quick.json").exists()
    assert path.read_text() == before
