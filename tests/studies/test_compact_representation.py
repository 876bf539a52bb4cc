"""Tests of compact representations: every row of the paper, predictions in batches, and pruning."""

import numpy as np
import pytest
import xarray as xr
from scipy.special import softmax

from onebasin.analysis.gaussian import GaussianFit, fit_gaussian
from onebasin.models import BayesianNetwork, Categorical, Network, predict
from onebasin.models.data import Dataset
from onebasin.studies.compact_representation import STUDY, making
from onebasin.studies.compact_representation.design import RowSettings, configure, rows
from onebasin.studies.compact_representation.making import make_row
from onebasin.studies.compact_representation.measures import PAPER, score
from onebasin.studies.lab.study import Cell
from onebasin.studies.options import Options

MODEL = BayesianNetwork(Network(4, (3,), 3, "relu"), Categorical())


def draws_of(model: BayesianNetwork, chains: int, draws: int, sd: float = 1.0) -> xr.DataTree:
    rng = np.random.default_rng(0)
    variables = {
        name: (
            ("chain", "draw", *model.network.dims[name]),
            sd * rng.normal(size=(chains, draws, *shape)),
        )
        for name, shape in model.network.shapes.items()
    }
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset(variables)})
    tree.attrs = {"model": model.describe()}
    return tree


def images(num: int) -> Dataset:
    rng = np.random.default_rng(1)
    return Dataset(
        name="made up",
        x=rng.uniform(size=(num, 4)),
        y=rng.integers(3, size=num),
        feature_names=("a", "b", "c", "d"),
        target_names=("0", "1", "2"),
        task="classification",
        source="made up",
    )


@pytest.mark.parametrize("options", [Options(quick=True), Options(), Options(full=True)])
def test_every_row_has_a_cell_and_every_column_of_the_papers_table_a_row(options):
    config = configure(options)
    assert {row.key for row in rows(config)} <= {cell.key for cell in STUDY.cells(config)}
    assert set(PAPER) <= {row.name for row in rows(config)}
    assert max(config.pairs.swaps) < config.size.hidden


def test_predictions_in_batches_are_those_of_all_draws_at_once():
    tree, test = draws_of(MODEL, 2, 60), images(11)
    cell = Cell("row", "row", "analysis", RowSettings("draws"), seed=0)
    found = make_row(tree, cell, test)["predictive"]
    logits = predict(MODEL, tree["posterior"].to_dataset(), test.x)
    probability = softmax(logits, axis=-1).reshape(120, 11, 3)
    np.testing.assert_allclose(found["probability"][0], probability.mean(0), rtol=1e-10)
    entropy = -(probability * np.log(probability)).sum(-1).mean(0)
    np.testing.assert_allclose(found["entropy"][0], entropy, rtol=1e-10)
    accuracy = (probability.argmax(-1) == test.y).mean(1)
    np.testing.assert_allclose(np.sort(found["draw_accuracy"][0]), np.sort(accuracy))
    cell = Cell("row", "row", "analysis", RowSettings("draws", num=1, repeats=5), seed=0)
    found = make_row(tree, cell, images(11))["predictive"]["probability"].values
    assert found.shape == (5, 11, 3)
    assert len({row.tobytes() for row in found}) == 5  # Every repeat chooses other draws.


def test_pruning_keeps_everything_in_the_end():
    tree, test = draws_of(MODEL, 1, 50), images(40)
    cell = Cell("row", "row", "analysis", RowSettings("gaussian", num=10, prune=True), seed=0)
    found = make_row(tree, cell, test)
    whole = (found["predictive"]["mean_probability"].values.argmax(-1) == test.y).mean()
    assert found["pruning"]["accuracy_sd"].values[-1] == whole
    assert found["spread"]["count"].values.sum() == 4 * 3 + 3 * 3


TRUTH = np.array([[0.9, 0.1], [0.2, 0.8]])
SCORE = score(TRUTH, TRUTH, np.array([0, 1]))


def test_score_of_the_truth_itself():
    assert [SCORE[name] for name in ("agreement", "total_variation", "accuracy")] == [1.0, 0.0, 1.0]
    assert SCORE["log_score"] == pytest.approx((np.log(0.9) + np.log(0.8)) / 2)
    assert score(1 - TRUTH, TRUTH, np.array([0, 1]))["total_variation"] == pytest.approx(0.7)
    sure = np.array([[1.0, 0.0], [1.0, 0.0]])  # It excludes the second label.
    assert score(sure, TRUTH, np.array([0, 1]))["log_score"] == -np.inf


PRUNED = BayesianNetwork(Network(2, (2,), 1, activation="tanh"))
MEAN = {
    "W1": np.asarray([[4.0, -1.0], [0.5, 2.0]]),
    "b1": np.asarray([0.3, -0.2]),
    "W2": np.asarray([[-3.0], [0.1]]),
    "b2": np.asarray([0.7]),
    "sigma": np.asarray(0.5),
}
SD = {
    "W1": np.asarray([[0.9, 0.1], [0.4, 0.5]]),
    "b1": np.asarray([0.01, 2.0]),
    "W2": np.asarray([[0.2], [0.05]]),
    "b2": np.asarray([0.3]),
    "sigma": np.asarray(0.02),
}


def planted(mean, sd, model, num=40) -> GaussianFit:
    """Return a diagonal fit with these moments, made from draws with the same moments."""
    rng = np.random.default_rng(3)

    def draws(name):
        raw = rng.standard_normal((num, *mean[name].shape))
        raw = (raw - raw.mean(axis=0)) / raw.std(axis=0, ddof=1)
        return (mean[name] + sd[name] * raw)[None]

    variables = {
        name: (("chain", "draw", *model.network.dims.get(name, ())), draws(name)) for name in mean
    }
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset(variables)})
    tree.attrs |= {"model": model.describe(), "method": "nuts"}
    return fit_gaussian(tree)


@pytest.fixture(scope="module")
def fit() -> GaussianFit:
    return planted(MEAN, SD, PRUNED)


def test_weights_with_the_lowest_standard_deviations_are_kept(fit):
    found = making.prune(fit, (0.0, 0.5, 1.0))  # Of the sds .9 .1 .4 .5 | .2 .05.
    for name, some in (("W1", [False, True, False, False]), ("W2", [True, True])):
        assert (found[name][0, 1] != 0).ravel().tolist() == some
        half = found[name][0, 1]
        np.testing.assert_allclose(half[half != 0], MEAN[name][half != 0], rtol=1e-12)
        assert not found[name][0, 0].any()
        np.testing.assert_allclose(found[name][0, 2], MEAN[name], rtol=1e-12)
    for name in ("b1", "b2", "sigma"):
        np.testing.assert_array_equal(found[name][0, 0], fit.mean[name])
