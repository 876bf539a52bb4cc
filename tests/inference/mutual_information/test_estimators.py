"""Every estimator on its side of the literal sum over the group, with and without sign flips."""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onebasin.inference.mutual_information.estimators import (
    Estimate,
    LogRatios,
    exact,
    infonce,
    information,
    log_ratios,
)

from .cases import Parts, brute_force, in_mcse, parts

DRAWS = 6_000
ESTIMATORS = {
    "exact": exact,
    "infonce2": partial(infonce, num_permutations=2),
    "infonce": partial(infonce, num_permutations=6),
    "infonce100": partial(infonce, num_permutations=100),
}
COMPILED = {name: jax.jit(estimator) for name, estimator in ESTIMATORS.items()}


@lru_cache
def case(flips: bool) -> tuple[Parts, LogRatios, np.ndarray]:
    """Parts that overlap, and l(w) by the literal sum."""
    found = parts(4, 4.0, features=1, draws=DRAWS) if flips else parts(4, 1.5, draws=DRAWS)
    return found, found.ratios(flips=flips), brute_force(found, flips=flips)


@lru_cache
def estimate(name: str, flips: bool) -> Estimate:
    """Estimators do not look at `flips`: one compilation serves both."""
    ratios = case(flips)[1]._replace(flip_probability=None)
    return COMPILED[name](jax.random.key(5), ratios)


def errors(name: str) -> np.ndarray:
    """Error of I, draw by draw."""
    found = np.asarray(estimate(name, False).log_sum)
    return case(False)[2][: len(found)] - found


@pytest.mark.parametrize(("size", "flips"), [(1, True), (2, False), (4, True), (7, False)])
def test_exact_is_the_literal_sum(size, flips):
    found = parts(min(size, 5) if flips else size, 1.0, draws=7, seed=size)
    value = jax.jit(exact)(jax.random.key(0), found.ratios(flips=flips)).log_sum
    np.testing.assert_allclose(value, brute_force(found, flips=flips), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["infonce2", "infonce"])
def test_infonce_is_a_lower_bound_in_expectation(name):
    """By more than chance, so that a bound turned round would show."""
    assert in_mcse(-errors(name)) > 5


def test_infonce_rises_to_the_truth():
    """As long as log K is far above the information."""
    few, some, many = map(errors, ("infonce2", "infonce", "infonce100"))
    assert in_mcse(some - few) > 5
    assert in_mcse(many - some) > 5
    assert in_mcse(many) < 5
    np.testing.assert_allclose(many.mean(), 0.0, atol=0.1)


@pytest.mark.parametrize("flips", [False, True])
@pytest.mark.parametrize("name", ["exact", "infonce"])
def test_control_variate_has_mean_zero_and_takes_noise_away(name, flips):
    found, ratios = estimate(name, flips), case(flips)[1]
    control = np.asarray(found.control)
    assert control.std() > 0.1
    assert abs(in_mcse(control)) < 5
    plain = information(ratios, found, control_variate=False)
    if name == "exact":
        assert information(ratios, found).std() < 0.8 * plain.std()


@pytest.mark.parametrize("delta", [0.0, 0.3, 1e4])
@pytest.mark.parametrize("flips", [False, True])
def test_information_is_between_zero_and_the_groups_order(delta, flips):
    """Equal parts gain nothing without flips, far ones everything; a literal check at both ends."""
    found = parts(4, delta, draws=200)
    found = Parts(found.loc, np.ones_like(found.loc), 200, 3)
    ratios = found.ratios(flips=flips)
    value = information(ratios, jax.jit(exact)(jax.random.key(0), ratios), control_variate=False)
    order = np.log(24) + flips * 4 * np.log(2)
    np.testing.assert_allclose(ratios.log_group_order, order, rtol=1e-12)
    assert -1e-9 < value.mean() < order + 1e-9
    if delta != 0.3:
        np.testing.assert_allclose(value, order if delta else 0.0, atol=1e-9)


def wide(dtype: type) -> jax.Array:
    """Alike, near twins, usual, and far: log densities of ranges up to 1e6."""
    rng = np.random.default_rng(7)
    noise = rng.standard_normal((5, 6, 6))
    twins = np.kron(np.eye(3), np.ones((2, 2))) * 1e3
    return jnp.asarray(
        np.stack([0 * noise[0], twins, noise[1], 1e3 * noise[2], 1e6 * noise[3]]), dtype
    )


FEW = {"exact": exact, "infonce": partial(infonce, num_permutations=3)}


@pytest.mark.parametrize("name", FEW)
def test_values_and_gradients_are_finite_at_any_range(name):
    """In single precision. P times a cotangent of one is the gradient.

    Flips are taken into the ratios, before any estimator, and tried with the exact one.
    """

    def gradient_of(density: jax.Array, *, flips: bool = False) -> tuple[jax.Array, Estimate]:
        def total(density: jax.Array) -> tuple[jax.Array, Estimate]:
            found = FEW[name](jax.random.key(0), log_ratios(density, -density if flips else None))
            return found.log_sum.sum(), found

        gradient, found = jax.jit(jax.grad(total, has_aux=True))(density)
        assert found.log_sum.dtype == jnp.float32
        for array in (gradient, *jax.tree.leaves(found)):
            assert np.isfinite(array).all()
        return gradient, found

    gradient, found = gradient_of(wide(jnp.float32))
    if name == "exact":
        gradient_of(wide(jnp.float32), flips=True)
    own = np.eye(6)[None] * np.asarray(found.marginals).sum(1)[:, None, :]
    # Single precision: rounded at the scale of a probability, not of the entry.
    np.testing.assert_allclose(gradient, found.marginals - own, atol=2e-6)
