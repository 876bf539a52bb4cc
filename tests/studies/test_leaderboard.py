"""`onebasin truth leaderboard`, with samplers that answer at once: tables, methods of one's own, errors, records."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import scipy.stats
import xarray as xr

from onebasin.analysis.compare.reference.judging import LEVEL
from onebasin.analysis.compare.reference.known import known_of
from onebasin.inference import Nuts
from onebasin.models import Target
from onebasin.studies.lab import Cell
from onebasin.studies.lab.frame import Frame
from onebasin.studies.leaderboard import design, measures
from onebasin.studies.leaderboard.design import METHODS, Added, chosen, parse
from onebasin.truth.problems import Problem

from ..each import each

WORDS = ("truth", "leaderboard", "--out", "run", "--no-progress")
MINE = """
import numpy as np
import xarray as xr

def sample(target, seed):
    values = np.random.default_rng(seed).normal({shift}, 1.0, size=(4, 500))
    return xr.Dataset({{"mu": (("chain", "draw"), values)}})

def fail(target, seed):
    raise RuntimeError(f"no way to {{target.name}}")

def nothing(target, seed):
    return 3

def other(target, seed):
    return sample(target, seed).rename(mu="tau")
"""


def model():
    """One standard normal, as the draws of the stand-in."""
    numpyro.sample("mu", dist.Normal(0.0, 1.0))


TOY = Target("toy", numpyro_model=model)


def toy_references(patch: pytest.MonkeyPatch, records: Path) -> None:
    """Put two references of one toy problem in the place of the kept ones; nothing is recorded in this folder."""
    rng = np.random.default_rng(4)
    values = rng.normal(size=(10, 1000))
    draws = xr.Dataset({"mu": (("chain", "draw"), values)})
    kept = {
        name: SimpleNamespace(info={"problem": "toy"}, known=known_of(draws, name=name))
        for name in ("one", "two")
    }
    problem = Problem("toy", "A standard normal", lambda: TOY, settings=Nuts())
    patch.setattr(design, "PROBLEMS", {"toy": problem})
    patch.setattr(design, "references", lambda: tuple(kept))
    for module in (design, measures):
        patch.setattr(module, "open_reference", kept.__getitem__)
    patch.setattr(measures, "RESULTS", records)
    measures._known.cache_clear()


@pytest.fixture
def board(onebasin, here, sampler, monkeypatch):
    """Run these in an empty page."""
    toy_references(monkeypatch, here)
    monkeypatch.setattr(
        "onebasin.studies.lab.driver.write", lambda report, path, force: path.touch()
    )
    Path("mine.py").write_text(MINE.format(shift=0.0))
    return lambda *more: onebasin(*WORDS, *more)


def rows(answer):
    return {(row["problem"], row["method"]): row for row in answer.json["frames"]["cells"]}


def test_tables_name_methods_and_verdicts(board, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    answer = board("--methods", "nuts,hmc", "--only", "two")
    assert answer.code == 0, answer.err
    for word in ("NUTS, NumPyro", "HMC", "agrees", "two", "sd ratio", "gradients"):
        assert word in answer.out
    assert "one" not in answer.out.split("\n")[3]


def test_ones_own_method_stands_beside_what_is_recorded(board, here):
    from onebasin.studies.lab.record import record_text

    frames = {"cells": Frame.of([{"problem": "one", "method": "nuts", "label": "NUTS", "recorded": False,
                                  "verdict": "agrees", "worst": 0.01, "where": "mu", "said": "."}])}  # fmt: skip
    findings = SimpleNamespace(frames=frames, to_dict=dict)
    Path("leaderboard.json").write_text(record_text({"study": "leaderboard"}, findings))
    found = rows(board("--add", "mine=mine.py:sample", "--only", "one", "--json"))
    assert found["one", "nuts"]["recorded"] is True
    row = found["one", "mine"]
    assert (row["recorded"], row["verdict"], row["gradients"]) == (False, "agrees", None)
    assert row["seconds"] > 0


def test_a_changed_module_is_run_anew_and_an_unchanged_one_is_not(board):
    words = ("--add", "mine=mine.py:sample", "--only", "one")
    assert "there already" not in board(*words).err
    assert "there already" in board(*words).err
    Path("mine.py").write_text(MINE.format(shift=0.3))
    again = board(*words, "--force", "--json")
    assert "there already" not in again.err
    row = rows(again)["one", "mine"]
    assert row["verdict"] == "differs"
    assert row["worst"] == pytest.approx(0.3, abs=0.1)
    assert "sds too high" in row["said"]


def test_files_of_ones_own_are_methods_too(board):
    for name in ("one", "two"):
        values = np.random.default_rng(7).normal(size=(4, 500))
        data = xr.Dataset({"mu": (("chain", "draw"), values)})
        xr.DataTree.from_dict({"posterior": data}).to_netcdf(f"run-{name}.nc", engine="h5netcdf")
    found = rows(board("--add", "mine=run-{reference}.nc", "--methods", "nuts", "--json"))
    assert found["two", "mine"]["worst"] < 0.1
    assert len(found) == 4


@each(
    ("function", "message"),
    [
        ("fail", "mine: `mine.py:fail` fails: mine.py:10: RuntimeError: no way to toy"),
        ("nothing", "mine: `what nothing returned` is a int"),
        ("absent", "mine: `mine.py:absent` names absent, which is no function of mine.py"),
        ("other", "lacks mu, which `one` holds, and has tau"),
    ],
)
def test_a_method_that_fails_takes_no_other_with_it(board, here, function, message):
    words = ("--methods", "nuts", "--only", "one", "--json", "--force")
    answer = board("--add", f"mine=mine.py:{function}", *words)
    assert answer.code == 0, answer.err
    assert rows(answer)["one", "nuts"]["verdict"] == "agrees"
    (failure,) = answer.json["frames"]["failures"]
    assert message in failure["reason"].replace(f"{here}/", "")


@each(
    ("words", "message"),
    [
        (["--methods", "gibbs"], "`--methods` names 'gibbs'; choose among nuts, nuts-stan"),
        (["--only", "three"], "`--only` is 'three'; choose one of one, two"),
        (["--methods", "ensemble"], "`--methods` is ensemble, none of which is for one, two"),
        (["--add", "mine"], "`--add` is 'mine'; give NAME=MODULE.py:FUNCTION"),
        (["--add", "nuts=mine.py:sample"], "`--add` names 'nuts', which is a method already"),
        (
            ["--add", "a=mine.py:sample", "--add", "a=mine.py:sample"],
            "'a', which is a method already",
        ),
        (["--add", "a=mine.py"], "which names no function of the module"),
        (["--add", "a=absent.py:sample"], "the file absent.py, which does not exist"),
        (["--add", "a=run.nc"], "one file, run.nc, and there are several references"),
        (["--workers", "0"], "`--workers` is 0"),
    ],
)
def test_what_cannot_be_run_is_one_line(board, words, message):
    answer = board(*words)
    assert (answer.code, answer.out) == (1, "")
    assert message in answer.err
    assert answer.err.count("\n") == 1


def test_methods_are_for_models_that_they_can_take_and_bring_what_they_are_made_from():
    assert METHODS["nuts"].fits(TOY)
    assert not METHODS["ensemble"].fits(TOY)
    assert not METHODS["symmetrised"].fits(TOY)
    network = Cell("one", "distilled", "analysis", None, 0)
    assert network.key == "one.distilled.analysis"
    assert chosen(("distilled",)) == ("nuts", "distilled")
    assert "nuts" in chosen(None)
    assert parse("mine=a/b.py:run", ()) == Added("mine", "a/b.py", "run")
    assert parse("mine=chains/{reference}.nc", ()) == Added("mine", "chains/{reference}.nc")


def judged_as(z, *, runs):
    """A claim's verdict and trials: one run of NUTS whose largest |z| is `z`, `runs` - 1 that agree, one not judged."""
    from onebasin.studies.leaderboard.measures import CLAIMS

    row = {"method": "nuts", "label": "NUTS", "recorded": False, "worst": 0.1, "z_bound": 3.0}
    table = [{**row, "problem": "a", "verdict": "differs", "largest_z": z}]
    table += [
        {**row, "problem": f"b{i}", "verdict": "agrees", "largest_z": 2.0} for i in range(runs - 1)
    ]
    table += [{**row, "problem": "c", "verdict": "cannot be judged", "largest_z": 50.0}]
    statement = CLAIMS[0].on({"cells": Frame.of(table)})
    return statement.verdict, [trial.holds for trial in statement.trials]


@each(
    ("z", "runs", "verdict", "first"),
    [
        (3.5, 20, "reproduces in part", "open"),  # of so many, one differs by chance
        (4.0, 20, "unclear", False),
        (3.5, 1, "contradicted in part", False),
    ],
)
def test_a_run_that_differs_by_more_than_chance_in_all_contradicts(z, runs, verdict, first):
    assert judged_as(z, runs=runs) == (verdict, [first] + [True] * (runs - 1) + [None])


def test_the_bound_of_several_runs_is_that_of_all_their_tests():
    from onebasin.studies.leaderboard.measures import joint_bound

    one = scipy.stats.norm.isf(LEVEL / 2 / 40)
    assert joint_bound(one, 7) == pytest.approx(scipy.stats.norm.isf(LEVEL / 2 / 280), abs=1e-12)
    assert joint_bound(one, 1) == pytest.approx(one, abs=1e-12)
