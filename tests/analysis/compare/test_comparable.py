"""Which posteriors may stand beside each other, and what they are told that may not."""

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.compare.comparable import check_comparable, unlike_weights
from onebasin.networks import (
    BayesianNetwork,
    Categorical,
    Gaussian,
    Network,
    NormalPrior,
    Parametrisation,
)
from onebasin.posteriors.view import as_view

NETWORK = Network(2, (3,), activation="tanh")
MODEL = BayesianNetwork(NETWORK)
X, Y = np.linspace(-1, 1, 8).reshape(4, 2), np.linspace(0, 3, 4)[:, None]


@pytest.fixture
def of(make_mcmc):
    """A posterior of a model with its data; what it holds does not matter here."""

    def make(model, x=X, y=Y, names=("x", "y")):
        tree = make_mcmc(
            {"mu": np.zeros((2, 5))},
            attrs={"model": model.describe() if model else ""},
            constant_data=xr.Dataset({names[0]: (("obs", "in"), x)}),
            observed_data=xr.Dataset({names[1]: (("obs", "out"), y)}),
        )
        return as_view(tree)

    return make


@pytest.mark.parametrize(
    "other",
    [
        MODEL,
        BayesianNetwork(NETWORK, prior=NormalPrior(2.0)),
        BayesianNetwork(NETWORK, Gaussian(noise_sd=0.1)),
        BayesianNetwork(NETWORK, parametrisation=Parametrisation(biases="ordered")),
    ],
)
def test_priors_parametrisations_and_noise_may_differ(of, other):
    check_comparable({"a": of(MODEL), "b": of(other)}, "a")


def test_single_precision_of_the_data_is_forgiven(of):
    single = of(MODEL, X.astype(np.float32), (Y + 1e-8).astype(np.float32))
    check_comparable({"a": of(MODEL), "b": single}, "a")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (BayesianNetwork(Network(2, (2,), activation="tanh")), r"hidden \(2,\), .* hidden \(3,\)"),
        (BayesianNetwork(Network(2, (3,))), r"activation relu, and `a` with activation tanh"),
        (
            BayesianNetwork(Network(2, (3,), 2, activation="tanh"), Categorical()),
            r"`b` with likelihood Categorical, and `a` with likelihood Gaussian",
        ),
        (None, r"give posteriors of the same network"),
    ],
)
def test_other_networks_are_refused(of, other, message):
    with pytest.raises(ValueError, match=message):
        check_comparable({"a": of(MODEL), "b": of(other)}, "a")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"names": ("inputs", "y")}, r"`b` fitted to data named inputs, and `a` to x"),
        ({"x": X + 1e-4}, r"`b` fitted to other values of x than `a`: give posteriors of the same"),
        ({"y": Y[:, [0, 0]]}, r"other values of y"),
    ],
)
def test_other_data_are_refused(of, how, message):
    with pytest.raises(ValueError, match=message):
        check_comparable({"a": of(MODEL), "b": of(MODEL, **how)}, "a")


def test_posteriors_without_data_are_not_held_to_any(of):
    bare = of(MODEL).tree
    del bare["constant_data"], bare["observed_data"]
    check_comparable({"a": of(MODEL), "b": as_view(bare)}, "a")


def test_only_another_parametrisation_makes_weights_unlike():
    ordered = BayesianNetwork(NETWORK, parametrisation=Parametrisation(biases="ordered"))
    assert unlike_weights(MODEL, ordered) == "parametrised `ordered`, not `free`"
    assert unlike_weights(MODEL, BayesianNetwork(NETWORK, prior=NormalPrior(2.0))) == ""
