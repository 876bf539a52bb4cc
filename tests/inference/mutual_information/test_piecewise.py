"""Pieces of the draws give what all of them at once do, and hold no more than they may."""

import jax
import jax.numpy as jnp
import numpy as np

from onebasin.inference.mutual_information import ratios


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
