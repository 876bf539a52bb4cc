"""NetCDF files: objects are looked up once, and large variables go from file to file a piece at a time."""

import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import onebasin as ob
from onebasin.base.files import netcdf
from onebasin.base.files.netcdf import PIECE, open_tree
from onebasin.posteriors.writing import write_tree


def test_a_tree_is_read_from_its_file_as_xarray_reads_it(tmp_path: Path) -> None:
    values = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("chain", "draw"))
    posterior = xr.Dataset({"a": values, "b": values.astype(str)}, attrs={"of": "a"})
    tree = xr.DataTree.from_dict(
        {"posterior": posterior, "posterior/part": values.to_dataset(name="c")}
    )
    netcdf.write_tree(tree, tmp_path / "a.nc")
    with open_tree(tmp_path / "a.nc") as opened, xr.open_datatree(tmp_path / "a.nc") as plain:
        assert opened.identical(plain) and opened.identical(tree)
        assert not opened["posterior/a"].variable._in_memory
        copy = pickle.loads(pickle.dumps(opened["posterior"].dataset))
    np.testing.assert_array_equal(copy["a"], values)


LENGTH = 6 * PIECE // (8 * 2 * 30)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of six pieces, and truth values beside them."""
    rng = np.random.default_rng(0)
    w = xr.Dataset(
        {"w": (("chain", "draw", "row", "column"), rng.normal(size=(2, LENGTH, 5, 6)))},
        coords={"row": list("abcde")},
        attrs={"said": "here"},
    )
    stats = xr.Dataset({"diverging": (("chain", "draw"), rng.random((2, LENGTH)) < 0.5)})
    tree = xr.DataTree.from_dict({"posterior": w, "sample_stats": stats})
    tree.attrs = {"method": "nuts"}
    return write_tree(tree, tmp_path_factory.mktemp("pieces") / "run.nc")


@pytest.mark.parametrize("name", ["again.nc", "again.zarr"])
def test_what_is_read_later_arrives_as_it_was(path: Path, tmp_path: Path, name: str):
    with ob.open_posterior(path, lazy=True) as tree:
        ob.save(tree, tmp_path / name)
    assert ob.open_posterior(tmp_path / name).identical(ob.open_posterior(path))


def test_writing_takes_no_more_than_some_pieces(path: Path, tmp_path: Path):
    with ob.open_posterior(path, lazy=True) as tree:
        ob.save(tree, tmp_path / "first.nc")  # which imports what is needed
        tracemalloc.start()
        ob.save(tree, tmp_path / "again.nc")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 2.5 * PIECE
