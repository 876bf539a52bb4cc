"""A run's folder: what it holds, when it is refused, how it is taken up again."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from onebasin.base.errors import Interrupted, InUse, StudyError
from onebasin.base.files.makers import Maker
from onebasin.base.files.seal import Seal, examine_json
from onebasin.inference import Nuts
from onebasin.models import BayesianNetwork, Network
from onebasin.models.data import load_data
from onebasin.studies.lab import folder
from onebasin.studies.lab.folder import (
    Run,
    canonical,
    config_hash,
    default_folder,
    open_run,
    write_json,
    write_sealed,
)

from ...command_fixtures import fake_posterior
from ...each import each

DAMAGED = "{} is damaged (its checksum is missing or wrong): it is made again."


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


def flip(file: Path, words: bytes) -> None:
    """Change a bit of a file, at these bytes."""
    content = bytearray(file.read_bytes())
    content[content.index(words)] ^= 1
    file.write_bytes(content)


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


@each(
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


def test_run_json_says_how_it_was_made_by_whom_and_how_it_ended(path):
    before = os.umask(0o022)
    try:
        with opened(path):
            record = record_of(path)
            assert (record["status"], record["process"]) == ("running", str(Maker.own()))
            assert (path / "run.json").stat().st_mode & 0o777 == 0o644  # others may read it
    finally:
        os.umask(before)
    record = record_of(path)
    assert (record["study"], record["status"]) == ("toy", "done")
    assert "process" not in record
    assert record["config"]["nuts"]["draws"] == 1000
    assert record["config_hash"] == config_hash("toy", Config())
    assert {"python", "jax", "numpyro", "onebasin"} <= set(record["versions"])
    assert {"command", "commit", "machine", "started", "written", "cells"} <= set(record)


@each(
    ("error", "status"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (Interrupted("stopped"), "interrupted"),
        (RuntimeError("broken"), "failed"),
    ],
)
def test_run_json_says_that_it_broke_off(tmp_path, error, status):
    with pytest.raises(type(error)), opened(tmp_path / "run"):
        raise error
    record = record_of(tmp_path / "run")
    assert record["status"] == status
    assert record.get("message") == ("RuntimeError: broken" if status == "failed" else None)


def test_an_interrupt_between_two_steps_of_with_is_recorded_too(tmp_path):
    run = opened(tmp_path / "run")
    run.__enter__()  # and the signal comes before the block begins
    run.settle()
    assert record_of(tmp_path / "run")["status"] == "interrupted"
    ended = begun(tmp_path / "other")
    ended.settle()  # which leaves it alone
    assert record_of(tmp_path / "other")["status"] == "done"


def killed() -> str:
    """The mark of a process that was killed."""
    code = "from onebasin.base.files.makers import Maker; print(Maker.own(), flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as process:
        mark = process.stdout.readline().decode().strip()
        process.kill()
    return mark


def test_a_killed_run_is_called_interrupted_at_the_next_look_and_one_at_work_is_not(path, caplog):
    run = opened(path)
    write_sealed(path / "run.json", run.record | {"status": "running", "process": str(Maker.own())})
    opened(path)
    assert record_of(path)["status"] == "running"
    dead = killed()
    for other in (False, True):
        caplog.clear()
        write_sealed(path / "run.json", run.record | {"status": "running", "process": dead})
        if other:  # even where the look is all that happens
            with pytest.raises(StudyError, match="other settings"):
                opened(path, Config(seed=1))
        else:
            opened(path)
        assert caplog.messages == [f"The run in {path} was killed; what it had finished is kept."]
        record = record_of(path)
        assert record["status"] == "interrupted"
        assert "process" not in record
        assert examine_json(record) is Seal.SEALED
        assert sorted(entry.name for entry in path.iterdir()) == ["posteriors", "run.json"]


@each("status", ["running", "done"])
def test_an_interrupt_amid_the_writing_of_the_status_is_recorded(tmp_path, monkeypatch, status):
    write = folder.write_sealed

    def interrupted(path, value):
        write(path, value)
        if value.get("status") == status:
            raise KeyboardInterrupt

    monkeypatch.setattr(folder, "write_sealed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        begun(tmp_path / "run")
    assert record_of(tmp_path / "run")["status"] == "interrupted"
    assert not (tmp_path / "run" / ".lock").exists()


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


def test_cell_with_a_flipped_byte_is_made_anew_with_a_line(path, posterior, caplog):
    run = begun(path)
    run.files.keep("a", "mark", posterior)
    file = run.files.posterior_path("a")
    flip(file, posterior.posterior["b2"].values.tobytes()[:16])
    assert not opened(path).files.find("a", "mark")
    assert caplog.messages == [DAMAGED.format(file)]
    assert not opened(path).files.find("a", "of another run")
    file.write_bytes(file.read_bytes()[:500])
    assert not opened(path).files.find("a", "mark")
    run.files.keep("a", "mark", posterior)
    assert opened(path).files.find("a", "mark")


def test_damaged_failure_and_run_json_are_made_anew_with_a_line(path, caplog):
    run = begun(path)
    run.files.keep_failure("a", "mark", "no convergence")
    failure = run.files.posterior_path("a").with_name("a.failed.json")
    flip(failure, b"convergence")
    assert opened(path).files.find_failure("a", "mark") is None
    machine = json.dumps(record_of(path)["machine"])[1:]
    flip(path / "run.json", machine.encode())
    for _ in range(2):
        begun(path)
    assert caplog.messages == [DAMAGED.format(file) for file in (failure, path / "run.json")]
    (path / "run.json").write_text('{"study": ')  # of which nobody knows whose it was
    with pytest.raises(StudyError, match="other settings"):
        opened(path)


def test_failure_is_remembered_until_the_cell_succeeds(path, posterior):
    run = begun(path)
    run.files.keep("a", "old", posterior)
    run.files.keep_failure("a", "mark", "no convergence")
    assert not run.files.posterior_path("a").exists()
    assert opened(path).files.find_failure("a", "mark") == "no convergence"
    assert opened(path).files.find_failure("a", "other") is None
    assert opened(path, resume=False, force=True).files.find_failure("a", "mark") is None
    run.files.keep("a", "mark", posterior)
    assert opened(path).files.find_failure("a", "mark") is None


def test_kept_cell_takes_its_chains_away_and_nothing_else(path, posterior):
    run = opened(path)
    chains = run.files.checkpoint_path("a")
    for mine in (False, True):
        chains.mkdir()
        (chains / "chain-0.npz").touch()
        (chains / "state.npz").touch()
        if mine:
            (chains / "notes.txt").write_text("mine")
        run.files.keep("a", "mark", posterior)
        assert chains.exists() == mine
    assert [entry.name for entry in chains.iterdir()] == ["notes.txt"]


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


def test_json_is_written_whole_or_not_at_all(tmp_path):
    file = tmp_path / "x.json"
    write_json(file, {"a": float("nan"), "b": 1})
    assert json.loads(file.read_text()) == {"a": None, "b": 1}
    with pytest.raises(TypeError, match="not JSON serializable"):
        write_json(file, {"a": object()})
    assert json.loads(file.read_text()) == {"a": None, "b": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]


def test_two_runs_on_one_folder_do_not_meet(path):
    with opened(path):
        with pytest.raises(InUse, match=rf"`--out` is .*run, which process {os.getpid()} "):
            opened(path).__enter__()
        with pytest.raises(InUse):
            opened(path, Config(seed=1), force=True).__enter__()
        assert record_of(path)["status"] == "running"
    begun(path)
    assert sorted(os.listdir(path)) == ["posteriors", "run.json"]


def test_a_run_that_was_killed_as_it_began_goes_on(path):
    (path / "posteriors").mkdir(parents=True)
    (path / ".lock").touch()
    (path / ".run.json.onebasin-there-1-2-0123abcd").touch()
    begun(path)
