"""Posteriors whose labels are known, without a sampler."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from onebasin.models import BayesianNetwork, Categorical, Gaussian, Network
from onebasin.models.symmetry.blocks import Exchangeable, to_json

from ..conftest import network_posterior, tree_of

SWITCHED = (1, 2)
"""Chains of the mixture in which the two components have each other's places."""


def legend(figure: Figure) -> list[str]:
    """What a figure's legends say."""
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


@pytest.fixture(scope="session")
def mixture() -> xr.DataTree:
    """Two components, undeclared; chains 1 and 2 have them the other way round, chain 3 from its middle on."""
    return _switched(100)


@pytest.fixture(scope="session")
def long_mixture() -> xr.DataTree:
    """The same with enough draws to be usable after alignment."""
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
    dims = ("chain", "draw")
    return tree_of(
        posterior={"mu": ((*dims, "k"), mu), "theta": (dims, theta)},
        sample_stats={"lp": (dims, rng.normal(size=(4, draws)))},
        posterior_predictive={"y": ((*dims, "n"), rng.normal(size=(4, draws, 40)))},
        observed_data={"y": ("n", rng.normal(size=40))},
    )


@pytest.fixture(scope="session")
def signs() -> xr.DataTree:
    """Abilities and discriminations whose signs differ from chain to chain, and that never change places."""
    rng = np.random.default_rng(6)
    theta = np.linspace(-2.4, 2.4, 6) + 0.15 * rng.normal(size=(4, 100, 6))
    a = np.linspace(1, 2, 3) + 0.1 * rng.normal(size=(4, 100, 3))
    theta[2], a[2] = -theta[2], -a[2]
    drawn = {"theta": (("chain", "draw", "j"), theta), "a": (("chain", "draw", "i"), a)}
    return tree_of(posterior=drawn)


def many(components: int) -> xr.DataTree:
    """Many components, declared, at random places in every chain."""
    rng = np.random.default_rng(7)
    places = np.stack([rng.permutation(components) for _ in range(4)])[:, None, :]
    mu = places + 0.1 * rng.normal(size=(4, 50, components))
    tree = tree_of(posterior={"mu": (("chain", "draw", "k"), mu)})
    tree.attrs["symmetry"] = to_json((Exchangeable({"mu": 0}),))
    return tree


def network_tree(model, x, y, *, chains=2, draws=20):
    """Draws around one network; every chain but the first has its hidden units in the opposite order."""
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
    """A network of one input and three ReLU units, with known noise."""
    x = np.linspace(-2, 2, 30)[:, None]
    model = BayesianNetwork(Network(1, (3,), 1, activation="relu"), Gaussian(noise_sd=0.5))
    return network_tree(model, x, np.sin(x))


@pytest.fixture(scope="session")
def several_inputs() -> xr.DataTree:
    """A network of two inputs."""
    x = np.random.default_rng(9).normal(size=(40, 2))
    model = BayesianNetwork(Network(2, (3,), 1, activation="tanh"), Gaussian(noise_sd=0.5))
    return network_tree(model, x, x[:, :1])


@pytest.fixture(scope="session")
def classifier() -> xr.DataTree:
    """A classifier of two inputs."""
    x = np.random.default_rng(10).normal(size=(60, 2))
    model = BayesianNetwork(Network(2, (3,), 2, activation="relu"), likelihood=Categorical())
    return network_tree(model, x, (x[:, 0] > 0).astype(np.int64))
