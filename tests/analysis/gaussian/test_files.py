"""A fit in a file comes back bit by bit, and what is no such file is refused in one sentence."""

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.gaussian import (
    COVARIANCES,
    GaussianFileError,
    fit_gaussian,
    load_gaussian,
    save_gaussian,
)
from onebasin.analysis.gaussian.estimation import Factors
from onebasin.analysis.gaussian.files import from_dataset, to_dataset
from onebasin.models.networks.architecture import Network
from onebasin.models.networks.bayesian import BayesianNetwork

from ...each import each


def fit_of(network_tree, covariance):
    network_tree.attrs["model"] = BayesianNetwork(Network(1, (2,))).describe()
    labelled = network_tree["posterior"].to_dataset().assign_coords({"hidden1": ["left", "right"]})
    network_tree["posterior"] = xr.DataTree(labelled)
    return fit_gaussian(network_tree, covariance, rank=2)


def arrays(fit):
    structure = fit.structure
    kind = (
        ("loadings", "unique") if isinstance(structure, Factors) else ("vectors", "values", "rest")
    )
    return [fit.loc, fit.scale, *(np.asarray(getattr(structure, name)) for name in kind)]


def same(first, second):
    for a, b in zip(arrays(first), arrays(second), strict=True):
        assert a.dtype == b.dtype == np.float64
        assert a.tobytes() == b.tobytes()
    assert first.layout.variables == second.layout.variables
    assert first.covariance == second.covariance
    assert first.settings == second.settings
    assert first.attributes == second.attributes
    assert {k: v.tolist() for k, v in first.layout.coords.items()} == {
        k: v.tolist() for k, v in second.layout.coords.items()
    }


@each("covariance", COVARIANCES)
def test_save_and_load_bit_by_bit(covariance, network_tree, tmp_path):
    fit = fit_of(network_tree, covariance)
    path = save_gaussian(fit, tmp_path / "new" / "fit.nc")
    again = load_gaussian(path)
    same(fit, again)
    assert again.data.keys() == fit.data.keys() == {"constant_data", "observed_data"}
    assert all(again.data[name].identical(fit.data[name]) for name in fit.data)
    assert again.sample(9, seed=2).identical(fit.sample(9, seed=2))
    assert [file.name for file in path.parent.iterdir()] == ["fit.nc"]
    assert from_dataset(to_dataset(fit)).data == {}


def test_a_file_is_overwritten_only_by_force(network_tree, tmp_path):
    fit = fit_of(network_tree, "full")
    path = save_gaussian(fit, tmp_path / "fit.nc")
    with pytest.raises(GaussianFileError, match=r"`path` is .*fit.nc, which exists; .*force=True"):
        save_gaussian(fit, path)
    assert save_gaussian(fit, path, force=True) == path


def test_other_files_are_refused(network_tree, tmp_path):
    with pytest.raises(GaussianFileError, match=r"absent.nc does not exist"):
        load_gaussian(tmp_path / "absent.nc")
    (tmp_path / "text.nc").write_text("no NetCDF")
    with pytest.raises(GaussianFileError, match=r"text.nc is not a NetCDF file that can be read"):
        load_gaussian(tmp_path / "text.nc")
    network_tree.to_netcdf(tmp_path / "posterior.nc", engine="h5netcdf")
    with pytest.raises(GaussianFileError, match=r"posterior.nc holds no group `gaussian`"):
        load_gaussian(tmp_path / "posterior.nc")


def test_parts_of_a_fit_are_refused(network_tree, tmp_path):
    whole = to_dataset(fit_gaussian(network_tree))
    with pytest.raises(ValueError, match=r"`dataset` has no attribute `gaussian`"):
        from_dataset(xr.Dataset({"loc": whole["loc"]}))
    with pytest.raises(ValueError, match=r"`dataset` lacks scale;"):
        from_dataset(whole.drop_vars("scale"))
    xr.DataTree.from_dict({"gaussian": whole.drop_vars("values")}).to_netcdf(
        tmp_path / "part.nc", engine="h5netcdf"
    )
    with pytest.raises(GaussianFileError, match=r"part.nc holds no whole fit: .*lacks values"):
        load_gaussian(tmp_path / "part.nc")
