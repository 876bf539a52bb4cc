"""A network's data for the Stan programs, and draws read back under the names of NumPyro's sites."""

import re

import numpy as np
import pytest

from onebasin.models import ACTIVATIONS
from onebasin.models.networks.parametrisation import WEIGHTS
from onebasin.networks import (
    BayesianNetwork,
    Categorical,
    Gaussian,
    Network,
    NormalPrior,
    Parametrisation,
)
from onebasin.stan.network import (
    ACTIVATION_CODES,
    CHART_CODES,
    PROGRAMS,
    program_data,
    program_path,
    read_draws,
    variable_names,
)
from onebasin.stan.program import definition

INCLUDE = re.compile(r"#include (\S+)")


def conditioned(network, likelihood=None, parts=("free",), prior=None):
    model = BayesianNetwork(
        network, likelihood or Gaussian(), prior or NormalPrior(), Parametrisation(*parts)
    )
    x = np.arange(3.0 * network.in_dim).reshape(3, network.in_dim)
    if model.is_classifier:
        return model.condition(x, [0, 2, 1])
    return model.condition(x, np.arange(3.0 * network.out_dim).reshape(3, network.out_dim))


def test_codes_cover_exactly_what_models_offer():
    assert ACTIVATION_CODES.keys() == ACTIVATIONS.keys()
    assert sorted(ACTIVATION_CODES.values()) == list(range(1, len(ACTIVATIONS) + 1))
    assert CHART_CODES.keys() == set(WEIGHTS)
    assert sorted(CHART_CODES.values()) == list(range(len(WEIGHTS)))


def declared(path):
    """Names in a program's data block, its includes put in place."""
    text = path.read_text()
    block = text[text.index("data {") : text.index("transformed data")]
    block = INCLUDE.sub(lambda match: (PROGRAMS / match.group(1)).read_text(), block)
    lines = [line.split("//")[0].strip() for line in block.splitlines()]
    return {line.rstrip(";").split()[-1] for line in lines if line.endswith(";")}


@pytest.mark.parametrize(
    ("likelihood", "out_dim", "file"),
    [(Gaussian(), 2, "regression.stan"), (Categorical(), 3, "classification.stan")],
)
def test_program_data_hold_what_the_program_declares(likelihood, out_dim, file):
    target = conditioned(Network(2, (4,), out_dim), likelihood)
    assert program_path(target) == PROGRAMS / file
    assert program_data(target).keys() == declared(PROGRAMS / file)
    program = definition(target)
    assert program.path == PROGRAMS / file
    assert program.data.keys() == program_data(target).keys()


def test_program_data_count_labels_from_one():
    data = program_data(conditioned(Network(2, (4,), 3), Categorical()))
    np.testing.assert_array_equal(data["label"], [1, 3, 2])
    assert "y" not in data


def test_draws_are_read_by_columns_under_the_sites_names():
    target = conditioned(Network(2, (3,), 2))
    weights = np.arange(5.0 * 4 * 12).reshape(5, 4, 12)
    biases = np.arange(5.0 * 4 * 5).reshape(5, 4, 5)
    sigma = np.ones((5, 4, 1))
    draws = read_draws(target, {"weights": weights, "biases": biases, "sigma": sigma})
    assert tuple(draws) == variable_names(target) == ("W1", "b1", "W2", "b2", "sigma")
    shapes = {**target.model.network.shapes, "sigma": ()}
    assert {n: v.shape for n, v in draws.items()} == {n: (5, 4, *s) for n, s in shapes.items()}
    np.testing.assert_array_equal(draws["W1"][0, 0], [[0, 2, 4], [1, 3, 5]])
    np.testing.assert_array_equal(draws["W2"][0, 0], [[6, 9], [7, 10], [8, 11]])
    np.testing.assert_array_equal(draws["b2"][0, 1], [8, 9])
    # Predicted noise has its columns last.
    target = conditioned(Network(2, (3,)), Gaussian("predicted"))
    draws = read_draws(target, {"weights": np.arange(12.0), "biases": np.arange(5.0)})
    assert tuple(draws) == variable_names(target) == ("W1", "b1", "W2", "b2")
    np.testing.assert_array_equal(draws["W2"], [[6, 9], [7, 10], [8, 11]])
    np.testing.assert_array_equal(draws["b2"], [3, 4])
    # Neither biases nor noise.
    target = conditioned(Network(2, (3,), biases=False, readout="sum"), Gaussian(noise_sd=1.0))
    draws = read_draws(target, {"weights": np.arange(6.0), "biases": np.empty(0)})
    assert tuple(draws) == variable_names(target) == ("W1",)
    np.testing.assert_array_equal(draws["W1"], [[0, 2, 4], [1, 3, 5]])
