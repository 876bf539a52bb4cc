"""A run's folder: its name, when it is refused, which posteriors it gives back."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from onebasin.base.errors import InUse, StudyError
from onebasin.inference import Nuts
from onebasin.models import BayesianNetwork, Network
from onebasin.models.data import load_data
from onebasin.studies.lab.folder import Run, canonical, default_folder, open_run

from ...command_fixtures import fake_posterior


@dataclass(frozen=True)
class Config:
    seed: int = 0
    engines: tuple[str, ...] = ("stan",)
    nuts: Nuts = Nuts()  # noqa: RUF009


@pytest.fixture
def posterior():
    data = load_data("relu-teacher")
    target = BayesianNetwork(Network(2, (2,))).condition(data.x, data.y, name="teacher")
    return fake_posterior(target, "nuts", "stan", Nuts(chains=1, draws=10), 0)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "run"


def opened(path: Path, config: Config | None = None, **options: bool) -> Run:
    how = {"resume": True, "force": False} | options
    config = config or Config()
    return open_run(path, study="toy", config=config, command=["onebasin", "study"], **how)


def begun(path: Path) -> Run:
    """A run that has ended, without a cell."""
    with opened(path) as run:
        return run


def record_of(path: Path) -> dict:
    return json.loads((path / "run.json").read_text())


@pytest.mark.parametrize(
    "other",
    [
        Config(seed=1),
        Config(engines=("stan", "numpyro")),
        Config(nuts=Nuts(draws=999)),
        Config(nuts=Nuts(metric="dense")),
    ],
)
def test_folder_is_named_by_every_setting(other):
    assert default_folder("toy", Config()) == default_folder("toy", replace(Config()))
    assert default_folder("toy", Config()) != default_folder("toy", other)
    assert default_folder("toy", Config()) != default_folder("joy", Config())
    assert default_folder("toy", Config()).parent == Path("runs")
    said = json.loads(canonical(Config()))
    assert (list(said), said["nuts"]["chains"]) == (["engines", "nuts", "seed"], 4)


def test_posterior_is_taken_again_only_with_its_fingerprint(path, posterior, caplog):
    run = begun(path)
    run.files.keep("a", "mark", posterior)
    run.files.keep("c", None, posterior)
    run.files.keep_failure("d", None, "no convergence")
    again = opened(path).files
    assert again.find("a", "mark") == 1.5
    for key, mark in (("a", "another mark"), ("b", "mark"), ("c", None), ("c", "mark")):
        assert not again.find(key, mark)
    assert again.find_failure("d", None) is None
    assert not opened(path, resume=False, force=True).files.find("a", "mark")
    # One of an earlier version is no damaged one.
    posterior.attrs["cell"] = "of an earlier version"
    posterior.to_netcdf(run.files.posterior_path("b"), engine="h5netcdf")
    assert not run.files.find("b", "mark")
    assert caplog.messages == []


def test_what_is_there_is_refused_or_replaced_by_force(tmp_path, path):
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(StudyError, match="holds files of something else"):
        opened(tmp_path)
    opened(tmp_path, force=True)
    assert (tmp_path / "notes.txt").read_text() == "precious"
    with pytest.raises(StudyError, match="is a file: name a folder"):
        opened(tmp_path / "notes.txt", force=True)
    begun(path)
    with pytest.raises(StudyError, match="holds a run with other settings"):
        opened(path, Config(seed=1))
    opened(path, Config(seed=1), force=True)
    with pytest.raises(StudyError, match="--resume takes what is there, --force replaces it"):
        opened(path, resume=False)


def test_two_runs_on_one_folder_do_not_meet(path):
    with opened(path):
        with pytest.raises(InUse, match=rf"`--out` is .*run, which process {os.getpid()} "):
            opened(path).__enter__()
        with pytest.raises(InUse):
            opened(path, Config(seed=1), force=True).__enter__()
        assert record_of(path)["status"] == "running"
    begun(path)
    assert sorted(os.listdir(path)) == ["posteriors", "run.json"]
