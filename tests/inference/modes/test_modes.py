"""Optima, Laplace's approximation and Pathfinder, where the answer is known, and against CmdStan's own files."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import onebasin as ob
from onebasin.analysis.diagnostics.measure import measure
from onebasin.base.errors import InferenceError
from onebasin.inference.modes.edge import running_off
from onebasin.stan import stan_program

from ..known import COVARIANCE, MEAN, RATE, SHAPE, assert_mean, known_target, linear_target

ENGINES = ["numpyro", "stanli", pytest.param("cmdstan", marks=pytest.mark.stan)]
GAUSS = Path(__file__).parents[2] / "stan" / "programs" / "gauss.stan"
WIDE = np.array([[2.0, 1.2, 0.0], [1.2, 1.0, 0.3], [0.0, 0.3, 0.5]])


def gaussian(engine: str) -> ob.Target:
    """A Gaussian with mean 3, -1, 0 and covariance `WIDE`."""
    mu = np.array([3.0, -1.0, 0.0])
    if engine != "numpyro":
        return stan_program(GAUSS, {"D": 3, "mu": mu, "Sigma": WIDE})

    def model() -> None:
        numpyro.sample("x", dist.MultivariateNormal(jnp.asarray(mu), jnp.asarray(WIDE)))

    return ob.Target("gauss", numpyro_model=model)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("jacobian", "tau"), [(False, (SHAPE - 1) / RATE), (True, SHAPE / RATE)])
def test_optimum_is_the_mode_of_the_space_that_is_asked_for(engine, jacobian, tau):
    settings = ob.Optimize(jacobian=jacobian)
    found = ob.infer(known_target(engine), engine=engine, method=settings, seed=2)
    np.testing.assert_allclose(found.posterior["x"], [[MEAN]], atol=1e-5)
    np.testing.assert_allclose(found.posterior["tau"], [[tau]], rtol=1e-5)
    assert found.attrs["converged"] == 1
    assert found.attrs["method"] == "optimize"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_gaussian_is_its_own_laplace_approximation(engine):
    settings = ob.Laplace(draws=2000, weights=False)
    fit = ob.infer(gaussian(engine), engine=engine, method=settings, seed=1)
    x = fit.posterior["x"].to_numpy()
    for place, mean in enumerate([3.0, -1.0, 0.0]):
        assert_mean(x[..., place], mean)
        assert_mean((x[..., place] - mean) ** 2, WIDE[place, place])
    assert_mean((x[..., 0] - 3) * (x[..., 1] + 1), WIDE[0, 1])
    ratio = (fit.sample_stats["lp"] - fit.sample_stats["log_q"]).to_numpy()
    # CmdStan's optimum is one to seven digits (measured: 1.2e-5 nats), ours to the last.
    assert np.ptp(ratio) < (1e-8 if engine == "numpyro" else 1e-4)
    judged = measure(fit).variational
    assert judged is not None and judged.converged and judged.khat < 0.5
    assert fit.attrs["converged"] == 1


def test_laplace_of_a_skewed_variable_is_a_gaussian_of_its_logarithm():
    """log tau has its mode at log(SHAPE / RATE), and the second derivative -SHAPE there."""
    fit = ob.laplace(known_target("numpyro"), draws=10, weights=False, seed=1)
    scale = fit["variational"]["scale_tril"].to_numpy()
    place = 0  # names are in order: tau, x
    np.testing.assert_allclose(fit["variational"]["loc"][place], np.log(SHAPE / RATE), rtol=1e-9)
    np.testing.assert_allclose(scale[place, place], SHAPE**-0.5, rtol=1e-9)
    np.testing.assert_allclose((scale @ scale.T)[1:, 1:], COVARIANCE, rtol=1e-9)


def test_laplace_of_a_network_is_exact_where_it_is_linear():
    """One summed identity unit is linear regression, whose posterior is a Gaussian."""
    target = linear_target()
    fit = ob.laplace(target, draws=50, seed=3)
    covariance = np.linalg.inv(np.eye(2) + target.x.T @ target.x / 0.7**2)
    scale = fit["variational"]["scale_tril"].to_numpy()
    np.testing.assert_allclose(scale @ scale.T, covariance, rtol=1e-8)
    assert fit.posterior["W1"].shape == (1, 50, 2, 1)
    assert "observed_data" in fit.children


def test_no_peak_no_gaussian():
    def flat() -> None:
        x = numpyro.sample("x", dist.ImproperUniform(dist.constraints.real, (), (2,)))
        numpyro.factor("height", -(x[0] ** 2))

    with pytest.raises(InferenceError, match=r"no maximum .* as `x\[1\]` goes"):
        ob.laplace(ob.Target("flat", numpyro_model=flat))


SCHOOLS = """data{int J;vector[J] y;vector[J] s;} parameters{real mu;real<lower=0> tau;vector[J] theta;}
model{mu~normal(0,5);tau~cauchy(0,5);theta~normal(mu,tau);y~normal(theta,s);}"""
EIGHT = {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "s": [15, 10, 16, 11, 9, 11, 10, 18]}


@pytest.mark.stan
def test_an_optimiser_at_the_edge_has_not_converged():
    """The density of effects around their mean has no maximum: it rises without bound as their scale falls."""
    target = stan_program(SCHOOLS, EIGHT)
    found = ob.optimize(target, seed=1)
    assert found.attrs["converged"] == 0
    assert "no maximum" in found.attrs["optimum_note"] and "`tau`" in found.attrs["optimum_note"]
    with pytest.raises(InferenceError, match=r"no maximum .* as `tau` goes"):
        ob.laplace(target, seed=1)


@pytest.mark.parametrize(
    ("height", "start", "variable"),
    [
        (lambda x: -0.5 * np.sum((x * [1e3, 1e-3]) ** 2), [0.0, 0.0], None),
        (lambda x: -2 * np.sum(np.log1p(x**2 / 3)), [1e-6, 0.0], None),
        (lambda x: -0.5 * np.sum((x * [1e3, 1e-3]) ** 2), [0.0, 50.0], None),  # it stopped early
        (lambda x: -np.logaddexp(0, -x[1]) - x[0] ** 2, [0.0, 25.0], "x[1]"),
        (lambda x: -8 * x[1] - 0.5 * x[0] ** 2 * np.exp(-2 * x[1]), [0.0, -15.0], "x[1]"),
    ],
)
def test_the_end_of_a_climb_is_a_maximum_or_names_what_runs_off(height, start, variable):
    def climb(x):
        steps = 1e-6 * np.maximum(1, np.abs(x))
        rows = [(height(x + d) - height(x - d)) / (2 * d.max()) for d in np.diag(steps)]
        return height(x), np.array(rows)

    assert running_off(climb, lambda x: {"x": x}, np.array(start)) == variable


@pytest.mark.stan
def test_pathfinder_finds_a_gaussian():
    fit = ob.pathfinder(gaussian("stan"), weights=False, seed=1)
    assert fit.posterior["x"].shape == (1, 1000, 3)
    assert set(fit.sample_stats["path"].to_numpy().ravel()) == {1, 2, 3, 4}
    judged = measure(fit).variational
    assert judged is not None and judged.khat < judged.khat_limit
    x = fit.posterior["x"].to_numpy()[0]
    np.testing.assert_allclose(x.mean(0), [3, -1, 0], atol=0.3)
    np.testing.assert_allclose(np.cov(x.T), WIDE, atol=0.3)


@pytest.mark.stan
def test_khat_of_pathfinder_is_that_of_the_draws_before_they_were_resampled():
    """Draws that importance weights have picked are none of the approximation's."""
    settings = ob.Pathfinder(paths=2, draws=100, path_draws=300, weights=False)
    fit = ob.infer(known_target("stan"), seed=5, method=settings)
    assert fit["variational"]["log_ratio"].shape == (600,)
    kept = (fit.sample_stats["lp"] - fit.sample_stats["log_q"]).to_numpy().ravel()
    own = fit["variational"]["log_ratio"].to_numpy()
    assert all(np.min(np.abs(own - ratio)) < 1e-9 for ratio in kept)
    single = ob.Pathfinder(paths=1, draws=70, weights=False)
    alone = ob.infer(known_target("stan"), seed=5, method=single)
    assert alone.posterior.sizes["draw"] == 70
    assert "variational" not in alone.children


@pytest.mark.stan
@pytest.mark.cmdstan
def test_pathfinder_and_laplace_are_cmdstans_own(tmp_path, monkeypatch):
    """The same seed by cmdstanpy gives the same draws: nothing is lost on the way."""
    import cmdstanpy

    monkeypatch.chdir(tmp_path)  # CmdStan drops a profile.csv where it runs

    from onebasin.stan.run import make_ready

    target = gaussian("stan")
    ready = make_ready(target, tmp_path, engine="cmdstan")
    model = cmdstanpy.CmdStanModel(exe_file=ready.command[0])
    how = {"data": str(ready.data), "seed": 7, "sig_figs": 12}
    theirs = model.pathfinder(**how, draws=50, num_single_draws=60, num_paths=2)
    settings = ob.Pathfinder(paths=2, draws=50, path_draws=60, weights=False)
    ours = ob.infer(target, engine="cmdstan", seed=7, method=settings)
    np.testing.assert_allclose(ours.posterior["x"][0], theirs.stan_variable("x"), rtol=1e-10)
    mode = model.optimize(**how, jacobian=True)
    drawn = model.laplace_sample(data=str(ready.data), seed=7, mode=mode, draws=20)
    settings = ob.Laplace(draws=20, starts=1, weights=False)
    ours = ob.infer(target, engine="cmdstan", seed=7, method=settings)
    np.testing.assert_allclose(ours.posterior["x"][0], drawn.stan_variable("x"), atol=1e-4)


def test_a_point_estimate_is_not_diagnosed():
    found = ob.optimize(linear_target())
    with pytest.raises(ValueError, match="holds a point estimate"):
        measure(found)
