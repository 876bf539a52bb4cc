"""What is said of how a result was made is true of it."""

from pathlib import Path

from onebasin.base.errors import CmdStanNotFound
from onebasin.inference.runs import origin
from onebasin.inference.runs.origin import versions
from onebasin.stan.home.assemble import Home


def test_versions_name_cmdstan_and_stand_without(monkeypatch):
    monkeypatch.setattr(origin, "existing_cmdstan", lambda: Home(Path("/a"), (2, 37, 1), "conda"))
    assert versions()["stan"] == "2.37.1"
    assert {"python", "onebasin", "jax", "numpyro", "cmdstanpy", "arviz", "numpy"} < set(versions())

    def misled() -> None:
        raise CmdStanNotFound("`/nowhere` (CMDSTAN) is not a directory.")

    for find in (lambda: None, misled):
        monkeypatch.setattr(origin, "existing_cmdstan", find)
        assert "stan" not in versions()
