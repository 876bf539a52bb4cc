"""Tests of the study of orthogonal skips: its design and its measures."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import xarray as xr

from onebasin.inference import Advi, Mclmc, Nuts
from onebasin.inference.density.network import density_of
from onebasin.models import BayesianNetwork, Network, NetworkTarget, Parametrisation
from onebasin.studies.lab.study import Frames, Outcomes, find, frame_of, rows_of, select
from onebasin.studies.networks import to_tree
from onebasin.studies.options import Options
from onebasin.studies.orthogonal_skips import STUDY, design
from onebasin.studies.orthogonal_skips.design import GAP, TRUTH, VI, configure, points_of
from onebasin.studies.orthogonal_skips.measures import moments_of, unit_activity

from ..command_fixtures import InMemory, fake_posterior

EVALUATIONS = 4
TOY = replace(
    configure(Options()),
    variants=("plain", "both"),
    conditions=(design.Condition("toy", prior_sd=1.0, noise_sd=None, frequency=3.0),),
    hidden=(3, 2),
    vi=Advi(draws=40),
    mclmc=Mclmc(chains=2, draws=40),
    nuts=Nuts(chains=2, draws=40),
    gap=design.GapSettings(points=2, draws=4, permutations=2),
)


def fake_fit(target: NetworkTarget, settings: Advi, seed: int) -> xr.DataTree:
    """Return a fit that determines only the two output weights, and therefore only two units."""
    tree = fake_posterior(target, "advi-meanfield", "numpyro", settings, seed)
    shapes = target.model.network.shapes
    # The order of the vector; sigma follows.
    sizes = [int(np.prod(shapes[name])) for name in sorted(shapes)]
    known = np.repeat([name == "W3" for name in (*sorted(shapes), "sigma")], [*sizes, 1])
    loc, scale = np.where(known, 1.0, 0.0), np.where(known, 0.05, 1.0)
    dims = ("evaluation", "param")
    variables = {
        "iteration": ("evaluation", 100 * np.arange(1, EVALUATIONS + 1)),
        "elbo": ("evaluation", np.linspace(-90.0, -30.0, EVALUATIONS)),
        "loc": ("param", loc),
        "scale": ("param", scale),
        "loc_trace": (dims, np.tile(loc, (EVALUATIONS, 1))),
        "scale_trace": (dims, np.tile(scale, (EVALUATIONS, 1))),
    }
    tree["variational"] = xr.DataTree(xr.Dataset(variables))
    return tree


def fake_gaps() -> xr.DataTree:
    """Return a gap that falls from 4 to 1 nats during training."""
    rows = [
        {"iteration": step, "end": end, "layer": layer, "lower": low, "upper": low + 0.1, "log_order": 3.0}
        for step, end, low in ((100, False, 4.0), (400, True, 1.0))
        for layer in ("all", "hidden1", "hidden2")
    ]  # fmt: skip
    return to_tree({GAP: frame_of(rows)})


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    trees = {}
    for cell in STUDY.cells(TOY):
        target = STUDY.target(TOY, cell)
        if cell.method == GAP:
            trees[cell] = fake_gaps()
        elif cell.method == VI:
            trees[cell] = fake_fit(target, cell.settings, cell.seed)
        else:
            settings = Nuts(chains=2, draws=40)
            trees[cell] = fake_posterior(target, cell.method, cell.engine, settings, cell.seed)
    return InMemory(trees, {})


@pytest.fixture(scope="module")
def frames(outcomes) -> Frames:
    return STUDY.measures(TOY, outcomes)


def test_measures_are_taken_against_the_true_function(frames, outcomes):
    from onebasin.models import predict

    (cell,) = (c for c in outcomes if (c.problem, c.method) == ("both", TRUTH))
    row, points = find(frames["cells"], key=cell.key), points_of(cell.seed, 3.0)["inside"]
    model = STUDY.target(TOY, cell).model
    function = predict(model, outcomes.tree(cell)["posterior"].to_dataset(), points.x)
    squared = (function.mean(axis=(0, 1)) - points.truth) ** 2
    assert row["miss_inside"] == pytest.approx(np.sqrt(squared.mean()))
    assert row["explained_inside"] == pytest.approx(1 - squared.mean() / points.truth.var())
    assert row["epistemic_inside"] == pytest.approx(np.sqrt(function.var(axis=(0, 1)).mean()))
    assert row["aleatoric_inside"] == pytest.approx(0.5, rel=0.1)
    assert row["rhat_inside"] is not None


def test_fits_have_activity_and_a_distance_from_the_sampler(frames):
    fits = rows_of(select("cells", method=VI), frames)
    assert len(fits) == 2
    for row in fits:
        assert (row["active"], row["units"]) == (2, 5)
        assert row["kl"] > 0
        assert row["from_truth_sd_ratio_inside"] == pytest.approx(1, abs=0.5)
        assert row["rhat_inside"] is None
    assert {row["layer"] for row in rows_of("layers", frames)} == {"hidden1", "hidden2"}
    assert len(frames["training"]) == 2 * 2
    truth = rows_of(select("cells", method=TRUTH), frames)
    assert all(row["from_truth_rms_inside"] is None for row in truth)
    assert len(select("cells", "from_truth_rms_inside", method="mclmc")(frames)) == 2


def test_a_unit_is_active_whose_signal_reaches_an_output():
    """Unit 2 has a weight to the active unit 1 of the second layer; units 0 and 1 only to the inactive unit 0."""
    for skip, active in ((None, [0, 0, 1, 0, 1]), ("orthogonal", [1, 1, 1, 0, 1])):
        model = BayesianNetwork(Network(1, (3, 2), activation="tanh", skip=skip))
        moments = {n: (np.zeros(s), np.ones(s)) for n, s in model.network.shapes.items()}
        for name, place in (("W2", (0, 0)), ("W2", (1, 0)), ("W2", (2, 1)), ("W3", (1, 0))):
            moments[name][0][place], moments[name][1][place] = 0.3, 0.1
        found = unit_activity(moments, model)
        assert found["active"].tolist() == [bool(each) for each in active]
        assert found["layer"].tolist() == ["hidden1"] * 3 + ["hidden2"] * 2
        np.testing.assert_allclose(found["snr_out"][2], 3.0)


def test_moments_are_those_of_the_fits_distribution():
    model = BayesianNetwork(Network(1, (3,)), parametrisation=Parametrisation(biases="ordered"))
    density = density_of(model.condition(np.zeros((2, 1)), np.zeros((2, 1))))
    loc, scale = np.linspace(-1, 1, density.size), np.linspace(0.1, 0.5, density.size)
    fit = xr.Dataset({"loc": ("param", loc), "scale": ("param", scale)})
    draws = loc + scale * np.random.default_rng(0).normal(size=(20_000, density.size))
    values = jax.vmap(density.constrain)(draws)
    for name, (mean, sd) in moments_of(fit, model).items():
        np.testing.assert_allclose(mean, values[name].mean(axis=0), atol=5 * sd.max() / 140)
        np.testing.assert_allclose(sd, values[name].std(axis=0), rtol=0.05)
