"""The information of whole approximations: values, intervals and training gradients against sums over the group."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onebasin.inference import Symmetrised
from onebasin.inference.variational.gaussians import MeanField, layout_of
from onebasin.inference.variational.term import Information, choose_estimator

from .problems import by_sum, layout, regression

pytestmark = pytest.mark.full

Parameters = dict[str, jax.Array]


@cache
def made(name: str, estimator: str) -> tuple[Information, Parameters]:
    """An approximation whose parts are neither alike nor far apart."""
    q = MeanField(layout(name).density.size)
    p = q.initial(0.6 * jax.random.normal(jax.random.key(3), (layout(name).density.size,)), 0.5)
    return Information(layout(name), q, estimator, Symmetrised(permutations=20)), p


def draws_of(family: MeanField, p: Parameters, num: int, seed: int = 0) -> jax.Array:
    return family.transform(p, jax.random.normal(jax.random.key(seed), (num, family.size)))


@pytest.mark.parametrize("name", ["sign flips", "mixture", "complement"])
def test_value_is_the_sum_over_the_group(name):
    information, p = made(name, "none")
    draws = draws_of(information.family, p, 400)
    truth = by_sum(information.layout, information.family, p, draws)
    found = np.asarray(jax.jit(information.value)(p, jax.random.key(0), draws))
    assert information.side == "exact"
    # The control variate has mean zero, and is there in one of the two alone.
    difference = found - truth
    assert abs(difference.mean()) < 5 * difference.std() / np.sqrt(400) + 1e-9
    assert 0 < truth.mean() < information.layout.log_order


@pytest.mark.parametrize("name", ["transition matrix", "binary weight"])
def test_small_groups_are_gone_through(name):
    """Where parts are coupled by the symmetry."""
    information, p = made(name, "exact")
    draws = draws_of(information.family, p, 50)
    truth = by_sum(information.layout, information.family, p, draws)
    found = jax.jit(information.value)(p, jax.random.key(0), draws)
    np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-9)
    term = jax.jit(information.term)(p, jax.random.key(0), draws)
    assert float(term) == pytest.approx(truth.mean(), rel=1e-9)
    both = jax.jit(information.report)(p, jax.random.key(0), draws)
    assert float(both.lower) == float(both.upper)


def test_report_of_two_layers_encloses_the_truth():
    information, p = made("two layers, sign flips", "none")
    draws = draws_of(information.family, p, 300)
    truth = by_sum(information.layout, information.family, p, draws).mean()
    both = jax.jit(information.report)(p, jax.random.key(0), draws)
    assert float(both.lower) - 5 * float(both.lower_mcse) < truth
    assert truth < float(both.upper) + 5 * float(both.upper_mcse)
    assert float(both.lower) > 0.5 * truth
    assert float(both.upper) < information.layout.log_order


def gradients(information: Information, p: Parameters, num: int, seed: int) -> np.ndarray:
    """Training gradients (draw, entry), each from one draw of its own."""

    def one(key: jax.Array) -> jax.Array:
        def value(p: Parameters) -> jax.Array:
            key_eps, key_term = jax.random.split(key)
            eps = jax.random.normal(key_eps, (1, information.family.size))
            return information.term(p, key_term, information.family.transform(p, eps))

        slopes = jax.grad(value)(p)
        return jnp.concatenate([slopes[n].ravel() for n in sorted(slopes)])

    keys = jax.random.split(jax.random.key(seed), num)
    return np.asarray(jax.jit(lambda ks: jax.lax.map(one, ks, batch_size=500))(keys))


@cache
def true_gradient(name: str) -> np.ndarray:
    """Derivatives of the sum over all elements, through the draws."""
    information, p = made(name, "exact")
    q = information.family

    def one(eps: jax.Array) -> jax.Array:
        slopes = jax.grad(lambda p: information.enumerated(p, q.transform(p, eps[None]))[0])(p)
        return jnp.concatenate([slopes[n].ravel() for n in sorted(slopes)])

    eps = jax.random.normal(jax.random.key(11), (20_000, q.size))
    return np.asarray(jax.jit(lambda e: jax.lax.map(one, e, batch_size=500))(eps))


@pytest.mark.parametrize(
    "name", ["sign flips", "complement", pytest.param("one layer", marks=pytest.mark.slow)]
)
def test_term_has_the_gradient_of_the_information(name):
    information, p = made(name, "exact")
    found = gradients(information, p, 20_000, seed=1)
    truth = true_gradient(name)
    error = np.sqrt(found.var(axis=0) / len(found) + truth.var(axis=0) / len(truth))
    assert np.all(np.abs(found.mean(axis=0) - truth.mean(axis=0)) < 5 * error + 1e-12)
    assert np.linalg.norm(truth.mean(axis=0)) > 20 * np.linalg.norm(error) / np.sqrt(error.size)


def test_the_fractional_term_points_where_the_information_grows():
    information, p = made("one layer", "fractional")
    truth = true_gradient("one layer").mean(axis=0)
    found = gradients(information, p, 5_000, seed=1).mean(axis=0)
    assert np.linalg.norm(found - truth) / np.linalg.norm(truth) < 0.2


@pytest.mark.parametrize("name", ["one layer", "two layers"])
def test_infonce_term_is_the_gradient_of_its_bound(name):
    """With a fixed key and draw, finite differences of the bound itself."""
    information, p = made(name, "infonce")
    eps = jax.random.normal(jax.random.key(2), (3, information.family.size))

    @jax.jit
    @jax.value_and_grad
    def bound(p: Parameters) -> jax.Array:
        return information.term(p, jax.random.key(4), information.family.transform(p, eps))

    slope = bound(p)[1]["loc"][2]
    step = jnp.zeros_like(p["loc"]).at[2].set(1e-5)
    upper, lower = (float(bound(p | {"loc": p["loc"] + sign * step})[0]) for sign in (1, -1))
    assert float(slope) == pytest.approx((upper - lower) / 2e-5, rel=1e-5)


def test_two_layers_train_on_the_better_chain():
    information, p = made("two layers", "exact")
    draws = draws_of(information.family, p, 50)
    chains = information.layout.chains()
    key = jax.random.key(0)

    def chain_term(p, chain):
        return sum(information._part(p, key, draws, columns) for columns in chain)

    @jax.jit
    def every(p):
        values = [information._chain_values(p, key, draws, c).mean() for c in chains]
        slopes = [jax.grad(lambda p, c=c: chain_term(p, c))(p) for c in chains]
        found = jax.grad(lambda p: information.term(p, key, draws))(p)
        return values, [slope["loc"] for slope in slopes], found["loc"]

    values, slopes, found = every(p)
    better = int(np.argmax(values))
    np.testing.assert_allclose(found, slopes[better], rtol=1e-9)
    assert not np.allclose(slopes[0], slopes[1])


def test_auto_follows_the_width():
    twelve, thirteen = (layout_of(regression((hidden,))) for hidden in (12, 13))
    for of, choice in (
        (twelve, "exact"),
        (thirteen, "fractional"),
        (layout("transition matrix"), "exact"),
    ):
        assert choose_estimator("auto", of) == choice
