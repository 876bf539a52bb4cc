"""Starts, step sizes and metrics from what users give: values, files and earlier posteriors."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import xarray as xr
from jax.scipy.special import logsumexp
from numpyro import distributions as dist

import onebasin as ob
from onebasin.base.progress import ProgressBars
from onebasin.inference.contracts.method import Job
from onebasin.inference.density.charts import Bijection
from onebasin.inference.density.network import density_of
from onebasin.inference.mcmc.given import Start
from onebasin.inference.mcmc.starts import moved, start_of
from onebasin.models import Target

from ..known import MEAN, RATE, SHAPE, known_target

pytestmark = pytest.mark.full

NOTEBOOKS = Path(__file__).parents[3] / "notebooks" / "programs"
FAR = {"mu": np.array([2.7, -2.6]), "sigma": np.array([0.9, 1.1]), "theta": np.array(0.6)}
"""One labelling of the notebooks' mixture."""


def program() -> Target:
    """Two components, of which `theta` is the first one's weight."""
    return ob.stan_program(
        NOTEBOOKS / "mixture.stan", NOTEBOOKS / "mixture.json", symmetry="mu,sigma,1-theta"
    )


def _mixture() -> None:
    w = numpyro.sample("w", dist.Dirichlet(2 * jnp.ones(2)))
    mu = numpyro.sample("mu", dist.Normal(0, 3).expand([2]).to_event(1))
    sigma = numpyro.sample("sigma", dist.LogNormal(0, 0.5).expand([2]).to_event(1))
    y = jnp.asarray(np.random.default_rng(0).normal(size=(30, 1)))
    each = jnp.log(w)[None] + dist.Normal(mu[None], sigma[None]).log_prob(y)
    numpyro.factor("y", logsumexp(each, axis=1).sum())


def model() -> Target:
    """Two components whose weights are a simplex, in a chart that does not exchange coordinates."""
    return ob.numpyro_model(_mixture, symmetry="w,mu,sigma")


def start(
    target: Target, engine: str, settings: ob.Nuts, init: Any = None, adapt_from: Any = None
) -> Start:
    job = Job(target, settings, engine, 3, ProgressBars(False), start=init, adapt_from=adapt_from)
    return start_of(job)


def earlier(target: Target, centre: Any, definition: str, size: int = 400) -> xr.DataTree:
    """Two chains close to a point, in their labelling, with the covariance of their coordinates as metric."""
    density = density_of(target)
    place = density.given_start(centre)
    rng = np.random.default_rng(5)
    root = rng.normal(size=(density.size, density.size))
    vectors = np.asarray(place) + 1e-4 * rng.normal(size=(2, size, density.size)) @ root
    draws = jax.vmap(jax.vmap(density.constrain))(jnp.asarray(vectors))
    axes = ("chain", "draw")
    named = {n: ((*axes, *(f"{n}_{i}" for i in range(v.ndim - 2))), v) for n, v in draws.items()}
    metric = np.stack([np.cov(chain.T) for chain in vectors])
    places = ("chain", "coordinate", "other_coordinate")
    groups = {
        "posterior": xr.Dataset(named),
        "sample_stats": xr.Dataset({"step_size": (axes, np.full((2, size), 0.25))}),
        "adaptation": xr.Dataset(
            {"inverse_metric": (places, metric)}, attrs={"definition": definition}
        ),
    }
    return xr.DataTree.from_dict(groups)


def swapped(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {n: (1 - v if n == "theta" else v[..., ::-1]) for n, v in values.items()}


@pytest.mark.parametrize(
    ("kind", "shape"), [("program", "diag"), ("program", "dense"), ("model", "dense")]
)
def test_the_metric_is_moved_to_the_labelling_of_the_start(kind, shape):
    """Against the covariance of the earlier draws themselves, with their labels exchanged."""
    target, engine, definition, centre = program(), "stanli", "stan", FAR
    if kind == "model":
        target, engine, definition = model(), "numpyro", "numpyro"
        centre = {"w": np.array([0.3, 0.7]), "mu": FAR["mu"], "sigma": FAR["sigma"]}
    tree = earlier(target, centre, definition)
    settings = ob.Nuts(chains=3, metric=shape)
    found = start(target, engine, settings, [centre, swapped(centre), centre], tree)
    assert found.how["relabelled"] == [1]
    density = density_of(target)
    for chain, labels in enumerate((dict, swapped, dict)):
        draws = {n: np.asarray(tree["posterior"][n])[chain % 2] for n in density.names}
        vectors = np.asarray(jax.vmap(density.unconstrain)(labels(draws)))
        covariance = np.cov(vectors.T)
        expected = covariance if shape == "dense" else np.diag(covariance)
        np.testing.assert_allclose(
            found.inverse_metric[chain], expected, rtol=2e-3, atol=2e-3 * expected.max()
        )
    np.testing.assert_array_equal(found.step_size, 0.25)
    assert found.warmup is None  # values are no draws


@pytest.mark.parametrize("shape", ["diag", "dense"])
def test_a_metric_moves_by_the_jacobian_where_coordinates_do_not_change_places(shape):
    """Three weights go round, in the chart that breaks a stick; against the covariance of moved draws."""
    chart = Bijection(dist.constraints.simplex, (3,))

    def act(z: jax.Array, way: int = 1) -> jax.Array:
        return chart.inverse(jnp.roll(chart.forward(z), way))

    rng = np.random.default_rng(7)
    metric = np.array([[2.0, 0.7], [0.7, 0.5]])
    metric = metric if shape == "dense" else np.diag(metric)
    root = np.linalg.cholesky(metric if shape == "dense" else np.diag(metric))
    before = np.array([0.4, -0.9])
    after = np.asarray(act(jnp.asarray(before)))
    noise = rng.normal(size=(4000, 2))
    noise = (noise - noise.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(noise.T))).T
    draws = np.asarray(jax.vmap(act)(jnp.asarray(before + 1e-5 * noise @ root.T)))
    expected = np.cov(draws.T) / 1e-10
    found = moved(metric, act, partial(act, way=-1), after)
    np.testing.assert_allclose(
        found, expected if shape == "dense" else np.diag(expected), rtol=1e-3
    )


def test_of_a_posterior_each_chain_gets_a_draw_and_the_warmup_is_short():
    target = program()
    tree = earlier(target, FAR, "stan")
    found = start(target, "stanli", ob.Nuts(chains=3), tree, tree)
    density = density_of(target)
    values = jax.vmap(density.constrain)(jnp.asarray(found.positions))
    for chain, mu in enumerate(np.asarray(values["mu"])):
        there = np.asarray(tree["posterior"]["mu"])[chain % 2]
        assert (np.abs(there - mu).max(axis=1) < 1e-12).sum() == 1
    assert found.warmup == 100
    assert found.settle(ob.Nuts(), "stanli").warmup == 19
    assert found.how == {"init": "posterior", "adapted": "metric"}
    again = start(target, "stanli", ob.Nuts(chains=2), tree, tree)
    np.testing.assert_array_equal(again.positions, found.positions[:2])


def test_without_a_recorded_metric_it_is_estimated_from_the_draws():
    target = program()
    tree = earlier(target, FAR, "stan")
    metric = np.asarray(tree["adaptation"]["inverse_metric"])
    del tree["adaptation"]
    found = start(target, "stanli", ob.Nuts(chains=2), FAR, tree)
    shrunk = 400 / 405 * np.diagonal(metric, axis1=1, axis2=2) + 1e-3 * 5 / 405
    np.testing.assert_allclose(found.inverse_metric, shrunk, rtol=1e-6)
    assert found.how == {"init": "values", "adapted": "draws"}


def test_values_of_files_and_lists_and_those_that_are_missing(tmp_path):
    target, settings = model(), ob.Nuts(chains=2, init_radius=0.5)
    density = density_of(target)

    def values(init: Any) -> dict[str, np.ndarray]:
        vectors = jnp.asarray(start(target, "numpyro", settings, init).positions)
        return {n: np.asarray(v) for n, v in jax.vmap(density.constrain)(vectors).items()}

    file = tmp_path / "init.json"
    file.write_text(json.dumps({"mu": [1.0, 2.0]}))
    of_file, of_list = values(file), values([str(file), {"mu": [3.0, 4.0]}])
    np.testing.assert_allclose(of_file["mu"], [[1.0, 2.0], [1.0, 2.0]])
    np.testing.assert_allclose(of_list["mu"], [[1.0, 2.0], [3.0, 4.0]])
    for name in ("w", "sigma"):
        np.testing.assert_array_equal(of_file[name], of_list[name])
        assert not np.array_equal(of_file[name][0], of_file[name][1])


def test_a_step_size_and_a_metric_may_be_given_as_stan_writes_them(tmp_path):
    file = tmp_path / "metric.json"
    metric = [1.0, 2.0, 3.0, 4.0, 5.0]
    words = {"stepsize": 0.5, "inv_metric": metric, "metric_type": "diag_e"}
    file.write_text(json.dumps(words))
    found = start(program(), "stanli", ob.Nuts(chains=2), FAR, file)
    np.testing.assert_array_equal(found.inverse_metric, [metric] * 2)
    np.testing.assert_array_equal(found.step_size, [0.5, 0.5])
    alone = start(program(), "stanli", ob.Nuts(chains=2), FAR, {"step_size": 0.1})
    assert alone.inverse_metric is None


def test_a_run_records_where_it_began(tmp_path):
    target = program()
    tree = earlier(target, FAR, "stan")
    run = ob.nuts(target, chains=2, draws=20, seed=3, init=tree, adapt_from=tree, engine="stanli")
    assert json.loads(run.attrs["start"]) == {"init": "posterior", "adapted": "metric"}
    assert json.loads(run.attrs["settings"])["warmup"] == 19
    np.testing.assert_allclose(run["starts"]["mu"], [FAR["mu"]] * 2, atol=0.01)
    assert run["starts"]["theta"].dims == ("chain",)
    again = ob.open_posterior(ob.save(run, tmp_path / "run.nc"))
    xr.testing.assert_identical(again, run)
    short = {"chains": 1, "warmup": 0, "draws": 2, "adapt": False}
    further = ob.nuts(target, **short, init=tmp_path / "run.nc", adapt_from=again)
    steps = (further["sample_stats"]["step_size"][0, 0], run["adaptation"]["step_size"][0])
    assert float(steps[0]) == float(steps[1])


@pytest.mark.parametrize(("engine", "init"), [("numpyro", "optimum"), ("stanli", "pathfinder")])
def test_starts_that_were_looked_for_are_recorded(engine, init):
    """Chains of tiny steps stay there; those of one optimum are known to have begun at one point."""
    target = known_target("numpyro" if engine == "numpyro" else "stan")
    how = {"chains": 2, "warmup": 1, "draws": 4, "thin": 2, "max_tree_depth": 1}
    run = ob.nuts(target, **how, init=init, engine=engine, seed=1)
    starts = run["starts"]
    assert starts["x"].shape == (2, 2)
    assert np.allclose(starts["x"][0], starts["x"][1], atol=1e-3) == (init == "optimum")
    if init == "optimum":
        np.testing.assert_allclose(starts["x"], [MEAN, MEAN], atol=1e-4)
        # Of the unconstrained density: without the Jacobian it would be (shape - 1) / rate.
        np.testing.assert_allclose(starts["tau"], SHAPE / RATE, rtol=1e-4)
    assert json.loads(run.attrs["settings"])["thin"] == 2
    assert run["posterior"].sizes["draw"] == 4
    assert run.attrs["gradient_evaluations"] == int(run["sample_stats"]["n_steps"].sum()) >= 16
