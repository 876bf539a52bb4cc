"""Tests of the study with the two-unit teacher: its design, its measures, and full runs."""

from dataclasses import replace

import numpy as np
import pytest

from onebasin.inference import Advi, Nuts
from onebasin.models.data import Dataset
from onebasin.models.load_data import load_data
from onebasin.studies.lab.study import Frames, Outcomes, find, rows_of, select
from onebasin.studies.networks.held_out import predict_held_out
from onebasin.studies.options import Options
from onebasin.studies.relu_teacher import STUDY, design
from onebasin.studies.relu_teacher.design import TeacherConfig, configure, target
from onebasin.truth.problems.networks import teacher_data

from ..command_fixtures import InMemory, fake_posterior

SETTINGS = Nuts(chains=4, warmup=10, draws=250)
ADVI = Advi(draws=400)


CONFIG = replace(configure(Options(parametrisations=("free", "givens"))), nuts=SETTINGS, advi=ADVI)


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    trees = {}
    for cell in STUDY.cells(CONFIG):
        method = cell.method if cell.method == "nuts" else f"advi-{cell.method}"
        target = STUDY.target(CONFIG, cell)
        trees[cell] = fake_posterior(target, method, cell.engine, cell.settings, cell.seed)
    return InMemory(trees, {})


@pytest.fixture(scope="module")
def frames(outcomes) -> Frames:
    with pytest.MonkeyPatch.context() as patch:  # Few points, since the ESS of each takes time.
        patch.setattr(design, "teacher_data", lambda seed, noise_sd: few_points())
        return STUDY.measures(CONFIG, outcomes)


def few_points() -> Dataset:
    return load_data("relu-teacher", num_test=6)


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
    other = configure(Options(seed=4))
    assert {cell.seed for cell in STUDY.cells(other)} == {4}
    assert not np.array_equal(teacher_data(config.seed).x, teacher_data(other.seed).x)


def test_measures_are_taken_against_the_true_function(frames, outcomes):
    data = few_points()
    (cell,) = (c for c in outcomes if c.key == "free.nuts.stan")
    row, tree = find(frames["cells"], key=cell.key), outcomes.tree(cell)
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
    fits = rows_of(select("cells", "from_nuts_in_sds"), frames)
    assert {row["method"] for row in fits} == {"meanfield", "fullrank"}
    assert len(fits) == 8
    # The stand-ins are draws from one distribution, so they differ only by chance.
    for row in fits:
        assert row["from_nuts_in_sds"] < 4 * row["from_nuts_floor_in_sds"]
        assert row["from_nuts_sd_ratio"] == pytest.approx(1, abs=0.15)
    assert find(frames["cells"], key="free.nuts.stan")["at_seam"] is None
    assert find(frames["cells"], key="givens.nuts.stan")["at_seam"] == 0
    # Chains of independent draws agree for all parametrisations with the same stand-in.
    assert set(frames["engines"]["beyond"]) == {0}
    assert tuple(frames["engines"]["problem"]) == ("free", "givens")


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
    row = find(STUDY.measures(config, InMemory({cell: tree}, {}))["cells"], key=cell.key)
    assert row["at_seam"] == 0.25
    # Every fourth step crosses the seam; the others go to or from the opposite side of the circle.
    assert row["crossings"] == pytest.approx(1000 * 10 / 39)
