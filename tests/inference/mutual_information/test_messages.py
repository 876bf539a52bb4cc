"""Free energies against the exact permanent on their side, and the rounding that keeps them there."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onebasin.inference.mutual_information import exact, log_ratios
from onebasin.inference.mutual_information.messages import (
    balanced,
    converged_marginals,
    doubly_stochastic,
    free_energy,
    marginals,
    sinkhorn_bound,
    training_marginals,
)
from onebasin.inference.mutual_information.permanent import (
    log_permanent,
    log_permanent_and_marginals,
)

from ...each import each
from .cases import parts


def matrices(rng: np.random.Generator, size: int, number: int = 60) -> jax.Array:
    """A third normal, a third Cauchy, a third near 0 and 1, on which undamped messages can cycle."""
    shape = (number // 3, size, size)
    near = np.where(rng.uniform(size=shape) < 0.5, 0.0, -30.0) + 1e-3 * rng.standard_normal(shape)
    return jnp.asarray(
        np.concatenate([2 * rng.standard_normal(shape), rng.standard_cauchy(shape), near])
    )


@each("max_sweeps", [1, 1000])
def test_bethe_is_below_and_sinkhorn_above_matrix_by_matrix(rng, max_sweeps):
    """Converged or not; converged Bethe is within (H / 2) log 2 (Anari and Rezaei 2019)."""
    cases = matrices(rng, 6)

    @jax.jit
    @jax.vmap
    def both(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = converged_marginals(matrix, fraction=1.0, max_sweeps=max_sweeps)
        beliefs = doubly_stochastic(found)
        return free_energy(matrix, beliefs, fraction=1.0), sinkhorn_bound(matrix, sweeps=20)[0]

    bethe, sinkhorn = both(cases)
    truth = jax.jit(jax.vmap(log_permanent))(cases)
    slack = 1e-9 * np.abs(truth).max()
    assert (bethe <= truth + slack).all() and (bethe < truth - 0.1).any()
    assert (sinkhorn >= truth - slack).all() and (sinkhorn > truth + 0.1).any()
    if max_sweeps > 1:
        assert (bethe >= truth - 3 * np.log(2) - 1e-6).all()


def test_half_is_exact_for_two_parts(rng):
    """The closed form: log odds of the two permutations are those of the marginals at c = 1/2."""
    matrix = jnp.asarray(rng.standard_normal((2, 2)))
    found = jax.jit(lambda m: converged_marginals(m, fraction=0.5))(matrix)
    value, truth = jax.jit(log_permanent_and_marginals)(matrix)
    np.testing.assert_allclose(jnp.exp(found), truth, rtol=1e-8)
    energy = free_energy(matrix, doubly_stochastic(found), fraction=0.5)
    np.testing.assert_allclose(energy, value, rtol=1e-8)


def _assert_derivative(
    function: Callable[[jax.Array], jax.Array],
    matrix: np.ndarray,
    entries: list[tuple[int, int]],
    *,
    step: float,
) -> None:
    """Hold entries of the gradient against central differences."""
    found = jax.grad(function)(jnp.asarray(matrix))
    for entry in entries:
        bump = np.zeros(matrix.shape)
        bump[entry] = step
        rise = function(jnp.asarray(matrix + bump)) - function(jnp.asarray(matrix - bump))
        np.testing.assert_allclose(2 * found[entry], rise / step, rtol=1e-6)


@each("fraction", [0.5, 1.0])
def test_derivative_of_a_free_energy_is_its_beliefs(rng, fraction):
    """Envelope theorem, against finite differences of the whole iteration."""
    matrix = rng.standard_normal((4, 4))

    @jax.jit
    def energy(matrix: jax.Array) -> jax.Array:
        found = converged_marginals(matrix, fraction=fraction)
        return free_energy(matrix, doubly_stochastic(found), fraction=fraction)

    _assert_derivative(energy, matrix, [(0, 0), (1, 3)], step=1e-4)


def test_derivative_through_sweeps_is_that_of_finite_differences(rng):
    matrix = rng.standard_normal((4, 4))
    weights = jnp.asarray(rng.standard_normal((4, 4)))

    @jax.jit
    def total(matrix: jax.Array) -> jax.Array:
        return jnp.sum(weights * marginals(matrix, fraction=0.75, sweeps=4))

    _assert_derivative(total, matrix, [(0, 0), (3, 1)], step=1e-5)


def test_rounding_is_doubly_stochastic_and_leaves_what_is(rng):
    rough = rng.uniform(size=(5, 5))
    rounded = doubly_stochastic(jnp.log(jnp.asarray(rough)))
    np.testing.assert_allclose(rounded.sum(0), 1.0, rtol=1e-10)
    np.testing.assert_allclose(rounded.sum(1), 1.0, rtol=1e-10)
    np.testing.assert_allclose(doubly_stochastic(jnp.log(rounded)), rounded, rtol=1e-10)


@each(("fraction", "flips"), [(0.5, True), (0.75, False), (1.0, True)])
def test_messages_as_numbers_are_those_in_the_log_domain(fraction, flips):
    """Sweep by sweep, of parts that overlap: two codes of the same undamped messages."""
    ratios = parts(5, 3.0, draws=20, seed=2).ratios(flips=flips)

    def logs(matrix: jax.Array) -> jax.Array:
        return converged_marginals(matrix, fraction=fraction, max_sweeps=4, damping=0.0)

    def numbers(matrix: jax.Array) -> jax.Array:
        return marginals(matrix, fraction=fraction, sweeps=4)

    expected = jax.jit(jax.vmap(logs))(ratios.total)
    found = jax.jit(jax.vmap(numbers))(ratios.total)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
    beliefs = jax.jit(partial(training_marginals, fraction=fraction, sweeps=4))(ratios)
    same = jax.vmap(balanced)(expected)
    np.testing.assert_allclose(beliefs, same, rtol=1e-8, atol=1e-10)


@each("dtype", [jnp.float32, jnp.float64])
def test_training_marginals_are_near_the_exact_ones(dtype):
    """The error of the fraction c, measured: 0.136 at worst; neither the identity nor uniform would do."""
    ratios = parts(8, 5.0, draws=100, seed=3).ratios()
    truth = jax.jit(exact())(jax.random.key(0), ratios).marginals
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


def test_one_part_is_certain_and_a_fraction_out_of_range_is_refused():
    np.testing.assert_allclose(training_marginals(log_ratios(jnp.zeros((2, 1, 1)))), 1, rtol=1e-12)
    with pytest.raises(ValueError, match=r"`fraction` is -0\.5; it must be between 0 and 1"):
        training_marginals(log_ratios(jnp.zeros((1, 2, 2))), fraction=-0.5)
