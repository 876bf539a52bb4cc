"""The two-unit teacher: its design, its verdicts, and a toy run."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onebasin.analysis.predictive.heldout import predict_held_out
from onebasin.inference import Advi, Nuts
from onebasin.models.data import Dataset, load_data
from onebasin.studies.lab import Frame, Frames, Options, Outcomes
from onebasin.studies.lab.claims import Statement
from onebasin.studies.lab.study import conclude, measure, report
from onebasin.studies.relu_teacher import STUDY, design, page
from onebasin.studies.relu_teacher.design import TeacherConfig, configure, target
from onebasin.truth.problems.relu_networks import teacher_data

from ..command_fixtures import InMemory, fake_posterior

MEASURES = (
    "ess_bulk_value",
    "prediction_ess",
    "mean_tree_depth",
    "ess_per_1000_gradients",
    "prediction_ess_per_second",
    "from_nuts_in_sds",
    "from_nuts_sd_ratio",
)
SETTINGS = Nuts(chains=4, warmup=10, draws=250)
ADVI = Advi(draws=400)


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    config = replace(configure(Options()), nuts=SETTINGS, advi=ADVI)
    trees = {}
    for cell in STUDY.cells(config):
        method = cell.method if cell.method == "nuts" else f"advi-{cell.method}"
        target = STUDY.target(config, cell)
        trees[cell] = fake_posterior(target, method, cell.engine, cell.settings, cell.seed)
    return InMemory(trees, {})


@pytest.fixture(scope="module")
def frames(outcomes) -> Frames:
    with pytest.MonkeyPatch.context() as patch:  # every point costs the time of its ESS
        patch.setattr(design, "teacher_data", lambda seed, noise_sd: few_points())
        return measure(STUDY, configure(Options()), outcomes)


def changed(frames: Frames, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Frames:
    """Change columns of the cells."""
    return {**frames, "cells": Frame.of({**row, **change(dict(row))} for row in frames["cells"])}


def over_sets(frames: Frames, num: int = 6) -> Frames:
    """Take the cells for those of several data sets, whose numbers differ a little."""

    def of_set(row: dict[str, Any], number: int) -> dict[str, Any]:
        rng = np.random.default_rng([number, *row["key"].encode()])
        factor = 1 + 0.01 * rng.random()
        measures = {name: row[name] * factor for name in MEASURES if row[name] is not None}
        return {**row, "data": f"set{number}", "dataset": number, **measures}

    sets = (of_set(dict(row), k) for k in range(1, num + 1) for row in frames["cells"])
    return {**frames, "cells": Frame.of(sets)}


def statements(frames: Frames) -> tuple[Statement, ...]:
    return conclude(STUDY, frames).statements


def few_points() -> Dataset:
    return load_data("relu-teacher", num_test=12)


def test_design_is_that_of_the_paper():
    config = configure(Options())
    cells = STUDY.cells(config)
    assert len(cells) == 4 * 3 * 2 + 2 * 2
    assert config.engines == ("numpyro", "stan")
    target = STUDY.target(config, cells[0])
    data = load_data("relu-teacher")
    np.testing.assert_array_equal(target.x, data.x)
    assert target.x.shape == (100, 2)
    assert target.model.network.hidden == (2,)
    assert target.model.infers_noise
    assert target.model.prior.weight_scale == 1.0
    labels = {STUDY.target(config, c).model.parametrisation.label for c in cells}
    assert labels == set(config.parametrisations)


def test_seed_changes_data_and_samplers():
    first, other = configure(Options()), configure(Options(seed=4))
    assert {cell.seed for cell in STUDY.cells(other)} == {4}
    assert not np.array_equal(teacher_data(first.seed).x, teacher_data(other.seed).x)


def test_measures_are_taken_against_the_true_function(frames, outcomes):
    data = few_points()
    (cell,) = (c for c in outcomes if c.key == "free.nuts.stan")
    row, tree = frames["cells"].find(key=cell.key), outcomes.tree(cell)
    held_out = predict_held_out(
        tree, target(configure(Options()), cell).model, data.held_out.x, data.held_out.y
    )
    mean = held_out.function.mean(axis=(0, 1))
    miss = mean - data.truth(data.held_out.x)
    assert row["bias"] == pytest.approx(float(miss.mean()))
    assert row["error"] == pytest.approx(float(np.sqrt((miss**2).mean())))
    assert row["mse"] == pytest.approx(float(((mean - data.held_out.y) ** 2).mean()))
    depth = tree["sample_stats"].to_dataset()["tree_depth"]
    assert row["mean_tree_depth"] == pytest.approx(float(depth.mean()))
    by_chain = depth.mean("draw").values
    assert row["depth_error"] == pytest.approx(by_chain.std(ddof=1) / 2)


def test_variational_cells_are_held_against_their_own_nuts(frames):
    fits = frames["cells"].known("from_nuts_in_sds")
    assert set(fits.levels("method")) == {"meanfield", "fullrank"}
    assert len(fits) == 16
    # The stand-ins are draws of one distribution, so nothing is off but by chance.
    for row in fits:
        assert row["from_nuts_in_sds"] < 4 * row["from_nuts_floor_in_sds"]
        assert row["from_nuts_sd_ratio"] == pytest.approx(1, abs=0.15)
    # Chains of independent draws agree, with any parametrisation whose stand-in is the same.
    assert set(frames["engines"].column("beyond")) == {0}
    assert set(frames["engines"].levels("problem")) == set(configure(Options()).parametrisations)


def test_share_at_seam_is_that_of_unit_weights_alone(frames):
    assert frames["cells"].find(key="free.nuts.stan")["at_seam"] is None
    assert frames["cells"].find(key="givens.nuts.stan")["at_seam"] == 0


def test_draws_at_and_steps_across_the_seam_are_counted():
    config = TeacherConfig(0, ("stan",), ("givens",), nuts=Nuts(chains=2, draws=40))
    cell = STUDY.cells(config)[0]
    tree = fake_posterior(STUDY.target(config, cell), "nuts", "stan", config.nuts, 0)
    weights = tree["posterior"].to_dataset()["W1"].values
    weights[:, ::4, :, 0] = [-np.cos(0.05), np.sin(0.05)]
    weights[:, 1::4, :, 0] = [-np.cos(0.2), -np.sin(0.2)]
    tree["posterior"] = (
        tree["posterior"].to_dataset().assign(W1=(("chain", "draw", "in", "hidden1"), weights))
    )
    row = measure(STUDY, config, InMemory({cell: tree}, {}))["cells"].find(key=cell.key)
    assert row["at_seam"] == 0.25
    # Every fourth step goes across; the others go to and from the other side of the circle.
    assert row["crossings"] == pytest.approx(1000 * 10 / 39)


def verdicts(frames: Frames) -> list[str]:
    return [statement.verdict for statement in statements(frames)]


def test_one_data_set_decides_nothing(frames):
    assert set(verdicts(frames)) == {"unclear"}
    assert {trial.pairs for s in statements(frames) for trial in s.trials} == {1}


def test_nothing_reproduces_where_all_posteriors_are_alike(frames):
    def alike(row: dict[str, Any]) -> dict[str, Any]:
        like = frames["cells"].find(problem="free", method=row["method"], engine=row["engine"])
        return {name: like[name] for name in MEASURES}

    found = verdicts(over_sets(changed(frames, alike)))
    assert found[5] == "does not reproduce"  # ADVI's bias, held against a number
    assert "reproduces" not in found


def test_verdicts_follow_the_numbers(frames):
    def shallow(row: dict[str, Any]) -> dict[str, Any]:
        if row["method"] != "nuts" or "givens" not in row["problem"]:
            return {}
        return {
            "mean_tree_depth": row["mean_tree_depth"] - 1,
            "ess_per_1000_gradients": 2 * row["ess_per_1000_gradients"],
            "prediction_ess_per_second": 2 * row["prediction_ess_per_second"],
        }

    def far(row: dict[str, Any]) -> dict[str, Any]:
        if row["from_nuts_in_sds"] is None:
            return {}
        free = "givens" not in row["problem"]
        return {
            "from_nuts_in_sds": 0.5 if free else 0.1,
            "from_nuts_sd_ratio": 0.5 if free else 0.9,
        }

    def some(row: dict[str, Any]) -> dict[str, Any]:
        if row["from_nuts_in_sds"] is None:
            return {}
        shift = 0.5 if row["engine"] == "stan" else 0.1
        return {"from_nuts_in_sds": shift, "from_nuts_sd_ratio": 1.0}

    made = changed(changed(frames, shallow), far)
    assert verdicts(over_sets(made))[2:] == ["reproduces"] * 6
    assert verdicts(over_sets(changed(frames, some)))[5] == "depends"
    for statement in statements(over_sets(made))[2:]:
        for trial in statement.trials:
            assert (trial.pairs, trial.left_out) == (6, 0)
            assert trial.p_value == pytest.approx(2 / 2**6)  # every difference has one sign


def test_chains_that_disagree_make_a_statement_unclear(frames):
    def disagree(row: dict[str, Any]) -> dict[str, Any]:
        return {"prediction_rhat": 1.3} if row["key"] == "free.nuts.stan" else {}

    found = statements(over_sets(changed(frames, disagree)))
    assert "reproduces" not in {statement.verdict for statement in found}
    for statement in found:
        void = [trial for trial in statement.trials if trial.left_out]
        assert void
        assert {(trial.left_out, trial.pairs, trial.holds) for trial in void} == {(6, 0, None)}
        assert all("Stan" in trial.where for trial in void)
        assert all("free" in trial.where for trial in void)


def test_page_counts_training_and_held_out_points_apart(monkeypatch):
    monkeypatch.setattr(page, "teacher_data", lambda seed: few_points())
    said = page.question(configure(Options())).text
    assert "100 training and 12 held-out points" in said


def test_page_stands_with_one_cell_and_with_failures():
    config = TeacherConfig(0, ("stan",), ("free",), nuts=Nuts(chains=2, draws=40))
    nuts, meanfield, fullrank = STUDY.cells(config)
    tree = fake_posterior(STUDY.target(config, nuts), "nuts", "stan", config.nuts, 0)
    outcomes = InMemory({nuts: tree}, {meanfield: "no", fullrank: "no"})
    made = report(STUDY, config, outcomes, measure(STUDY, config, outcomes))
    titles = [section.title for section in made.sections]
    assert "What failed" in titles
    assert "Do the engines agree?" not in titles


@pytest.mark.slow
def test_full_run_goes_over_data_sets_at_two_levels_of_noise(onebasin, here, sampler, monkeypatch):
    few = partial(load_data, "relu-teacher", num_test=6)
    monkeypatch.setattr(design, "teacher_data", lambda seed, noise: few(seed=seed, noise_sd=noise))
    answer = onebasin(
        "study", "relu-teacher", "--full", "--datasets", "2", "--parametrisations", "free,givens",
        "--engine", "numpyro", "--chains", "2", "--warmup", "10", "--draws", "30", "--json",
        "--only", "*.nuts.*,*-set01.free.meanfield.*", "--out", "run",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    cells = Frame.of(answer.json["frames"]["cells"])
    assert cells.levels("data") == tuple(
        f"noise{noise}-set0{number}" for number in (1, 2) for noise in ("1", "0.5")
    )
    assert len({call["target"].y.tobytes() for call in sampler.calls}) == 4
    assert [call["seed"] for call in sampler.calls] == [0] * 6 + [1] * 4
    assert len(cells.known("from_nuts_in_sds")) == 2  # each against NUTS on its own data
    page = Path("run/report.html").read_text()
    assert "2 data sets (20 with --full) with noise 1 and 0.5, 10 posteriors in all" in page
    assert "over all data sets" in page


@pytest.mark.stan
@pytest.mark.slow
def test_engines_agree_and_constrained_fits_are_made(onebasin, here):
    answer = onebasin(
        "study", "relu-teacher", "--parametrisations", "givens+ordered", "--json", "--out", "run"
    )
    assert answer.code == 0, answer.err
    (agreement,) = answer.json["frames"]["engines"]
    assert agreement["rhat"] < 1.05
    assert agreement["beyond"] == 0
    frames = answer.json["frames"]
    assert len({row["key"] for row in (*frames["cells"], *frames["failures"])}) == 6
