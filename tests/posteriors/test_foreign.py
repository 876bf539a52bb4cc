"""Tests of files from other programs: Zarr stores, older names, and clear errors for damaged files."""

import json

import numpy as np
import pytest
import xarray as xr

from onebasin.base.errors import PosteriorFileError
from onebasin.posteriors.open import grouped, open_posterior, stem
from onebasin.posteriors.schema import adopted
from onebasin.posteriors.writing import save

from .chains import refusal

DIMS = ("chain", "draw")


@pytest.fixture
def posterior(rng):
    return xr.Dataset({"mu": ((*DIMS, "mu_dim_0"), rng.normal(size=(2, 9, 3)))})


@pytest.mark.parametrize("version", [2, 3])
def test_stores_of_either_format_are_read(posterior, tmp_path, version):
    tree = xr.DataTree.from_dict({"posterior": posterior})
    tree.to_zarr(tmp_path / "run.zarr", zarr_format=version, consolidated=False)
    assert open_posterior(tmp_path / "run.zarr").identical(tree)


def test_variables_of_a_foreign_store_come_by_name(tmp_path, rng):
    names = [f"v{i}" for i in rng.permutation(30)]
    drawn = xr.Dataset({name: (DIMS, rng.normal(size=(2, 9))) for name in names})
    xr.DataTree.from_dict({"posterior": drawn}).to_zarr(tmp_path / "run.zarr", zarr_format=2)
    assert list(open_posterior(tmp_path / "run.zarr").posterior) == sorted(names)


def test_broken_stores_are_refused(posterior, tmp_path):
    path = save(xr.DataTree.from_dict({"posterior": posterior}), tmp_path / "run.zarr")
    (path / "posterior" / "mu" / ".zarray").write_text("{")
    assert "is not a readable Zarr store" in refusal(path)
    claims = {"shape": [10**5, 10**6, 3], "chunks": [1000, 1000, 3]}
    claims |= {"dtype": "<f8", "fill_value": 0.0}
    whole = {"zarr_format": 2, "order": "C", "compressor": None, "filters": None}
    (path / "posterior" / "mu" / ".zarray").write_text(json.dumps(whole | claims))
    assert "of values in only" in refusal(path)


def test_a_dataset_without_groups_is_the_draws(posterior, tmp_path):
    posterior.to_netcdf(tmp_path / "draws.nc")
    np.testing.assert_array_equal(open_posterior(tmp_path / "draws.nc").posterior.mu, posterior.mu)
    xr.DataTree.from_dict({"prior": posterior}).to_netcdf(tmp_path / "prior.nc")
    assert "has no group 'posterior'" in refusal(tmp_path / "prior.nc")


def test_json_is_refused(tmp_path):
    (tmp_path / "run.json").write_text('[{"mu": [1, 2]}]')
    with pytest.raises(PosteriorFileError, match=r"run\.json"):
        open_posterior(tmp_path / "run.json")


def test_older_names_of_statistics_are_ours(posterior, rng):
    shape = (2, 9)
    numbers = {"divergent": np.zeros(shape, bool), "treedepth": np.ones(shape, int)}
    numbers |= {"lp": np.zeros(shape), "lp__": np.ones(shape)}
    old = xr.Dataset({name: (DIMS, values) for name, values in numbers.items()})
    old["log_likelihood"] = ((*DIMS, "obs"), rng.normal(size=(*shape, 5)))
    tree = xr.DataTree.from_dict({"posterior": posterior, "sample_stats": old})
    tree.attrs["seed"] = 3
    found = adopted(tree)
    assert set(found.sample_stats.data_vars) == {"diverging", "tree_depth", "lp", "lp__"}
    np.testing.assert_array_equal(found.sample_stats.lp, 0)
    assert found.log_likelihood.obs.shape == (*shape, 5)
    assert found.attrs == {"seed": 3}
    assert set(tree.sample_stats.data_vars) == set(old.data_vars)  # Unchanged.
    assert adopted(found) is found


def test_files_of_an_older_layout_are_read_with_their_warmup(posterior, tmp_path):
    stats = xr.Dataset({"depth": (DIMS, np.ones((2, 9), int))})
    groups = {"posterior": posterior, "sample_stats": stats, "warmup_posterior": posterior}
    xr.DataTree.from_dict(groups).to_netcdf(tmp_path / "old.nc", engine="h5netcdf")
    tree = open_posterior(tmp_path / "old.nc", lazy=True)
    assert set(tree.children) == set(groups)
    assert tree.sample_stats.tree_depth.values.all()
    tree.close()


def test_names_that_differ_in_a_number_are_chains_of_one_run(tmp_path):
    names = "a_1.csv a_2.csv b-1.csv b-2.csv c.csv a_10.csv run_1.nc run_2.nc"
    groups = grouped([tmp_path / name for name in names.split()])
    wanted = "a_1.csv a_2.csv a_10.csv, b-1.csv b-2.csv, c.csv, run_1.nc, run_2.nc"
    assert [" ".join(path.name for path in group) for group in groups] == wanted.split(", ")
    assert [stem(group).name for group in groups] == ["a", "b", "c", "run_1", "run_2"]
    assert stem([tmp_path / "eight.schools.zarr"]).name == "eight.schools"
    assert len(grouped([tmp_path / "x" / "a_1.csv", tmp_path / "y" / "a_2.csv"])) == 2
