"""The interval: around the truth, closed where the permanent is exact, clipped to what is possible."""

from collections import OrderedDict
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onebasin.inference.mutual_information.estimators import (
    Interval,
    LogRatios,
    layered_interval,
    log_permanent,
    permanent_bounds,
)

from .cases import Parts, brute_force, marginals_by_sum, parts

pytestmark = pytest.mark.full


def interval(key: jax.Array, ratios: LogRatios, **how: int) -> Interval:
    return layered_interval(key, [ratios], [OrderedDict({0: ratios})], **how)


def test_few_parts_have_a_closed_interval():
    """The literal sum with the same control variate: both are means over the same draws."""
    case = parts(5, 1.5, draws=300)
    ratios = case.ratios()
    found = interval(jax.random.key(2), ratios)
    assert found.lower == found.upper
    control = [
        (marginals_by_sum(np.asarray(matrix)) * np.asarray(matrix)).sum() for matrix in ratios.total
    ]
    values = np.log(120) - brute_force(case, flips=False) + control
    np.testing.assert_allclose(found.lower, values.mean(), rtol=1e-9)
    np.testing.assert_allclose(found.upper_mcse, values.std(ddof=1) / np.sqrt(300), rtol=1e-9)


def test_bounds_of_permanents_hold_matrix_by_matrix(rng):
    """A third normal, a third Cauchy, a third near 0 and 1; converged or not."""
    shape = (20, 6, 6)
    near = np.where(rng.uniform(size=shape) < 0.5, 0.0, -30.0) + 1e-3 * rng.standard_normal(shape)
    cases = jnp.asarray(
        np.concatenate([2 * rng.standard_normal(shape), rng.standard_cauchy(shape), near])
    )
    truth = jax.jit(jax.vmap(log_permanent))(cases)
    slack = 1e-9 * np.abs(truth).max()
    for sweeps in (1, 100):
        below, above = jax.jit(jax.vmap(partial(permanent_bounds, sweeps=sweeps)))(cases)
        assert (below <= truth + slack).all() and (below < truth - 0.1).any()
        assert (above >= truth - slack).all() and (above > truth + 0.1).any()


@pytest.mark.parametrize("delta", [0.3, 1.5, 10.0])
def test_interval_holds_the_truth(delta):
    """Of the same draws, so that the bounds' own bias and noise are all that is left."""
    case = parts(5, delta, draws=600)
    truth = np.log(120) - brute_force(case, flips=False).mean()
    found = interval(jax.random.key(2), case.ratios(), num_permutations=10, max_exact=2)
    assert found.lower < truth + 5 * found.lower_mcse
    assert found.upper > truth - 5 * found.upper_mcse
    assert abs(found.upper - found.lower) < 2.1


def test_separated_parts_earn_the_whole_group():
    case = parts(5, 1e4, draws=600)
    case = Parts(case.loc, np.ones_like(case.loc), 600, 0)
    found = interval(jax.random.key(0), case.ratios(), num_permutations=10, max_exact=2)
    np.testing.assert_allclose([found.lower, found.upper], np.log(120), rtol=1e-9)
