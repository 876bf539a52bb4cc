"""`onebasin sample`: which quantities of a program are log likelihoods and predictions, and which data are observed."""

import json
import shutil
from pathlib import Path

import pytest

from onebasin.stan.program import Roles

COUNTS = Path(__file__).parents[1] / "stan" / "programs" / "known" / "counts.stan"
MODEL = """
import numpyro
import numpyro.distributions as dist


def model(y):
    numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal()), 1.0), obs=y)
"""


@pytest.fixture
def sample_model(onebasin, here):
    """Sample a NumPyro model."""
    (here / "m.py").write_text(MODEL)
    (here / "y.json").write_text('{"y": [1.0, 2.0]}')
    return lambda *words: onebasin("sample", "m.py:model", "y.json", "--out", "run.nc", *words)


@pytest.mark.parametrize(
    ("words", "roles"),
    [
        (["--log-likelihood", "ll"], Roles(log_likelihood={"": "ll"})),
        (["--log-likelihood", "y=ll"], Roles(log_likelihood={"y": "ll"})),
        (
            ["--predictive", "y=a", "--predictive", "n=b", "--observed", "n"],
            Roles(posterior_predictive={"y": "a", "n": "b"}, observed=("n",)),
        ),
    ],
)
def test_what_is_named_reaches_the_program(asked, words, roles):
    assert asked(*words)["target"].stan_program.roles == roles


def test_the_limit_reaches_the_run_of_a_model(sample_model, sampler):
    assert sample_model("--predictive-mb", "1.5").code == 0
    assert sampler.last["predictive_mb"] == 1.5


def test_runs_that_name_other_quantities_are_others(sample, sampler):
    words = ("--observed", "y")
    assert sample(*words).code == 0
    assert sample(*words).err == "run.nc holds what this command makes\n"
    for others in ((), ("--observed", "n"), (*words, "--log-likelihood", "ll")):
        answer = sample(*others)
        assert answer.code == 1
        assert "run.nc, which exists" in answer.err
    assert len(sampler.calls) == 1


@pytest.mark.stan
def test_a_name_that_is_no_quantity_is_refused_in_the_commands_words(onebasin, here):
    shutil.copy(COUNTS, here)
    (here / "data.json").write_text(json.dumps({"N": 10, "successes": 4}))
    words = ("sample", "counts.stan", "data.json", "--out", "run.nc", "--no-progress")
    refused = onebasin(*words, "--predictive", "successes=more")
    assert refused.code == 1
    assert "`--predictive` names more" in refused.err
