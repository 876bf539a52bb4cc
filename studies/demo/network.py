"""A small Bayesian network in Stan and in NumPyro: equal densities and approximations compared with NUTS."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.stats import wasserstein_distance

from onebasin.analysis.alignment import align
from onebasin.analysis.compare.compare import compare
from onebasin.analysis.compare.comparison import BASELINE
from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.analysis.diagnostics.result import Diagnosis
from onebasin.inference import advi, log_density, nuts, symmetrised_vi
from onebasin.models import BayesianNetwork, Gaussian, Network, NetworkTarget
from onebasin.posteriors.view import as_view

SEED = 1
NOISE = 0.2
TRAIN, TEST, POINTS = 60, 500, 10
HIDDEN = 2
REFERENCE, HALVES = "NUTS", "baseline: NUTS, half and half"


@dataclass(frozen=True)
class Score:
    """Distance of a posterior from NUTS."""

    predictions: float
    """Root mean square distance between the mean predictions, in standard deviations of NUTS."""
    weights: float
    """Wasserstein distance of the aligned parameters, averaged over parameters, in standard deviations of NUTS."""
    inside: float  # Share of new targets inside the 95 % interval.


@dataclass(frozen=True, eq=False)
class NetworkPosteriors:
    """Posteriors of the network."""

    posteriors: Mapping[str, xr.DataTree]  # Posteriors by name, NUTS first.
    constant: float
    spread: float
    """`constant`, `spread`: mean of the differences between the two log densities at random points, and the largest
    deviation from it, in nats."""
    diagnosis: Diagnosis  # Diagnosis of NUTS before and after alignment.
    information: float
    """Gain in the bound on the log evidence from symmetrising the fit, in nats."""
    scores: Mapping[str, Score]  # Scores by name of the posterior, with the baseline last.


def data(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return equally spaced inputs and noisy targets around a bump (a step up and a step down)."""
    rng = np.random.default_rng(seed)
    x = np.linspace(-3, 3, size)[:, None]
    bump = np.tanh(2 * (x + 1.5)) - np.tanh(2 * (x - 1.5)) - 1
    return x, bump + rng.normal(0, NOISE, x.shape)


def target() -> NetworkTarget:
    """Return a network with two hidden units and unknown noise, conditioned on the data."""
    network = Network(1, (HIDDEN,), 1, activation="tanh")
    return BayesianNetwork(network, Gaussian()).condition(*data(TRAIN, SEED), name="network")


def density_differences(network: NetworkTarget) -> np.ndarray:
    """Return the differences between the two log densities at random points (point,), in nats."""
    rng = np.random.default_rng(SEED)
    shapes = {**network.model.network.shapes, "sigma": ()}
    values = {name: rng.normal(size=(1, POINTS, *shape)) for name, shape in shapes.items()}
    values["sigma"] = np.exp(values["sigma"])
    points = xr.Dataset(
        {
            name: (("chain", "draw", *(f"{name}{axis}" for axis in range(array.ndim - 2))), array)
            for name, array in values.items()
        }
    )
    stan, numpyro = (log_density(network, points, engine=e) for e in ("stanli", "numpyro"))
    return np.ravel(stan - numpyro)


def run() -> NetworkPosteriors:
    """Compare the densities, sample with NUTS in Stan, fit three approximations in NumPyro, and score them."""
    network = target()
    differences = density_differences(network)
    posteriors = {
        REFERENCE: nuts(network, engine="stanli", seed=SEED, progress=False),
        "mean-field ADVI": advi(network, seed=SEED, progress=False),
        "full-rank ADVI": advi(network, family="fullrank", seed=SEED, progress=False),
        "symmetrised VI": symmetrised_vi(network, steps=2000, seed=SEED, progress=False),
    }
    return NetworkPosteriors(
        posteriors,
        float(differences.mean()),
        float(np.abs(differences - differences.mean()).max()),
        diagnose(posteriors[REFERENCE]),
        float(posteriors["symmetrised VI"]["variational"].dataset["information"][0, -1]),
        dict(scores(posteriors)),
    )


def scores(posteriors: Mapping[str, xr.DataTree]) -> Iterator[tuple[str, Score]]:
    """Compare every posterior with NUTS, and the halves of NUTS with each other."""
    x, y = data(TEST, SEED + 1)
    table = compare(posteriors, truth=REFERENCE, x=x, y=y, weights=False).table
    reference = align(posteriors[REFERENCE])
    nuts_draws = _columns(reference.posterior)
    half = len(nuts_draws) // 2
    for name in (*posteriors, BASELINE):
        first, second = nuts_draws, nuts_draws
        if name == BASELINE:
            first, second = nuts_draws[:half], nuts_draws[half:]
        elif name != REFERENCE:
            second = _columns(align(posteriors[name], reference=reference).posterior)
        row = table.loc[name]
        pairs = zip(first.T, second.T, strict=True)
        # In standard deviations of the first sample.
        apart = [wasserstein_distance(a, b) / a.std() for a, b in pairs]
        score = Score(row["mean_distance"], float(np.mean(apart)), row["coverage_95"])
        yield (HALVES if name == BASELINE else name), score


def _columns(posterior: xr.DataTree) -> np.ndarray:
    """Return the draws of all parameters, (draw, param)."""
    draws = as_view(posterior).draws(sorted(posterior.posterior.data_vars))
    return draws.values.reshape(-1, len(draws.names))
