"""`onebasin diagnose` and `onebasin report`: posterior files in, tables and a page out."""

import re
from pathlib import Path

import pytest

from inference.posterior import save
from inference.settings import AdviSettings, NutsSettings
from models import BayesianNetwork, Network
from models.data import load as load_data
from studies.commands.posteriors import named

from .conftest import fake_posterior


@pytest.fixture
def runs(here: Path) -> Path:
    data = load_data("relu-teacher")
    target = BayesianNetwork(Network(2, (2,))).condition(data.x, data.y, name="teacher")
    nuts, advi = NutsSettings(chains=4, draws=200), AdviSettings(draws=400)
    (here / "a").mkdir()
    (here / "b").mkdir()
    save(fake_posterior(target, "nuts", "stan", nuts, 0), here / "a" / "run.nc")
    save(fake_posterior(target, "advi-meanfield", "stan", advi, 0), here / "b" / "run.nc")
    return here


def test_diagnose_shows_headline_and_parameters(onebasin, runs):
    answer = onebasin("diagnose", "a/run.nc")
    assert answer.code == 0
    assert answer.err == ""
    for word in ("R-hat", "bulk ESS", "tree depth", "E-BFMI", "W1[0,0]", "every check is passed"):
        assert word in answer.out


def test_diagnose_writes_json(onebasin, runs):
    found = onebasin("diagnose", "b/run.nc", "--json").json
    assert found["file"] == "b/run.nc"
    assert found["summary"]["method"] == "advi-meanfield"
    assert found["summary"]["rhat_value"] is None
    assert {row["parameter"] for row in found["parameters"]} >= {"W1[0,0]", "b2[0]", "sigma"}


def test_var_limits_the_variables(onebasin, runs):
    found = onebasin("diagnose", "a/run.nc", "--json", "--var", "sigma", "--var", "b1").json
    assert [row["parameter"] for row in found["parameters"]] == ["sigma", "b1[0]", "b1[1]"]


def test_warnings_of_the_diagnosis_are_shown(onebasin, runs, monkeypatch):
    monkeypatch.setattr("analysis.diagnosis.Limits.__post_init__", lambda self: None)
    monkeypatch.setattr("analysis.diagnostics.Limits", lambda *_: _strict())
    assert "Bulk ESS is below" in onebasin("diagnose", "a/run.nc").out


def _strict():
    from analysis.diagnosis import Limits

    return Limits(1.01, 1e6, 0.3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["absent.nc"], "absent.nc does not exist"),
        (["text.nc"], "text.nc is not a NetCDF file that can be read"),
        (["a/run.nc", "--var", "W9"], "asks for `W9`, which the posterior does not have"),
        (["a"], "a does not exist or is no file"),
    ],
)
def test_file_that_cannot_be_diagnosed_is_one_line(onebasin, runs, words, message):
    Path("text.nc").write_text("not NetCDF")
    answer = onebasin("diagnose", *words)
    assert answer.code == 1
    assert message in answer.err
    assert answer.err.count("\n") == 1


def test_report_is_one_page_that_asks_for_nothing_outside(onebasin, runs):
    answer = onebasin(
        "report", "a/run.nc", "b/run.nc", "--out", "page.html", "--title", "My <page>"
    )
    assert (answer.code, answer.out, answer.err) == (0, "", "wrote page.html\n")
    page = Path("page.html").read_text()
    assert "<title>My &lt;page&gt;</title>" in page
    assert "a/run" in page
    assert "b/run" in page
    assert not re.search(r"""(src|href)=["'](?!#|data:)""", page)
    assert "<script" not in page


def test_report_is_replaced_only_by_force(onebasin, runs):
    Path("page.html").write_text("precious")
    answer = onebasin("report", "a/run.nc", "--out", "page.html")
    assert answer.code == 1
    assert "--force" in answer.err
    assert Path("page.html").read_text() == "precious"
    assert onebasin("report", "a/run.nc", "--out", "page.html", "--force").code == 0
    assert Path("page.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a/run.nc", "--out", "absent/page.html"], "lies in a folder that does not exist"),
        (["a/run.nc", "--out", "a/run.nc/page.html"], "lies in a folder that does not exist"),
        (["absent.nc", "--out", "page.html"], "absent.nc does not exist"),
        (["a/run.nc", "a/run.nc", "--out", "page.html"], "is given twice"),
    ],
)
def test_report_that_cannot_be_written_is_one_line(onebasin, runs, words, message):
    answer = onebasin("report", *words)
    assert answer.code == 1
    assert message in answer.err
    assert not Path("page.html").exists()


def test_files_are_named_by_what_tells_them_apart(tmp_path):
    files = [tmp_path / "x" / "one.nc", tmp_path / "y" / "one.nc"]
    assert list(named(files)) == ["x/one", "y/one"]
    assert list(named([tmp_path / "one.nc", tmp_path / "two.nc"])) == ["one", "two"]
    assert list(named(files[:1])) == ["one"]
