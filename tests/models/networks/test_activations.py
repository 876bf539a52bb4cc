"""Activations have the properties that they declare, and no other; NaN stays NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onebasin.models import ACTIVATIONS

Z = np.array([-3.0, -0.4, 0.7, 5.0])
every = pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS.keys())


@every
def test_declared_properties_are_true(activation):
    f = activation.function
    same = all(np.allclose(f(a * Z), a * f(Z), rtol=1e-10) for a in (0.2, 7.0))
    assert same == activation.positively_homogeneous
    assert np.allclose(f(-Z), -f(Z), rtol=1e-10) == activation.odd


@every
def test_nan_stays_nan_and_gradients_are_finite_far_out(activation):
    assert jnp.isnan(activation.function(jnp.array(jnp.nan)))
    for z in (-700.0, 0.0, 700.0):
        assert jnp.isfinite(jax.grad(activation.function)(z))
