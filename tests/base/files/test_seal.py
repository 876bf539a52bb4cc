"""Seals: every changed byte is seen, and files of other writers pass."""

import json
import os
import zipfile

import h5py
import numpy as np
import pytest
import xarray as xr

from onebasin.base.files import netcdf, seal
from onebasin.base.files.seal import Seal, examine, examine_json, seal_json, sealing

from ...each import each


@pytest.fixture
def tree():
    values = xr.Dataset({"mu": (("chain", "draw"), np.arange(8.0).reshape(2, 4))})
    return xr.DataTree.from_dict({"posterior": values})


@pytest.fixture
def sealed(tmp_path):
    path = tmp_path / "file"
    with sealing(path) as part:
        part.write_bytes(b"content")
    return path


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_flip_of_any_byte_of_the_content_is_seen(sealed):
    assert examine(sealed) is Seal.SEALED
    for place in range(len(b"content")):
        flip(sealed, place)
        assert examine(sealed) is Seal.DAMAGED
        flip(sealed, place)
    flip(sealed, -1)
    assert examine(sealed) is Seal.DAMAGED


@each("content", [b"", b"short", b"a foreign file, longer than any trailer of ours is"])
def test_file_without_a_seal_is_no_damaged_one(content, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert examine(path) is Seal.UNSEALED


def test_file_that_is_cut_short_is_not_sealed(sealed):
    whole = sealed.read_bytes()
    for size in range(len(whole)):
        sealed.write_bytes(whole[:size])
        assert examine(sealed) is Seal.UNSEALED


def test_empty_content_has_a_seal_too(tmp_path):
    path = tmp_path / "file"
    with sealing(path) as part:
        part.touch()
    assert examine(path) is Seal.SEALED


def test_content_is_read_a_chunk_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(seal, "_CHUNK", 3)
    path = tmp_path / "file"
    with sealing(path) as part:
        part.write_bytes(bytes(range(10)))
    assert examine(path) is Seal.SEALED
    monkeypatch.undo()
    assert examine(path) is Seal.SEALED


def test_readers_pass_over_the_seal(tmp_path, tree):
    path = netcdf.write_tree(tree, tmp_path / "a.nc")
    assert examine(path) is Seal.SEALED
    with xr.open_datatree(path, engine="h5netcdf") as opened:
        xr.testing.assert_identical(opened.load(), tree)
    with sealing(tmp_path / "a.npz") as part, part.open("wb") as file:
        np.savez(file, a=np.arange(3))
    assert zipfile.ZipFile(tmp_path / "a.npz").testzip() is None
    with np.load(tmp_path / "a.npz") as archive:
        np.testing.assert_array_equal(archive["a"], np.arange(3))


def test_file_that_its_owner_changed_is_not_damaged(tmp_path, tree):
    path = netcdf.write_tree(tree, tmp_path / "a.nc")
    with h5py.File(path, "r+") as file:
        file["posterior/mu"][0, 0] = 5.0  # in its place: the file does not grow
    assert examine(path) is Seal.UNSEALED
    found = netcdf.read_tree(path, "posterior", error=ValueError, writer="us")
    assert found["posterior/mu"][0, 0] == 5.0


def test_damaged_tree_is_refused_in_a_sentence(tmp_path, tree):
    path = netcdf.write_tree(tree, tmp_path / "a.nc")
    flip(path, path.read_bytes().index(np.float64(3.0).tobytes()))
    with pytest.raises(LookupError, match=r"a\.nc is damaged: its content is not what was written"):
        netcdf.read_tree(path, "posterior", error=LookupError, writer="us")


def test_json_says_whether_it_is_what_was_written():
    value = seal_json({"b": [1.5, None, 1e-300], "a": {"c": "\u00e9"}})
    assert list(value) == ["b", "a", "sha256"]
    read = json.loads(json.dumps(value, indent=2))
    assert examine_json(read) is Seal.SEALED
    assert examine_json(dict(reversed(read.items()))) is Seal.SEALED
    assert seal_json(read) == read
    assert examine_json({**read, "b": [1.5, None, 2e-300]}) is Seal.DAMAGED
    assert examine_json({"b": 1}) is Seal.UNSEALED
    assert examine_json([1]) is Seal.UNSEALED


def test_seal_that_cannot_be_written_leaves_the_old_file(sealed, monkeypatch):
    def full(path):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(seal, "seal", full)
    with pytest.raises(OSError, match="No space left"), sealing(sealed) as part:
        part.write_bytes(b"new")
    assert examine(sealed) is Seal.SEALED
    assert [entry.name for entry in sealed.parent.iterdir()] == ["file"]
