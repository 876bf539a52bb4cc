"""An HDF5 file that remembers: the same objects, each looked up once."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from onebasin.base.files.hdf5 import RememberingFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["group/x"] = np.arange(3)
    return tmp_path / "a.h5"


def test_objects_are_those_of_the_file_and_looked_up_once(path: Path) -> None:
    with RememberingFile(path) as file, h5py.File(path) as plain:
        np.testing.assert_array_equal(file["/group/x"], plain["/group/x"])
        assert file["/group/x"] is file["/group/x"] and plain["/group/x"] is not plain["/group/x"]
        assert file[file["/group/x"].ref].name == "/group/x"
        with pytest.raises(KeyError):
            file["/group/y"]


def test_it_is_only_read(path: Path) -> None:
    with RememberingFile(path) as file, pytest.raises((OSError, ValueError)):
        file["z"] = 1
