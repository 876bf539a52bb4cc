"""The averaged path gradient against the derivative of I by quadrature, and its noise."""

from functools import partial
from itertools import permutations, product

import jax
import jax.numpy as jnp
import numpy as np

from onebasin.inference.mutual_information.estimators import exact
from onebasin.inference.mutual_information.gradient import path_gradient
from onebasin.inference.mutual_information.messages import training_marginals
from onebasin.inference.mutual_information.ratios import log_ratios, mean_field

from ...each import each
from .cases import Parts, parts

COMPILED = jax.jit(path_gradient)


def by_group(case: Parts, flips: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Path gradients averaged over every element of the group, with log q^G itself differentiated."""
    size, loc, scale = len(case.loc), jnp.asarray(case.loc), jnp.asarray(case.scale)
    turned = np.zeros(case.loc.shape[1], bool) if flips is None else flips
    signs = product((1.0, -1.0), repeat=size) if flips is not None else [(1.0,) * size]
    group = [(s, p) for s in signs for p in permutations(range(size))]
    sign = jnp.where(turned[None, None, :], jnp.asarray([s for s, _ in group])[:, :, None], 1.0)
    order = jnp.asarray([p for _, p in group])

    def log_q(v: jax.Array) -> jax.Array:
        return jnp.sum(-0.5 * ((v - loc) / scale) ** 2 - jnp.log(scale))

    def orbit(v: jax.Array) -> jax.Array:
        return sign * v[order]

    def log_q_group(v: jax.Array) -> jax.Array:
        return jax.nn.logsumexp(jax.vmap(log_q)(orbit(v)))

    @jax.jit
    @jax.vmap
    def gradient(draw: jax.Array) -> tuple[jax.Array, jax.Array]:
        moved = orbit(draw)
        share = jax.nn.softmax(jax.vmap(log_q)(moved))[:, None, None]
        pull = jax.vmap(jax.grad(lambda v: log_q(v) - log_q_group(v)))(moved)
        eps = (moved - loc[None]) / scale[None]
        return jnp.sum(share * pull, axis=0), jnp.sum(share * pull * eps, axis=0)

    return gradient(jnp.asarray(case.draws))


@each(
    ("size", "flips", "known"),
    [(4, None, True), (3, [True, False, True], False), (3, [True, False, True], True)],
)
def test_every_draw_has_the_mean_over_the_group(size, flips, known):
    """With flips of all or some parameters, known when compiled (as constants) or not."""
    case = parts(size, 1.0, features=3, draws=6, seed=size)
    mask = None if flips is None else np.array(flips)
    turned = None if mask is None else case.log_density(np.where(mask, -1.0, 1.0))
    ratios = log_ratios(case.log_density(), turned)
    marginals = jax.jit(exact)(jax.random.key(0), ratios).marginals
    given = None if mask is None else jnp.asarray(mask)
    function = (
        jax.jit(partial(path_gradient, flips=given)) if known else partial(COMPILED, flips=given)
    )
    arguments = map(jnp.asarray, (case.draws, case.loc, case.scale))
    found = function(*arguments, marginals, flip_probability=ratios.flip_probability)
    for mine, theirs in zip(found, by_group(case, mask), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


@each("flips", [False, True])
def test_single_precision_keeps_the_gradient(flips):
    """Twins among far parts, thirty standard deviations from a centre that is far from zero without flips."""
    rng = np.random.default_rng(8)
    loc = 30.0 * rng.standard_normal((6, 50)) + (0.0 if flips else 1e3)
    loc[4:] = loc[1:3]
    scale = rng.uniform(0.5, 2.0, (6, 50))
    loc, scale = loc.astype(np.float32), scale.astype(np.float32)
    draws = (loc + scale * rng.standard_normal((4, 6, 50))).astype(np.float32)
    weights = np.kron(rng.uniform(0.5, 1.0, (4, 2, 2)), np.eye(3))
    weights = weights / weights.sum(1, keepdims=True)
    weights[:, [0, 3]] = np.eye(6)[[0, 3]]
    weights[:, :, [0, 3]] = np.eye(6)[:, [0, 3]]
    share = np.zeros((4, 6, 6))
    mask = jnp.ones(50, bool) if flips else None

    def value(dtype: type) -> tuple[jax.Array, jax.Array]:
        arrays = (jnp.asarray(array, dtype) for array in (draws, loc, scale, weights))
        probability = jnp.asarray(share, dtype) if flips else None
        return COMPILED(*arrays, flips=mask, flip_probability=probability)

    for single, double in zip(value(np.float32), value(np.float64), strict=True):
        assert single.dtype == np.float32
        # Measured: 4e-6 by loc, 4.5e-4 by scale, where squares of sixty standard deviations lose as much.
        np.testing.assert_allclose(single, double, atol=2e-3)
        # Parts with no twin have no gradient, but for the last digit of their scores.
        np.testing.assert_allclose(single[:, [0, 3]], 0.0, atol=2e-6)
        assert np.abs(double[:, [1, 5]]).max() > 0.1


def test_narrow_part_among_twins_is_left_alone():
    """What is next to impossible stays so: any weight it is given is multiplied by the square of its precision."""
    rng = np.random.default_rng(4)
    loc = np.concatenate([0.05 * rng.standard_normal((6, 3)), [[0.5, -0.5, 0.5]]])
    scale = np.concatenate([rng.uniform(0.9, 1.1, (6, 3)), np.full((1, 3), 1e-3)])
    draws = loc + scale * rng.standard_normal((20, 7, 3))
    arrays = [jnp.asarray(array, jnp.float32) for array in (draws, loc, scale)]
    ratios = mean_field(*arrays)
    truth = COMPILED(*arrays, jax.jit(exact)(jax.random.key(0), ratios).marginals)
    found = COMPILED(*arrays, jax.jit(training_marginals)(ratios))
    for mine, theirs in zip(found, truth, strict=True):
        np.testing.assert_allclose(mine[:, 6], theirs[:, 6], atol=0.01)
        np.testing.assert_allclose(mine[:, :6], theirs[:, :6], atol=0.5)
