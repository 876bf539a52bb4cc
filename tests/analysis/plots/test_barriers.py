"""Barriers between draws of a network, and the plot of them."""

import numpy as np
import pytest
import xarray as xr

import onebasin as ob
from onebasin.analysis.alignment.barriers import network_loss
from onebasin.models import BayesianNetwork, Gaussian, Network, Parametrisation

from .conftest import network_tree


def data(tree):
    return tree["constant_data"]["x"].values, tree["observed_data"]["y"].values


@pytest.fixture(scope="module")
def found(regression):
    return ob.networks.barriers(regression, pairs=5, num_points=9)


def test_units_in_the_opposite_order_take_one_exchange(found):
    assert found.transpositions.tolist() == [1] * 5  # of three units the outer two change places
    assert found.most == 2
    assert (found.pairs[:, 0, 0] != found.pairs[:, 1, 0]).all()


def test_alignment_removes_the_barrier_between_copies(found):
    assert (found.as_they_came.height > 0.1).all()
    assert (np.abs(found.aligned.height) < 0.01 * found.as_they_came.height).all()


def test_ends_are_the_losses_of_the_draws(found, regression):
    model = BayesianNetwork.from_description(regression.attrs["model"])
    loss = network_loss(model, *data(regression))
    posterior = regression["posterior"].to_dataset()
    for place in (0, -1):
        chain, draw = found.pairs[:, place].T
        wanted = loss({name: v.values[chain, draw] for name, v in posterior.items()})
        np.testing.assert_allclose(found.as_they_came.loss[:, place], wanted, rtol=1e-5)
        np.testing.assert_allclose(found.aligned.loss[:, place], wanted, rtol=1e-5)


def test_inferred_noise_is_one_number_along_the_line(regression):
    network = Network(1, (3,), 1, activation="relu")
    tree = network_tree(BayesianNetwork(network, likelihood=Gaussian()), *data(regression))
    sigma = xr.DataArray(np.full((2, 20), 0.5), dims=("chain", "draw"))
    tree["posterior"]["sigma"] = sigma
    one, other = (ob.networks.barriers(t, pairs=3, num_points=5) for t in (tree, regression))
    np.testing.assert_allclose(one.as_they_came.loss, other.as_they_came.loss, rtol=1e-6)


def test_members_of_one_chain_are_held_against_each_other(regression):
    one = regression.isel(chain=[1])
    one.attrs = regression.attrs
    found = ob.networks.barriers(one, pairs=4, num_points=5)
    assert (found.pairs[:, 0, 1] != found.pairs[:, 1, 1]).all()
    assert found.transpositions.tolist() == [0] * 4


def test_pairs_follow_from_the_seed(regression):
    how = {"pairs": 3, "num_points": 3}
    first, again, other = (ob.networks.barriers(regression, seed=s, **how).pairs for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_transpositions_of_draws_are_those_of_their_elements(regression):
    counts = ob.networks.transpositions(regression)
    assert counts.total.shape == (2, 20)
    assert sorted(set(counts.total.ravel().tolist())) == [0, 1]
    again = ob.networks.transpositions(ob.align(regression))
    np.testing.assert_array_equal(counts.total, again.total)


def test_plot_shows_every_pair_before_and_after(found, regression):
    figure = ob.plot.barriers(found)
    left, right = figure.axes
    assert len(left.lines) == 2 * 5 + 1  # and a rule at zero
    np.testing.assert_allclose(left.lines[0].get_ydata(), found.as_they_came.excess[0])
    heights = [line.get_ydata() for line in right.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(heights, [found.as_they_came.height, found.aligned.height])
    assert figure.alt == found.sentence
    assert len(ob.plot.barriers(regression).axes) == 2


def test_units_in_order_and_a_single_draw_have_no_barriers(regression):
    model = BayesianNetwork(Network(1, (3,), 1), parametrisation=Parametrisation(biases="ordered"))
    ordered = network_tree(model, *data(regression))
    with pytest.raises(ValueError, match="fixes the order of the hidden"):
        ob.networks.barriers(ordered)
    single = regression.isel(chain=[0], draw=[0])
    single.attrs = regression.attrs
    with pytest.raises(ValueError, match="`posterior` has only one draw"):
        ob.networks.barriers(single)
