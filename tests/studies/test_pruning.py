"""Pruning: small exact cases, and a classifier whose weights are known to matter."""

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.gaussian import GaussianFit, fit_gaussian
from onebasin.models import BayesianNetwork, Network
from onebasin.studies.compact_representation import making

MODEL = BayesianNetwork(Network(2, (2,), 1, activation="tanh"))
MEAN = {
    "W1": np.asarray([[4.0, -1.0], [0.5, 2.0]]),
    "b1": np.asarray([0.3, -0.2]),
    "W2": np.asarray([[-3.0], [0.1]]),
    "b2": np.asarray([0.7]),
    "sigma": np.asarray(0.5),
}
SD = {
    "W1": np.asarray([[0.9, 0.1], [0.4, 0.5]]),
    "b1": np.asarray([0.01, 2.0]),
    "W2": np.asarray([[0.2], [0.05]]),
    "b2": np.asarray([0.3]),
    "sigma": np.asarray(0.02),
}


def planted(mean, sd, model, num=40) -> GaussianFit:
    """A diagonal fit with these moments, by draws that have them."""
    rng = np.random.default_rng(3)

    def draws(name):
        raw = rng.standard_normal((num, *mean[name].shape))
        raw = (raw - raw.mean(axis=0)) / raw.std(axis=0, ddof=1)
        return (mean[name] + sd[name] * raw)[None]

    variables = {
        name: (("chain", "draw", *model.network.dims.get(name, ())), draws(name)) for name in mean
    }
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset(variables)})
    tree.attrs |= {"model": model.describe(), "method": "nuts"}
    return fit_gaussian(tree)


@pytest.fixture(scope="module")
def fit() -> GaussianFit:
    return planted(MEAN, SD, MODEL)


def test_weights_with_the_lowest_standard_deviations_are_kept(fit):
    found = making.prune(fit, (0.0, 0.5, 1.0))  # of .9 .1 .4 .5 | .2 .05
    for name, some in (("W1", [False, True, False, False]), ("W2", [True, True])):
        assert (found[name][0, 1] != 0).ravel().tolist() == some
        half = found[name][0, 1]
        np.testing.assert_allclose(half[half != 0], MEAN[name][half != 0], rtol=1e-12)
        assert not found[name][0, 0].any()
        np.testing.assert_allclose(found[name][0, 2], MEAN[name], rtol=1e-12)
    for name in ("b1", "b2", "sigma"):
        np.testing.assert_array_equal(found[name][0, 0], fit.mean[name])
