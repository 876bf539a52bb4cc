"""What a posterior says of its program, its data and the kinds of its variables."""

import json

import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

from onebasin.inference.runs.origin import data_sha256, origin_of
from onebasin.stan import stan_program

Y = np.array([0.5, 1.5, 2.5])

PROGRAM = """#include part.stan
/*
#include nothing.stan
*/
data { int n; vector[n] y; }
parameters { real mu; real<lower=0> sigma; }
transformed parameters { real twice = mu * 2; }
model { y ~ normal(mu, sigma); }
generated quantities { vector[n] log_lik = rep_vector(0, n); real other = 1; }
"""


def model(noise: float = 1.0) -> None:
    mu = numpyro.sample("mu", dist.Normal())
    numpyro.deterministic("twice", 2 * mu)
    numpyro.deterministic("y_hat", mu)
    numpyro.factor("no_data", -(mu**2))
    numpyro.sample("y", dist.Normal(mu, noise), obs=Y)


@pytest.mark.stan
def test_a_stan_program_tells_its_text_and_kinds(tmp_path):
    (tmp_path / "part.stan").write_text("functions { real f(real x) { return x; } }\n")
    (tmp_path / "whole.stan").write_text(PROGRAM)
    origin = origin_of(stan_program(tmp_path / "whole.stan", {"n": 3, "y": Y}), "stan")
    attributes = origin.attributes(["mu", "sigma", "twice", "log_lik", "other"])
    assert attributes["kinds"] == {
        "mu": "parameter",
        "sigma": "parameter",
        "twice": "transformed",
        "log_lik": "generated",
        "other": "generated",
    }
    assert attributes["program_name"] == "whole.stan"
    assert "// part.stan begins\nfunctions { real f" in attributes["program"]
    assert "#include nothing.stan" in attributes["program"]  # within a comment
    assert attributes["program"].endswith(PROGRAM.split("stan\n", 1)[1])
    assert attributes["data_sha256"] == data_sha256({"y": Y.tolist(), "n": 3.0})


@pytest.mark.parametrize(
    "other",
    [
        {"y": Y + 1e-12, "n": 3},
        {"y": Y[:, None], "n": 3},
        {"z": Y, "n": 3},
        {"y": Y},
        {"y": Y, "n": {"n": 3}},
    ],
)
def test_other_data_have_another_hash(other):
    given = data_sha256({"n": 3, "y": Y})
    assert given == data_sha256({"y": list(Y), "n": np.float32(3)})
    assert given != data_sha256(other)
    assert data_sha256({}) == ""
    assert json.dumps(given)
