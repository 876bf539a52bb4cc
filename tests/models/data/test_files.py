"""Data read from files: MNIST's IDX files, against files made by hand."""

import gzip
import struct

import numpy as np
import pytest

from onebasin.models.data import CorruptDataError, MissingDataError, load_data
from onebasin.models.data.load import read_idx


def idx_bytes(shape: tuple[int, ...], values: bytes, *, magic: bytes = b"\x00\x00\x08") -> bytes:
    return magic + bytes([len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + values


@pytest.fixture
def mnist_folder(tmp_path, monkeypatch):
    """Three training images of 2 x 2 pixels and one test image, in MNIST's four files."""
    contents = {
        "train-images-idx3-ubyte.gz": idx_bytes((3, 2, 2), bytes([0, 51, 102, 255, *range(8)])),
        "train-labels-idx1-ubyte.gz": idx_bytes((3,), bytes([7, 0, 9])),
        "t10k-images-idx3-ubyte.gz": idx_bytes((1, 2, 2), bytes([255, 0, 0, 0])),
        "t10k-labels-idx1-ubyte.gz": idx_bytes((1,), bytes([4])),
    }
    folder = tmp_path / "mnist"
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(gzip.compress(content))
    monkeypatch.setenv("ONEBASIN_DATA", str(tmp_path))
    return folder


@pytest.fixture
def empty_places(tmp_path, monkeypatch):
    """A machine without data: the folder of data and the cache exist, empty."""
    monkeypatch.delenv("ONEBASIN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def test_read_idx_keeps_shape_and_order(tmp_path):
    path = tmp_path / "values.gz"
    path.write_bytes(gzip.compress(idx_bytes((2, 1, 3), bytes([0, 1, 2, 3, 128, 255]))))
    values = read_idx(path, num_axes=3)
    np.testing.assert_array_equal(values, [[[0, 1, 2]], [[3, 128, 255]]])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        idx_bytes((2,), b"ab", magic=b"\x00\x00\x0d"),  # numbers of another type
        idx_bytes((2, 1), b"ab"),
        idx_bytes((2,), b"")[:6],
        idx_bytes((3,), b"ab"),
        idx_bytes((1,), b"ab"),
        b"<html>not found</html>",
    ],
)
def test_read_idx_refuses_what_is_not_such_a_file(tmp_path, content):
    path = tmp_path / "labels.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(
        CorruptDataError, match=r"labels\.gz is not a whole IDX file.*fetch it again"
    ):
        read_idx(path, num_axes=1)


@pytest.mark.usefixtures("mnist_folder")
def test_mnist_scales_pixels_and_holds_the_test_images_out():
    dataset = load_data("mnist")
    np.testing.assert_allclose(dataset.x[0], [0, 0.2, 0.4, 1], rtol=1e-15)
    np.testing.assert_array_equal(dataset.y, [7, 0, 9])
    np.testing.assert_array_equal(dataset.held_out.x, [[1, 0, 0, 0]])
    np.testing.assert_array_equal(dataset.held_out.y, [4])
    assert dataset.feature_names == ("pixel_0_0", "pixel_0_1", "pixel_1_0", "pixel_1_1")
    assert dataset.out_dim == 10


def test_cached_files_serve_where_the_data_folder_lacks_them(mnist_folder, tmp_path, monkeypatch):
    import platformdirs

    monkeypatch.setenv("ONEBASIN_DATA", str(tmp_path / "empty"))
    cache = tmp_path / "the-cache"
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda app: str(cache / app))
    (cache / "onebasin" / "data").mkdir(parents=True)
    mnist_folder.rename(cache / "onebasin" / "data" / "mnist")
    assert load_data("mnist").num_obs == 3


def test_missing_files_are_named_with_the_variable_and_the_places(empty_places, monkeypatch):
    with pytest.raises(MissingDataError, match=r"t10k-labels.* not found .*ONEBASIN_DATA"):
        load_data("mnist")
    monkeypatch.setenv("ONEBASIN_DATA", str(empty_places / "mine"))
    with pytest.raises(MissingDataError, match=r"not found in .*mine/mnist, .*put the data in"):
        load_data("mnist")


def test_mnist_refuses_labels_that_do_not_fit(mnist_folder):
    for labels in ([7, 0], [7, 0, 10]):
        content = gzip.compress(idx_bytes((len(labels),), bytes(labels)))
        (mnist_folder / "train-labels-idx1-ubyte.gz").write_bytes(content)
        with pytest.raises(CorruptDataError, match="as many labels from 0 to 9"):
            load_data("mnist")
