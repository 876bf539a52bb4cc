"""The proposal: normalised, drawn from as it says, equivariant, and right in both limits."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp
from scipy.stats import chi2

from onebasin.inference.mutual_information.messages import log_probability, propose, sample

from ...each import each
from .cases import all_permutations

PROPOSE = jax.jit(propose)
LOG_PROBABILITIES = jax.jit(jax.vmap(log_probability, in_axes=(None, 0)))


@each("size", [1, 5])
@each("spread", [0.5, 5.0])
def test_probabilities_sum_to_one(rng, size, spread):
    proposal = PROPOSE(jnp.asarray(spread * rng.standard_normal((size, size))))
    each = jnp.asarray(all_permutations(size))
    logs = LOG_PROBABILITIES(proposal, each)
    np.testing.assert_allclose(jnp.exp(logs).sum(), 1.0, rtol=1e-10)


def test_draws_have_the_probabilities_that_are_said(rng):
    """Frequencies by a chi-squared test; what a draw says of itself is what the permutation gets."""
    proposal = PROPOSE(jnp.asarray(rng.standard_normal((3, 3))))
    keys = jax.random.split(jax.random.key(1), 20_000)
    drawn, said = jax.jit(jax.vmap(lambda key: sample(key, proposal)))(keys)
    each = all_permutations(3)
    logs = np.asarray(LOG_PROBABILITIES(proposal, jnp.asarray(each)))
    which = (np.asarray(drawn)[:, None, :] == each[None]).all(-1)
    assert (which.sum(1) == 1).all()
    np.testing.assert_allclose(said, logs[which.argmax(1)], rtol=1e-10)
    expected = 20_000 * np.exp(logs)
    statistic = ((which.sum(0) - expected) ** 2 / expected).sum()
    assert statistic < 30.9  # Five degrees of freedom, probability 1e-5.


def test_draws_among_many_columns_have_their_probabilities(rng):
    """More than one stretch: what the first row takes, by a chi-squared test; every draw is a permutation."""
    proposal = PROPOSE(jnp.asarray(2 * rng.standard_normal((70, 70))))
    keys = jax.random.split(jax.random.key(2), 6000)
    drawn, said = jax.jit(jax.vmap(lambda key: sample(key, proposal)))(keys)
    assert (np.sort(drawn, axis=1) == np.arange(70)).all()
    np.testing.assert_allclose(said, LOG_PROBABILITIES(proposal, drawn), rtol=1e-9)
    weights = np.asarray(proposal.log_weights[0])
    expected = 6000 * np.exp(weights - logsumexp(weights))
    found = np.bincount(np.asarray(drawn)[:, proposal.order[0]], minlength=70)
    common = expected > 5
    statistic = ((found - expected)[common] ** 2 / expected[common]).sum()
    assert common[:32].any() and common[64:].any()
    assert statistic < chi2.isf(1e-5, common.sum())


@each("dtype", [jnp.float32, jnp.float64])
def test_draws_are_permutations_at_any_range(rng, dtype):
    """Most columns underflow beside the best one, and some of them must be taken in the end."""
    proposal = PROPOSE(jnp.asarray(1e6 * rng.standard_normal((40, 40)), dtype))
    keys = jax.random.split(jax.random.key(3), 200)
    drawn, said = jax.jit(jax.vmap(lambda key: sample(key, proposal)))(keys)
    assert (np.sort(drawn, axis=1) == np.arange(40)).all()
    assert said.dtype == dtype and np.isfinite(said).all()


@each("spread", [0.1, 1.0, 20.0])
def test_permuted_columns_permute_the_proposal(rng, spread):
    """With every column scaled at the same time, as log ratios of a relabelled draw are."""
    matrix, order = spread * rng.standard_normal((5, 5)), np.array([3, 0, 4, 1, 2])
    relabelled = matrix[:, order] - matrix[np.arange(5), order][None, :]
    before, after = (PROPOSE(jnp.asarray(m)) for m in (matrix, relabelled))
    each = all_permutations(5)
    new_place = np.argsort(order)
    old = LOG_PROBABILITIES(before, jnp.asarray(each))
    new = LOG_PROBABILITIES(after, jnp.asarray(new_place[each]))
    # A marginal of 1 - 1e-10 keeps six digits of the rest, whose log is part of what is improbable.
    np.testing.assert_allclose(new, old, rtol=1e-9, atol=1e-11 if spread < 2 else 1e-7)
    wrong = LOG_PROBABILITIES(after, jnp.asarray(each))
    assert np.abs(wrong - old).max() > 0.1 * spread


def test_parts_that_are_alike_are_drawn_uniformly_and_separated_ones_have_one_permutation():
    value = log_probability(PROPOSE(jnp.zeros((6, 6))), jnp.asarray([3, 1, 0, 5, 4, 2]))
    np.testing.assert_allclose(value, -math.lgamma(7), rtol=1e-10)
    matrix = jnp.where(jnp.eye(6, dtype=bool)[::-1], 0.0, -200.0)
    value = log_probability(PROPOSE(matrix), jnp.arange(6)[::-1])
    np.testing.assert_allclose(value, 0.0, atol=1e-12)
