"""Symmetries that commands find by themselves: `onebasin symmetry`, and `onebasin sample` without a word of them."""

import json
from pathlib import Path

import numpy as np
import pytest

from onebasin.posteriors.open import open_posterior
from onebasin.posteriors.view import as_view

pytestmark = pytest.mark.full

PROGRAMS = Path(__file__).parents[2] / "notebooks" / "programs"
MIXTURE = (PROGRAMS / "mixture.stan", PROGRAMS / "mixture.json")
MODEL = """
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import logsumexp


def mixture(y):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0).expand([2]).to_event(1))
    p = numpyro.sample("p", dist.Beta(2.0, 2.0))
    parts = dist.Normal(mu[None], 1.0).log_prob(jnp.asarray(y)[:, None])
    numpyro.factor("y", logsumexp(jnp.log(jnp.stack([p, 1 - p]))[None] + parts, axis=1).sum())


def line(y):
    a = numpyro.sample("a", dist.Normal(0.0, 5.0))
    numpyro.sample("y", dist.Normal(a, 1.0), obs=jnp.asarray(y) + 1)
"""
SHORT = ("--warmup", "100", "--draws", "100", "--chains", "2", "--no-progress")


@pytest.fixture
def model(here):
    (here / "m.py").write_text(MODEL)
    y = [*np.linspace(-3, -1, 12), *np.linspace(2, 4, 8)]
    (here / "y.json").write_text(json.dumps({"y": y}))
    return "m.py:mixture", "y.json"


@pytest.mark.stan
def test_a_stan_programs_symmetry_is_printed_with_its_evidence(onebasin):
    kept = onebasin("symmetry", *MIXTURE, "--json", "--seconds", "60").json
    assert kept["exchangeable"] == ["mu,sigma,1-theta"]
    assert kept["blocks"][0]["status"] == "live"


@pytest.mark.full
@pytest.mark.finds_symmetry
def test_sample_finds_and_keeps_it_and_diagnose_uses_it(onebasin, model):
    answer = onebasin("sample", *model, "--out", "run.nc", *SHORT)
    assert answer.code == 0
    assert "Found: mu,1-p." in answer.err
    tree = open_posterior("run.nc")
    assert json.loads(tree.attrs["symmetry_found"])["exchangeable"] == ["mu,1-p"]
    view = as_view(tree)
    assert [block.variables for block in view.declared_symmetry] == [("mu", "p")]
    assert view.symmetry_evidence.draws > 0
    judged = onebasin("diagnose", "run.nc", "--json").json
    assert judged["aligned"] is not None


@pytest.mark.finds_symmetry
def test_the_search_can_be_left_out(sample, sampler):
    assert sample("--no-symmetry").code == 0
    assert sampler.last["symmetry"] is False
    assert sample("--force").code == 0
    assert sampler.last["symmetry"] is True
