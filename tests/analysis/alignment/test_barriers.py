"""Barriers of losses whose shape along a line is known."""

import numpy as np

from onebasin.analysis.alignment.barriers import barrier


def double_well(values):
    """(w^2 - 1)^2: from -1 to 1 the barrier is 1, in the middle."""
    return (values["w"][:, 0] ** 2 - 1) ** 2


def test_known_barrier():
    ends = {"w": np.array([[-1.0], [0.0]])}, {"w": np.array([[1.0], [1.0]])}
    found = barrier(*ends, double_well, num_points=101)
    # From 0 to 1: (t^2 - 1)^2 - (1 - t) is largest at the root of 4 t^3 - 4 t + 1 = 0 near 0.27.
    t = np.roots([4, 0, -4, 1])
    t = t[(t > 0) & (t < 0.5)][0]
    np.testing.assert_allclose(found.height, [1.0, (t**2 - 1) ** 2 - (1 - t)], atol=1e-3)
    np.testing.assert_allclose(found.position[[0, 50, 100]], [0.0, 0.5, 1.0], rtol=1e-12)
    np.testing.assert_allclose(found.loss[:, 0], [0.0, 1.0], atol=1e-15)


def test_no_barrier_where_the_loss_is_convex(rng):
    first, second = {"w": rng.normal(size=(20, 3))}, {"w": rng.normal(size=(20, 3))}
    found = barrier(first, second, lambda v: (v["w"] ** 2).sum(axis=1))
    np.testing.assert_allclose(found.height, 0.0, atol=1e-14)
    assert (found.excess[:, 1:-1] < 0).all()


def test_nan_is_not_hidden():
    ends = {"w": np.zeros((1, 1))}, {"w": np.ones((1, 1))}
    found = barrier(*ends, lambda v: np.where(v["w"][:, 0] == 0.5, np.nan, 0.0), num_points=3)
    assert np.isnan(found.height).all()
