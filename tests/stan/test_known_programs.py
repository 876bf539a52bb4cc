"""Programs as people write them: hierarchies, mixtures, an ODE, slices in threads.

Log densities are held to NumPy's and SciPy's, posteriors to quadrature on a grid. Programs come from the
user's cache of compiled ones, so that only the first run of the tests compiles them.
"""

from collections.abc import Callable
from pathlib import Path

import arviz as az
import cmdstanpy
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import onebasin as ob
from onebasin.stan.compile import compile_program

from .driver_runs import sample

pytestmark = [pytest.mark.slow, pytest.mark.stan, pytest.mark.usefixtures("quiet", "cmdstan_home")]
"""Slow: each compiles a program for itself alone."""

KNOWN = Path(__file__).parent / "programs" / "known"
SCHOOLS = {
    "J": 8,
    "y": [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0],
    "sigma": [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0],
}


def known(name: str) -> cmdstanpy.CmdStanModel:
    model, _ = compile_program(KNOWN / f"{name}.stan")
    return model


def assert_expectation(draws: np.ndarray, truth: float) -> None:
    """Within five Monte Carlo standard errors; `draws` is (draw, chain)."""
    assert az.ess(draws.T, method="mean") > 200
    error = az.mcse(draws.T, method="mean")
    assert abs(draws.mean() - truth) < 5 * error


def expectation(log_density: np.ndarray, value: np.ndarray) -> float:
    """Expectation on an even grid."""
    weight = np.exp(log_density - logsumexp(log_density))
    return float(np.sum(weight * value))


def assert_log_density(
    model: cmdstanpy.CmdStanModel,
    data: dict,
    log_density: Callable[[dict], float],
    points: list[dict],
) -> None:
    """Equal up to one constant, on the constrained scale."""
    found = [
        model.log_prob(point, data=data, jacobian=False, sig_figs=17)["lp__"][0] for point in points
    ]
    expected = [log_density(point) for point in points]
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-8)


def schools_grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The marginal log posterior of mu and tau, whose schools are summed out."""
    mu, tau = np.meshgrid(np.linspace(-25, 30, 401), np.linspace(0.01, 120, 4000), indexing="ij")
    density = stats.norm(0, 5).logpdf(mu) + stats.cauchy(0, 5).logpdf(tau)
    for y, sigma in zip(SCHOOLS["y"], SCHOOLS["sigma"], strict=True):
        density += stats.norm.logpdf(y, mu, np.hypot(tau, sigma))
    return mu, tau, density


def test_eight_schools_match_quadrature():
    fit = sample(known("eight_schools"), SCHOOLS, chains=4, iter_sampling=2000, adapt_delta=0.99)
    mu, tau, density = schools_grid()
    draws = fit.draws_xr()
    assert_expectation(draws.mu.values.T, expectation(density, mu))
    # tau has no variance to speak of (its tail is Cauchy's); its logarithm has.
    assert_expectation(np.log(draws.tau.values.T), expectation(density, np.log(tau)))


def test_mixture_has_the_density_of_a_sum(rng):
    y = np.r_[rng.normal(-2, 1, 15), rng.normal(3, 0.5, 10)]
    data = {"K": 2, "N": 25, "y": y.tolist()}

    def log_density(point: dict) -> float:
        weight, mu, sigma = (np.array(point[name]) for name in ("weight", "mu", "sigma"))
        parts = np.log(weight) + stats.norm.logpdf(y[:, None], mu, sigma)
        prior = stats.norm(0, 10).logpdf(mu).sum() + stats.lognorm(1).logpdf(sigma).sum()
        return float(logsumexp(parts, axis=1).sum() + prior)

    points = [
        {"weight": [w, 1 - w], "mu": [a, a + d], "sigma": [s, 2 * s]}
        for w, a, d, s in [(0.3, -1.0, 2.0, 1.0), (0.6, -2.0, 5.0, 0.5), (0.5, 0.0, 0.1, 3.0)]
    ]
    model = known("mixture")
    assert_log_density(model, data, log_density, points)
    fit = sample(model, data, chains=2)
    np.testing.assert_allclose(fit.stan_variable("weight").sum(1), 1, rtol=1e-6)
    assert np.all(np.diff(fit.stan_variable("mu"), axis=1) > 0)


def test_ode_is_solved_and_its_rate_found(rng):
    time = np.array([0.5, 1.0, 2.0, 3.0])
    y = np.exp(-0.7 * time) + rng.normal(0, 0.1, 4)
    fit = sample(
        known("decay"),
        {"N": 4, "time": time.tolist(), "y": y.tolist()},
        chains=2,
        iter_sampling=1000,
        sig_figs=17,
    )
    rate = fit.stan_variable("rate")
    solved = fit.stan_variable("state")[:, :, 0]
    np.testing.assert_allclose(solved, np.exp(-rate[:, None] * time), rtol=1e-7)
    grid = np.linspace(0.05, 4, 4000)
    density = stats.lognorm(1).logpdf(grid)
    density += stats.norm.logpdf(y, np.exp(-grid[:, None] * time), 0.1).sum(-1)
    assert_expectation(fit.draws_xr("rate").rate.values.T, expectation(density, grid))


def test_integer_quantities_stay_integers():
    data = {"N": 20, "successes": 6}
    model = known("counts")
    fit = sample(model, data, chains=2)
    again, dice = fit.stan_variable("again"), fit.stan_variable("dice")
    assert dice.shape == (2000, 2, 3)
    assert set(np.unique(dice)) == {1, 2, 3, 4, 5, 6}
    lines = Path(fit.runset.csv_files[0]).read_text().splitlines()
    rows = [line.split(",") for line in lines if not line.startswith("#")]
    assert rows[0][-1] == "dice.2.3"
    assert {row[-1] for row in rows[1:]} == set("123456")
    # Beta(7, 15) mixed over binomial(20): mean 20 * 7 / 22.
    assert_expectation(fit.draws_xr("again").again.values.T.astype(float), 20 * 7 / 22)
    later = model.generate_quantities(data, previous_fit=fit, seed=3)
    assert later.stan_variable("dice").shape == dice.shape
    assert later.stan_variable("again").max() <= 20
    assert not np.array_equal(later.stan_variable("again"), again)


def test_slices_in_threads_sum_to_the_same_density(rng, monkeypatch):
    x = rng.normal(size=100)
    y = rng.poisson(np.exp(0.5 + 0.3 * x))
    data = {"N": 100, "x": x.tolist(), "y": y.tolist()}
    model, _ = compile_program(KNOWN / "parallel.stan", threads=True)
    monkeypatch.setenv("STAN_NUM_THREADS", "2")

    def log_density(point: dict) -> float:
        eta = point["alpha"] + point["beta"] * x
        prior = stats.norm.logpdf([point["alpha"], point["beta"]]).sum()
        return float(stats.poisson(np.exp(eta)).logpmf(y).sum() + prior)

    points = [{"alpha": a, "beta": b} for a, b in [(0.0, 0.0), (0.5, 0.3), (-1.0, 1.0)]]
    assert_log_density(model, data, log_density, points)
    fits = [
        sample(model, data, chains=2, threads_per_chain=threads, sig_figs=17) for threads in (1, 2)
    ]
    np.testing.assert_allclose(fits[0].draws(), fits[1].draws(), rtol=1e-6)
    monkeypatch.delenv("STAN_NUM_THREADS")
    program = ob.stan_program(KNOWN / "parallel.stan", data)
    run = ob.nuts(program, chains=2, warmup=500, threads_per_chain=2, engine="cmdstan", seed=2)
    for name in ("alpha", "beta"):
        assert_expectation(run.posterior[name].values.T, fits[0].stan_variable(name).mean())
