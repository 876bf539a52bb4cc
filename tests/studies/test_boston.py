"""Tests of the study of Boston Housing: design, the paper's tables, units, variations, calibration."""

from types import SimpleNamespace

import numpy as np
import pytest

from onebasin.studies.boston import STUDY
from onebasin.studies.boston.design import configure
from onebasin.studies.boston.measures import LEVELS, calibration, data_units
from onebasin.studies.options import Options
from onebasin.truth.problems.networks import boston_split


def test_design_is_that_of_the_paper():
    config = configure(Options())
    cells = STUDY.cells(config)
    plain = [cell for cell in cells if cell.problem in config.parametrisations]
    assert len(plain) == 15 * 4 * 3
    assert {cell.problem for cell in plain} == {"free", "givens", "ordered", "givens+ordered"}
    assert {cell.method for cell in plain} == {"nuts", "meanfield", "fullrank"}
    assert [cell.split for cell in plain[::12]] == list(range(1, 16))
    target = STUDY.target(config, cells[0])
    assert target.model.network.hidden == (50,)
    assert target.x.shape == (405, 13)
    np.testing.assert_allclose(target.x.mean(axis=0), 0, atol=1e-10)
    assert target.y.std() == pytest.approx(1)
    # Splits differ and follow the seed.
    first, second = boston_split(0, 1), boston_split(0, 2)
    assert not np.array_equal(first.raw.test.y, second.raw.test.y)
    np.testing.assert_array_equal(second.raw.test.y, boston_split(1, 1).raw.test.y)
    assert configure(Options(quick=True)).splits == 1
    assert configure(Options(quick=True, splits=4)).splits == 4


def test_a_log_score_in_data_units_is_missing_where_there_is_none():
    assert data_units(0.5, None, 2.0, 2.0) == {"mse_data_units": 2.0, "log_score_data_units": None}
    assert data_units(0.5, 0.0, 2.0, 2.0)["log_score_data_units"] == -2.0


def test_calibration_is_that_of_the_mixture(rng):
    function = rng.normal(size=(2, 400, 30, 1))
    sigma = np.full((2, 400), 0.5)
    y = rng.normal(size=(30, 1)) * 1.5
    found = calibration(SimpleNamespace(function=function, sigma=sigma), y)
    noisy = function + 0.5 * rng.normal(size=function.shape)
    for level in LEVELS:
        tail = (1 - level / 100) / 2
        low, high = np.quantile(noisy, [tail, 1 - tail], axis=(0, 1))
        inside = float(((low <= y) & (y <= high)).mean())
        assert found[f"covered_{level}"] == pytest.approx(inside, abs=0.07)
    assert sorted(found.values()) == list(found.values())
