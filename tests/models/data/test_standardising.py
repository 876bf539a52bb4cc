"""Splits by seed, and standardisation that sees the training part alone."""

from dataclasses import replace

import numpy as np
import pytest

from onebasin.models.data import Dataset, Standardiser, load_data, own_split, split, standardise


@pytest.fixture(scope="module")
def boston() -> Dataset:
    return load_data("boston")


def toy(x, y) -> Dataset:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    return Dataset(
        name="toy",
        x=x,
        y=y,
        feature_names=tuple("abc"[: x.shape[1]]),
        target_names=tuple("tuv"[: y.shape[1]]),
        task="regression",
        source="made up",
    )


def rows(dataset: Dataset) -> set[bytes]:
    return {row.tobytes() for row in np.hstack([dataset.x, dataset.y])}


def test_split_shares_out_every_observation_once(boston):
    parts = split(boston, seed=0)
    assert (parts.train.num_obs, parts.test.num_obs) == (405, 101)
    assert split(boston, test_fraction=0.5, seed=0).test.num_obs == 253
    assert rows(parts.train) | rows(parts.test) == rows(boston)
    assert not rows(parts.train) & rows(parts.test)


def test_split_is_decided_by_the_seed(boston):
    first, again, other = (split(boston, seed=seed).test.x for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_own_split_takes_the_test_points_that_belong_to_the_data(boston):
    dataset = load_data("relu-teacher")
    parts = own_split(dataset)
    np.testing.assert_array_equal(parts.train.x, dataset.x)
    np.testing.assert_array_equal(parts.test.x, dataset.held_out.x)
    with pytest.raises(ValueError, match="'boston', which has no test points"):
        own_split(boston)


def test_standardiser_gives_mean_0_and_sd_1_on_a_case_worked_out_by_hand():
    # Mean 3 and variance ((-2)^2 + 0 + 2^2) / 3 = 8 / 3; targets: mean 20, variance 200 / 3.
    train = toy([[1], [3], [5]], [[10], [20], [30]])
    scaler = Standardiser.fit(train)
    np.testing.assert_allclose(scaler.x_mean, [3], rtol=1e-15)
    np.testing.assert_allclose(scaler.x_sd, [np.sqrt(8 / 3)], rtol=1e-15)
    np.testing.assert_allclose(scaler.y_mean, [20], rtol=1e-15)
    np.testing.assert_allclose(scaler.y_sd, [np.sqrt(200 / 3)], rtol=1e-15)
    expected = [[-np.sqrt(1.5)], [0], [np.sqrt(1.5)]]
    np.testing.assert_allclose(scaler.transform(train).x, expected, rtol=1e-15)
    np.testing.assert_allclose(scaler.transform(train).y, expected, rtol=1e-15)


def test_standardise_does_not_see_the_test_rows(boston):
    parts = split(boston, seed=0)
    spoiled = replace(parts, test=replace(parts.test, x=parts.test.x * 100, y=parts.test.y + 1e6))
    clean, other = standardise(parts), standardise(spoiled)
    for field in ("x_mean", "x_sd", "y_mean", "y_sd"):
        values = getattr(clean.standardiser, field)
        np.testing.assert_array_equal(values, getattr(other.standardiser, field))
    np.testing.assert_array_equal(clean.train.x, other.train.x)
    # The control: rows of the training part do move the scaler.
    moved = replace(parts, train=replace(parts.train, x=parts.train.x + 1))
    assert not np.any(standardise(moved).standardiser.x_mean == clean.standardiser.x_mean)


def test_standardiser_goes_back_to_data_units(boston, rng):
    parts = standardise(split(boston, seed=2))
    assert parts.test.units == parts.train.units == "standardised"
    scaler = parts.standardiser
    back = parts.test.y * scaler.y_sd + scaler.y_mean
    np.testing.assert_allclose(back, parts.raw.test.y, rtol=1e-12)
    back = parts.test.x * scaler.x_sd + scaler.x_mean
    np.testing.assert_allclose(back, parts.raw.test.x, rtol=1e-10, atol=1e-12)
    # Draws of predictions, (chain, draw, obs, out): sds go back without the shift.
    draws = rng.standard_normal((2, 500, 3, 1))
    back = (draws * scaler.y_sd + scaler.y_mean).std(axis=(0, 1))
    np.testing.assert_allclose(back, draws.std(axis=(0, 1)) * scaler.target_sd, rtol=1e-12)


def test_log_scale_brings_a_log_density_to_data_units():
    import scipy.stats

    train = toy(np.zeros((4, 1)), [[1, 5], [2, 7], [4, 9], [9, -3]])
    scaler = Standardiser.fit(train)
    standardised = scipy.stats.norm.logpdf(scaler.transform(train).y, 0.3, 0.8).sum(axis=1)
    mean, sd = 0.3 * scaler.y_sd + scaler.y_mean, 0.8 * scaler.y_sd
    in_data_units = scipy.stats.norm.logpdf(train.y, mean, sd).sum(axis=1)
    np.testing.assert_allclose(standardised - scaler.log_scale, in_data_units, rtol=1e-12)


def test_standardiser_centres_a_constant_input_and_keeps_its_unit():
    # 0.1 is not a binary fraction: its mean and sd over three rows carry rounding.
    train = toy([[0.1, 1], [0.1, 2], [0.1, 3]], [[0], [1], [2]])
    scaler = Standardiser.fit(train)
    assert (scaler.x_mean[0], scaler.x_sd[0]) == (0.1, 1)
    np.testing.assert_array_equal(scaler.transform(train).x[:, 0], [0, 0, 0])
    other = scaler.transform(toy([[0.4, 2.0]], [[1]]))
    np.testing.assert_allclose(other.x, [[0.3, 0]], rtol=1e-15)


def test_standardiser_refuses_a_constant_target():
    with pytest.raises(ValueError, match="`train` has the same 't' in all 2 observations"):
        Standardiser.fit(toy([[0], [1]], [[3], [3]]))


def test_standardiser_leaves_labels_alone():
    parts = standardise(split(load_data("digits"), seed=0))
    np.testing.assert_array_equal(parts.train.y, parts.raw.train.y)
    assert np.all(np.isfinite(parts.test.x))
    with pytest.raises(ValueError, match="class labels have no scale"):
        _ = parts.standardiser.log_scale


def test_standardise_transforms_own_test_points_and_drops_the_truth():
    dataset = load_data("relu-teacher")
    scaler = Standardiser.fit(dataset)
    transformed = scaler.transform(dataset)
    np.testing.assert_array_equal(
        transformed.held_out.x, (dataset.held_out.x - scaler.x_mean) / scaler.x_sd
    )
    assert transformed.truth is None


def test_standardiser_refuses_data_it_does_not_fit(boston):
    scaler = Standardiser.fit(boston)
    with pytest.raises(ValueError, match="`boston` is standardised already"):
        scaler.transform(scaler.transform(boston))
    with pytest.raises(ValueError, match="`boston` is standardised already"):
        Standardiser.fit(scaler.transform(boston))
    with pytest.raises(ValueError, match="the fit was for the other task"):
        scaler.transform(load_data("digits"))
    with pytest.raises(ValueError, match=r"has \(10, 1\) columns in x and y; .* have \(13, 1\)"):
        scaler.transform(load_data("diabetes"))
    two = replace(boston, y=np.zeros((506, 2)), target_names=("a", "b"))
    with pytest.raises(ValueError, match=r"has \(13, 2\) columns in x and y; .* have \(13, 1\)"):
        scaler.transform(two)
