"""What a user is told about input that does not fit."""

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.models import BayesianNetwork, Network
from onebasin.models.symmetry.blocks import Exchangeable, to_json

from ...each import each
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


@each(
    ("spoil", "message"),
    [
        (
            lambda seen: seen.assign(mu=seen["mu"].isel(chain=0)),
            "holds `mu` with .*, without chain",
        ),
        (
            lambda seen: seen.assign(mu=seen["mu"].astype(str)),
            "only real numbers can be worked with",
        ),
        (lambda seen: seen.isel(draw=slice(0, 0)), "`posterior` holds no draws"),
        (
            lambda seen: seen.isel(mu_dim_0=slice(2)),
            "axes of unequal length together: axis 0 of mu has 2",
        ),
    ],
)
def test_draws_that_do_not_fit_are_refused(mixture, spoil, message):
    with pytest.raises(ValueError, match=message):
        align(spoil(mixture), MIXTURE)


def test_what_arviz_converts_is_aligned(mixture):
    plain = {name: mixture[name].values for name in ("mu", "sigma")}
    np.testing.assert_array_equal(
        align(plain, MIXTURE).posterior["posterior"]["mu"],
        align(mixture, MIXTURE).posterior["posterior"]["mu"],
    )


def test_a_reference_of_other_shapes_is_refused(mixture, rng):
    other = dataset({"mu": rng.normal(size=(1, 3, 3)), "sigma": rng.normal(size=(1, 3, 2))})
    message = r"`reference` holds sigma of shape \(2,\), and `posterior` of shape \(3,\)"
    with pytest.raises(ValueError, match=message):
        align(mixture, MIXTURE, reference=other)
    with pytest.raises(ValueError, match="sigma, which `reference` does not hold"):
        align(mixture, MIXTURE, reference=other[["mu"]])


def test_activations_need_inputs_that_fit(rng):
    model = BayesianNetwork(Network(3, (4,), 1))
    seen = dataset({n: rng.normal(size=(1, 4, *s)) for n, s in model.network.shapes.items()})
    seen.attrs = {"model": model.describe(), "symmetry": to_json(model.symmetry)}
    with pytest.raises(ValueError, match="`cost` is 'activations', which needs inputs: give `x`"):
        align(seen, cost="activations")
    with pytest.raises(ValueError, match=r"`x` has shape .5, 2., but the network has 3 inputs"):
        align(seen, cost="activations", x=np.zeros((5, 2)))
    other = (Exchangeable({"W2": 0}),)
    with pytest.raises(ValueError, match="does not permute the units of one hidden layer"):
        align(seen, other, cost="activations", x=np.zeros((5, 3)))


def test_prior_scales_are_the_default_for_networks(rng):
    from onebasin.models import NormalPrior

    model = BayesianNetwork(Network(3, (4,), 1), prior=NormalPrior((0.5, 2.0), 3.0))
    seen = dataset({n: rng.normal(size=(1, 4, *s)) for n, s in model.network.shapes.items()})
    seen.attrs = {"model": model.describe(), "symmetry": to_json(model.symmetry)}
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
