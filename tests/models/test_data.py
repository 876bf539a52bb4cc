"""Data sets: their parts fit together, splits follow the seed, and standardisation sees the training part alone."""

import gzip
import math
import struct
import sys
from dataclasses import replace

import numpy as np
import pytest

from onebasin.models import load_data as data
from onebasin.models.data import Dataset, Standardiser, own_split, split, standardise
from onebasin.models.load_data import CorruptDataError, MissingDataError, load_data, read_idx


def toy(x, y=((0.0,), (1.0,), (2.0,)), **changes) -> Dataset:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    fields = {
        "feature_names": tuple("abc"[: x.shape[1]]),
        "target_names": tuple("tuv"[: y.shape[-1]]),
        "task": "regression",
    }
    return Dataset(name="toy", x=x, y=y, source="made up", **{**fields, **changes})


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("x", "changes", "message"),
    [
        (np.ones((3, 2)), {"task": "ranking"}, "`task` is 'ranking'; choose one of"),
        (np.zeros((0, 2)), {}, "`x` has no rows"),
        (np.ones((3, 2)), {"feature_names": ("a",)}, r"`x` must have shape .* got \(3, 2\)"),
        ([[0, 1], [np.nan, 2], [3, np.inf]], {}, "`x` .*finite"),
        (np.ones((3, 2)), {"target_names": ("t", "u")}, r"`y` must have shape .* got \(3, 1\)"),
        (np.ones((2, 2)), {}, r"`y` must have shape .* got \(3, 1\)"),
    ],
)
def test_a_data_set_rejects_parts_that_do_not_fit(x, changes, message):
    with pytest.raises(ValueError, match=message):
        toy(x, **changes)


READY = {
    "relu-teacher": ((100, 2), 1),
    "sinc": ((128, 1), 1),
    "auto-mpg": ((392, 8), 1),
    "boston": ((506, 13), 1),
    "diabetes": ((442, 10), 1),
    "digits": ((1797, 64), 10),
    "mnist-5k": ((5000, 784), 10),
}
"""Data sets that a fresh installation can load: shape of the inputs, and outputs."""


@pytest.fixture(scope="module")
def loaded() -> dict[str, Dataset]:
    return {name: load_data(name) for name in READY}


def test_data_sets_have_the_stated_shapes_and_the_published_first_and_last_rows(loaded):
    assert {n: (d.x.shape, d.out_dim) for n, d in loaded.items()} == READY
    # UCI's file "auto-mpg.data": the Chevrolet Chevelle Malibu, American, and the Chevy S-10.
    cars, boston = loaded["auto-mpg"], loaded["boston"]
    first, last = [8, 307, 130, 3504, 12, 70, 0, 0], [4, 119, 82, 2720, 19.4, 82, 0, 0]
    np.testing.assert_array_equal(cars.x[[0, -1]], [first, last])
    np.testing.assert_array_equal(cars.y[[0, -1], 0], [18, 31])
    # 245 American, 68 European and 79 Japanese cars with a known horsepower.
    np.testing.assert_array_equal(cars.x[:, 6:].sum(axis=0), [68, 79])
    # StatLib's file "boston" (Harrison and Rubinfeld 1978).
    first = [0.00632, 18, 2.31, 0, 0.538, 6.575, 65.2, 4.09, 1, 296, 15.3, 396.9, 4.98]
    last = [0.04741, 0, 11.93, 0, 0.573, 6.03, 80.8, 2.505, 1, 273, 21, 396.9, 7.88]
    np.testing.assert_array_equal(boston.x[[0, -1]], [first, last])
    np.testing.assert_array_equal(boston.y[[0, -1], 0], [24.0, 11.9])
    assert boston.y.mean() == pytest.approx(22.532806, abs=1e-6)


def test_an_unknown_name_or_a_missing_package_says_what_to_do(monkeypatch):
    with pytest.raises(ValueError, match=r"`name` is 'bostn'.*mnist.*Did you mean 'boston'\?"):
        load_data("bostn")
    for package, name in (("mlxtend", "boston"), ("sklearn", "digits")):
        monkeypatch.setitem(sys.modules, package, None)
        assert "pip install 'onebasin[data]'" in data.missing(name)
        with pytest.raises(
            MissingDataError,
            match=f"^`name` is '{name}', but this data set cannot be loaded: it is part of the package",
        ):
            load_data(name)


ROOT = math.sqrt(2)


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ((0, 0), 1 / ROOT + 0.5),  # h1 = relu(0) = 0, h2 = relu(1) = 1
        ((1, 1), 1 + 1 / ROOT + 0.5),  # h1 = relu(2 / sqrt 2) = sqrt 2, h2 = relu(1) = 1
        ((1, -1), 0.5),  # h1 = relu(0) = 0, h2 = relu(1 - 2 / sqrt 2) = 0
        ((-1, 1), (1 + ROOT) / ROOT + 0.5),  # h1 = 0, h2 = relu(1 + 2 / sqrt 2)
        ((3, 0), 1.5 + 0.5),  # h1 = relu(3 / sqrt 2), h2 = relu(1 - 3 / sqrt 2) = 0
    ],
)
def test_the_teacher_at_points_worked_out_by_hand(loaded, point, expected):
    y = loaded["relu-teacher"].truth(np.array([point], dtype=float))
    np.testing.assert_allclose(y, [[expected]], rtol=1e-14)


def test_sinc_has_its_peak_and_zeros_where_stated(loaded):
    y = loaded["sinc"].truth(np.array([[0.0], [1 / 3], [2 / 3], [0.5]]))
    # At 1/2: sin(3 pi / 2) / (3 pi / 2).
    np.testing.assert_allclose(y[:, 0], [1, 0, 0, -2 / (3 * math.pi)], rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", ["relu-teacher", "sinc"])
def test_synthetic_data_are_truth_plus_noise_and_follow_the_seed(name):
    dataset = load_data(name, num_obs=20_000, noise_sd=0.3)
    noise = dataset.y - dataset.truth(dataset.x)
    # The mean's and the sd's standard errors are 0.3 / sqrt(n) and 0.3 / sqrt(2 n); five of each.
    assert abs(noise.mean()) < 5 * 0.3 / math.sqrt(20_000)
    assert abs(noise.std() - 0.3) < 5 * 0.3 / math.sqrt(40_000)
    correlation = np.corrcoef(noise[:, 0], dataset.x[:, 0])[0, 1]
    assert abs(correlation) < 5 / math.sqrt(20_000)
    first, again, other = (load_data(name, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.any(first.x == other.x)
    # Test points are fresh, and do not depend on the noise or the number of observations.
    size = min(first.num_obs, first.held_out.num_obs)
    assert not np.any(first.x[:size] == first.held_out.x[:size])
    for changes in ({"noise_sd": 2.0}, {"num_obs": 3}):
        changed = load_data(name, seed=3, **changes)
        np.testing.assert_array_equal(first.held_out.x, changed.held_out.x)


def rows(dataset: Dataset) -> set[bytes]:
    return {row.tobytes() for row in np.hstack([dataset.x, dataset.y])}


def test_a_split_shares_out_every_observation_once_by_the_seed(loaded):
    boston = loaded["boston"]
    parts = split(boston, seed=7)
    assert (parts.train.num_obs, parts.test.num_obs) == (405, 101)
    assert rows(parts.train) | rows(parts.test) == rows(boston)
    assert not rows(parts.train) & rows(parts.test)
    np.testing.assert_array_equal(parts.test.x, split(boston, seed=7).test.x)
    assert not np.array_equal(parts.test.x, split(boston, seed=8).test.x)


def test_own_split_takes_the_test_points_that_belong_to_the_data(loaded):
    dataset = loaded["relu-teacher"]
    parts = own_split(dataset)
    np.testing.assert_array_equal(parts.train.x, dataset.x)
    np.testing.assert_array_equal(parts.test.x, dataset.held_out.x)
    with pytest.raises(ValueError, match="'boston', which has no test points"):
        own_split(loaded["boston"])


def test_standardising_on_a_case_worked_out_by_hand():
    # Mean 3 and variance ((-2)^2 + 0 + 2^2) / 3 = 8 / 3; targets: mean 20, variance 200 / 3.
    train = toy([[1], [3], [5]], [[10], [20], [30]])
    scaler = Standardiser.fit(train)
    found = [scaler.x_mean, scaler.x_sd, scaler.y_mean, scaler.y_sd]
    wanted = [[3], [np.sqrt(8 / 3)], [20], [np.sqrt(200 / 3)]]
    np.testing.assert_allclose(found, wanted, rtol=1e-15)
    expected = [[-np.sqrt(1.5)], [0], [np.sqrt(1.5)]]
    np.testing.assert_allclose(scaler.transform(train).x, expected, rtol=1e-15)
    np.testing.assert_allclose(scaler.transform(train).y, expected, rtol=1e-15)


def test_standardising_does_not_see_the_test_rows_and_goes_back_to_data_units(loaded):
    parts = split(loaded["boston"], seed=2)
    spoiled = replace(parts, test=replace(parts.test, x=parts.test.x * 100, y=parts.test.y + 1e6))
    clean, other = standardise(parts), standardise(spoiled)
    np.testing.assert_array_equal(clean.train.x, other.train.x)
    scaler = clean.standardiser
    back = clean.test.y * scaler.y_sd + scaler.y_mean
    np.testing.assert_allclose(back, clean.raw.test.y, rtol=1e-12)
    back = clean.test.x * scaler.x_sd + scaler.x_mean
    np.testing.assert_allclose(back, clean.raw.test.x, rtol=1e-10, atol=1e-12)


def test_log_scale_brings_a_log_density_to_data_units():
    import scipy.stats

    train = toy(np.zeros((4, 1)), [[1, 5], [2, 7], [4, 9], [9, -3]])
    scaler = Standardiser.fit(train)
    standardised = scipy.stats.norm.logpdf(scaler.transform(train).y, 0.3, 0.8).sum(axis=1)
    mean, sd = 0.3 * scaler.y_sd + scaler.y_mean, 0.8 * scaler.y_sd
    in_data_units = scipy.stats.norm.logpdf(train.y, mean, sd).sum(axis=1)
    np.testing.assert_allclose(standardised - scaler.log_scale, in_data_units, rtol=1e-12)


def test_constant_inputs_keep_their_unit_constant_targets_are_rejected_labels_stay(loaded):
    # 0.1 is not a binary fraction: its mean and sd over three rows carry rounding.
    train = toy([[0.1, 1], [0.1, 2], [0.1, 3]])
    scaler = Standardiser.fit(train)
    assert (scaler.x_mean[0], scaler.x_sd[0]) == (0.1, 1)
    np.testing.assert_array_equal(scaler.transform(train).x[:, 0], [0, 0, 0])
    np.testing.assert_allclose(scaler.transform(toy([[0.4, 2.0]], [[1]])).x, [[0.3, 0]], rtol=1e-15)
    with pytest.raises(
        ValueError, match="output 't' of `train` has the same value in all 2 observations"
    ):
        Standardiser.fit(toy([[0], [1]], [[3], [3]]))
    parts = standardise(split(loaded["digits"], seed=0))
    np.testing.assert_array_equal(parts.train.y, parts.raw.train.y)
    assert np.all(np.isfinite(parts.test.x))
    teacher = loaded["relu-teacher"]
    moved = (scaler := Standardiser.fit(teacher)).transform(teacher)
    held_out = (teacher.held_out.x - scaler.x_mean) / scaler.x_sd
    np.testing.assert_array_equal(moved.held_out.x, held_out)
    assert moved.truth is None


def test_a_standardiser_rejects_data_that_it_does_not_fit(loaded):
    scaler = Standardiser.fit(boston := loaded["boston"])
    for call in (scaler.transform, Standardiser.fit):
        with pytest.raises(ValueError, match="`dataset` is already standardised"):
            call(scaler.transform(boston))
    two = replace(boston, y=np.zeros((506, 2)), target_names=("a", "b"))
    for other, words in (
        (loaded["digits"], r"for classification, with 64 input\(s\)"),
        (loaded["diabetes"], r"with 10 input\(s\) and 1 output\(s\)"),
        (two, r"with 13 input\(s\) and 2 output\(s\)"),
    ):
        with pytest.raises(ValueError, match=f"fitted to data for regr.*`dataset` is .*{words}"):
            scaler.transform(other)


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
def test_read_idx_rejects_other_files(tmp_path, content):
    path = tmp_path / "labels.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(
        CorruptDataError, match=r"labels\.gz is not a complete 1-dimensional IDX file"
    ):
        read_idx(path, num_axes=1)


def test_mnist_scales_pixels_holds_the_test_images_out_and_rejects_other_labels(mnist_folder):
    dataset = load_data("mnist")
    np.testing.assert_allclose(dataset.x[0], [0, 0.2, 0.4, 1], rtol=1e-15)
    np.testing.assert_array_equal(dataset.y, [7, 0, 9])
    np.testing.assert_array_equal(dataset.held_out.x, [[1, 0, 0, 0]])
    assert dataset.feature_names == ("pixel_0_0", "pixel_0_1", "pixel_1_0", "pixel_1_1")
    for labels in ([7, 0], [7, 0, 10]):
        content = gzip.compress(idx_bytes((len(labels),), bytes(labels)))
        (mnist_folder / "train-labels-idx1-ubyte.gz").write_bytes(content)
        with pytest.raises(CorruptDataError, match="one label from 0 to 9"):
            load_data("mnist")


def test_mnist_is_looked_for_in_the_data_folder_and_in_the_cache(
    mnist_folder, tmp_path, monkeypatch
):
    monkeypatch.setenv("ONEBASIN_DATA", str(tmp_path / "mine"))
    cache = tmp_path / "the-cache"
    monkeypatch.setattr(data.platformdirs, "user_cache_dir", lambda app: str(cache / app))
    with pytest.raises(
        MissingDataError,
        match=r"t10k-labels.* No folder contains all of them .*mine/mnist, .*ONEBASIN_DATA",
    ):
        load_data("mnist")
    assert "train-images-idx3-ubyte.gz" in data.missing("mnist")
    (cache / "onebasin" / "data").mkdir(parents=True)
    mnist_folder.rename(cache / "onebasin" / "data" / "mnist")
    assert load_data("mnist").num_obs == 3
