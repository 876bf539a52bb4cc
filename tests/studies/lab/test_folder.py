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
from onebasin.studies.lab.cell_files import write_json, write_sealed
from onebasin.studies.lab.folder import Run, canonical, config_hash, default_folder, open_run

from ...command_fixtures import fake_posterior
from ...each import each


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


def flip(path: Path, place: int) -> None:
    """Change a bit of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def opened(path: Path, config: Config | None = None, **options: bool) -> Run:
    how = {"resume": True, "force": False} | options
    config = config or Config()
    return open_run(path, study="toy", config=config, command=["onebasin", "study"], **how)


def begun(path: Path) -> Run:
    """A run that has ended, without a cell."""
    with opened(path) as run:
        return run


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


def test_canonical_settings_are_json_with_sorted_keys():
    text = canonical(Config())
    assert list(json.loads(text)) == ["engines", "nuts", "seed"]
    assert json.loads(text)["nuts"]["chains"] == 4


def test_run_json_says_how_it_was_made_and_how_it_ended(tmp_path):
    with opened(tmp_path / "run") as run:
        assert json.loads((run.path / "run.json").read_text())["status"] == "running"
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["status"] == "done"
    assert record["study"] == "toy"
    assert record["config"]["nuts"]["draws"] == 1000
    assert record["config_hash"] == config_hash("toy", Config())
    assert {"python", "jax", "numpyro", "onebasin"} <= set(record["versions"])
    assert {"command", "commit", "machine", "started", "written", "cells"} <= set(record)


def test_run_json_may_be_read_by_others(tmp_path):
    before = os.umask(0o022)
    try:
        with opened(tmp_path / "run") as run:
            assert (run.path / "run.json").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


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
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["status"] == status
    assert record.get("message") == ("RuntimeError: broken" if status == "failed" else None)


def killed():
    """The mark of a process that was killed."""
    code = "from onebasin.base.files.makers import Maker; print(Maker.own(), flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as process:
        mark = process.stdout.readline().decode().strip()
        process.kill()
    return mark


def test_run_json_names_the_process_while_it_runs_and_no_longer(tmp_path):
    with opened(tmp_path / "run") as run:
        record = json.loads((run.path / "run.json").read_text())
        assert (record["status"], record["process"]) == ("running", str(Maker.own()))
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["status"] == "done"
    assert "process" not in record


def test_an_interrupt_between_two_steps_of_with_is_recorded_too(tmp_path):
    run = opened(tmp_path / "run")
    run.__enter__()  # and the signal comes before the block begins
    run.settle()
    assert json.loads((run.path / "run.json").read_text())["status"] == "interrupted"


def test_settling_leaves_an_ended_run_alone(tmp_path):
    with opened(tmp_path / "run") as run:
        pass
    run.settle()
    assert json.loads((run.path / "run.json").read_text())["status"] == "done"


@pytest.mark.parametrize("other", [False, True])
def test_a_killed_run_is_called_interrupted_at_the_next_look(tmp_path, caplog, other):
    run = opened(tmp_path / "run")
    write_sealed(run.path / "run.json", run.record | {"status": "running", "process": killed()})
    if other:  # even where the look is all that happens
        with pytest.raises(StudyError, match="other settings"):
            opened(tmp_path / "run", Config(seed=1))
    else:
        opened(tmp_path / "run")
    assert caplog.messages == [f"The run in {run.path} was killed; what it had finished is kept."]
    record = json.loads((run.path / "run.json").read_text())
    assert record["status"] == "interrupted"
    assert "process" not in record
    assert examine_json(record) is Seal.SEALED
    assert sorted(path.name for path in run.path.iterdir()) == ["posteriors", "run.json"]


def test_a_run_at_work_is_not_called_interrupted(tmp_path):
    run = opened(tmp_path / "run")
    write_sealed(
        run.path / "run.json", run.record | {"status": "running", "process": str(Maker.own())}
    )
    opened(tmp_path / "run")
    assert json.loads((run.path / "run.json").read_text())["status"] == "running"


@each("status", ["running", "done"])
def test_an_interrupt_amid_the_writing_of_the_status_is_recorded(tmp_path, monkeypatch, status):
    write = folder.write_sealed

    def interrupted(path, value):
        write(path, value)
        if value.get("status") == status:
            raise KeyboardInterrupt

    monkeypatch.setattr(folder, "write_sealed", interrupted)
    with pytest.raises(KeyboardInterrupt), opened(tmp_path / "run"):
        pass
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["status"] == "interrupted"
    assert not (tmp_path / "run" / ".lock").exists()


def test_posterior_is_taken_again_only_with_its_fingerprint(tmp_path, posterior):
    run = begun(tmp_path / "run")
    run.files.keep("a", "mark", posterior)
    again = opened(tmp_path / "run")
    assert again.files.find("a", "mark") == 1.5
    assert not again.files.find("a", "another mark")
    assert not again.files.find("b", "mark")
    assert not opened(tmp_path / "run", resume=False, force=True).files.find("a", "mark")


def test_cell_with_a_flipped_byte_is_made_anew_with_a_line(tmp_path, posterior, caplog):
    run = begun(tmp_path / "run")
    run.files.keep("a", "mark", posterior)
    path = run.files.posterior_path("a")
    flip(path, path.read_bytes().index(posterior.posterior["b2"].values.tobytes()[:16]))
    assert not opened(tmp_path / "run").files.find("a", "mark")
    assert caplog.messages == [
        f"{path} is damaged (its checksum is missing or wrong): it is made again."
    ]
    assert not opened(tmp_path / "run").files.find("a", "of another run")
    path.write_bytes(path.read_bytes()[:500])
    assert not opened(tmp_path / "run").files.find("a", "mark")
    run.files.keep("a", "mark", posterior)
    assert opened(tmp_path / "run").files.find("a", "mark")


def test_cell_of_another_run_is_no_damaged_one(tmp_path, posterior, caplog):
    run = opened(tmp_path / "run")
    posterior.attrs["cell"] = "of an earlier version"
    posterior.to_netcdf(run.files.posterior_path("a"), engine="h5netcdf")
    assert not run.files.find("a", "mark")
    assert caplog.messages == []


def test_cell_without_a_fingerprint_is_never_taken(tmp_path, posterior):
    run = begun(tmp_path / "run")
    run.files.keep("a", None, posterior)
    assert not opened(tmp_path / "run").files.find("a", None)
    assert not opened(tmp_path / "run").files.find("a", "mark")
    run.files.keep_failure("a", None, "no convergence")
    assert opened(tmp_path / "run").files.find_failure("a", None) is None


def test_damaged_failure_is_tried_again_with_a_line(tmp_path, caplog):
    run = begun(tmp_path / "run")
    run.files.keep_failure("a", "mark", "no convergence")
    path = run.files.posterior_path("a").with_name("a.failed.json")
    flip(path, path.read_bytes().index(b"convergence"))
    assert opened(tmp_path / "run").files.find_failure("a", "mark") is None
    assert caplog.messages == [
        f"{path} is damaged (its checksum is missing or wrong): it is made again."
    ]


def test_damaged_run_json_of_this_run_is_made_anew_with_a_line(tmp_path, caplog):
    with opened(tmp_path / "run"):
        pass
    path = tmp_path / "run" / "run.json"
    flip(path, path.read_bytes().index(b'"machine": "') + len(b'"machine": "'))
    with opened(tmp_path / "run"):
        pass
    assert caplog.messages == [
        f"{path} is damaged (its checksum is missing or wrong): it is made again."
    ]
    with opened(tmp_path / "run"):
        pass
    assert len(caplog.messages) == 1


def test_failure_is_remembered_until_the_cell_succeeds(tmp_path, posterior):
    run = begun(tmp_path / "run")
    run.files.keep_failure("a", "mark", "no convergence")
    assert opened(tmp_path / "run").files.find_failure("a", "mark") == "no convergence"
    assert opened(tmp_path / "run").files.find_failure("a", "other") is None
    assert (
        opened(tmp_path / "run", resume=False, force=True).files.find_failure("a", "mark") is None
    )
    run.files.keep("a", "mark", posterior)
    assert opened(tmp_path / "run").files.find_failure("a", "mark") is None


def test_failure_removes_an_older_posterior(tmp_path, posterior):
    run = begun(tmp_path / "run")
    run.files.keep("a", "old", posterior)
    run.files.keep_failure("a", "new", "no convergence")
    assert not run.files.posterior_path("a").exists()


def test_kept_cell_takes_its_checkpoint_away(tmp_path, posterior):
    run = opened(tmp_path / "run")
    run.files.checkpoint_path("a").mkdir()
    (run.files.checkpoint_path("a") / "chain-0.npz").touch()
    run.files.keep("a", "mark", posterior)
    assert not run.files.checkpoint_path("a").exists()


def test_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(StudyError, match="holds files of something else"):
        opened(tmp_path)
    opened(tmp_path, force=True)
    assert (tmp_path / "notes.txt").read_text() == "precious"


def test_run_with_other_settings_is_refused(tmp_path):
    with opened(tmp_path / "run"):
        pass
    with pytest.raises(StudyError, match="holds a run with other settings"):
        opened(tmp_path / "run", Config(seed=1))
    opened(tmp_path / "run", Config(seed=1), force=True)


def test_run_that_is_there_is_replaced_only_by_force(tmp_path):
    with opened(tmp_path / "run"):
        pass
    with pytest.raises(StudyError, match="--resume takes what is there, --force replaces it"):
        opened(tmp_path / "run", resume=False)


def test_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(StudyError, match="is a file: name a folder"):
        opened(tmp_path / "run", force=True)


def test_damaged_run_json_counts_as_something_else(tmp_path):
    with opened(tmp_path / "run"):
        pass
    (tmp_path / "run" / "run.json").write_text('{"study": ')
    with pytest.raises(StudyError, match="other settings"):
        opened(tmp_path / "run")


def test_json_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"a": float("nan"), "b": 1})
    assert json.loads(path.read_text()) == {"a": None, "b": 1}
    with pytest.raises(TypeError, match="not JSON serializable"):
        write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": None, "b": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_two_runs_on_one_folder_do_not_meet(tmp_path):
    with opened(tmp_path / "run"):
        with pytest.raises(InUse, match=rf"`--out` is .*run, which process {os.getpid()} "):
            opened(tmp_path / "run").__enter__()
        with pytest.raises(InUse):
            opened(tmp_path / "run", Config(seed=1), force=True).__enter__()
        assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "running"
    with opened(tmp_path / "run"):
        pass
    assert sorted(os.listdir(tmp_path / "run")) == ["posteriors", "run.json"]


def test_a_run_that_was_killed_as_it_began_goes_on(tmp_path):
    folder = tmp_path / "run"
    (folder / "posteriors").mkdir(parents=True)
    (folder / ".lock").touch()
    (folder / ".run.json.onebasin-there-1-2-0123abcd").touch()
    with opened(folder):
        pass


def test_only_kept_chains_are_deleted(tmp_path, posterior):
    run = opened(tmp_path / "run")
    chains = run.files.checkpoint_path("a")
    chains.mkdir()
    (chains / "notes.txt").write_text("mine")
    (chains / "state.npz").touch()
    run.files.keep("a", "mark", posterior)
    assert [path.name for path in chains.iterdir()] == ["notes.txt"]
