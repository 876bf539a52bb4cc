"""What is said of how a result was made is true of it."""

import subprocess
from pathlib import Path

import pytest

from onebasin.inference.runs import origin
from onebasin.inference.runs.origin import commit, versions
from onebasin.stan.home.directory import Home
from onebasin.stan.home.errors import CmdStanNotFound


def test_versions_name_cmdstan_and_stand_without(monkeypatch):
    monkeypatch.setattr(origin, "existing_cmdstan", lambda: Home(Path("/a"), (2, 37, 1), "conda"))
    assert versions()["stan"] == "2.37.1"
    assert {"python", "onebasin", "jax", "numpyro", "cmdstanpy", "arviz", "numpy"} < set(versions())

    def misled() -> None:
        raise CmdStanNotFound("`/nowhere` (CMDSTAN) is not a directory.")

    for find in (lambda: None, misled):
        monkeypatch.setattr(origin, "existing_cmdstan", find)
        assert "stan" not in versions()


@pytest.mark.parametrize(
    ("place", "tracked", "own"),
    [
        ("inference/runs/origin.py", True, True),
        ("inference/runs/origin.py", False, False),
        ("env/site-packages/onebasin/inference/provenance.py", False, False),
        ("env/site-packages/onebasin/inference/provenance.py", True, False),
    ],
)
def test_commit_is_that_of_the_own_sources_alone(place, tracked, own, tmp_path, monkeypatch):
    source = tmp_path / place
    source.parent.mkdir(parents=True)
    source.touch()
    (tmp_path / "analysis.py").touch()

    def git(*words: str) -> str:
        named = ("-c", "user.name=A", "-c", "user.email=a@b.c")
        command = ["git", "-C", str(tmp_path), *named, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("add", place if tracked else "analysis.py")
    git("commit", "-qm", "Begin")
    monkeypatch.setattr(origin, "__file__", str(source))
    assert commit() == (git("rev-parse", "--short=12", "HEAD") if own else None)
