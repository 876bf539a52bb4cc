"""Boston Housing: design, the paper's tables, verdicts, and a toy run."""

import numpy as np
import pytest
from scipy.stats import wilcoxon

from onebasin.studies.boston import STUDY, paper
from onebasin.studies.boston.design import configure
from onebasin.studies.boston.measures import data_units
from onebasin.studies.lab import Frame, Options
from onebasin.studies.lab.study import conclude
from onebasin.truth.pairs import Pairs
from onebasin.truth.problems.relu_networks import boston_split

from ..each import each

MISSING = ("mse_data_units", "coverage_50", "log_score", "prediction_rhat", "prediction_ess")


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


def test_splits_differ_and_follow_the_seed():
    first, second = boston_split(0, 1), boston_split(0, 2)
    assert not np.array_equal(first.raw.test.y, second.raw.test.y)
    np.testing.assert_array_equal(second.raw.test.y, boston_split(1, 1).raw.test.y)
    assert configure(Options(quick=True)).splits == 1
    assert configure(Options(quick=True, splits=4)).splits == 4


def test_tables_of_the_paper_are_whole_and_plausible():
    for table in (paper.MSE, paper.OUTSIDE):
        assert {name: len(column) for name, column in table.items()} == {"free": 15, "givens": 15}
    assert min(paper.OUTSIDE["givens"]) == 0.03
    assert max(paper.OUTSIDE["givens"]) == 0.12
    assert (min(paper.MSE["givens"]), max(paper.MSE["free"])) == (0.27, 0.47)


def test_pair_counts_wins_and_tests_as_scipy_does(rng):
    free = tuple(rng.normal(1.0, 0.1, size=10).tolist())
    constrained = tuple(value - 0.05 - 0.01 * i for i, value in enumerate(free))
    paired = Pairs(free, constrained)
    assert paired.wins == 10
    assert paired.means == pytest.approx((np.mean(free), np.mean(constrained)))
    assert paired.p_value == pytest.approx(2 / 2**10)  # every difference has one sign
    assert paired.p_value == wilcoxon(free, constrained).pvalue


def test_pair_has_no_test_where_there_is_nothing_to_test():
    assert Pairs((0.1,) * 5, (0.2,) * 5).p_value is None
    assert Pairs((0.1,) * 8, (0.1,) * 8).p_value is None


@each(
    ("free", "constrained", "expected"),
    [
        ([0.5] * 8, [0.3, 0.31, 0.32, 0.33, 0.34, 0.35, 0.36, 0.37], ["reproduces"] * 5),
        ([0.5] * 8, [0.6, 0.61, 0.62, 0.63, 0.64, 0.65, 0.66, 0.67], ["does not reproduce"] * 5),
        (
            [0.5] * 8,
            [0.45, 0.46, 0.47, 0.48, 0.49, 0.44, 0.43, 0.5],
            ["does not reproduce", "unclear", "reproduces", "reproduces", "unclear"],
        ),
        ([0.5] * 5, [0.3, 0.31, 0.32, 0.33, 0.34], ["unclear"] * 5),
    ],
)
def test_verdicts_follow_the_numbers(free, constrained, expected):
    rows = [
        {"problem": p, "method": "nuts", "engine": "numpyro", "split": i, "mse": v, "outside_95": v, "label": "",
         "ess_per_1000_gradients": 1 / (v + 0.001 * i), **dict.fromkeys(MISSING)}
        for p, side in (("free", free), ("givens", constrained))
        for i, v in enumerate(side)
    ]  # fmt: skip
    frames = {"cells": Frame.of(rows), "failures": Frame(), "lines": Frame()}
    found = conclude(STUDY, frames)
    assert [statement.verdict for statement in found.statements] == expected
    for statement in found.statements:
        (trial,) = statement.trials
        assert trial.pairs == len(free)
        assert trial.low < trial.estimate < trial.high


def test_the_papers_own_table_does_not_win_every_split():
    assert Pairs(paper.MSE["free"], paper.MSE["givens"]).wins == 14


def test_log_score_in_data_units_is_missing_where_there_is_none():
    assert data_units(0.5, None, 2.0, 2.0) == {"mse_data_units": 2.0, "log_score_data_units": None}
    assert data_units(0.5, 0.0, 2.0, 2.0)["log_score_data_units"] == -2.0
