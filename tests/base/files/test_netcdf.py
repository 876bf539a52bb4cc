"""NetCDF files: large variables are copied piece by piece; damaged files, and files that claim too much."""

import pickle
import struct
import tracemalloc
import zipfile
from itertools import product
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

import onebasin as ob
from onebasin.base.errors import ArgumentError
from onebasin.base.files import netcdf
from onebasin.base.files.netcdf import PIECE, open_tree, read_arrays, read_tree
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


class Refused(Exception):
    """Stands for a room's own error."""


@pytest.fixture
def file(tmp_path, rng):
    """A posterior whose axes have no coordinates, so that their lengths are written as datasets."""
    draws = xr.Dataset({"mu": (("chain", "draw"), rng.normal(size=(2, 50)))})
    return netcdf.write_tree(xr.DataTree.from_dict({"posterior": draws}), tmp_path / "run.nc")


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


def test_arrays_that_were_never_written_are_refused(file, rng):
    with h5py.File(file, "a") as opened:  # so that the claim is 9,000 times the file's size
        opened["posterior"]["more"] = rng.normal(size=10_000)
    for length, how in product((10**8, 10**15), ({}, {"compression": "gzip"})):
        with h5py.File(file, "a") as opened:
            opened["posterior"].create_dataset(
                "huge", shape=(length,), chunks=(1000,), dtype="f8", **how
            )
        assert "of values in only" in refusal(file), (length, how)
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


def test_a_damaged_tree_is_refused_in_a_sentence(file):
    content = bytearray(file.read_bytes())
    content[content.index(read(file)["posterior"]["mu"].values[0, 3].tobytes())] ^= 1
    file.write_bytes(content)
    with pytest.raises(
        Refused, match=r"run\.nc is damaged: its content has changed since the file was written"
    ):
        read(file)
