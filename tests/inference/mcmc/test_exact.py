"""A network of two parameters, whose posterior is known by quadrature: f(x) = relu(w1 x) + relu(w2 x)."""

from __future__ import annotations

import arviz_stats
import numpy as np
import pytest

from onebasin.inference import NutsSettings, nuts
from onebasin.models import BayesianNetwork, Gaussian, Network, NetworkTarget
from onebasin.models.data import load_data

PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)


@pytest.fixture(scope="module")
def target() -> NetworkTarget:
    data = load_data("absolute-value")
    network = Network(1, (2,), 1, "relu", biases=False, readout="sum")
    return BayesianNetwork(network, Gaussian(noise_sd=1.0)).condition(
        data.x, data.y, name="two-weights"
    )


@pytest.fixture(scope="module")
def truth(target: NetworkTarget) -> tuple[np.ndarray, np.ndarray]:
    """Grid points of one weight, and the posterior's joint density there, normalised."""
    grid = np.linspace(-6, 6, 1201)
    first, second = np.meshgrid(grid, grid, indexing="ij")
    log_density = -0.5 * (first**2 + second**2)
    for x, y in zip(target.x[:, 0], target.y[:, 0], strict=True):
        output = np.maximum(first * x, 0) + np.maximum(second * x, 0)
        log_density -= 0.5 * (y - output) ** 2
    density = np.exp(log_density - log_density.max())
    return grid, density / density.sum()


@pytest.mark.parametrize("engine", ["numpyro", pytest.param("stan", marks=pytest.mark.stan)])
def test_nuts_matches_quadrature(
    engine: str, target: NetworkTarget, truth: tuple[np.ndarray, np.ndarray]
) -> None:
    grid, density = truth
    settings = NutsSettings(chains=4, warmup=500, draws=4000)
    w = (
        nuts(target, engine=engine, settings=settings, seed=11)
        .posterior["W1"]
        .to_numpy()[..., 0, :]
    )
    first, second = np.meshgrid(grid, grid, indexing="ij")
    functions = {
        "mean": lambda a, b: a,
        "square": lambda a, b: a**2,
        "cube": lambda a, b: a**3,
        "product": lambda a, b: a * b,
        "larger": np.maximum,
        "larger squared": lambda a, b: np.maximum(a, b) ** 2,
    }
    for name, function in functions.items():
        draws = function(w[..., 0], w[..., 1])
        assert float(arviz_stats.ess(draws)) > 100, name
        error = draws.mean() - (function(first, second) * density).sum()
        assert abs(error) < 5 * float(arviz_stats.mcse(draws)), name
    cumulative = np.cumsum(density.sum(1))
    for p in PROBABILITIES:
        exact = np.interp(p, cumulative, grid)
        mcse = float(arviz_stats.mcse(w[..., 0], method="quantile", prob=p))
        assert abs(np.quantile(w[..., 0], p) - exact) < 5 * mcse, p


def test_quadrature_has_both_modes(truth: tuple[np.ndarray, np.ndarray]) -> None:
    """The case is worth its name: an exchange of the units gives another mode."""
    grid, density = truth
    np.testing.assert_allclose(density, density.T, rtol=1e-10)
    assert density[np.ix_(grid > 0.2, grid < -0.2)].sum() > 0.2
