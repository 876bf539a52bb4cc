"""A Stan program's log density in JAX: values and gradients of its library, batches, charts, and what is rejected."""

import resource

import bridgestan
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import onebasin as ob
from onebasin.inference.contracts.method import bound
from onebasin.inference.density.stan_vectors import StanVectors
from onebasin.inference.variational.gaussians import layout_of
from onebasin.models import Exchangeable, Target

from ..examples import FREE_MIXTURE
from ..known import known_target

pytestmark = pytest.mark.stan


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


def test_values_and_gradients_are_the_librarys(known):
    vectors = points(known)
    values, gradients = known.calls.library.log_density_gradient(vectors, propto=False)
    one = jax.value_and_grad(known.log_density)
    np.testing.assert_array_equal(one(vectors[2])[0], values[2])
    np.testing.assert_array_equal(one(vectors[2])[1], gradients[2])
    for found in (
        jax.vmap(one)(vectors),
        jax.jit(jax.vmap(one))(vectors),
        jax.lax.map(one, vectors),
    ):
        np.testing.assert_array_equal(found[0], values)
        np.testing.assert_array_equal(found[1], gradients)


def test_the_log_density_is_complete(known):
    """With all constants: that of the NumPyro model, whose transform of a positive number is Stan's."""
    other = ob.jax_density(known_target("numpyro"))
    there = jax.jit(jax.vmap(lambda v: other.log_density(other.unconstrain(known.constrain(v)))))
    vectors = points(known, 3)
    np.testing.assert_allclose(jax.vmap(known.log_density)(vectors), there(vectors), rtol=1e-12)


def test_second_derivatives_are_those_of_gradients(known):
    vector = points(known, 1)[0]
    other = ob.jax_density(known_target("numpyro"))
    # places of x and tau differ in the two vectors
    places = np.concatenate([other.places()[name].ravel() for name in known.names])  # type: ignore[attr-defined]
    there = jnp.zeros(known.size).at[places].set(vector)
    expected = jax.jit(jax.hessian(other.log_density))(there)[np.ix_(places, places)]
    found = jax.jit(jax.hessian(known.log_density))(vector)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_constrain_and_unconstrain_are_inverse(simplex):
    vectors = points(simplex)
    values = jax.jit(jax.vmap(simplex.constrain))(vectors)
    assert {n: value.shape for n, value in values.items()} == dict.fromkeys(values, (7, 3))
    np.testing.assert_allclose(values["weight"].sum(axis=-1), 1.0, rtol=1e-12)
    back = jax.vmap(simplex.unconstrain)(values)
    np.testing.assert_allclose(back, vectors, rtol=1e-9, atol=1e-9)
    ones = dict.fromkeys(("mu", "sigma"), jnp.ones(3))
    assert np.isnan(simplex.unconstrain({"weight": jnp.array([2.0, -1.0, 0.0]), **ones})).any()


def test_a_point_that_is_rejected_has_no_density(known):
    vector = jnp.array([0.0, 0.0, jnp.nan])
    value, gradient = jax.value_and_grad(known.log_density)(vector)
    assert not np.isfinite(value) and np.isnan(gradient).all()


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
