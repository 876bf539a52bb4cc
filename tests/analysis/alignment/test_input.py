"""What a posterior is aligned by, and what a user is told about input that does not fit."""

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.models import BayesianNetwork, Network
from onebasin.models.symmetry.blocks import Exchangeable

from ..conftest import network_posterior, switched_mixture
from .conftest import dataset

MIXTURE = (Exchangeable({"mu": 0, "sigma": 0}),)


@pytest.fixture
def mixture(rng) -> xr.Dataset:
    return dataset({"mu": rng.normal(size=(2, 5, 3)), "sigma": rng.normal(size=(2, 5, 3))})


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("max_bytes", [1, 2**28])
def test_draws_that_are_not_finite_are_named(mixture, value, max_bytes):
    mixture["sigma"][1, 3, 2] = value
    with pytest.raises(
        ValueError, match=r"draws of sigma in `.*` are not all finite \(see chain 1, draw 3\)"
    ):
        align(mixture, MIXTURE, max_bytes=max_bytes)


def test_prior_scales_are_the_default_for_networks(rng):
    from onebasin.models import NormalPrior

    model = BayesianNetwork(Network(3, (4,), 1), prior=NormalPrior((0.5, 2.0), 3.0))
    values = {n: rng.normal(size=(1, 4, *s)) for n, s in model.network.shapes.items()}
    seen = network_posterior(model, values)
    assert align(seen).rule.scales == {"W1": 0.5, "b1": 3.0, "W2": 2.0}
    assert align(seen, scales={"b1": 1.0}).rule.scales == {"W1": 0.5, "b1": 1.0, "W2": 2.0}


def test_spreads_are_the_default_elsewhere(mixture):
    scales = align(mixture, MIXTURE).rule.scales
    assert scales["mu"] == pytest.approx(float(mixture["mu"].std()), rel=1e-12)
    flipped = (Exchangeable({"mu": 0, "sigma": 0}, flips=("mu",)),)
    scales = align(mixture, flipped).rule.scales
    assert scales["mu"] == pytest.approx(float(np.sqrt((mixture["mu"] ** 2).mean())), rel=1e-12)


def test_whole_numbers_are_aligned_and_stay_whole(rng):
    counts = np.array([[[5, 1], [1, 5], [6, 1]]])
    found = align(dataset({"n": counts}), (Exchangeable({"n": 0}),))
    aligned = found.posterior["posterior"]["n"]
    assert aligned.dtype == counts.dtype
    assert aligned.values.tolist() == [[[5, 1], [5, 1], [6, 1]]]


@pytest.fixture
def switching(rng) -> xr.Dataset:
    """Three components, each chain under labels of its own."""
    return dataset(switched_mixture(rng, draws=200))


def test_what_nothing_declares_is_found_in_the_draws_and_said(switching):
    found, asked = align(switching), align(switching, MIXTURE)
    assert found.symmetry == MIXTURE
    assert found.found == ("mu,sigma",)
    assert "Declare `mu,sigma` before the next run" in found.caveat
    assert asked.found == ()
    for name in ("mu", "sigma"):
        one, other = (each.posterior["posterior"][name] for each in (found, asked))
        xr.testing.assert_identical(one, other)


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
    with pytest.raises(ValueError, match="components of mu change places but overlap"):
        align(dataset({"mu": mu}))
