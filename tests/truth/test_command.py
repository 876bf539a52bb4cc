"""`onebasin truth`, as a user types it."""

import json
from pathlib import Path

import numpy as np
import pytest

from onebasin.inference.runs.posterior import open_posterior
from onebasin.truth import open_reference, references

from ..each import each

SHORT = ("--chains", "4", "--warmup", "300", "--draws", "400", "--thin", "2", "--max-thin", "2")
MODEL = """
import numpyro, numpyro.distributions as dist, jax.numpy as jnp

def pair(y):
    mu = numpyro.sample("mu", dist.Normal(jnp.zeros(2), 3.0 * jnp.ones(2)).to_event(1))
    part = jnp.exp(-0.5 * (jnp.asarray(y)[:, None] - mu[None, :]) ** 2)
    numpyro.factor("y", jnp.log(part.sum(axis=1)).sum())
"""


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """A model that is not ours, and its data."""
    (tmp_path / "theirs.py").write_text(MODEL)
    y = [-3.1, -2.7, -3.4, -2.9, -3.0, 2.8, 3.3, 3.0, 2.6, 3.1]
    (tmp_path / "theirs.json").write_text(json.dumps({"y": y}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.finds_symmetry
def test_strangers_model_gets_a_reference_with_its_symmetry_found(onebasin, stranger):
    words = ("truth", "make", "theirs.py:pair", "theirs.json", *SHORT)
    answer = onebasin(*words, "--out", "one", "--keep", "kept", "--posteriordb", "base")
    assert answer.code == 1  # of 1,600 draws, which is said
    assert "does not pass: 10000 draws" in answer.out
    reference = open_reference("one")
    assert reference.info["symmetry_in_words"] == ["mu"], answer.err
    assert "mu[0]" in reference.summary["parameters"].index
    assert "mean(mu)" in reference.summary["invariants"].index
    means = reference.summary["parameters"]["mean"]
    assert means["mu[0]"] < -2 < 2 < means["mu[1]"]
    assert not (stranger / "kept" / "pair" / "pair.full.nc").exists()
    assert open_reference("kept/pair").draws["posterior"]["mu"].shape == (4, 400, 2)
    said = json.loads(
        (stranger / "base/reference_posteriors/draws/info/pair.info.json").read_text()
    )
    assert said["diagnostics"]["diagnostic_information"]["names"] == ["mu[1]", "mu[2]"]
    exported = open_posterior(stranger / "base/reference_posteriors/draws/draws/pair.json.zip")
    np.testing.assert_array_equal(exported.posterior["mu"], reference.full["posterior"]["mu"])
    again = onebasin(*words, "--out", "two", "--seed", "2", "--labelling", "one", "--json")
    assert json.loads(again.out)["criteria"]
    agreed = onebasin("truth", "check", "one", "--against", "two", "--json")
    found = json.loads(agreed.out)
    assert agreed.code == 0 and found["title"].startswith("They agree in all"), agreed.out
    assert found["comparisons"] == 7 * 4  # of four quantities
    assert 0.3 < found["rms_z"] < 2.0


def test_list_says_which_pass(onebasin):
    rows = json.loads(onebasin("truth", "list", "--json").out)
    by_name = {row["name"]: row for row in rows}
    assert {"eight-schools", "mixture-2", "digits-64-8-10"} <= by_name.keys()
    for name in references():
        failed = [k for k, v in open_reference(name).info["checks_made"].items() if not v]
        assert (by_name[name]["status"] == "passes") == (not failed)
    assert onebasin("truth", "list").code == 0


@each("name", references())
def test_references_of_the_package_are_intact(onebasin, name):
    answer = onebasin("truth", "check", name, "--json")
    verdict = json.loads(answer.out)
    failed = {each["name"] for each in verdict["criteria"] if each["holds"] is False}
    reference = open_reference(name)
    if reference.status == "passes":
        assert failed == set()
    else:
        assert failed == {"recorded checks"}
    recorded = json.loads(reference.file("check.json").read_text())
    assert recorded["from_draws"]
    assert recorded["passes"] == (reference.status == "passes")
    assert onebasin("truth", "show", name).code == 0


def test_references_are_small():
    import onebasin.truth.reference as module

    whole = sum(f.stat().st_size for f in Path(module.KEPT).rglob("*") if f.is_file())
    assert whole < 6e6
