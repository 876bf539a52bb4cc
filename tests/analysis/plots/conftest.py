"""Simulated posteriors with known labels."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from onebasin.models import BayesianNetwork, Categorical, Gaussian, Network
from onebasin.models.symmetry.blocks import Exchangeable, to_json

from ..conftest import network_posterior

SWITCHED = (1, 2)
"""Chains of the mixture in which the two components are swapped."""


def legend(figure: Figure) -> list[str]:
    """Return the texts of a figure's legends."""
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


@pytest.fixture(scope="session")
def mixture() -> xr.DataTree:
    """Return two undeclared components, swapped in chains 1 and 2 and in the second half of chain 3."""
    return _switched(100)


@pytest.fixture(scope="session")
def long_mixture() -> xr.DataTree:
    """Return the same components with enough draws to be usable after alignment."""
    return _switched(400)


def _switched(draws: int) -> xr.DataTree:
    rng = np.random.default_rng(5)
    chains = 4
    mu = np.array([-1.5, 1.8]) + 0.1 * rng.normal(size=(chains, draws, 2))
    theta = 0.3 + 0.02 * rng.normal(size=(chains, draws))
    where = [(c, slice(None)) for c in SWITCHED] + [(3, slice(draws // 2, None))]
    for place in where:
        mu[place] = mu[place][:, ::-1].copy()
        theta[place] = 1 - theta[place]
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(
                {"mu": (("chain", "draw", "k"), mu), "theta": (("chain", "draw"), theta)}
            ),
            "sample_stats": xr.Dataset({"lp": (("chain", "draw"), rng.normal(size=(4, draws)))}),
            "posterior_predictive": xr.Dataset(
                {"y": (("chain", "draw", "n"), rng.normal(size=(4, draws, 40)))}
            ),
            "observed_data": xr.Dataset({"y": ("n", rng.normal(size=40))}),
        }
    )


@pytest.fixture(scope="session")
def signs() -> xr.DataTree:
    """Return abilities and discriminations whose signs, but not labels, differ between chains."""
    rng = np.random.default_rng(6)
    theta = np.linspace(-2.4, 2.4, 6) + 0.15 * rng.normal(size=(4, 100, 6))
    a = np.linspace(1, 2, 3) + 0.1 * rng.normal(size=(4, 100, 3))
    theta[2], a[2] = -theta[2], -a[2]
    variables = {"theta": (("chain", "draw", "j"), theta), "a": (("chain", "draw", "i"), a)}
    return xr.DataTree.from_dict({"posterior": xr.Dataset(variables)})


def many(components: int) -> xr.DataTree:
    """Return many declared components, in random order in every chain."""
    rng = np.random.default_rng(7)
    places = np.stack([rng.permutation(components) for _ in range(4)])[:, None, :]
    mu = places + 0.1 * rng.normal(size=(4, 50, components))
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": (("chain", "draw", "k"), mu)})})
    tree.attrs["symmetry"] = to_json((Exchangeable({"mu": 0}),))
    return tree


def network_tree(
    model: BayesianNetwork, x: np.ndarray, y: np.ndarray, *, chains: int = 2, draws: int = 20
) -> xr.DataTree:
    """Return draws around one network, with hidden units in reverse order in all chains but the first."""
    rng = np.random.default_rng(8)
    dims, shapes = model.network.dims, model.network.shapes
    centre = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    values = {}
    for name, shape in shapes.items():
        drawn = centre[name] + 0.01 * rng.normal(size=(chains, draws, *shape))
        for axis, dim in enumerate(dims[name]):
            if dim.startswith("hidden"):
                drawn[1:] = np.flip(drawn[1:], axis=axis + 2)
        values[name] = drawn
    return network_posterior(model, values, (x, y))


@pytest.fixture(scope="session")
def regression() -> xr.DataTree:
    """Return a network with one input, three ReLU units and known noise."""
    x = np.linspace(-2, 2, 30)[:, None]
    network = Network(1, (3,), 1, activation="relu")
    model = BayesianNetwork(network, likelihood=Gaussian(noise_sd=0.5))
    return network_tree(model, x, np.sin(x))


@pytest.fixture(scope="session")
def several_inputs() -> xr.DataTree:
    """Return a network with two inputs."""
    x = np.random.default_rng(9).normal(size=(40, 2))
    network = Network(2, (3,), 1, activation="tanh")
    model = BayesianNetwork(network, likelihood=Gaussian(noise_sd=0.5))
    return network_tree(model, x, x[:, :1])


@pytest.fixture(scope="session")
def classifier() -> xr.DataTree:
    """Return a classifier with two inputs."""
    x = np.random.default_rng(10).normal(size=(60, 2))
    model = BayesianNetwork(Network(2, (3,), 2, activation="relu"), likelihood=Categorical())
    return network_tree(model, x, (x[:, 0] > 0).astype(np.int64))
