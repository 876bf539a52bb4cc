"""An HDF5 file that remembers: the same objects, each looked up once."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from onebasin.base.files.hdf5 import RememberingFile, open_tree
from onebasin.base.files.netcdf import write_tree


def test_what_was_deleted_is_not_remembered(tmp_path: Path) -> None:
    """h5netcdf makes a dimension anew once there are values for it."""
    with RememberingFile(tmp_path / "b.h5", "w") as file:
        for value in (1, 2):
            file["/group/x"] = [value]
            assert file["/group/x"][0] == value
            del file["/group"]["x"]
        with pytest.raises(KeyError):
            file["/group/x"]


def test_a_tree_is_read_from_its_file_as_xarray_reads_it(tmp_path: Path) -> None:
    values = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("chain", "draw"))
    posterior = xr.Dataset({"a": values, "b": values.astype(str)}, attrs={"of": "a"})
    tree = xr.DataTree.from_dict(
        {"posterior": posterior, "posterior/part": values.to_dataset(name="c")}
    )
    write_tree(tree, tmp_path / "a.nc")
    with open_tree(tmp_path / "a.nc") as opened, xr.open_datatree(tmp_path / "a.nc") as plain:
        assert opened.identical(plain) and opened.identical(tree)
        assert not opened["posterior/a"].variable._in_memory
        copy = pickle.loads(pickle.dumps(opened["posterior"].dataset))
    np.testing.assert_array_equal(copy["a"], values)
