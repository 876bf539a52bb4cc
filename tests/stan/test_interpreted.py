"""Programs that the interpreter evaluates in this process, where the log density is known; no compiler is needed."""

import gc
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, gammaln

from onebasin.stan.library import StanLibrary, open_library

from ..each import each
from .test_library import DATA, PROGRAMS, log_density


@pytest.fixture(scope="module")
def coin() -> StanLibrary:
    """Three successes in five, with a uniform prior."""
    return open_library(PROGRAMS / "bernoulli.stan", DATA, seed=3)


@each("jacobian", [True, False])
@each("propto", [True, False])
def test_densities_and_derivatives_are_the_closed_form(coin, rng, propto, jacobian):
    flags = {"propto": propto, "jacobian": jacobian}
    points = rng.normal(size=(3, 4, 1))
    theta = expit(points)
    values, gradients = coin.log_density_gradient(points, **flags)
    np.testing.assert_allclose(values, log_density(points, **flags), rtol=1e-13)
    slope = 3 * (1 - theta) - 2 * theta + ((1 - 2 * theta) if jacobian else 0)
    np.testing.assert_allclose(gradients, slope, atol=1e-13)
    np.testing.assert_allclose(coin.log_density(points, **flags), values, rtol=1e-14)
    bend = -(7 if jacobian else 5) * theta[0, 0] * (1 - theta[0, 0])
    hessian = coin.log_density_hessian(points[0, 0], **flags)[2]
    np.testing.assert_allclose(hessian, [bend], rtol=1e-7)


def test_constrained_values_and_back(coin, rng):
    points = rng.normal(size=(6, 1))
    values = coin.constrain(points)
    np.testing.assert_allclose(values, expit(points), rtol=1e-14)
    np.testing.assert_allclose(coin.unconstrain(values), points, atol=1e-13)
    assert np.isnan(coin.unconstrain([2.0])).all()
    assert coin.variables(include_gq=True) == {"theta": (), "successes": ()}
    assert "stanli" in coin.stan_version


def test_constants_are_kept_where_they_are_asked_for(tmp_path: Path, rng):
    """Of a gamma density, which `~` takes without its normalising constant."""
    program = tmp_path / "g.stan"
    program.write_text("parameters { real<lower=0> x; } model { x ~ gamma(3, 2); }")
    library, points = open_library(program), rng.normal(size=(5, 1))
    constant = 3 * np.log(2) - gammaln(3)
    for jacobian in (True, False):
        kept, dropped = (
            library.log_density(points, propto=propto, jacobian=jacobian)
            for propto in (False, True)
        )
        np.testing.assert_allclose(kept - dropped, constant, rtol=1e-12)


def test_what_is_printed_survives_the_latest_library():
    said: list[str] = []
    first, second = (open_library(PROGRAMS / "nothing.stan", on_print=said.append) for _ in "ab")
    del second
    gc.collect()
    first.log_density(np.zeros(0))
    assert said == ["nothing to weigh\n"]
