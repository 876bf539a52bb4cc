"""The quadrature itself, and the library's densities and charts against it."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import onebasin as ob

from .cases import ALL, NETWORKS, case
from .networks import LIKELIHOODS
from .quadrature import Exact, axis, integrate

pytestmark = pytest.mark.full

WIDE, LOG, REAL = axis(-16, 16, 64), axis(-7, 2.5, 30), axis(-6, 6, 24)
PLANE = axis(-3, 3, 40, order=6)
UNCONSTRAINED = {
    ("unit-known", "givens"): (WIDE, REAL),
    ("correlation", "correlation"): (axis(-9, 9, 36), LOG),
    ("proportions", "proportions"): (WIDE, WIDE),
    ("free-inferred", "free"): (REAL, REAL, LOG),
    ("unit-known", "givens_seamless"): (PLANE, PLANE, REAL),
    ("unit-known", "unit_vector"): (axis(-6, 6, 40, order=6),) * 2 + (REAL,),
    ("ordered", "ordered"): (axis(-8, 8, 16), axis(-14, 3, 30), axis(-12, 12, 24)),
    ("interval", "interval"): (axis(-8, 8, 16), axis(-8, 8, 16), axis(-12, 12, 24)),
    ("simplex", "simplex"): (axis(-8, 8, 16), axis(-8, 8, 16), axis(-12, 12, 24)),
}
"""Axes of unconstrained vectors, by case and chart; kinks of a ReLU lie anywhere on them."""


def _log_densities(name: str, chart: str) -> tuple[np.ndarray, np.ndarray]:
    """The library's log density and ours, at values that carry the posterior's mass."""
    this, rng = case(name), np.random.default_rng(3)
    some = rng.choice(len(this.exact.mass), 40, p=this.exact.mass)
    points = {word: value[some] for word, value in this.exact.values.items()}
    density = ob.jax_density(this.target(chart))

    @jax.jit
    @jax.vmap
    def log_density(values):
        vector = density.unconstrain(values)
        return density.log_density(vector) - density.log_jacobian(vector)

    theirs = log_density(points)
    return np.asarray(theirs), this.log_density(points)


def test_plain_density_is_the_library_s():
    for name in ("unit-known", "correlation"):
        theirs, ours = _log_densities(name, case(name).charts[0])
        np.testing.assert_allclose(theirs, ours, rtol=1e-10, err_msg=name)


@pytest.mark.slow
def test_plain_density_is_the_library_s_in_every_chart():
    pairs = [(name, chart) for name in ALL for chart in case(name).charts]
    for name, chart in pairs:
        if name != "unit-ordered-known":
            theirs, ours = _log_densities(name, chart)
            shift = theirs - ours  # the likelihood of counts leaves out a constant
            np.testing.assert_allclose(shift, 0.0, atol=1e-8, err_msg=f"{name} {chart}")


def unconstrained(name: str, chart: str) -> tuple[Exact, dict[str, np.ndarray]]:
    """The library's density integrated over unconstrained vectors, and the values at its nodes."""
    density = ob.jax_density(case(name).target(chart))
    log_density = jax.jit(jax.vmap(density.log_density))

    def place(*coordinates: np.ndarray):
        return {"vector": np.stack(coordinates, 1)}, np.zeros(len(coordinates[0]))

    found = integrate(
        lambda v: np.asarray(log_density(v["vector"])), place, UNCONSTRAINED[name, chart]
    )
    values = jax.jit(jax.vmap(density.constrain))(found.values["vector"])
    return found, {name: np.asarray(value) for name, value in values.items()}


@pytest.mark.slow
def test_quadrature_is_fine_enough():
    """Errors are far below the Monte Carlo errors that samplers are held to."""
    for name in ALL:
        found = case(name).exact
        assert found.error < (2e-2 if case(name).size > 3 else 2e-3), name
        assert found.mass.sum() == pytest.approx(1, abs=1e-9), name


def test_every_parametrisation_and_likelihood_has_its_case():
    for way in ("free", "unit", "skip"):
        assert {f"{way}-{word}" for word in LIKELIHOODS} <= set(NETWORKS)
    assert case("unit-known").charts == ("givens", "givens_seamless", "unit_vector")
    assert {case(name).size for name in ALL} == {2, 3, 4, 7}
