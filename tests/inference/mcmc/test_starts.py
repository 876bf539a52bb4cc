"""Starts, metrics and step sizes of chains: found by the settings, given by the user, or taken from an earlier run."""

import json
from dataclasses import replace
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
from onebasin.base.errors import InferenceError
from onebasin.base.progress import ProgressBars
from onebasin.inference import Hmc, Nuts, infer
from onebasin.inference.contracts.method import Found, Job, bound, chosen
from onebasin.inference.density.charts import Bijection
from onebasin.inference.density.network import density_of
from onebasin.inference.mcmc.numpyro import Course, NumpyroChains
from onebasin.inference.mcmc.optimum import BestOptimum
from onebasin.inference.mcmc.stan import seeds_of
from onebasin.inference.mcmc.starts import (
    Start,
    chain_starts,
    moved,
    reordered,
    stan_places,
    start_of,
)
from onebasin.models import BayesianNetwork, Network, Target
from onebasin.stan import stan_program

from ..known import MEAN, PROGRAMS, RATE, SHAPE, known_target

DEPTH = 20.0
"""The lower mode has exp(-20) of the other's probability."""


def _two_modes() -> None:
    x = numpyro.sample("x", dist.ImproperUniform(dist.constraints.real, (), ()))
    low = dist.Normal(-5.0, 0.5).log_prob(x) - DEPTH
    numpyro.factor("modes", jnp.logaddexp(dist.Normal(5.0, 0.5).log_prob(x), low))
    numpyro.sample("other", dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])))


def two_modes() -> Target:
    return stan_program(PROGRAMS / "two_modes.stan", {"depth": DEPTH})


@pytest.mark.full
def test_optimum_keeps_chains_out_of_a_mode_without_weight():
    """The negative control: from random starts some of the same chains never leave the lower mode."""
    stuck = Nuts(chains=4, warmup=100, draws=100)
    best = replace(stuck, init="optimum")
    density = density_of(Target("two modes", numpyro_model=_two_modes))
    random, optimum = (
        jax.vmap(density.unravel)(chain_starts(density, s, 3))["x"] for s in (stuck, best)
    )
    assert 0 < (random < 0).sum() < 4
    np.testing.assert_allclose(optimum, 5.0, atol=1e-4)
    how = {"engine": "stanli", "seed": 3}
    random, optimum = (infer(two_modes(), s, **how).posterior for s in (stuck, best))
    assert 0 < (random["x"].mean("draw") < 0).sum() < 4
    assert (optimum["x"] > 0).all()
    np.testing.assert_allclose(optimum["x"].mean(), 5.0, atol=0.2)
    others = optimum["other"].mean(("chain", "draw"))
    np.testing.assert_allclose(others, [1 / 6, 1 / 3, 0.5], atol=0.1)


def test_no_finite_optimum_is_an_error_in_a_line():
    search = BestOptimum(lambda v: v[0] * jnp.nan)
    with pytest.raises(InferenceError, match=r"starting points: 3\)\..* raise `init_starts`"):
        search(jnp.arange(3.0)[:, None])
    settings = Nuts(chains=1, warmup=10, draws=10, init="optimum", init_starts=2)
    target = stan_program(PROGRAMS / "broken.stan", {"always": 1})
    with pytest.raises(InferenceError, match=r"^No optimum was found \(starting points: 2.*$"):
        infer(target, settings, engine="stanli")


def test_a_chain_from_an_optimum_does_not_depend_on_how_many_run():
    def draws(chains: int) -> np.ndarray:
        settings = Nuts(chains=chains, warmup=50, draws=20, init="optimum", init_starts=3)
        return infer(two_modes(), settings, seed=5).posterior["x"].to_numpy()

    alone, among = draws(1), draws(3)
    np.testing.assert_array_equal(alone[0], among[0])
    assert not np.array_equal(among[0], among[1])


def test_seeds_of_starts_differ_and_do_not_depend_on_their_number():
    assert len({s for chain in range(4) for s in seeds_of(1, chain, 10)}) == 40
    assert seeds_of(1, 2, 3) == seeds_of(1, 2, 10)[:3]
    assert seeds_of(1, 2, 3) != seeds_of(2, 2, 3)


def test_first_steps_are_as_long_as_their_variances_say(tmp_path):
    """Before anything is adapted: of a narrow Gaussian, steps of unit length are rejected."""

    def model() -> None:
        numpyro.sample("x", dist.Normal(0, 0.01).expand([4]).to_event(1))

    target = Target("narrow", numpyro_model=model)
    density, settings = density_of(target), Nuts(chains=2, warmup=100, draws=1)
    for variances in (jnp.full((2, 4), 1e-4), None):
        course = Course(density, jnp.zeros((2, 4)), density.quantities, variances=variances)
        runner = NumpyroChains(Job(target, settings, "numpyro", 1, ProgressBars(False)), course)
        for number in range(2):
            rate = runner.advance(runner.start(number), 0, 1, keep=False)[2]["acceptance_rate"][0]
            assert rate < 1e-6 if variances is None else rate > 0.5


CMDSTAN = pytest.param("cmdstan", marks=pytest.mark.stan)


def network() -> Target:
    x = np.random.default_rng(0).normal(size=(10, 2))
    return BayesianNetwork(Network(2, (3,), 1)).condition(x, x[:, 0], name="net")


RUNS = [
    ("program", "numpyro", True),
    ("program", "stanli", True),
    pytest.param("program", "cmdstan", False, marks=pytest.mark.stan),
    ("network", "stanli", True),
]
"""Names of the program's parameters are not in alphabetical order, nor is a network packed in that of its variables."""


def given(size: int, *, dense: bool = False, chains: int = 2, **more: Any) -> Start:
    rng = np.random.default_rng(3)
    metric = rng.uniform(0.5, 2.0, (chains, size))
    if dense:
        root = rng.normal(size=(chains, size, size)) / size
        metric = metric[:, None] * np.eye(size) + root @ root.transpose(0, 2, 1)
    where = rng.uniform(-0.5, 0.5, (chains, size))
    return Start(where, metric, np.geomspace(1e-9, 2e-9, chains), **more)


def run(target: Target, engine: str, settings: Nuts | Hmc, start: Start) -> Found:
    target = bound(target, engine)
    engine, implementation = chosen(target, type(settings), engine)
    job = Job(target, settings, engine, 1, ProgressBars(False), implementation, given=start)
    return settings.run(job)


@pytest.mark.parametrize(("kind", "engine", "dense"), RUNS)
def test_chains_stay_at_their_starts_with_tiny_steps_and_keep_their_metric(kind, engine, dense):
    target = network() if kind == "network" else known_target("stan")
    density = density_of(target)
    start = given(density.size, dense=dense)
    still = Nuts(chains=2, warmup=3, draws=2, adapt=False, max_tree_depth=2)
    found = run(target, engine, still, start)
    there = jax.vmap(density.constrain)(jnp.asarray(start.positions))
    for name, values in there.items():
        drawn = np.asarray(found.draws[name])
        np.testing.assert_allclose(drawn, np.repeat(np.asarray(values)[:, None], 2, 1), atol=1e-6)
    steps = np.repeat(start.step_size[:, None], 2, 1)
    np.testing.assert_allclose(found.stats["step_size"], steps, rtol=1e-12)
    kept = found.groups["adaptation"]
    metric = kept["inverse_metric"].values
    if kept.attrs["definition"] == "stan":
        metric = reordered(metric, stan_places(density))
    # CmdStan writes six figures.
    np.testing.assert_allclose(metric, start.inverse_metric, rtol=2e-5)


@pytest.mark.parametrize("engine", ["numpyro", "stanli", CMDSTAN])
def test_warmup_with_a_metric_adapts_the_step_size_alone(engine):
    target = known_target("numpyro" if engine == "numpyro" else "stan")
    start = replace(given(3, warmup=60), step_size=np.array([1e-3, 1e-3]))
    found = run(target, engine, Nuts(chains=2, warmup=500, draws=100), start)
    kept = found.groups["adaptation"]
    metric = kept["inverse_metric"].values
    np.testing.assert_allclose(metric, start.inverse_metric, rtol=2e-5)
    assert (kept["step_size"].values > 0.1).all()
    assert 0.6 < float(np.mean(found.stats["acceptance_rate"])) < 0.99


NOTEBOOKS = Path(__file__).parents[3] / "notebooks" / "programs"
FAR = {"mu": np.array([2.7, -2.6]), "sigma": np.array([0.9, 1.1]), "theta": np.array(0.6)}
"""One labelling of the notebooks' mixture."""


def program() -> Target:
    """Two components, of which `theta` is the first one's weight."""
    files = NOTEBOOKS / "mixture.stan", NOTEBOOKS / "mixture.json"
    return ob.stan_program(*files, symmetry="mu,sigma,1-theta")


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


def start(target, engine, settings, init=None, adapt_from=None):
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
    steps = {"step_size": (axes, np.full((2, size), 0.25))}
    kept = xr.Dataset({"inverse_metric": (places, metric)}, attrs={"definition": definition})
    groups = {"posterior": xr.Dataset(named), "sample_stats": xr.Dataset(steps), "adaptation": kept}
    return xr.DataTree.from_dict(groups)


def swapped(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {n: (1 - v if n == "theta" else v[..., ::-1]) for n, v in values.items()}


@pytest.mark.full
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
        near, there = 2e-3 * expected.max(), found.inverse_metric[chain]
        np.testing.assert_allclose(there, expected, rtol=2e-3, atol=near)
    np.testing.assert_array_equal(found.step_size, 0.25)
    assert found.warmup is None  # values are no draws


@pytest.mark.full
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
    expected = expected if shape == "dense" else np.diag(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.full
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


@pytest.mark.full
def test_without_a_recorded_metric_it_is_estimated_from_the_draws():
    target = program()
    tree = earlier(target, FAR, "stan")
    metric = np.asarray(tree["adaptation"]["inverse_metric"])
    del tree["adaptation"]
    found = start(target, "stanli", ob.Nuts(chains=2), FAR, tree)
    shrunk = 400 / 405 * np.diagonal(metric, axis1=1, axis2=2) + 1e-3 * 5 / 405
    np.testing.assert_allclose(found.inverse_metric, shrunk, rtol=1e-6)
    assert found.how == {"init": "values", "adapted": "draws"}


@pytest.mark.full
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


@pytest.mark.full
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


@pytest.mark.full
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


@pytest.mark.full
@pytest.mark.parametrize("engine", ["numpyro", "stanli"])
@pytest.mark.parametrize("init", ["optimum", "pathfinder"])
def test_starts_that_were_looked_for_are_recorded(engine, init):
    """Chains of tiny steps stay there; those of one optimum are known to have begun at one point."""
    target = known_target("numpyro" if engine == "numpyro" else "stan")
    how = {"chains": 2, "warmup": 1, "draws": 4, "thin": 2, "max_tree_depth": 1}
    with jax.numpy_rank_promotion("allow"):  # BlackJAX's Pathfinder broadcasts.
        run = ob.nuts(target, **how, init=init, engine=engine, seed=1)
    starts = run["starts"]
    assert starts["x"].shape == (2, 2)
    assert np.allclose(starts["x"][0], starts["x"][1], atol=1e-3) == (init == "optimum")
    if init == "optimum":
        np.testing.assert_allclose(starts["x"], [MEAN, MEAN], atol=1e-3)
        # Of the unconstrained density: without the Jacobian it would be (shape - 1) / rate.
        np.testing.assert_allclose(starts["tau"], SHAPE / RATE, rtol=1e-3)
    assert json.loads(run.attrs["settings"])["thin"] == 2
    assert run["posterior"].sizes["draw"] == 4
    assert run.attrs["gradient_evaluations"] == int(run["sample_stats"]["n_steps"].sum()) >= 16
