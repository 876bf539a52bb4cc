"""Commands on posteriors of every format: which words are one posterior, and what is written."""

from pathlib import Path

import numpy as np
import pytest

from onebasin.posteriors.open import open_posterior

pytestmark = pytest.mark.full

COLUMNS = (
    "lp__,accept_stat__,stepsize__,treedepth__,n_leapfrog__,divergent__,energy__,mu.1,mu.2,<b>"
)
HEADER = "# stan_version_major = 2\n# model = {model}_model\n# method = sample\n# id = {chain}\n"


def write(
    stem: str, seed: int, *, model: str = "m", chains: int = 2, columns: str = COLUMNS
) -> None:
    rng = np.random.default_rng(seed)
    for chain in range(1, chains + 1):
        rows = rng.normal(size=(50, 10))
        rows[:, 3:6] = [2, 3, 0]
        text = "".join(",".join(map(repr, row)) + "\n" for row in rows.tolist())
        said = HEADER.format(model=model, chain=chain)
        Path(f"{stem}_{chain}.csv").write_text(f"{said}{columns}\n{text}")


@pytest.fixture
def runs(here):
    write("a", 1)
    write("b", 2)


def test_several_csv_files_are_the_chains_of_one_posterior(onebasin, runs):
    found = onebasin("diagnose", "a_1.csv", "a_2.csv", "--raw", "--json")
    assert found.code == 0, found.err
    whole = onebasin("diagnose", "a_*.csv", "--raw", "--json").json  # in quotes
    assert {**found.json, "file": ""} == {**whole, "file": ""}
    assert onebasin("diagnose", "a_1.csv", "--raw", "--json").json != whole


def test_every_command_takes_them_and_tells_the_posteriors_apart(onebasin, runs):
    files = ["a_1.csv", "a_2.csv", "b_1.csv", "b_2.csv"]
    found = onebasin("compare", *files, "--permutations", "19", "--json", "--truth", "b_1.csv")
    assert found.code == 0, found.err
    assert found.json["truth"] == "b"
    answer = onebasin("report", *files, "--out", "page.html")
    assert answer.code == 0, answer.err
    assert "<b>[" not in Path("page.html").read_text()
    assert onebasin("align", "a_*.csv", "--exchangeable", "mu", "--out", "one.zarr").code == 0
    assert open_posterior("one.zarr").attrs["alignment"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("convert a.nc --out a.nc --force", "a.nc"),
        ("convert a.nc --out b.xyz", "b.xyz"),
        ("convert a.nc --out a.zarr", "a.zarr"),
        ("convert a_1.csv a.nc --out c.nc", "a_1.csv"),
        ("compare a_1.csv a_2.csv", "one posterior"),
        ("sample m.stan --out run.zarr", "NetCDF"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_lost(onebasin, runs, words, says):
    for out in ("a.nc", "a.zarr"):
        assert Path(out).exists() or onebasin("convert", "a_*.csv", "--out", out).code == 0
    Path("m.stan").write_text("parameters { real x; } model { x ~ normal(0, 1); }")
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    answer = onebasin(*words.split())
    assert (answer.code, says in answer.err) == (1, True), answer.err
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before
