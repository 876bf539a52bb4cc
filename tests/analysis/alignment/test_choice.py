"""What a posterior is aligned by: blocks, words of them, what it declares, or what its draws show."""

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.models.symmetry.blocks import Exchangeable

from ...each import each
from ..conftest import switched_mixture
from .conftest import dataset

MIXTURE = (Exchangeable({"mu": 0, "sigma": 0}),)


@pytest.fixture
def switching(rng) -> xr.Dataset:
    """Three components, each chain under labels of its own."""
    return dataset(switched_mixture(rng, draws=200))


def test_what_nothing_declares_is_found_in_the_draws_and_said(switching):
    found, asked = align(switching), align(switching, MIXTURE)
    assert found.symmetry == MIXTURE
    assert found.found == ("mu,sigma",)
    assert "nothing declares a symmetry: declare `mu,sigma` before the next run" in found.caveat
    assert asked.found == ()
    for name in ("mu", "sigma"):
        xr.testing.assert_identical(
            found.posterior["posterior"][name], asked.posterior["posterior"][name]
        )


@each("words", ["mu,sigma", ["mu,sigma"], ("mu, sigma",)])
def test_words_stand_for_blocks(switching, words):
    assert align(switching, words).symmetry == MIXTURE


def test_words_are_meant_of_the_variables_as_they_are(rng):
    sign = rng.choice([-1.0, 1.0], size=(4, 100, 1))
    theta = sign * (2 + 0.1 * rng.normal(size=(4, 100, 5)))
    a = sign * (1 + 0.1 * rng.normal(size=(4, 100, 3)))
    aligned = align(dataset({"theta": theta, "a": a}), "+-theta,+-a")
    (block,) = aligned.symmetry
    assert set(block.variables) == {"theta", "a"}
    assert np.ptp(np.sign(aligned.posterior["posterior"]["theta"].values)) == 0


def test_parts_that_overlap_are_not_aligned_unasked():
    rng = np.random.default_rng(7)
    mu = rng.normal(size=(4, 500, 3)) + 2 * np.arange(3)
    mu = np.take_along_axis(mu, rng.random(mu.shape).argsort(axis=-1), axis=-1)
    with pytest.raises(ValueError, match="components of mu change places and overlap"):
        align(dataset({"mu": mu}))
