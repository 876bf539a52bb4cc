"""What is said of how a result was made is true of it."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from onebasin.inference import provenance
from onebasin.inference.posterior import build
from onebasin.inference.provenance import machine, versions
from onebasin.models.target import Target
from onebasin.stan.errors import CmdStanNotFound
from onebasin.stan.home.directory import Home


def test_versions_name_cmdstan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        provenance, "existing_cmdstan", lambda: Home(Path("/a"), (2, 37, 1), "conda")
    )
    assert versions()["stan"] == "2.37.1"
    assert {"python", "onebasin", "jax", "numpyro", "cmdstanpy", "arviz", "numpy"} < set(versions())


def test_versions_stand_without_cmdstan(monkeypatch: pytest.MonkeyPatch) -> None:
    def misled() -> None:
        raise CmdStanNotFound("`/nowhere` (CMDSTAN) is not a directory.")

    for find in (lambda: None, misled):
        monkeypatch.setattr(provenance, "existing_cmdstan", find)
        assert "stan" not in versions()


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_machine_names_the_device_that_computed(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    assert machine().endswith(f"device {backend}")
    assert machine("stan").endswith("device cpu")
    draws = {"mu": np.zeros((1, 4))}
    for engine, device in (("numpyro", backend), ("stan", "cpu")):
        tree = build(Target("toy"), draws, {"lp": draws["mu"]}, {"engine": engine})
        assert tree.attrs["machine"].endswith(f"device {device}")
        assert json.loads(tree.attrs["versions"])["numpyro"] == versions()["numpyro"]
