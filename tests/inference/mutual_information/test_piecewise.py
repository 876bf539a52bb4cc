"""Pieces of the draws give what all of them at once do."""

import jax
import jax.numpy as jnp
import numpy as np

from onebasin.inference.mutual_information import infonce, ratios, training_marginals
from onebasin.inference.mutual_information.ratios import mean_field

from .cases import parts


def values() -> tuple[jax.Array, ...]:
    """Log ratios with flips, weights, and an estimate with random permutations with its derivative."""
    case = parts(3, 1.0, draws=7)
    draws, loc, scale = (jnp.asarray(array) for array in (case.draws, case.loc, case.scale))
    mask = jnp.ones(4, bool)

    def bound(loc: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        ratios = mean_field(draws, loc, scale, flips=mask)
        log_sum = infonce(4)(jax.random.key(0), ratios).log_sum
        return jnp.sum(log_sum), (ratios.total, training_marginals(ratios), log_sum)

    slope, found = jax.jit(jax.grad(bound, has_aux=True))(loc)
    return *found, slope


def test_pieces_change_nothing(monkeypatch):
    """Pieces of two draws of seven, so that one is left over."""
    whole = values()
    monkeypatch.setattr(ratios, "ENTRIES", 24)
    for mine, theirs in zip(values(), whole, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


def test_a_piece_holds_no_more_than_it_may(monkeypatch):
    """What the function sees has three draws at the most, and one where a draw has more than all of them may."""
    monkeypatch.setattr(ratios, "ENTRIES", 12)
    seen = []

    def one(draw: jax.Array) -> jax.Array:
        return jax.pure_callback(
            lambda x: seen.append(x.shape) or x, draw, draw, vmap_method="broadcast_all"
        )

    found = ratios.by_draw(one, jnp.arange(40.0).reshape(10, 4))
    np.testing.assert_array_equal(found, np.arange(40.0).reshape(10, 4))
    assert {shape[0] for shape in seen} == {3, 1}
    monkeypatch.setattr(ratios, "ENTRIES", 1)
    seen.clear()
    ratios.by_draw(one, jnp.arange(40.0).reshape(10, 4))
    assert {shape[0] for shape in seen} == {1}
