"""Seals: every changed byte is seen, and files of other writers pass."""

import json

import numpy as np
import pytest
import xarray as xr

from onebasin.base.files import netcdf
from onebasin.base.files.writing import Seal, examine, examine_json, seal_json, sealing


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


def test_damaged_tree_is_refused_in_a_sentence(tmp_path, tree):
    path = netcdf.write_tree(tree, tmp_path / "a.nc")
    flip(path, path.read_bytes().index(np.float64(3.0).tobytes()))
    with pytest.raises(
        LookupError, match=r"a\.nc is damaged: its content differs from what was written"
    ):
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
