"""Log ratios: scaled by a part's own density, blind to what cancels, and what is refused."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from onebasin.inference.mutual_information import log_ratios

from .cases import parts


def test_ratios_are_relative_to_the_own_distribution():
    density = np.asarray(parts(3, 1.0, draws=5).log_density())
    ratios = log_ratios(jnp.asarray(density))
    np.testing.assert_allclose(ratios.total[4, 0, 2], density[4, 0, 2] - density[4, 2, 2])
    np.testing.assert_array_equal(jnp.diagonal(ratios.total, axis1=1, axis2=2), 0.0)
    np.testing.assert_allclose(ratios.log_group_order, math.log(6))


def test_flips_sum_over_signs():
    """And the mean is that over the sign's posterior, written out."""
    case = parts(2, 1.0, draws=4)
    plus, minus = (np.asarray(case.log_density(sign)) for sign in (1.0, -1.0))
    own = np.diagonal(plus, axis1=1, axis2=2)[:, None, :]
    ratios = case.ratios(flips=True)
    np.testing.assert_allclose(ratios.total, np.log(np.exp(plus) + np.exp(minus)) - own)
    share = np.exp(plus) / (np.exp(plus) + np.exp(minus))
    mean = share * (plus - own) + (1 - share) * (minus - own)
    np.testing.assert_allclose(ratios.mean, mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ratios.flip_probability, 1 - share, rtol=1e-9, atol=1e-12)
    assert case.ratios().flip_probability is None
    np.testing.assert_allclose(ratios.log_group_order, math.log(8))


def test_flips_at_any_range_are_finite():
    plus = jnp.asarray([[[0.0, -1e6], [-1e6, 0.0]]], jnp.float32)
    ratios = log_ratios(plus, -plus)
    assert ratios.total.dtype == jnp.float32
    np.testing.assert_allclose(ratios.total, [[[math.log(2), 1e6], [1e6, math.log(2)]]], rtol=1e-6)
    np.testing.assert_allclose(ratios.mean, [[[0.0, 1e6], [1e6, 0.0]]])


def test_shapes_that_do_not_fit_are_refused(unchecked):
    with pytest.raises(ValueError, match=r"`log_density` has the shape \(2, 3, 4\); .*one row"):
        log_ratios(jnp.zeros((2, 3, 4)))
    with pytest.raises(ValueError, match=r"`flipped` has the shape \(1, 3, 3\); .*\(2, 3, 3\)"):
        log_ratios(jnp.zeros((2, 3, 3)), jnp.zeros((1, 3, 3)))
