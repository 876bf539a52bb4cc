"""Commands that align compare log densities: of the program that the file records, or of the one that is named."""

import json

import numpy as np
import pytest
import xarray as xr

from onebasin.inference.density.evaluate import log_density
from onebasin.inference.runs.posterior import data_sha256
from onebasin.stan.program import stan_program

PROGRAM = """
data { int N; vector[N] y; }
parameters { simplex[2] theta; vector[2] mu; real tau; }
model {
  mu ~ normal(0, 3);
  tau ~ std_normal();
  for (n in 1:N) target += log_mix(theta[1], normal_lpdf(y[n] | mu[1], 1), normal_lpdf(y[n] | mu[2], 1));
}
"""
DATA = {"N": 5, "y": [-1.2, -0.9, 1.8, 2.2, 2.1]}
SHAPE = (4, 150)


@pytest.fixture
def run(here):
    """A run's file, its program and its data: chains 1 and 3 have the other labelling, `theta` shows it alone."""
    rng = np.random.default_rng(5)
    share = rng.beta(30.0, 40.0, SHAPE)
    theta = np.stack([share, 1 - share], axis=-1)
    mu = np.array([-1.0, 2.0]) + 0.2 * rng.normal(size=(*SHAPE, 2))
    theta[1::2], mu[1::2] = theta[1::2, :, ::-1], mu[1::2, :, ::-1]
    values = {"theta": theta, "mu": mu, "tau": rng.normal(size=SHAPE)}
    dims = ("chain", "draw", "part")
    posterior = xr.Dataset({n: (dims[: v.ndim], v) for n, v in values.items()})
    tree = xr.DataTree.from_dict({"posterior": posterior})
    tree.attrs = {
        "program": PROGRAM,
        "program_name": "m.stan",
        "data_sha256": data_sha256(DATA),
        "kinds": json.dumps(dict.fromkeys(values, "parameter")),
        "command": "onebasin sample m.stan m.json --out run.nc",
        "method": "nuts",
    }
    tree.to_netcdf("run.nc")
    (here / "m.stan").write_text(PROGRAM)
    (here / "m.json").write_text(json.dumps(DATA))
    return "run.nc"


def said(answer):
    """What a command has printed, on one line."""
    return " ".join((answer.out + answer.err).split())


WHOLE = ("--exchangeable", "theta,mu", "--out", "aligned.nc")
UNCHANGED = "log density unchanged at all 300 moved draws"


def test_all_of_it_is_aligned_and_keeps_the_log_density(onebasin, run):
    answer = onebasin("align", run, *WHOLE)
    assert answer.code == 0, answer.err
    assert UNCHANGED in said(answer)
    target = stan_program("m.stan", "m.json")
    files = ("run.nc", "aligned.nc")
    before, after = (log_density(target, xr.open_datatree(file)) for file in files)
    np.testing.assert_allclose(after, before, atol=1e-9)
    assert onebasin("diagnose", run, "--json").json["exchangeable"] == ["theta,mu"]


@pytest.mark.parametrize("command", ["align", "diagnose", "report"])
def test_a_part_is_refused(onebasin, run, here, command):
    out = ("--out", f"out{'.html' if command == 'report' else '.nc'}")
    out = () if command == "diagnose" else out
    answer = onebasin(command, run, "--exchangeable", "mu", *out)
    assert (answer.code, "300 moved draws" in said(answer)) == (1, True)
    assert [path.name for path in here.glob("out*")] == []


def test_the_text_in_the_file_is_interpreted_only_if_the_user_says_so(onebasin, run, here):
    (here / "m.stan").write_text(PROGRAM + "// changed")
    assert "--program recorded" in said(onebasin("align", run, *WHOLE))
    trusted = onebasin("align", run, *WHOLE, "--program", "recorded", "--force")
    assert UNCHANGED in said(trusted)


def test_a_program_that_is_named_comes_first(onebasin, run, here):
    """Under this one the components are told apart by their priors."""
    (here / "other.stan").write_text(PROGRAM.replace("mu ~ normal(0, 3)", "mu ~ normal([0, 1], 3)"))
    named = ("--program", "other.stan", "--data", "m.json")
    answer = onebasin("align", run, *WHOLE, *named)
    assert answer.code == 1
    assert "changes the log density of 300 of 300 moved draws" in said(answer)
