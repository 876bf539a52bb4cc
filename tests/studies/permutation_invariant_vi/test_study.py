"""The study of a Gaussian averaged over permutations: design, comparison with HMC, toy runs."""

import math

import numpy as np
import xarray as xr

from onebasin.models import BayesianNetwork, Categorical, Network
from onebasin.studies.networks import from_tree
from onebasin.studies.permutation_invariant_vi import design
from onebasin.studies.permutation_invariant_vi.classifiers.measures import hold_against, make_truth
from onebasin.studies.permutation_invariant_vi.making import moments
from onebasin.truth.problems.images import Images, image_split

MODEL = BayesianNetwork(Network(3, (4,), 2, "relu"), Categorical())


def some_images():
    return image_split(Images("digits", side=4, train=60), 0).test


def draws_tree(rng, model, chains, draws, centre, sd):
    variables = {
        name: (
            ("chain", "draw", *model.network.dims[name]),
            centre[name] + sd * rng.normal(size=(chains, draws, *shape)),
        )
        for name, shape in model.network.shapes.items()
    }
    stats = xr.Dataset({"lp": (("chain", "draw"), np.zeros((chains, draws)))})
    flat = np.full((chains, some_images().num_obs, 10), math.log(0.1))
    predictive = xr.Dataset({"log_probability": (("chain", "obs", "class"), flat)})
    groups = {"posterior": xr.Dataset(variables), "sample_stats": stats, "predictive": predictive}
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {"model": model.describe()}
    return tree


def test_permuted_draws_of_the_same_distribution_are_at_no_distance(rng):
    model = BayesianNetwork(Network(16, (3,), 10, "relu"), Categorical())
    centre = {n: rng.normal(size=s) for n, s in model.network.shapes.items()}
    tree = draws_tree(rng, model, 2, 100, centre, 0.1)
    settings = design.TruthSettings()
    truth = make_truth(tree, settings, some_images())
    hmc, halves, prior = from_tree(truth)["truth"].to_dict("records")
    assert hmc["spread_left"] < 1.01
    order = np.array([2, 0, 1])
    moved = dict(centre)
    moved |= {"W1": centre["W1"][:, order], "b1": centre["b1"][order], "W2": centre["W2"][order]}
    fitted = draws_tree(rng, model, 2, 100, moved, 0.1)
    (found,) = from_tree(hold_against(fitted, truth, settings))["truth"].to_dict("records")
    assert max(map(abs, found["energy"])) < 0.02
    assert max(found["mean"]) < 0.25  # sqrt(1 / 100 + 1 / 200) = 0.12 by chance
    np.testing.assert_allclose(found["sd_ratio"], 1.0, atol=0.05)
    uniform = np.abs(truth["predictive"]["probability"] - 0.1).sum("class") / 2
    np.testing.assert_allclose(found["total_variation"], float(uniform.mean()), rtol=1e-10)
    assert abs(halves["energy"][0]) < 0.02
    assert prior["energy"][0] > 1.0
    far = draws_tree(rng, model, 1, 100, {n: v + 0.1 for n, v in moved.items()}, 0.2)
    (found,) = from_tree(hold_against(far, truth, settings))["truth"].to_dict("records")
    np.testing.assert_allclose(found["mean"], 1.0, atol=0.15)
    np.testing.assert_allclose(found["sd_ratio"], 2.0, atol=0.1)
    np.testing.assert_allclose(found["sd"], math.log(2), atol=0.05)


def test_moments_of_q_are_laid_out_by_variable(rng):
    shapes = MODEL.network.shapes
    size = sum(int(np.prod(s)) for s in shapes.values())
    loc = np.arange(2 * size, dtype=float).reshape(2, size)
    variational = xr.Dataset({"loc": (("chain", "param"), loc), "scale": (("chain", "param"), loc)})
    found = moments(MODEL, xr.DataTree.from_dict({"variational": variational}))["centre"]
    assert found["W1"].values[0].ravel().tolist() == list(range(12))
    assert found["W2"].values[0].ravel().tolist() == list(range(12, 20))
    assert found["b1"].values[1].tolist() == [size + 20.0, size + 21, size + 22, size + 23]
