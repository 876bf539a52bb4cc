"""Posterior files: whole or not at all, and self-describing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from onebasin.base.errors import PosteriorFileError
from onebasin.inference import Nuts, infer, open_posterior, save
from onebasin.models import BayesianNetwork, Network, Parametrisation
from onebasin.models.symmetry.blocks import from_json

from ...each import each


@pytest.fixture(scope="module")
def tree() -> xr.DataTree:
    x = np.random.default_rng(1).normal(size=(12, 3))
    model = BayesianNetwork(
        Network(3, (4,), 1), parametrisation=Parametrisation("givens", "ordered")
    )
    settings = Nuts(chains=2, warmup=20, draws=10, max_tree_depth=4)
    return infer(model.condition(x, x[:, 0], name="small"), settings, seed=1)


def test_network_posterior_names_its_axes(tree: xr.DataTree) -> None:
    dims = {name: v.dims[2:] for name, v in tree.posterior.data_vars.items()}
    assert dims == {
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


def test_file_keeps_everything(tree: xr.DataTree, tmp_path: Path) -> None:
    again = open_posterior(save(tree, tmp_path / "new folder" / "run.nc"))
    xr.testing.assert_identical(again.posterior.to_dataset(), tree.posterior.to_dataset())
    assert set(again.attrs) == set(tree.attrs)
    model = BayesianNetwork.from_description(again.attrs["model"])
    assert model.parametrisation.label == "givens+ordered"
    assert from_json(again.attrs["symmetry"]) == model.symmetry
    assert json.loads(again.attrs["versions"])["numpyro"]


@each(
    ("content", "message"),
    [(None, "does not exist"), ("not a file of draws", "is not a NetCDF file")],
)
def test_unreadable_file_is_named(content: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "run.nc"
    if content is not None:
        path.write_text(content)
    with pytest.raises(PosteriorFileError, match=message):
        open_posterior(path)


def test_file_without_posterior_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.nc"
    xr.DataTree.from_dict({"other": xr.Dataset({"a": 1})}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(PosteriorFileError, match="holds no group `posterior`"):
        open_posterior(path)
