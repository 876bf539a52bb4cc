"""Synthetic data against functions worked out by hand, and against the stated noise."""

import math

import numpy as np
import pytest

from onebasin.models.data import ReluTeacher, Sinc, load_data

SYNTHETIC = ("relu-teacher", "sinc")
ROOT = math.sqrt(2)


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        # h1 = relu(0) = 0, h2 = relu(1) = 1.
        ((0, 0), 1 / ROOT + 0.5),
        # h1 = relu(2 / sqrt 2) = sqrt 2, h2 = relu(1) = 1.
        ((1, 1), 1 + 1 / ROOT + 0.5),
        # h1 = relu(0) = 0, h2 = relu(1 - 2 / sqrt 2) = 0: both units off.
        ((1, -1), 0.5),
        # h1 = 0, h2 = relu(1 + 2 / sqrt 2) = 1 + sqrt 2: swapping x1 and x2 matters.
        ((-1, 1), (1 + ROOT) / ROOT + 0.5),
        # h1 = relu(3 / sqrt 2), h2 = relu(1 - 3 / sqrt 2) = 0: only the first unit on.
        ((3, 0), 1.5 + 0.5),
    ],
)
def test_relu_teacher_at_points_worked_out_by_hand(point, expected):
    y = ReluTeacher(noise_sd=0.1)(np.array([point], dtype=float))
    np.testing.assert_allclose(y, [[expected]], rtol=1e-14)


def test_sinc_has_its_peak_and_zeros_where_stated():
    y = Sinc(noise_sd=0, frequency=3.0)(np.array([[0.0], [1 / 3], [2 / 3], [0.5]]))
    # At 1/2: sin(3 pi / 2) / (3 pi / 2).
    np.testing.assert_allclose(y[:, 0], [1, 0, 0, -2 / (3 * math.pi)], rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_draws_are_truth_plus_noise_of_the_stated_sd(name):
    dataset = load_data(name, num_obs=20_000, noise_sd=0.3)
    noise = dataset.y - dataset.truth(dataset.x)
    # The mean's and the sd's standard errors are 0.3 / sqrt(n) and 0.3 / sqrt(2 n); five of each.
    assert abs(noise.mean()) < 5 * 0.3 / math.sqrt(20_000)
    assert abs(noise.std() - 0.3) < 5 * 0.3 / math.sqrt(40_000)
    correlation = np.corrcoef(noise[:, 0], dataset.x[:, 0])[0, 1]
    assert abs(correlation) < 5 / math.sqrt(20_000)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_seed_decides_the_data(name):
    first, again, other = load_data(name, seed=3), load_data(name, seed=3), load_data(name, seed=4)
    np.testing.assert_array_equal(first.x, again.x)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.any(first.x == other.x)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_test_points_are_fresh_and_do_not_move_with_the_noise(name):
    dataset, noisier = load_data(name), load_data(name, noise_sd=2.0)
    size = min(dataset.num_obs, dataset.held_out.num_obs)
    assert not np.any(dataset.x[:size] == dataset.held_out.x[:size])
    np.testing.assert_array_equal(dataset.held_out.x, noisier.held_out.x)
    np.testing.assert_array_equal(dataset.held_out.x, load_data(name, num_obs=3).held_out.x)
