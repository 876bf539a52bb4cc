"""A program whose slices are summed in several threads: `reduce_sum`, by cmdstanpy and by us."""

from pathlib import Path

import arviz as az
import numpy as np
import pytest
from scipy import stats

import onebasin as ob
from onebasin.stan.compile import compile_program

from .driver_runs import sample

# Slow: it compiles a program for itself alone.
pytestmark = [pytest.mark.slow, pytest.mark.stan, pytest.mark.usefixtures("quiet", "cmdstan_home")]

PROGRAM = Path(__file__).parent / "programs" / "known" / "parallel.stan"


def test_slices_in_threads_sum_to_the_same_density(rng, monkeypatch):
    x = rng.normal(size=100)
    y = rng.poisson(np.exp(0.5 + 0.3 * x))
    data = {"N": 100, "x": x.tolist(), "y": y.tolist()}
    model, _ = compile_program(PROGRAM, threads=True)
    monkeypatch.setenv("STAN_NUM_THREADS", "2")
    points = np.array([(0.0, 0.0), (0.5, 0.3), (-1.0, 1.0)])
    named = [{"alpha": a, "beta": b} for a, b in points]
    how = {"data": data, "jacobian": False, "sig_figs": 17}
    found = [model.log_prob(point, **how)["lp__"][0] for point in named]
    rates = np.exp(points[:, :1] + points[:, 1:] * x)
    density = stats.poisson(rates).logpmf(y).sum(1) + stats.norm.logpdf(points).sum(1)
    np.testing.assert_allclose(np.diff(found), np.diff(density), rtol=1e-8)
    fits = [
        sample(model, data, chains=2, threads_per_chain=threads, sig_figs=17) for threads in (1, 2)
    ]
    np.testing.assert_allclose(fits[0].draws(), fits[1].draws(), rtol=1e-6)
    monkeypatch.delenv("STAN_NUM_THREADS")
    program = ob.stan_program(PROGRAM, data)
    run = ob.nuts(program, chains=2, warmup=500, threads_per_chain=2, engine="cmdstan", seed=2)
    for name in ("alpha", "beta"):
        draws = run.posterior[name].values
        error = az.mcse(draws, method="mean")
        assert abs(draws.mean() - fits[0].stan_variable(name).mean()) < 5 * error
