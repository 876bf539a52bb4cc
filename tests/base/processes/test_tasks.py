"""Tasks in processes: results, errors, killed processes, and what cannot be sent."""

import os
import signal
import threading
from pathlib import Path

import pytest

from onebasin.base.errors import TaskDied, TaskError, WriteError
from onebasin.base.processes import tasks
from onebasin.base.processes.task_process import tell, versions
from onebasin.base.processes.tasks import run_tasks


def divided(number: int, by: int) -> float:
    tell(says=f"divides by {by}", process=os.getpid())
    return number / by


def killed(marker: Path, times: int) -> str:
    count = len(list(marker.parent.glob("died*")))
    if count < times:
        (marker.parent / f"died{count}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "made"


def unwritten(path: Path) -> None:
    raise WriteError(path, "the disk is full")


@pytest.mark.parametrize("here", [True, False])
def test_results_come_by_key_and_errors_as_they_are(here):
    heard = []

    def hear(key, told):
        heard.append((key, told))

    each = {"half": (1, 2), "third": (1, 3)}
    found = dict(run_tasks(divided, each, hear=hear, at_once=2, here=here))
    assert found == {"half": 0.5, "third": 1 / 3}
    said = {key: told["says"] for key, told in heard if "says" in told}
    assert said == {"half": "divides by 2", "third": "divides by 3"}
    inside = {told["process"] == os.getpid() for _, told in heard if "process" in told}
    assert inside == {here}
    with pytest.raises(ZeroDivisionError):
        dict(run_tasks(divided, {"none": (1, 0)}, here=here))
    (key, error), *_ = run_tasks(divided, {"x": (1, 0)}, again=(ZeroDivisionError,), here=here)
    assert (key, type(error)) == ("x", ZeroDivisionError)


def test_errors_of_other_processes_keep_what_they_carry(tmp_path):
    with pytest.raises(WriteError, match="the disk is full") as caught:
        dict(run_tasks(unwritten, {"a": (tmp_path / "x",)}))
    assert caught.value.path == tmp_path / "x"


def test_a_killed_process_costs_its_task_a_second_try(tmp_path):
    heard = []
    how = {"hear": lambda key, told: heard.append(told)}
    assert dict(run_tasks(killed, {"a": (tmp_path / "x", 1)}, **how)) == {"a": "made"}
    (again,) = [told["again"] for told in heard if "again" in told]
    assert again == "its process was ended by SIGKILL, often for lack of memory"
    (_, error), *_ = run_tasks(killed, {"a": (tmp_path / "x", 3)})
    assert isinstance(error, TaskDied)


def test_a_task_begins_when_those_before_it_have_ended():
    each = {"c": (1, 1), "b": (1, 1), "a": (1, 1)}
    after = {"c": ["b"], "b": ["a"]}
    assert [key for key, _ in run_tasks(divided, each, after=after)] == ["a", "b", "c"]


def test_what_cannot_be_sent_is_named():
    lock = threading.Lock()
    with pytest.raises(TaskError, match=r"^The model 'm' cannot be sent .*lock"):
        list(run_tasks(lambda: lock, {"a": ()}, what="The model 'm'"))


def test_another_version_is_rejected(monkeypatch):
    other = {**versions(), "onebasin": "0.0.1"}
    monkeypatch.setattr(tasks, "versions", lambda: other)
    with pytest.raises(TaskError, match=r"has onebasin \S+ instead of 0\.0\.1: install the same"):
        list(run_tasks(divided, {"a": (1, 2)}))


def test_a_cluster_that_is_not_there_is_named():
    pytest.importorskip("distributed")
    for address, says in (
        ("localhost", "must be a distributed.Client"),
        (7, "must be a distributed"),
    ):
        with pytest.raises(TaskError, match=says):
            list(run_tasks(divided, {"a": (1, 2)}, address))
