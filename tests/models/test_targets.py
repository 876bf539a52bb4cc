"""Targets from any density, and from NumPyro models in files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import constraints
from scipy import stats

import onebasin as ob
from onebasin.models.numpyro_target import ModelFile, loaded
from onebasin.posteriors.open import open_posterior


def gamma(p):
    return 2 * jnp.log(p["scale"]) - p["scale"] - 0.5 * ((p["x"] - 1) ** 2).sum()


PARAMETERS = {"scale": "positive", "x": ("real", 2)}


def test_the_density_is_over_values_on_the_support():
    scale, x = np.array([0.3, 2.0]), np.array([[0.0, 1.0], [2.0, -1.0]])
    target = ob.target(gamma, PARAMETERS)
    values = [
        float(ob.log_density(target, {"scale": s, "x": at})) for s, at in zip(scale, x, strict=True)
    ]
    known = stats.gamma(3).logpdf(scale) + stats.norm(1).logpdf(x).sum(1)
    assert np.diff(values) == pytest.approx(np.diff(known), rel=1e-9)


def test_it_is_sampled_and_judged_like_any_model():
    target = ob.target(gamma, PARAMETERS, name="known", dims={"x": ("axis",)})
    posterior = ob.nuts(target, chains=2, warmup=200, draws=500, seed=1)
    assert posterior["posterior"]["x"].dims == ("chain", "draw", "axis")
    table = ob.diagnose(posterior).parameters
    assert abs(table.loc["scale", "mean"] - 3) < 5 * table.loc["scale", "mcse_mean"]
    assert abs(table.loc["x[1]", "mean"] - 1) < 5 * table.loc["x[1]", "mcse_mean"]


@pytest.mark.parametrize(
    ("model", "parameters", "words"),
    [
        (gamma, None, "`parameters` is missing"),
        (gamma, {"scale": "positiv"}, "Use one of real"),
        (gamma, {"scale": 1.0}, "Use the name of a support, such as"),
        (gamma, {"scale": ("simplex", ())}, r"needs more axes \(at least 1\)"),
        (gamma, {"scale": ("real", 0)}, "at least 1"),
        (lambda p: p["x"], {"x": ("real", 2)}, "a single number"),
        (lambda p: float(p["x"]), {"x": "real"}, "jax.numpy"),
        (3, None, "PyMC model"),
    ],
)
def test_refusals(model, parameters, words, unchecked):
    with pytest.raises(ob.OnebasinError, match=words):
        ob.target(model, parameters)


def test_targets_pass_and_numpyros_constraints_are_taken():
    target = ob.target(lambda p: -p["x"].sum(), {"x": (constraints.greater_than(2.0), (2,))})
    assert ob.target(target) is target
    assert target.name == "<lambda>"


MODEL = """
import numpyro
import numpyro.distributions as dist


def model(y, scale=1.0):
    mu = numpyro.sample("mu", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
    with numpyro.plate("obs", len(y)):
        numpyro.sample("y", dist.Normal(mu.sum(), scale), obs=y)


def untaught(y):
    raise KeyError(f"no teacher for {len(y)} values")


answer = 42
"""
Y = [1.0, 2.0, 3.0, 6.0]
SHORT = ("--warmup", "50", "--draws", "50", "--chains", "2", "--no-progress")


@pytest.fixture
def model(here) -> Path:
    """A file of models, and data."""
    (here / "my_model.py").write_text(MODEL)
    (here / "y.json").write_text(json.dumps({"y": Y}))
    return here / "my_model.py"


@pytest.fixture
def run(onebasin, model):
    """Sample the model, shortly."""

    def sample(*words: str):
        word = () if any(".py" in w for w in words) else ("my_model.py:model", "y.json")
        return onebasin("sample", *word, "--out", "run.nc", *SHORT, *words)

    return sample


def test_a_model_is_sampled_by_name_of_its_arguments(run):
    answer = run("--seed", "3")
    assert answer.code == 0, answer.err
    tree = open_posterior("run.nc")
    assert tree.attrs["engine"] == "numpyro"
    assert tree.attrs["method"] == "nuts"
    assert tree.posterior["mu"].shape == (2, 50, 2)
    # The sum of both has the mean 8 sum(y) / (1 + 8 n), by conjugacy.
    total = float(tree.posterior["mu"].sum("mu_dim_0").mean())
    assert abs(total - 8 * sum(Y) / (1 + 8 * len(Y))) < 0.4


def test_symmetry_is_held_against_the_density(run):
    assert run("--exchangeable", "mu").code == 0
    assert run("--exchangeable", "+-mu", "--force").code == 1
    answer = run("--exchangeable", "nu", "--force")
    assert answer.code == 1
    assert "nu" in answer.err and "mu" in answer.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["absent.py:model"], ["`absent.py:model`", "does not exist"]),
        (["my_model.py"], ["`my_model.py`", "my_model.py:model", "untaught"]),
        (
            ["my_model.py:modle"],
            ["`my_model.py:modle`", "has no function of this name", "model, untaught"],
        ),
        (["my_model.py:answer"], ["my_model.py has no function of this name"]),
        (["my_model.py:model"], ["y"]),
        (
            ["my_model.py:untaught", "y.json"],
            ["`my_model.py:untaught` fails: my_model.py:13: KeyError: 'no teacher for 4 values'."],
        ),
        (["my_model.py:model", "y.json", "--method", "pathfinder"], ["`--method` is pathfinder"]),
        (
            ["my_model.py:model", "y.json", "--method", "laplace", "--chains", "2"],
            ["`--chains` does not apply to --method laplace, which accepts --starts"],
        ),
    ],
)
def test_what_cannot_be_sampled_is_one_sentence(onebasin, model, words, said):
    answer = onebasin("sample", *words, "--out", "run.nc")
    assert answer.code == 1
    assert answer.err.count("onebasin: ") == 1
    for word in said:
        assert word in answer.err
    assert "Traceback" not in answer.err
    assert not Path("run.nc").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import numpy\n\nx = jnp.zeros(3)\n", "bad.py:3: NameError: name 'jnp' is not defined."),
        ("def model(:\n    pass\n", "bad.py:1: SyntaxError: "),
        ("import no_such_package_here\n", "bad.py:1: ModuleNotFoundError: "),
        ("raise SystemExit(3)\n", "ends the process (exit code 3)"),
        ("import helper\n", "helper.py:2: ZeroDivisionError: division by zero."),
    ],
)
def test_a_file_that_fails_says_where(onebasin, here, text, said):
    (here / "bad.py").write_text(text)
    (here / "helper.py").write_text("\n1 / 0\n")
    answer = onebasin("sample", "bad.py:model", "--out", "run.nc")
    assert answer.code == 1
    assert said in answer.err
    assert answer.err.count("\n") == 1


def test_modules_beside_the_file_are_found_and_the_path_is_left_as_it_was(here):
    (here / "beside_the_model.py").write_text("value = 3\n")
    (here / "m.py").write_text(
        "import beside_the_model\n\ndef f():\n    return beside_the_model.value\n"
    )
    before = list(sys.path)
    with loaded(ModelFile(Path("m.py"), "f")) as function:
        assert function() == 3
    assert sys.path == before
    del sys.modules["beside_the_model"]
