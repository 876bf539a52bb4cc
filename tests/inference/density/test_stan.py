"""Log densities of Stan programs: charts, vectors, and values at points of the user's choice."""

import math
import resource
from collections.abc import Mapping

import bridgestan
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray as xr
from numpyro.distributions import biject_to, constraints

import onebasin as ob
from onebasin.inference.contracts.method import bound
from onebasin.inference.density.charts import Bijection, LogRatio, charts_of
from onebasin.inference.density.stan_vectors import StanVectors
from onebasin.inference.variational.gaussians import layout_of
from onebasin.models import Exchangeable, Target

from ..examples import FREE_MIXTURE
from ..known import known_target

NAMES = (
    # as stanc names them: column by column throughout
    *(f"x.{i}.{j}" for j in (1, 2, 3) for i in (1, 2)),
    *(f"W.{i}.{j}" for j in (1, 2, 3) for i in (1, 2)),
    *(f"A.{k}.{i}.{j}" for j in (1, 2, 3) for i in (1, 2) for k in (1, 2)),
    *(f"theta.{i}.{j}" for j in (1, 2) for i in (1, 2)),
    *(f"L.{i}" for i in (1, 2, 3)),
    "sigma",
)
SHAPES = {"x": (2, 3), "W": (2, 3), "A": (2, 2, 3), "theta": (2, 3), "L": (3, 3), "sigma": ()}


def constrain(vector: np.ndarray) -> Mapping[str, np.ndarray]:
    """As Stan reads: arrays go row by row, matrices column by column within them."""
    x, W, A, theta, L, sigma = np.split(vector, np.cumsum([6, 6, 12, 4, 3]))
    lower = np.zeros((3, 3))
    lower[np.tril_indices(3, -1)] = np.tanh(L)
    return {
        "x": x.reshape(2, 3),
        "W": W.reshape(3, 2).T,
        "A": np.exp(A.reshape(2, 3, 2).swapaxes(1, 2)),
        "theta": np.asarray(LogRatio((2, 3)).forward(jnp.asarray(theta.reshape(2, 2)))),
        "L": lower,
        "sigma": np.exp(sigma[0]),
    }


def test_coordinates_stand_where_their_values_change():
    charts = charts_of(NAMES, SHAPES, constrain)
    vector = np.random.default_rng(1).normal(size=len(NAMES))
    values = constrain(vector)
    np.testing.assert_array_equal(vector[charts["x"].places], values["x"])
    np.testing.assert_array_equal(vector[charts["W"].places], values["W"])
    np.testing.assert_allclose(vector[charts["A"].places], np.log(values["A"]))
    assert charts["theta"].places.tolist() == [[24, 25], [26, 27]]
    assert charts["L"].shape == (3,) and charts["sigma"].shape == ()
    assert sorted(np.concatenate([c.places.ravel() for c in charts.values()])) == list(range(32))


def test_simplexes_alone_have_their_chart_in_jax_of_older_versions_too():
    charts = charts_of(NAMES, SHAPES, constrain)
    assert isinstance(charts["theta"].simplex, LogRatio)
    assert all(chart.simplex is None for name, chart in charts.items() if name != "theta")

    def broken(vector: np.ndarray) -> Mapping[str, np.ndarray]:
        return {"theta": np.asarray(biject_to(constraints.simplex)(jnp.asarray(vector)))}

    charts = charts_of(("theta.1", "theta.2"), {"theta": (3,)}, broken)
    assert isinstance(charts["theta"].simplex, Bijection)


@pytest.mark.parametrize("size", [2, 5])
def test_log_ratio_is_a_chart(size):
    chart = LogRatio((size,))
    y = jnp.asarray(np.random.default_rng(2).normal(size=size - 1))
    theta = chart.forward(y)
    np.testing.assert_allclose(chart.inverse(theta), y, rtol=1e-10, atol=1e-12)
    jacobian = jax.jacobian(lambda z: chart.forward(z)[:-1])(y)
    expected = float(jnp.log(jnp.abs(jnp.linalg.det(jacobian))))
    assert float(chart.log_jacobian(y, theta)) == pytest.approx(expected, rel=1e-10)
    assert float(jnp.sum(theta)) == pytest.approx(1.0) and math.isfinite(expected)


@pytest.fixture(scope="module", params=["stanli", "cmdstan"])
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def known(engine: str) -> StanVectors:
    return StanVectors.of(bound(known_target("stan"), engine))


MIXED = {"K": 3, "N": 4, "y": [-2.0, 0.5, 1.0, 3.0]}


def mixture(symmetry: tuple[Exchangeable, ...] = ()) -> Target:
    return ob.stan_program(FREE_MIXTURE, MIXED, symmetry=symmetry)


@pytest.fixture(scope="module")
def simplex(engine: str) -> StanVectors:
    return StanVectors.of(bound(mixture(), engine))


def points(density: StanVectors, count: int = 7) -> jax.Array:
    return jnp.asarray(np.random.default_rng(3).normal(size=(count, density.size)))


@pytest.mark.stan
def test_values_and_gradients_are_the_librarys(known):
    vectors = points(known)
    values, gradients = known.calls.library.log_density_gradient(vectors, propto=False)
    one = jax.value_and_grad(known.log_density)
    np.testing.assert_array_equal(one(vectors[2])[0], values[2])
    np.testing.assert_array_equal(one(vectors[2])[1], gradients[2])
    every = jax.vmap(one)
    for found in (every(vectors), jax.jit(every)(vectors), jax.lax.map(one, vectors)):
        np.testing.assert_array_equal(found[0], values)
        np.testing.assert_array_equal(found[1], gradients)


@pytest.mark.stan
def test_the_log_density_is_complete(known):
    """With all constants: that of the NumPyro model, whose transform of a positive number is Stan's."""
    other = ob.jax_density(known_target("numpyro"))
    there = jax.jit(jax.vmap(lambda v: other.log_density(other.unconstrain(known.constrain(v)))))
    vectors = points(known, 3)
    np.testing.assert_allclose(jax.vmap(known.log_density)(vectors), there(vectors), rtol=1e-12)


@pytest.mark.stan
def test_second_derivatives_are_those_of_gradients(known):
    vector = points(known, 1)[0]
    other = ob.jax_density(known_target("numpyro"))
    # places of x and tau differ in the two vectors
    places = np.concatenate([other.places()[name].ravel() for name in known.names])  # type: ignore[attr-defined]
    there = jnp.zeros(known.size).at[places].set(vector)
    expected = jax.jit(jax.hessian(other.log_density))(there)[np.ix_(places, places)]
    found = jax.jit(jax.hessian(known.log_density))(vector)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.stan
def test_constrain_and_unconstrain_are_inverse(simplex):
    vectors = points(simplex)
    values = jax.jit(jax.vmap(simplex.constrain))(vectors)
    assert {n: value.shape for n, value in values.items()} == dict.fromkeys(values, (7, 3))
    np.testing.assert_allclose(values["weight"].sum(axis=-1), 1.0, rtol=1e-12)
    back = jax.vmap(simplex.unconstrain)(values)
    np.testing.assert_allclose(back, vectors, rtol=1e-9, atol=1e-9)
    ones = dict.fromkeys(("mu", "sigma"), jnp.ones(3))
    assert np.isnan(simplex.unconstrain({"weight": jnp.array([2.0, -1.0, 0.0]), **ones})).any()


@pytest.mark.stan
def test_a_point_that_is_rejected_has_no_density(known):
    vector = jnp.array([0.0, 0.0, jnp.nan])
    value, gradient = jax.value_and_grad(known.log_density)(vector)
    assert not np.isfinite(value) and np.isnan(gradient).all()


@pytest.mark.stan
def test_where_nothing_is_probable_the_density_is_zero(simplex):
    """Without a rejection: a log density of -inf, for JAX, for NumPy and for BridgeStan's package."""
    vector = jnp.zeros(simplex.size).at[2:5].set(1e200)  # the means
    value, gradient = jax.jit(jax.value_and_grad(simplex.log_density))(vector)
    assert value == -np.inf and not np.isfinite(gradient[2:5]).any()
    both = jax.vmap(simplex.log_density)(jnp.stack([vector, jnp.zeros(simplex.size)]))
    assert both[0] == -np.inf and np.isfinite(both[1])
    library = simplex.calls.library
    assert library.log_density(np.asarray(vector)) == -np.inf
    if simplex.target.stan_program.engine == "stanli":
        return
    model = bridgestan.StanModel(library.file, MIXED, warn=False)
    assert model.log_density(np.asarray(vector)) == -np.inf
    assert model.log_density_gradient(np.asarray(vector))[0] == -np.inf


@pytest.mark.stan
def test_free_simplexes_add_one_normal_coordinate(simplex, engine):
    """Softmax turns Stan's coordinates and adds an independent N(0, 1) along (1, ..., 1)."""
    symmetry = (Exchangeable({"weight": 0, "mu": 0, "sigma": 0}),)
    free = layout_of(bound(mixture(symmetry), engine)).density
    assert free.size == simplex.size + 1

    def expected(vector: jax.Array) -> jax.Array:
        along = jnp.sum(free.unravel(vector)["weight"]) / np.sqrt(3)
        normal = -0.5 * along**2 - 0.5 * np.log(2 * np.pi)
        return simplex.log_density(simplex.unconstrain(free.constrain(vector))) + normal

    vectors = points(free, 3)  # type: ignore[arg-type]
    value, gradient = jax.jit(jax.vmap(jax.value_and_grad(free.log_density)))(vectors)
    np.testing.assert_allclose(value, jax.jit(jax.vmap(expected))(vectors), rtol=1e-10)
    heights = jax.jit(jax.vmap(jax.vmap(free.log_density)))
    step = 1e-5 * jnp.eye(free.size)[None]
    up, down = (heights(vectors[:, None] + sign * step) for sign in (1, -1))
    np.testing.assert_allclose(gradient, (up - down) / 2e-5, rtol=1e-6, atol=1e-6)


@pytest.mark.stan
@pytest.mark.slow
def test_calls_leave_nothing_behind(known):
    """100,000 gradients, as many rejections with their messages, and values."""

    @jax.jit
    def calls(vector: jax.Array) -> jax.Array:
        def one(_: jax.Array, total: jax.Array) -> jax.Array:
            gradient = jax.grad(known.log_density)(vector + 0 * total)
            return total + jnp.nansum(gradient) + jnp.nansum(known.constrain(vector)["tau"])

        return jax.lax.fori_loop(0, 100_000, one, jnp.zeros(()))

    for vector in (jnp.zeros(3), jnp.array([jnp.nan, 0.0, 0.0])):
        calls(vector).block_until_ready()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        calls(vector).block_until_ready()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 4000  # kilobytes; a message alone has a hundred bytes, so 10,000 of them


def normal() -> None:
    numpyro.sample("mu", dist.Normal(0, 2).expand([3]).to_event(1))
    numpyro.sample("sigma", dist.Exponential(1.5))


TARGET = ob.Target("normal", numpyro_model=normal)


def closed_form(mu, sigma):
    prior = -0.5 * (mu / 2) ** 2 - np.log(2 * np.sqrt(2 * np.pi))
    return prior.sum(axis=-1) + np.log(1.5) - 1.5 * sigma


@pytest.fixture
def draws(rng) -> xr.Dataset:
    mu, sigma = rng.normal(size=(2, 5, 3)), rng.exponential(size=(2, 5))
    return xr.Dataset({"mu": (("chain", "draw", "k"), mu), "sigma": (("chain", "draw"), sigma)})


def test_is_the_closed_form_at_every_draw_and_at_one_point(draws):
    found = ob.log_density(TARGET, draws)
    assert found.dims == ("chain", "draw")
    assert found.dtype == np.float64
    expected = closed_form(draws["mu"].values, draws["sigma"].values)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    one = ob.log_density(TARGET, {"mu": [0.1, -0.2, 3.0], "sigma": 0.5})
    assert one.dims == ()
    tree = xr.DataTree.from_dict({"posterior": draws})
    for same in (tree, tree["posterior"]):
        np.testing.assert_array_equal(ob.log_density(TARGET, same), found)
    assert ob.log_density(TARGET, {"mu": [0.0, 0.0, 0.0], "sigma": -1.0}) == -np.inf
    np.testing.assert_allclose(one, closed_form(np.array([0.1, -0.2, 3.0]), 0.5), rtol=1e-10)


PROGRAM = """
data { int<lower=1> n; vector[n] x; int<lower=1> m; vector[m] x_new; }
parameters { vector[2] beta; real<lower=0> sigma; }
transformed parameters { real slope = beta[2]; }
model { beta ~ normal(0, 1); sigma ~ normal(0, 1); x ~ normal(beta[1], sigma); }
generated quantities {
  vector[m] mean_new = beta[1] + beta[2] * x_new;
  array[m] real y_new = normal_rng(mean_new, sigma);
}
"""
DATA = {"n": 3, "x": [0.1, 0.4, -0.2], "m": 2, "x_new": [1.0, 2.0]}


@pytest.fixture
def line() -> ob.Target:
    return ob.stan_program(PROGRAM, DATA, dims={"mean_new": ("place",)})


@pytest.fixture
def line_draws(rng) -> xr.Dataset:
    beta, sigma = rng.normal(size=(2, 5, 2)), rng.uniform(0.5, 2, size=(2, 5))
    dims = ("chain", "draw")
    return xr.Dataset({"beta": ((*dims, "part"), beta), "sigma": (dims, sigma)})


def test_quantities_follow_from_the_draws(line, line_draws):
    found = ob.generated_quantities(line, line_draws, seed=1)
    beta = line_draws["beta"].values
    np.testing.assert_allclose(found["slope"], beta[..., 1], rtol=1e-12)
    want = beta[..., :1] + beta[..., 1:] * np.array([1.0, 2.0])
    np.testing.assert_allclose(found["mean_new"], want, rtol=1e-12)
    assert found["mean_new"].dims == ("chain", "draw", "place")
    assert set(found) == {"slope", "mean_new", "y_new"}


def test_new_data_replace_old_and_random_numbers_follow_the_seed(line, line_draws):
    new = {"m": 3, "x_new": [0.0, -1.0, 5.0]}
    one, again, other = (ob.generated_quantities(line, line_draws, new, seed=s) for s in (1, 1, 2))
    assert one["y_new"].shape == (2, 5, 3)
    np.testing.assert_array_equal(one["y_new"], again["y_new"])
    assert not np.isclose(one["y_new"], other["y_new"]).any()
    errors = (one["y_new"] - one["mean_new"].values) / line_draws["sigma"]
    assert len(np.unique(errors)) == errors.size
