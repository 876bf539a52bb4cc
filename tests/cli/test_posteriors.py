"""`onebasin diagnose` and `onebasin report`: posterior files in, tables and a page out."""

import re
from pathlib import Path

import numpy as np
import pytest

from onebasin.analysis.page import SCRIPT
from onebasin.inference import Advi, Nuts
from onebasin.inference.runs.posterior import build
from onebasin.models import Target
from onebasin.posteriors.open import open_posterior
from onebasin.posteriors.writing import save

from ..command_fixtures import fake_posterior


@pytest.fixture
def runs(here: Path) -> Path:
    """The same posterior of few parameters by a sampler, with all that it is judged by, and by a fit."""
    rng = np.random.default_rng(3)
    for folder, method, settings in (
        ("a", "nuts", Nuts(chains=4, draws=200)),
        ("b", "advi-meanfield", Advi(draws=400)),
    ):
        tree = fake_posterior(Target("normal"), method, "stan", settings, 0)
        posterior = tree["posterior"].to_dataset()
        shape = tuple(posterior.sizes[dim] for dim in ("chain", "draw"))
        more = {"b1": (("chain", "draw", "unit"), rng.normal(size=(*shape, 2)))}
        more["sigma"] = (("chain", "draw"), np.exp(0.1 * rng.normal(size=shape)))
        tree["posterior"] = posterior.assign(more)
        (here / folder).mkdir()
        save(tree, here / folder / "run.nc")
    return here


def test_diagnose_shows_headline_and_parameters(onebasin, runs):
    answer = onebasin("diagnose", "a/run.nc")
    assert answer.code == 0
    assert answer.err == ""
    for word in ("R-hat", "bulk ESS", "E-BFMI", "b1[0]"):
        assert word in answer.out
    assert "tree depth" in onebasin("diagnose", "a/run.nc", "--details").out
    found = onebasin("diagnose", "b/run.nc", "--json", "--var", "sigma,b1").json
    assert found["file"] == "b/run.nc"
    assert found["summary"]["method"] == "advi-meanfield"
    assert found["summary"]["rhat_value"] is None
    assert [row["parameter"] for row in found["parameters"]] == ["sigma", "b1[0]", "b1[1]"]


def test_report_is_one_page_that_asks_for_nothing_outside(onebasin, runs):
    words = ("a/run.nc", "b/run.nc", "--out", "page.html", "--title", "My <page>", "--var", "b1")
    Path("page.html").write_text("precious")
    answer = onebasin("report", *words)
    assert answer.code == 1
    assert "--force" in answer.err
    assert Path("page.html").read_text() == "precious"
    answer = onebasin("report", *words, "--force")
    assert (answer.code, answer.out, answer.err) == (0, "✓ wrote page.html\n", "")
    page = Path("page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<title>My &lt;page&gt;</title>" in page
    assert "a/run" in page
    assert "b/run" in page
    assert "b1[0]" in page and "sigma" not in page
    assert not re.search(r"""(src|href)=["'](?!#|data:)""", page)
    assert page.count("<script") == page.count(f"<script>{SCRIPT}</script>") == 1


# Modulo symmetry


@pytest.fixture
def mixture(here: Path) -> Path:
    """Three components, each chain under labels of its own; nothing is declared."""
    rng = np.random.default_rng(8)
    mu = np.array([-3.0, 0.0, 3.0]) + 0.3 * rng.normal(size=(4, 300, 3))
    sigma = np.array([0.5, 1.0, 2.0]) * np.exp(0.1 * rng.normal(size=(4, 300, 3)))
    for chain, order in enumerate([[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]]):
        mu[chain], sigma[chain] = mu[chain][:, order], sigma[chain][:, order]
    values = {"mu": mu, "sigma": sigma, "noise": rng.normal(size=(4, 300))}
    stats = {"lp": rng.normal(size=(4, 300))}
    save(build(Target("mixture"), values, stats, {"engine": "stan", "method": "nuts"}), "run.nc")
    return here / "run.nc"


def test_diagnose_with_declared_names_shows_raw_and_aligned(onebasin, mixture):
    words = ("diagnose", "run.nc", "--exchangeable", "mu,sigma")
    found = onebasin(*words, "--json").json
    assert found["summary"]["rhat_value"] > 1.5
    aligned = found["aligned"]["diagnosis"]["summary"]
    assert aligned["rhat_value"] < 1.01
    assert aligned["ess_bulk_value"] > 400
    assert found["aligned"]["basins"] == [[0, 1, 2, 3]]
    answer = onebasin(*words)
    assert answer.code == 0
    assert answer.out.startswith("✓ ")
    assert "aligned" not in onebasin(*words, "--raw", "--json").json


def test_align_writes_a_posterior_in_one_labelling(onebasin, mixture):
    """With the words, and without them: the draws show the same."""
    words = ("align", "run.nc", "--out")
    answer = onebasin(*words, "aligned.nc", "--exchangeable", "mu,sigma")
    assert answer.code == 0
    tree = open_posterior("aligned.nc")
    mu = tree["posterior"]["mu"]
    assert np.all(np.ptp(mu.mean("draw").values, axis=0) < 0.2)
    assert "alignment" in tree.children
    found = onebasin("diagnose", "aligned.nc", "--json").json
    assert found["summary"]["rhat_value"] < 1.01
    assert "aligned" not in found  # there is nothing left to divide out
    reference = ("--exchangeable", "mu,sigma", "--reference", "aligned.nc")
    again = onebasin(*words, "b.nc", *reference)
    assert again.code == 0, again.err
    np.testing.assert_array_equal(open_posterior("b.nc")["posterior"]["mu"], mu)
    answer = onebasin(*words, "found.nc")
    assert answer.code == 0, answer.err
    assert "mu,sigma" in answer.out
    np.testing.assert_array_equal(open_posterior("found.nc")["posterior"]["mu"], mu)


def test_strict_exits_with_one_where_a_posterior_is_not_usable(onebasin, mixture):
    assert onebasin("diagnose", "run.nc").code == 0
    assert onebasin("diagnose", "run.nc", "--strict").code == 1
    assert onebasin("diagnose", "run.nc", "--strict", "--var", "noise").code == 0


def test_json_begins_with_the_answer(onebasin, mixture):
    found = onebasin("diagnose", "run.nc", "--json").json
    assert list(found)[:3] == ["verdict", "causes", "exchangeable"]
    assert (found["verdict"], found["causes"]) == ("aligned", ["labels"])
    assert found["exchangeable"] == ["mu,sigma"]
    strict = onebasin("diagnose", "run.nc", "--json", "--var", "noise", "--rhat-max", "1.0000001")
    assert strict.json["verdict"] == "unusable"
