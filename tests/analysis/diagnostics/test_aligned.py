"""Diagnostics modulo symmetry: equal modes are one, unequal ones are not, and flattery is told."""

import json

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.diagnostics.invariants import invariants
from onebasin.analysis.diagnostics.labels import _basins, diagnose_aligned
from onebasin.analysis.summaries.summary import rhats, summary
from onebasin.models import (
    BayesianNetwork,
    Complement,
    Exchangeable,
    Flip,
    Group,
    Network,
    Rescalable,
)
from onebasin.models.symmetry.blocks import as_symmetry, to_json
from onebasin.posteriors.view import as_view

from ..conftest import mcmc_tree, switched_mixture

MIXTURE = (Exchangeable({"mu": 0, "sigma": 0}),)


def tree_of(values, lp=None, symmetry=MIXTURE, **attributes) -> xr.DataTree:
    attrs = {"symmetry": to_json(symmetry), **attributes}
    return mcmc_tree(values, stats={"lp": lp}, attrs=attrs)


def test_equal_modes_become_one(rng):
    lp = rng.normal(size=(4, 400))
    found = diagnose_aligned(tree_of(switched_mixture(rng), lp))
    assert found.raw.rhat.value > 1.5
    assert found.aligned.rhat.value < 1.01
    assert found.aligned.ess_bulk.value > 400
    assert found.invariant_rhat.value < 1.01
    assert found.basins == ((0, 1, 2, 3),)
    assert found.switching.labellings == (1, 1, 1, 1)
    assert found.warnings == ()
    np.testing.assert_allclose(found.chain_lp, lp.mean(1))
    json.dumps(found.to_dict(), allow_nan=False)


def test_modes_that_the_symmetry_does_not_join_stay_apart(rng):
    values = switched_mixture(rng)
    values["sigma"][2:] *= 3  # no permutation makes these the others
    lp = rng.normal(size=(4, 400)) - np.array([0.0, 0.0, 50.0, 50.0])[:, None]
    found = diagnose_aligned(tree_of(values, lp), noise=False)
    assert found.basins == ((0, 1), (2, 3))
    assert found.aligned.rhat.value > 1.5
    assert found.invariant_rhat.value > 1.5
    assert any("stay apart" in sentence for sentence in found.warnings)


def test_a_chain_in_a_negligible_mode_is_named(rng):
    lp = rng.normal(size=(4, 400)) - np.array([0.0, 0.0, 50.0, 0.0])[:, None]
    found = diagnose_aligned(tree_of(switched_mixture(rng), lp), noise=False)
    assert any("log densities lie far apart" in warning for warning in found.warnings)


def test_harmless_exchangeability_is_told_from_modes(rng):
    """Parts that are alike without being modes: raw draws are fine, aligned ones only look sharper."""
    shape = (4, 500, 3)
    mu, sigma = rng.normal(size=shape), np.exp(rng.normal(size=shape))
    found = diagnose_aligned(tree_of({"mu": mu, "sigma": sigma}))
    assert found.raw.rhat.value < 1.01
    assert found.shrinkage < 0.9
    assert min(found.switching.labellings) > 1


@pytest.mark.parametrize("symmetry", [Flip(("theta", "a")), Exchangeable({"L": 1}, flips=True)])
def test_signs_of_one_part_raise_no_false_alarm(rng, symmetry):
    shapes = {"theta": (30,), "a": (4,)} if "a" in symmetry.variables else {"L": (20, 1)}
    clean = {n: rng.normal(size=s) + 0.3 * rng.normal(size=(4, 200, *s)) for n, s in shapes.items()}
    sign = np.repeat([[1.0], [-1.0], [-1.0], [1.0]], 200, axis=1)
    values = {n: v * sign.reshape(4, 200, *[1] * (v.ndim - 2)) for n, v in clean.items()}
    found = diagnose_aligned(tree_of(values, symmetry=(symmetry,)))
    assert found.raw.rhat.value > 1.5
    assert found.aligned.rhat.value < 1.05
    assert found.warnings == ()
    assert found.switching.ratio < 0.5 * found.switching.noise_ratio


def test_variables_that_were_not_declared_along_are_named(rng):
    values = switched_mixture(rng)
    values["precision[raw]"] = values["sigma"] ** -2
    (warning,) = diagnose_aligned(tree_of(values), noise=False).warnings
    assert warning.startswith(
        "precision[raw] still differs between chains, and alignment did not move it"
    )


@pytest.mark.parametrize(
    ("symmetry", "attributes", "equal"),
    [
        (MIXTURE, {}, True),
        ((Complement("theta"),), {}, True),
        ((Rescalable({"mu": 0}),), {}, False),
        ((), {}, False),
        (MIXTURE, {"alignment": "{}"}, False),
    ],
)
def test_equal_modes_are_what_is_still_to_be_divided_out(rng, symmetry, attributes, equal):
    tree = tree_of(switched_mixture(rng), symmetry=symmetry, **attributes)
    assert as_view(tree).declares_equal_modes is equal


@pytest.mark.parametrize(
    ("symmetry", "shapes"),
    [
        (MIXTURE, {"mu": (3,), "sigma": (3,)}),
        ((Exchangeable({"A": (0, 1), "mu": 0}),), {"A": (3, 3), "mu": (3,)}),
        ((Exchangeable({"L": 1, "s": 0}, flips=("L",)),), {"L": (4, 2), "s": (2,)}),
        ((Exchangeable({"L": 1, "f": 0}, flips=True),), {"L": (4, 2), "f": (2,)}),
        ((Exchangeable({"mu": 0}, complements=("theta",)),), {"mu": (2,), "theta": ()}),
        ((Complement("theta"),), {"theta": ()}),
        ((Flip(("theta", "a", "b")),), {"theta": (6,), "a": (2, 3), "b": ()}),
        (as_symmetry(("a:1,b", "b:1,c")), {"a": (1, 3), "b": (3, 2), "c": (2,)}),
        (as_symmetry(("+-a:1,+-b", "+-b:1,+-c")), {"a": (1, 3), "b": (3, 2), "c": (2,)}),
        (as_symmetry(("k:1[2,*3],b", "k,a:1,c")), {"k": (3, 6), "b": (3,), "a": (2, 3), "c": (3,)}),
        (as_symmetry(("+-k:0[0:3]", "k:0[3:7]")), {"k": (8, 2)}),
    ],
)
def test_invariants_do_not_change_under_any_element(rng, symmetry, shapes):
    values = {name: rng.uniform(size=(2, 30, *shape)) for name, shape in shapes.items()}
    group = Group(symmetry, shapes)
    moved = group.act(group.random(rng, (2, 30)), values)
    before, after = (invariants(tree_of(v, symmetry=symmetry), symmetry) for v in (values, moved))
    assert before.names == after.names
    assert before.values.shape[2] == len(before.names) > 0
    np.testing.assert_allclose(before.values, after.values, rtol=1e-12, atol=1e-15)
    assert (summary(before)["sd"] > 0.01).all()  # and none of them is a constant


def test_invariants_of_a_network_are_its_outputs(rng):
    model = BayesianNetwork(Network(2, (3,), 1, "tanh"))
    values = {n: rng.normal(size=(2, 10, *s)) for n, s in model.network.shapes.items()}
    tree = tree_of(values, symmetry=model.symmetry, model=model.describe())
    x = xr.Dataset({"x": (("obs", "in"), rng.normal(size=(80, 2)))})
    tree["constant_data"] = xr.DataTree(x)
    group = Group(model.symmetry, model.network.shapes)
    moved = tree.copy()
    for name, value in group.act(group.random(rng, (2, 10)), values).items():
        moved["posterior"][name] = tree["posterior"][name].copy(data=value)
    before, after = invariants(tree, model.symmetry), invariants(moved, model.symmetry)
    assert before.names[0] == "output[0,0]"
    assert len(before.names) == 50
    np.testing.assert_allclose(before.values, after.values, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_heights_within_their_errors_are_no_alarm(seed):
    """A funnel's log density wanders: means 30 nats apart, and as uncertain as that."""
    rng = np.random.default_rng(seed)
    walk = np.cumsum(rng.normal(size=(4, 400)), axis=1) * 3
    found = diagnose_aligned(tree_of(switched_mixture(rng), walk), noise=False)
    assert np.ptp(walk.mean(axis=1)) > 20
    assert not any("log densities lie far apart" in warning for warning in found.warnings)
    assert not any("negligible" in warning for warning in found.warnings)


def test_chains_are_joined_through_others_with_few_comparisons(rng, monkeypatch):
    """Neighbours agree, ends do not; of chains that all agree, one is compared with each of the others."""
    compared = []

    def counted(values):
        compared.append(values)
        return rhats(values)

    monkeypatch.setattr("onebasin.analysis.diagnostics.labels.rhats", counted)
    values = rng.normal(size=(4, 2000, 1)) + np.array([0.0, 0.7, 1.4, 9.0])[:, None, None]
    assert _basins(as_view(tree_of({"mu": values}, symmetry=())).draws()) == ((0, 1, 2), (3,))
    compared.clear()
    alike = rng.normal(size=(30, 200, 1))
    found = _basins(as_view(tree_of({"mu": alike}, symmetry=())).draws())
    assert (found, len(compared)) == ((tuple(range(30)),), 29)
