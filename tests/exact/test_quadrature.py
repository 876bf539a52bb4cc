"""The quadrature itself, and the library's densities and charts against it."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import onebasin as ob

from .cases import ALL, NETWORKS, case
from .networks import LIKELIHOODS

pytestmark = pytest.mark.full


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
