"""Files that say more than they hold."""

import struct
import tracemalloc
import zipfile
from itertools import product

import h5py
import numpy as np
import pytest
import xarray as xr

from onebasin.base.errors import ArgumentError
from onebasin.base.files.netcdf import read_tree, write_tree
from onebasin.base.files.sizes import read_arrays


class Refused(Exception):
    """Stands for a room's own error."""


@pytest.fixture
def file(tmp_path, rng):
    """A posterior whose axes have no coordinates, so that their lengths are written as datasets."""
    draws = xr.Dataset({"mu": (("chain", "draw"), rng.normal(size=(2, 50)))})
    return write_tree(xr.DataTree.from_dict({"posterior": draws}), tmp_path / "run.nc")


def read(path):
    return read_tree(path, "posterior", error=Refused, writer="onebasin")


def refusal(path):
    """What is said of a file, which takes no memory to speak of."""
    tracemalloc.start()
    try:
        with pytest.raises(Refused) as caught:
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_arrays_that_were_never_written_are_refused(file):
    for length, how in product((10**8, 10**15), ({}, {"compression": "gzip"})):
        with h5py.File(file, "a") as opened:
            opened["posterior"].create_dataset(
                "huge", shape=(length,), chunks=(1000,), dtype="f8", **how
            )
        assert "of values, but has" in refusal(file), (length, how)
        with h5py.File(file, "a") as opened:
            del opened["posterior/huge"]


def test_what_links_elsewhere_or_goes_round_in_circles_is_refused(file):
    changes = {
        "groups that contain themselves": lambda group: group.__setitem__("again", group),
        "links to other files": lambda group: group.__setitem__(
            "far", h5py.ExternalLink("/etc/other.h5", "/x")
        ),
    }
    whole = file.read_bytes()
    for said, change in changes.items():
        file.write_bytes(whole)
        with h5py.File(file, "a") as opened:
            change(opened["posterior"])
        assert said in refusal(file)


def test_what_a_file_holds_is_read(file, tmp_path):
    assert read(file)["posterior"]["mu"].shape == (2, 50)
    constant = xr.Dataset({"mu": (("chain", "draw"), np.zeros((4, 100_000)))})
    path = tmp_path / "compressed.nc"
    packed = {"posterior": {"mu": {"zlib": True, "complevel": 9}}}
    xr.DataTree.from_dict({"posterior": constant}).to_netcdf(
        path, engine="h5netcdf", encoding={f"/{k}": v for k, v in packed.items()}
    )
    assert path.stat().st_size < 50_000
    assert read(path)["posterior"]["mu"].shape == (4, 100_000)


def test_an_archives_header_is_not_believed(tmp_path):
    """It says more than the archive holds."""
    text = str({"descr": "<f8", "fortran_order": False, "shape": (10**12,)}).encode()
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text)
    with pytest.raises(ArgumentError):
        read_arrays(tmp_path / "huge.npz")
