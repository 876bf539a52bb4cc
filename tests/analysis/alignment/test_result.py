"""The aligned posterior keeps everything else, says how it was made, travels with its file, and aligns other draws."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import onebasin as ob
from onebasin.analysis.alignment import align
from onebasin.models.symmetry.blocks import Exchangeable, to_json

from .conftest import CASES, dataset, plant


@pytest.fixture
def tree(rng) -> xr.DataTree:
    planted = plant(*CASES["tanh network"], rng)
    stats = dataset({"lp": rng.normal(size=(2, 15)), "diverging": np.zeros((2, 15), bool)})
    data = xr.Dataset({"x": (("obs", "in"), rng.normal(size=(3, 4)))})
    groups = {"posterior": planted.seen, "sample_stats": stats, "constant_data": data}
    made = xr.DataTree.from_dict(groups)
    made.attrs = {"target": "toy", "symmetry": to_json(planted.group.symmetry), "seed": 3}
    return made


def test_other_groups_variables_and_attributes_stay(tree):
    before = tree.copy(deep=True)
    aligned = align(tree).posterior
    xr.testing.assert_identical(tree, before)
    assert set(aligned.children) == set(tree.children)
    xr.testing.assert_identical(aligned["sample_stats"], tree["sample_stats"])
    xr.testing.assert_identical(aligned["constant_data"], tree["constant_data"])
    xr.testing.assert_identical(aligned["posterior"]["b2"], tree["posterior"]["b2"])
    assert aligned.attrs["target"] == "toy"
    assert not np.array_equal(aligned["posterior"]["W1"], tree["posterior"]["W1"])
    assert aligned["posterior"]["W1"].dims == tree["posterior"]["W1"].dims


def test_the_rule_is_recorded(tree):
    found = align(tree, reference="gaussian", scales={"W1": 0.5}, seed=4, restarts=2)
    rule = json.loads(found.posterior.attrs["alignment"])
    assert rule["reference"] == "gaussian"
    assert rule["scales"]["W1"] == 0.5
    assert (rule["seed"], rule["restarts"], rule["cost"]) == (4, 2, "weights")
    assert found.posterior.attrs["alignment_sweeps"] == len(found.cost) == found.sweeps
    assert found.posterior.attrs["alignment_converged"] == 1
    for said in ("permutations of W1, b1, W2", "changes of sign", "diagonal Gaussian", "W1 by 0.5"):
        assert said in found.text
    assert found.posterior.attrs["alignment_rule"] == found.text


def test_elements_travel_with_the_file(tree, tmp_path):
    found = align(tree)
    path = tmp_path / "aligned.nc"
    found.to_tree().to_netcdf(path, engine="h5netcdf")
    with xr.open_datatree(path, engine="h5netcdf") as opened:
        read = opened.load()
    saved = read["alignment"].to_dataset()
    np.testing.assert_array_equal(saved["block0_permutation"], found.element[0].permutation)
    np.testing.assert_array_equal(saved["distance_after"], found.distance_after)
    np.testing.assert_array_equal(saved["reference_W1"], found.reference["W1"])
    np.testing.assert_array_equal(read["posterior"]["W1"], found.posterior["posterior"]["W1"])
    assert tuple(saved["cost"].values) == found.cost


@pytest.mark.parametrize("order", [("chain", "draw", ...), ("draw", ..., "chain")])
def test_a_file_that_is_not_loaded_is_aligned_to_the_same_draws(tree, tmp_path, order):
    turned = tree["posterior"].to_dataset().transpose(*order)
    tree["posterior"] = xr.DataTree(turned.assign_coords({"in": list("abcd")}))
    expected = align(tree).to_tree()
    ob.save(tree, tmp_path / "raw.nc")
    with ob.open_posterior(tmp_path / "raw.nc", lazy=True) as opened:
        aligned = align(opened).to_tree()
        for name, group in expected.children.items():
            xr.testing.assert_identical(aligned[name].to_dataset(), group.to_dataset())


MIXTURE = (Exchangeable({"mu": 0, "sigma": 0}),)
SPREAD = np.array([0.3, 1.0, 3.0])


@pytest.fixture
def values(rng):
    """Parts of unlike spread, which the mean takes for one another."""
    noise = rng.normal(size=(2, 2, 500, 3)) * SPREAD
    return {"mu": noise[0] + 2.0 * np.arange(3), "sigma": noise[1]}


def shuffled(rng, values):
    order = rng.permuted(np.tile(np.arange(3), (2, 500, 1)), axis=-1)
    return {name: np.take_along_axis(v, order, axis=-1) for name, v in values.items()}


@pytest.mark.parametrize("rule", ["gaussian", "mean", "draw"])
def test_draws_are_moved_to_where_the_earlier_alignment_moved_them(rng, values, rule):
    first = align(dataset(shuffled(rng, values)), MIXTURE, reference=rule, max_sweeps=60)
    again = align(dataset(shuffled(rng, values)), MIXTURE, reference=first)
    assert first.converged
    for name in values:
        two, one = (each.posterior["posterior"][name] for each in (again, first))
        np.testing.assert_array_equal(two, one)
    assert again.rule.reference == "alignment"
    assert again.rule.scales == first.rule.scales
    assert again.cost[-1] == pytest.approx(first.cost[-1], rel=1e-9)
    assert "the reference of another alignment" in again.text
    thrice = align(dataset(shuffled(rng, values)), MIXTURE, reference=again)
    np.testing.assert_allclose(thrice.reference["mu"], first.reference["mu"], rtol=1e-12)


def test_an_alignment_of_other_things_is_refused(rng, values):
    first = align(dataset(values), MIXTURE)
    with pytest.raises(
        ValueError, match="`reference` does not fit `posterior`: the alignment has no tau, but"
    ):
        align(dataset(values | {"tau": values["mu"]}), (Exchangeable({"tau": 0}),), reference=first)
    few = {name: v[..., :2] for name, v in values.items()}
    with pytest.raises(
        ValueError,
        match=r"alignment has mu of shape \(3,\), but the shape of mu in the posterior is",
    ):
        align(dataset(few), MIXTURE, reference=first)
