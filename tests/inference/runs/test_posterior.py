"""Posterior files: whole or not at all, and self-describing."""

import json

import numpy as np
import xarray as xr

from onebasin.inference import Nuts, infer, open_posterior, save
from onebasin.models import BayesianNetwork, Network, Parametrisation
from onebasin.models.symmetry.blocks import from_json


def test_a_network_posterior_names_its_axes_and_its_file_keeps_everything(tmp_path):
    x = np.random.default_rng(1).normal(size=(12, 3))
    parts = Parametrisation("givens", "ordered")
    model = BayesianNetwork(Network(3, (4,), 1), parametrisation=parts)
    settings = Nuts(chains=2, warmup=20, draws=10, max_tree_depth=4)
    tree = infer(model.condition(x, x[:, 0], name="small"), settings, seed=1)
    assert {name: v.dims[2:] for name, v in tree.posterior.data_vars.items()} == {
        "W1": ("in", "hidden1"),
        "b1": ("hidden1",),
        "W2": ("hidden1", "out"),
        "b2": ("out",),
        "sigma": (),
    }
    np.testing.assert_allclose(np.linalg.norm(tree.posterior["W1"], axis=-2), 1, rtol=1e-12)
    assert (np.diff(tree.posterior["b1"].to_numpy(), axis=-1) > 0).all()
    assert tree["constant_data"]["x"].dims == ("obs", "in")
    assert tree["observed_data"]["y"].dims == ("obs", "out")
    again = open_posterior(save(tree, tmp_path / "new folder" / "run.nc"))
    xr.testing.assert_identical(again.posterior.to_dataset(), tree.posterior.to_dataset())
    assert set(again.attrs) == set(tree.attrs)
    kept = BayesianNetwork.from_description(again.attrs["model"])
    assert kept.parametrisation.label == "givens+ordered"
    assert from_json(again.attrs["symmetry"]) == kept.symmetry
    assert json.loads(again.attrs["versions"])["numpyro"]
