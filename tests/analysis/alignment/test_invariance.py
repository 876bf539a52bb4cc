"""What alignment must not depend on, and what it must leave alone."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.models import BayesianNetwork, Network, predict
from onebasin.models.symmetry.blocks import Exchangeable, to_json

from .conftest import CASES, dataset, equal, plant, same_everywhere

OVERLAP = 0.8  # noise that makes many parts change places: alignment has real choices to make
REFERENCES = ("mean", "gaussian", "draw")
ROTATED = [(case, REFERENCES[place % 3]) for place, case in enumerate(CASES)]
"""Every case with one of the references; `test_planted` has each with another one."""


@cache
def overlapping(case, reference):
    """Draws whose parts change places, and their alignment."""
    planted = plant(*CASES[case], np.random.default_rng(3), noise=OVERLAP)
    how = {"reference": reference, "scales": planted.scales}
    return planted, how, align(planted.seen, planted.group.symmetry, **how)


@pytest.mark.parametrize(("case", "reference"), ROTATED)
def test_the_cost_never_rises_and_aligning_twice_changes_nothing(case, reference):
    planted, how, once = overlapping(case, reference)
    assert once.converged
    # The floor of a variance is no part of the likelihood: it may cost a little.
    slack = 1e-9 + 1e-4 * (reference == "gaussian")
    assert (np.diff(once.cost) <= slack * np.abs(once.cost[0])).all()
    twice = align(once.posterior, planted.group.symmetry, **how)
    assert equal(twice.element, planted.group.identity((2, 15)))


@pytest.mark.parametrize(("case", "reference"), ROTATED)
def test_labels_of_the_input_change_one_element_only(case, reference, rng):
    planted, how, found = overlapping(case, reference)
    group = planted.group
    change = group.random(rng, (2, 15))
    relabelled = group.act(change, {name: v.values for name, v in planted.seen.items()})
    again = align(dataset(relabelled), group.symmetry, **how)
    # From found's aligned draws to those of the relabelled input.
    left = group.compose(group.inverse(found.element), group.compose(change, again.element))
    assert same_everywhere(left)
    np.testing.assert_allclose(again.distance_after, found.distance_after, rtol=1e-9)


PIECES = ({"max_bytes": 1}, {"max_bytes": 20_000}, {"threads": 3})
CUT = ("tanh network", "hidden Markov", "two hidden layers")


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("case", CUT)
def test_chunks_and_threads_do_not_matter(case, reference, rng):
    options = PIECES[(CUT.index(case) + REFERENCES.index(reference)) % 3]
    planted = plant(*CASES[case], rng, noise=OVERLAP, lead=(2, 6))
    symmetry = planted.group.symmetry
    whole = align(planted.seen, symmetry, reference=reference, restarts=2, threads=1)
    pieces = align(planted.seen, symmetry, reference=reference, restarts=2, **options)
    assert equal(whole.element, pieces.element)
    np.testing.assert_allclose(pieces.cost, whole.cost, rtol=1e-9)


def test_scaling_is_divided_out(rng):
    network = BayesianNetwork(Network(3, (5, 4), 2, activation="relu"))
    planted = plant(network.symmetry, dict(network.network.shapes), rng)
    found = align(planted.seen, network.symmetry, scales=planted.scales)
    left = planted.left_over(found.element)
    assert same_everywhere((left[0], left[2]))
    aligned = found.posterior["posterior"]
    for incoming, outgoing in (("1", "2"), ("2", "3")):
        square = (aligned[f"W{incoming}"].values ** 2).sum(axis=2)
        square = square + aligned[f"b{incoming}"].values ** 2
        out = (aligned[f"W{outgoing}"].values ** 2).sum(axis=3)
        np.testing.assert_allclose(square, out, rtol=1e-10)


WAYS = "balanced relu weights, unit relu activations, keep tanh weights, balanced tanh activations"


@pytest.mark.parametrize("ways", WAYS.split(", "))
def test_predictions_do_not_change(rng, ways):
    gauge, activation, cost = ways.split()
    model = BayesianNetwork(Network(3, (5, 4), 2, activation=activation))
    planted = plant(model.symmetry, dict(model.network.shapes), rng, noise=OVERLAP)
    x = rng.normal(size=(6, 3))
    tree = network_tree(planted, model, x)
    found = align(tree, cost=cost, gauge=gauge)
    expected = predict(model, planted.seen, x)
    got = predict(model, found.posterior["posterior"].to_dataset(), x)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def test_a_wrong_symmetry_changes_predictions(rng):
    # Negative control: the outgoing weights stay behind.
    model = BayesianNetwork(Network(3, (5,), 2, activation="tanh"))
    planted = plant(model.symmetry, dict(model.network.shapes), rng)
    x = rng.normal(size=(6, 3))
    wrong = align(planted.seen, (Exchangeable({"W1": 1, "b1": 0}, flips=True),))
    got = predict(model, wrong.posterior["posterior"].to_dataset(), x)
    assert np.abs(got - predict(model, planted.seen, x)).max() > 0.1


def network_tree(planted, model, x) -> xr.DataTree:
    constant = xr.Dataset({"x": (("obs", "in"), x)})
    tree = xr.DataTree.from_dict({"posterior": planted.seen, "constant_data": constant})
    tree.attrs = {"symmetry": to_json(model.symmetry), "model": model.describe()}
    return tree


def test_activations_restore_labels_and_layers_are_independent(rng):
    model = BayesianNetwork(Network(3, (6, 5), 2, activation="tanh"))
    planted = plant(model.symmetry, dict(model.network.shapes), rng, noise=0.01)
    x = rng.normal(size=(40, 3))
    found = align(network_tree(planted, model, x), cost="activations")
    assert same_everywhere(planted.left_over(found.element))
    assert set(found.reference) == {"hidden1", "hidden2"}


def test_activations_are_those_of_the_network(rng):
    # With the last layer's weights set to read out one unit, outputs are that unit's activation.
    model = BayesianNetwork(Network(3, (6, 5), 5, activation="relu"))
    shapes = dict(model.network.shapes)
    planted = plant(model.symmetry, shapes, rng, lead=(1, 1))
    values = {n: v.values.copy() for n, v in planted.seen.items()}
    values["W3"][:], values["b3"][:] = np.eye(5), 0.0
    x = rng.normal(size=(7, 3))
    tree = network_tree(replace(planted, seen=dataset(values)), model, x)
    found = align(tree, cost="activations", gauge="keep")
    expected = predict(model, dataset(values), x)[0, 0]
    np.testing.assert_allclose(found.reference["hidden2"], expected, rtol=1e-10, atol=1e-12)
