"""Where coordinates stand in a Stan program's vector, found without their names' order."""

import math
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import biject_to, constraints

from onebasin.inference.density.charts import Bijection, LogRatio, charts_of

NAMES = (
    # as stanc names them: column by column throughout
    *(f"x.{i}.{j}" for j in (1, 2, 3) for i in (1, 2)),
    *(f"W.{i}.{j}" for j in (1, 2, 3) for i in (1, 2)),
    *(f"A.{k}.{i}.{j}" for j in (1, 2, 3) for i in (1, 2) for k in (1, 2)),
    *(f"theta.{i}.{j}" for j in (1, 2) for i in (1, 2)),
    *(f"L.{i}" for i in (1, 2, 3)),
    "sigma",
)
SHAPES = {"x": (2, 3), "W": (2, 3), "A": (2, 2, 3), "theta": (2, 3), "L": (3, 3), "sigma": ()}


def constrain(vector: np.ndarray) -> Mapping[str, np.ndarray]:
    """As Stan reads: arrays go row by row, matrices column by column within them."""
    x, W, A, theta, L, sigma = np.split(vector, np.cumsum([6, 6, 12, 4, 3]))
    lower = np.zeros((3, 3))
    lower[np.tril_indices(3, -1)] = np.tanh(L)
    return {
        "x": x.reshape(2, 3),
        "W": W.reshape(3, 2).T,
        "A": np.exp(A.reshape(2, 3, 2).swapaxes(1, 2)),
        "theta": np.asarray(LogRatio((2, 3)).forward(jnp.asarray(theta.reshape(2, 2)))),
        "L": lower,
        "sigma": np.exp(sigma[0]),
    }


def test_coordinates_stand_where_their_values_change():
    charts = charts_of(NAMES, SHAPES, constrain)
    vector = np.random.default_rng(1).normal(size=len(NAMES))
    values = constrain(vector)
    np.testing.assert_array_equal(vector[charts["x"].places], values["x"])
    np.testing.assert_array_equal(vector[charts["W"].places], values["W"])
    np.testing.assert_allclose(vector[charts["A"].places], np.log(values["A"]))
    assert charts["theta"].places.tolist() == [[24, 25], [26, 27]]
    assert charts["L"].shape == (3,) and charts["sigma"].shape == ()
    assert sorted(np.concatenate([c.places.ravel() for c in charts.values()])) == list(range(32))


def test_simplexes_alone_have_their_chart_in_jax_of_older_versions_too():
    charts = charts_of(NAMES, SHAPES, constrain)
    assert isinstance(charts["theta"].simplex, LogRatio)
    assert all(chart.simplex is None for name, chart in charts.items() if name != "theta")

    def broken(vector: np.ndarray) -> Mapping[str, np.ndarray]:
        return {"theta": np.asarray(biject_to(constraints.simplex)(jnp.asarray(vector)))}

    charts = charts_of(("theta.1", "theta.2"), {"theta": (3,)}, broken)
    assert isinstance(charts["theta"].simplex, Bijection)


@pytest.mark.parametrize("size", [2, 5])
def test_log_ratio_is_a_chart(size):
    chart = LogRatio((size,))
    y = jnp.asarray(np.random.default_rng(2).normal(size=size - 1))
    theta = chart.forward(y)
    np.testing.assert_allclose(chart.inverse(theta), y, rtol=1e-10, atol=1e-12)
    jacobian = jax.jacobian(lambda z: chart.forward(z)[:-1])(y)
    expected = float(jnp.log(jnp.abs(jnp.linalg.det(jacobian))))
    assert float(chart.log_jacobian(y, theta)) == pytest.approx(expected, rel=1e-10)
    assert float(jnp.sum(theta)) == pytest.approx(1.0) and math.isfinite(expected)
