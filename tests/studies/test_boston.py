"""Boston Housing: design, the paper's tables, verdicts, variations, units, calibration, what is said of chains."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from onebasin.inference import Nuts
from onebasin.studies.boston import STUDY, claims
from onebasin.studies.boston.claims import STATED
from onebasin.studies.boston.design import SHALLOW, SHORT, VARIATIONS, configure
from onebasin.studies.boston.measures import data_units
from onebasin.studies.boston.page import UNITS, WHY, chains_of_variations, figures, units, why
from onebasin.studies.lab import Caution, Frame, Options, Outcomes
from onebasin.studies.lab.study import conclude
from onebasin.studies.shared.heldout import LEVELS, calibration, chains_that_disagree, mixing
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
    for table in (claims.MSE, claims.OUTSIDE):
        assert {name: len(column) for name, column in table.items()} == {"free": 15, "givens": 15}
    assert min(claims.OUTSIDE["givens"]) == 0.03
    assert max(claims.OUTSIDE["givens"]) == 0.12
    assert (min(claims.MSE["givens"]), max(claims.MSE["free"])) == (0.27, 0.47)
    assert Pairs(claims.MSE["free"], claims.MSE["givens"]).wins == 14


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


def test_log_score_in_data_units_is_missing_where_there_is_none():
    assert data_units(0.5, None, 2.0, 2.0) == {"mse_data_units": 2.0, "log_score_data_units": None}
    assert data_units(0.5, 0.0, 2.0, 2.0)["log_score_data_units"] == -2.0


COLUMNS = ("mse_data_units", "log_score_data_units", "prediction_ess", "mean_tree_depth")


def cells(**mse: float) -> dict[str, Frame]:
    rows = (
        {"problem": problem, "method": "nuts", "engine": "numpyro", "split": k, "label": problem,
         "mse": value + 0.01 * k, "outside_95": 0.05, "log_score": -value, "prediction_rhat": 1.02,
         **dict.fromkeys(COLUMNS)}
        for problem, value in mse.items()
        for k in (1, 2, 3)
    )  # fmt: skip
    lines = ({"split": k, "mse": 0.25, "mse_data_units": 21.0} for k in (1, 2, 3))
    return {"cells": Frame.of(rows), "lines": Frame.of(lines), "trials": Frame()}


def test_variations_run_beside_what_they_are_held_against():
    config = configure(Options(splits=7))
    varied = [cell for cell in STUDY.cells(config) if cell.problem in VARIATIONS]
    assert {cell.problem for cell in varied} == set(VARIATIONS)
    assert {cell.split for cell in varied} == {1, 2, 3, 4, 5}
    free = configure(Options(parametrisations=("free",)))
    assert {VARIATIONS[cell.problem].base for cell in STUDY.cells(free) if "-" in cell.problem} == {
        "free"
    }
    assert not configure(Options(quick=True)).why_splits


def test_priors_give_either_network_the_functions_of_the_other():
    """A unit's slope and the place of its kink, of a unit-norm and of a free network, have the same scale."""
    config = configure(Options())
    target = {
        cell.problem: STUDY.target(config, cell)
        for cell in STUDY.cells(config)
        if cell.split == 1 and cell.method == "nuts"
    }

    def slope_and_kink(problem: str) -> tuple[float, float]:
        model = target[problem].model
        weights, biases = model.prior.weight_scales(2), model.prior.bias_scales(2)
        norm = 1.0 if model.parametrisation.unit_norm else weights[0] * math.sqrt(13)
        return norm * weights[1], biases[0] / norm

    assert slope_and_kink("free-narrow") == pytest.approx(slope_and_kink("givens"))
    assert slope_and_kink("givens-wide") == pytest.approx(slope_and_kink("free"))
    assert slope_and_kink("free")[0] > 3 * slope_and_kink("givens")[0]


def test_samplers_are_cut_short_and_nothing_else():
    nuts = Nuts(chains=2, warmup=200, draws=300)
    short = VARIATIONS["free-short"].settings(nuts)
    assert (short.warmup, short.draws, short.max_tree_depth) == (SHORT, SHORT, 10)
    shallow = VARIATIONS["givens-shallow"].settings(nuts)
    assert (shallow.warmup, shallow.draws, shallow.max_tree_depth) == (200, 300, SHALLOW)
    assert VARIATIONS["givens-wide"].settings(nuts) == nuts


def test_difference_is_split_between_prior_and_constraint():
    frames = cells(free=0.3, givens=0.2, **{"free-narrow": 0.22})
    said = why(frames)
    assert "changes by -0.100" in said
    assert "-0.080 with free weights" in said
    assert "-0.020 more by the constraint" in said
    names = [row[0].value for row in WHY(frames).rows]
    assert names[0] == "both, as in the paper"
    assert len(names) == 3
    assert said.startswith("On 3 splits the")
    one = {**frames, "cells": frames["cells"].where(split=1)}
    assert why(one).startswith("On 1 split the")
    assert why(cells(free=0.3, givens=0.2)) == ""


def test_paper_is_read_in_several_units():
    frames = cells(free=0.05, givens=0.04)
    by_name = {row[0].value + row[1].value[:3]: row for row in UNITS(frames).rows}
    standardised = by_name["MSE, standardisedthe"]
    assert standardised[2].value == pytest.approx(0.25)
    assert standardised[6].flag == "warn"  # 0.38 is worse than a line's 0.25
    root = by_name["root of ita r"]
    assert root[6].flag == "good"  # and better than its root, 0.5
    assert "above the line's" in units(frames)


def test_a_run_without_nuts_has_no_plot_of_its_splits():
    frames = cells(free=0.05)
    frames["cells"] = Frame.of({**row, "method": "meanfield"} for row in frames["cells"])
    assert figures(configure(Options()), Outcomes({}, {}), frames) == {}


def test_a_split_counts_once_however_many_engines_ran_it():
    frames = cells(free=0.05)
    other = ({**row, "engine": "stan", "mse": 0.1} for row in frames["cells"] if row["split"] == 1)
    frames["cells"] = Frame.of([*frames["cells"], *other])
    (first, *_) = UNITS(frames).rows
    assert first[3].value == pytest.approx(np.mean([(0.06 + 0.1) / 2, 0.07, 0.08]))


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


def test_variations_are_counted_apart_from_what_the_statements_rest_on():
    frames = cells(free=0.3, givens=0.2, ordered=0.3, **{"free-narrow": 0.2, "givens-shallow": 0.4})
    rhats = {"givens-shallow": 1.88, "ordered": 1.06}
    rows = [{**r, "prediction_rhat": rhats.get(r["problem"], 1.0)} for r in frames["cells"]]
    frames["cells"] = Frame.of(rows)
    said = chains_that_disagree(frames, STATED)
    assert "in 3 of 9 posteriors, at most 1.06 (ordered)" in said
    assert "above 1.05 in 3 of 3 cut short on purpose and 0 of 3 given" in chains_of_variations(
        frames
    )
    assert chains_of_variations(cells(free=0.3)) == ""
    assert {name for name, one in VARIATIONS.items() if one.cut} == {
        "free-short", "givens-short", "free-shallow", "givens-shallow",
    }  # fmt: skip


def test_chains_that_disagree_are_said_plainly():
    frames = cells(free=0.3, givens=0.2)
    assert "at most 1.05 everywhere" in chains_that_disagree(frames)
    bad = [
        {**row, "prediction_rhat": rhat, "rhat_above": 0.5 * (rhat > 1.05)}
        for row in frames["cells"]
        for rhat in [1.47 if row["split"] == 2 else 1.0]
    ]
    said = chains_that_disagree({"cells": Frame.of(bad)})
    assert "above 1.05 at some test point in 2 of 6 posteriors" in said
    assert "16.7 % of all points, at most 1.47" in said
    assert isinstance(said, Caution)
    (row,) = mixing(("engine",), "")({"cells": Frame.of(bad)}).rows
    assert (row[2].value, row[2].flag) == (1.47, "bad")
    assert chains_that_disagree({"cells": Frame()}) == ""
