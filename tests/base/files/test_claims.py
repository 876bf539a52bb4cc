"""Files that say more than they hold."""

import gzip
import io
import json
import struct
import tracemalloc
import zipfile
from itertools import product

import h5netcdf
import h5py
import numpy as np
import pytest
import xarray as xr

from onebasin.base.files import claims
from onebasin.base.files.claims import ClaimError, check_claim, read_arrays
from onebasin.base.files.netcdf import read_tree, write_tree
from onebasin.base.jsonable import parse_json
from onebasin.models.data.folders import CorruptDataError
from onebasin.models.data.images import read_idx

from ...each import each


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
    ways = ({}, {"compression": "gzip"}, {"fillvalue": 1.0})
    for length, how in product((10**8, 10**10, 10**15), ways):
        with h5py.File(file, "a") as opened:
            opened["posterior"].create_dataset(
                "huge", shape=(length,), chunks=(1000,), dtype="f8", **how
            )
        assert "of values, but has" in refusal(file), (length, how)
        with h5py.File(file, "a") as opened:
            del opened["posterior/huge"]


def test_what_links_elsewhere_or_goes_round_in_circles_is_refused(file, tmp_path):
    changes = {
        "groups within themselves": lambda group: group.__setitem__("again", group),
        "links to other places": lambda group: group.__setitem__(
            "far", h5py.ExternalLink("/etc/other.h5", "/x")
        ),
        "links to": lambda group: group.__setitem__("near", h5py.SoftLink("/posterior")),
        "values from other files": lambda group: group.create_dataset(
            "raw", shape=(8,), dtype="u1", external=[(str(tmp_path / "raw"), 0, 8)]
        ),
        "more than 32 deep": lambda group: group.create_group("/".join("a" * 40)),
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


def test_the_length_of_an_axis_is_no_claim(file):
    with h5netcdf.File(file, "a") as opened:
        opened["posterior"].dimensions["long"] = 10**12
    assert read(file)["posterior"]["mu"].shape == (2, 50)


def test_more_than_the_memory_is_refused(file, monkeypatch):
    monkeypatch.setattr(claims, "memory", lambda: 100)
    told = "holds 800 bytes of values, more than the 100 bytes of memory that is free here"
    assert told in refusal(file)


def test_equal_bytes_compress_less_than_is_allowed(tmp_path):
    path = tmp_path / "zeros.npz"
    np.savez_compressed(path, x=np.zeros(40_000_000))
    check_claim(path, 320_000_000)
    with pytest.raises(ClaimError):
        check_claim(path, 640_000_000)


def _npz(path, header, data=b""):
    text = str(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data)
    return path


def test_an_archives_header_is_not_believed(tmp_path):
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    with pytest.raises(ClaimError, match=r"claims 7.28 TiB of values, but has \d+ bytes"):
        read_arrays(_npz(tmp_path / "huge.npz", header))


def test_an_archive_of_anything_but_arrays_is_refused(tmp_path):
    np.savez(tmp_path / "objects.npz", x=np.array([{}], dtype=object))
    (tmp_path / "text.npz").write_text("no zip")
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("x.npy", b"nothing")
    for name in ("objects", "text", "other"):
        with pytest.raises(ValueError, match=r"Python objects|plain arrays|magic string"):
            read_arrays(tmp_path / f"{name}.npz")
    np.savez(tmp_path / "good.npz", x=np.arange(3.0), y=np.ones((2, 2), int))
    assert {k: v.shape for k, v in read_arrays(tmp_path / "good.npz").items()} == {
        "x": (3,),
        "y": (2, 2),
    }


def test_an_idx_header_is_not_believed(tmp_path):
    header = struct.pack(">BBBBIII", 0, 0, 8, 3, 2**31, 2**10, 2**10)
    (tmp_path / "huge.gz").write_bytes(gzip.compress(header))
    with pytest.raises(CorruptDataError, match=r"claims 2.05e\+03 TiB of values"):
        read_idx(tmp_path / "huge.gz", num_axes=3)
    (tmp_path / "huge").write_bytes(header)
    with pytest.raises(CorruptDataError, match="claims"):
        read_idx(tmp_path / "huge", num_axes=3)


def test_no_more_of_an_idx_file_is_unpacked_than_it_states(tmp_path):
    header = struct.pack(">BBBBI", 0, 0, 8, 1, 10)
    file = io.BytesIO()
    with gzip.GzipFile(fileobj=file, mode="wb") as packed:
        packed.write(header)
        for _ in range(64):
            packed.write(bytes(2**20))
    (tmp_path / "bomb.gz").write_bytes(file.getvalue())
    tracemalloc.start()
    with pytest.raises(CorruptDataError, match="its header states 10 = 10"):
        read_idx(tmp_path / "bomb.gz", num_axes=1)
    assert tracemalloc.get_traced_memory()[1] < 16e6
    tracemalloc.stop()


@each(
    ("text", "reason"),
    [("[" * 100_000, "nested too deeply"), ("[" + "9" * 10_000 + "]", "too many digits")],
    ids=["deep", "long"],
)
def test_json_that_cannot_be_held_is_no_json(text, reason):
    with pytest.raises(json.JSONDecodeError, match=reason):
        parse_json(text)
