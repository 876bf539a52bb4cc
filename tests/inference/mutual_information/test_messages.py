"""Free energies against the exact permanent on their side, and the rounding that keeps them there."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from onebasin.inference.mutual_information.estimators import exact
from onebasin.inference.mutual_information.messages import (
    balanced,
    converged_marginals,
    doubly_stochastic,
    free_energy,
    marginals,
    training_marginals,
)
from onebasin.inference.mutual_information.permanent import log_permanent
from onebasin.inference.mutual_information.ratios import log_ratios

from ...each import each
from .cases import assert_derivative, parts


def matrices(rng: np.random.Generator, size: int, number: int = 60) -> jax.Array:
    """A third normal, a third Cauchy, a third near 0 and 1, on which undamped messages can cycle."""
    shape = (number // 3, size, size)
    near = np.where(rng.uniform(size=shape) < 0.5, 0.0, -30.0) + 1e-3 * rng.standard_normal(shape)
    return jnp.asarray(
        np.concatenate([2 * rng.standard_normal(shape), rng.standard_cauchy(shape), near])
    )


@each("max_sweeps", [1, 1000])
def test_bethe_is_below_matrix_by_matrix(rng, max_sweeps):
    """Converged or not; converged Bethe is within (H / 2) log 2 (Anari and Rezaei 2019)."""
    cases = matrices(rng, 6)

    @jax.jit
    @jax.vmap
    def energy(matrix: jax.Array) -> jax.Array:
        found = converged_marginals(matrix, max_sweeps=max_sweeps)
        return free_energy(matrix, doubly_stochastic(found))

    bethe = energy(cases)
    truth = jax.jit(jax.vmap(log_permanent))(cases)
    slack = 1e-9 * np.abs(truth).max()
    assert (bethe <= truth + slack).all() and (bethe < truth - 0.1).any()
    if max_sweeps > 1:
        assert (bethe >= truth - 3 * np.log(2) - 1e-6).all()


def test_bethe_of_equal_parts_has_a_closed_form():
    """Uniform marginals: n log n + n (n - 1) log(1 - 1/n), plus what every permutation adds."""
    matrix = jnp.full((5, 5), 0.3)
    found = doubly_stochastic(jax.jit(converged_marginals)(matrix))
    np.testing.assert_allclose(found, 0.2, rtol=1e-10)
    expected = 5 * np.log(5) + 20 * np.log(0.8) + 1.5
    np.testing.assert_allclose(free_energy(matrix, found), expected, rtol=1e-10)


def test_derivative_of_the_free_energy_is_its_beliefs(rng):
    """Envelope theorem, against finite differences of the whole iteration."""
    matrix = rng.standard_normal((4, 4))

    @jax.jit
    def energy(matrix: jax.Array) -> jax.Array:
        return free_energy(matrix, doubly_stochastic(converged_marginals(matrix)))

    assert_derivative(energy, matrix, [(0, 0), (1, 3)], step=1e-4)


def test_derivative_through_sweeps_is_that_of_finite_differences(rng):
    matrix = rng.standard_normal((4, 4))
    weights = jnp.asarray(rng.standard_normal((4, 4)))

    @jax.jit
    def total(matrix: jax.Array) -> jax.Array:
        return jnp.sum(weights * marginals(matrix, sweeps=4))

    assert_derivative(total, matrix, [(0, 0), (3, 1)])


def test_rounding_is_doubly_stochastic_and_leaves_what_is(rng):
    rough = rng.uniform(size=(5, 5))
    rounded = doubly_stochastic(jnp.log(jnp.asarray(rough)))
    np.testing.assert_allclose(rounded.sum(0), 1.0, rtol=1e-10)
    np.testing.assert_allclose(rounded.sum(1), 1.0, rtol=1e-10)
    np.testing.assert_allclose(doubly_stochastic(jnp.log(rounded)), rounded, rtol=1e-10)


def log_domain(matrix: np.ndarray, sweeps: int) -> np.ndarray:
    """Undamped messages of c = 3/4 as their formula states them."""

    def answer(scores: np.ndarray, axis: int) -> np.ndarray:
        total = logsumexp(scores, axis=axis, keepdims=True)
        return -total - 0.75 * np.log1p(-np.exp(scores - total))

    rows = np.zeros_like(matrix)
    for _ in range(sweeps):
        rows = answer(matrix + answer(matrix + rows, 0), 1)
    columns = matrix + answer(matrix + rows, 0)
    return columns - logsumexp(columns, axis=1, keepdims=True)


@each("flips", [False, True])
def test_messages_as_numbers_are_those_in_the_log_domain(flips):
    """Sweep by sweep, of parts that overlap."""
    ratios = parts(5, 3.0, draws=20, seed=2).ratios(flips=flips)
    expected = np.stack([log_domain(np.asarray(matrix), 4) for matrix in ratios.total])
    found = jax.jit(jax.vmap(partial(marginals, sweeps=4)))(ratios.total)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
    beliefs = jax.jit(partial(training_marginals, sweeps=4))(ratios)
    same = jax.vmap(balanced)(jnp.asarray(expected))
    np.testing.assert_allclose(beliefs, same, rtol=1e-8, atol=1e-10)


@each("dtype", [jnp.float32, jnp.float64])
def test_training_marginals_are_near_the_exact_ones(dtype):
    """The error of the fraction c, measured: 0.136 at worst; neither the identity nor uniform would do."""
    ratios = parts(8, 5.0, draws=100, seed=3).ratios()
    truth = jax.jit(exact)(jax.random.key(0), ratios).marginals
    found = jax.jit(training_marginals)(jax.tree.map(lambda x: x.astype(dtype), ratios))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, truth, atol=0.15)
    assert np.abs(truth - jnp.eye(8)[None]).max() > 0.5 and np.abs(truth - 1 / 8).max() > 0.5


@each("dtype", [jnp.float32, jnp.float64])
@each("spread", [0.0, 1.0, 1e3, 1e6])
def test_training_marginals_are_doubly_stochastic_at_any_range(rng, spread, dtype):
    """Columns of any matrix; rows too of matrices below their diagonals, as those of draws from q are."""
    matrix = jnp.asarray(spread * rng.standard_normal((6, 7, 7)), dtype)
    for density in (matrix, -jnp.abs(matrix) * (1.0 - jnp.eye(7, dtype=dtype))[None]):
        found = jax.jit(training_marginals)(log_ratios(density))
        assert found.dtype == dtype and (found >= 0).all()
        np.testing.assert_allclose(found.sum(1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(found.sum(2), 1.0, rtol=1e-5)
    # The last one at the largest ranges is the identity.
    if spread > 1e5:
        np.testing.assert_allclose(found, np.broadcast_to(np.eye(7), found.shape), atol=1e-6)


def test_one_part_is_certain():
    np.testing.assert_allclose(training_marginals(log_ratios(jnp.zeros((2, 1, 1)))), 1, rtol=1e-12)
