"""What a user is told about input that does not fit."""

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.models import BayesianNetwork, Network
from onebasin.models.symmetry.blocks import Exchangeable

from ...each import each
from ..conftest import network_posterior
from .conftest import dataset

MIXTURE = (Exchangeable({"mu": 0, "sigma": 0}),)


@pytest.fixture
def mixture(rng) -> xr.Dataset:
    return dataset({"mu": rng.normal(size=(2, 5, 3)), "sigma": rng.normal(size=(2, 5, 3))})


@each("value", [np.nan, np.inf])
@each("max_bytes", [1, 2**28])
def test_draws_that_are_not_finite_are_named(mixture, value, max_bytes):
    mixture["sigma"][1, 3, 2] = value
    with pytest.raises(ValueError, match="sigma that is not finite, first in chain 1, draw 3"):
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


def test_a_constant_variable_has_scale_one():
    seen = dataset({"mu": np.full((1, 4, 3), 0.3), "sigma": np.zeros((1, 4, 3))})
    found = align(seen, MIXTURE)
    assert found.rule.scales == {"mu": 1.0, "sigma": 1.0}
    assert found.converged
    assert (found.distance_after < 1e-30).all()


def test_whole_numbers_are_aligned_and_stay_whole(rng):
    counts = np.array([[[5, 1], [1, 5], [6, 1]]])
    found = align(dataset({"n": counts}), (Exchangeable({"n": 0}),))
    aligned = found.posterior["posterior"]["n"]
    assert aligned.dtype == counts.dtype
    assert aligned.values.tolist() == [[[5, 1], [5, 1], [6, 1]]]
