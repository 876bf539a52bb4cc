"""Problems (models with fixed data and a symmetry, defined for both engines) and label-free quantities.

Invariants are functions of draws that no relabelling changes. Each takes arrays (chain, draw, *event) by variable and
returns (chain, draw) or (chain, draw, k). They use only NumPy, so they accept the draws of any posterior.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, softmax

from onebasin.inference import Nuts
from onebasin.models import Target

if TYPE_CHECKING:
    from onebasin.inference.calibration.family import Family

Draws = Mapping[str, np.ndarray]  # Arrays (chain, draw, *event) by variable.
Invariant = Callable[[Draws], np.ndarray]
"""Function of the draws that no relabelling changes; it returns (chain, draw) or (chain, draw, k)."""

RECIPE = Nuts(chains=10, warmup=10_000, draws=10_000)
"""Recipe of posteriordb: 10,000 warmup iterations and 10,000 draws per chain, of which every tenth is kept."""
ADAPTED = replace(RECIPE, warmup=1000)
"""Recipe with a tenth of the warmup, for posteriors that need no more. The criteria concern only the draws."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A model conditioned on fixed data."""

    name: str  # Name on the command line, in files and in tables.
    title: str  # One-line description.
    target: Callable[[], Target]
    """Function that returns the target, with fixed data and a declared symmetry. The target has a NumPyro definition
    and a Stan program, whose log densities differ by a constant."""
    family: Callable[[], Family] | None = None
    """Function that returns the unconditioned model with prior and simulator; None if not defined."""
    invariants: Mapping[str, Invariant] = field(default_factory=dict)
    """Invariants by name."""
    settings: Nuts = RECIPE
    """Sampler settings for the reference; `draws` counts the draws per chain before thinning."""
    references: tuple[str, ...] = ()  # Sources of the model.
    keywords: tuple[str, ...] = ()  # Keywords in the style of posteriordb.
    quotient_of: Problem | None = None
    """Problem whose posterior modulo its symmetry is this problem's posterior. The densities differ by the number of
    copies. None for most problems."""


def ordered(name: str) -> Invariant:
    """Make the invariant of a vector's entries in increasing order."""
    return lambda draws: np.sort(draws[name], axis=-1)


def mixture_mean(draws: Draws) -> np.ndarray:
    """Return the mean of an observation of a mixture."""
    return (_weights(draws) * draws["mu"]).sum(axis=-1)


def mixture_sd(draws: Draws) -> np.ndarray:
    """Return the standard deviation of an observation of a mixture."""
    second = (_weights(draws) * (draws["mu"] ** 2 + draws["sigma"] ** 2)).sum(axis=-1)
    return np.sqrt(second - mixture_mean(draws) ** 2)


def mixture_density(points: Sequence[float]) -> Invariant:
    """Make the invariant of a mixture's density at some points."""

    def at_points(draws: Draws) -> np.ndarray:
        mu, sigma, weight = (
            v[..., None, :] for v in (draws["mu"], draws["sigma"], _weights(draws))
        )
        z = (np.asarray(points)[:, None] - mu) / sigma
        return (weight * np.exp(-0.5 * z**2) / (sigma * np.sqrt(2 * np.pi))).sum(axis=-1)

    return at_points


def _weights(draws: Draws) -> np.ndarray:
    if "weight" in draws:
        return draws["weight"]
    return np.stack([draws["theta"], 1 - draws["theta"]], axis=-1)


def right_answers(draws: Draws) -> np.ndarray:
    """Return the probability of a correct answer to each item, averaged over the first eight persons."""
    a, b, theta = draws["a"], draws["b"], draws["theta"][..., None, :8]
    return expit(a[..., :, None] * theta - b[..., :, None]).mean(axis=-1)


def sizes(name: str) -> Invariant:
    """Make the invariant of the absolute values of a variable's entries."""
    return lambda draws: np.abs(draws[name])


def covariances(draws: Draws) -> np.ndarray:
    """Return the covariances between the items of a factor analysis, below the diagonal."""
    loadings = draws["L"]
    whole = loadings @ np.swapaxes(loadings, -1, -2)
    return whole[..., *np.tril_indices(whole.shape[-1], -1)]


def word_shares(documents: int) -> Invariant:
    """Make the invariant of the probabilities of all words in the first documents."""

    def first(draws: Draws) -> np.ndarray:
        shares = draws["theta"][..., :documents, :] @ draws["phi"]
        return shares.reshape(*shares.shape[:2], -1)

    return first


def staying(draws: Draws) -> np.ndarray:
    """Return the sum of the probabilities of staying in a state of a hidden Markov model."""
    return np.trace(draws["A"], axis1=-2, axis2=-1)


def item_shares(draws: Draws) -> np.ndarray:
    """Return the share of persons who say yes to each item of a latent class model."""
    return (draws["share"][..., None] * draws["q"]).sum(axis=-2)


def school_effects(draws: Draws) -> np.ndarray:
    """Return the effects of the eight schools."""
    return draws["mu"][..., None] + draws["tau"][..., None] * draws["eta"]


def outputs(x: Callable[[], np.ndarray], activation: str) -> Invariant:
    """Make the invariant of the outputs of a network with one hidden layer at some inputs."""

    def at_inputs(draws: Draws) -> np.ndarray:
        found = _forward(draws, x(), activation)
        return found.reshape(*found.shape[:2], -1)

    return at_inputs


def class_probabilities(
    x: Callable[[], np.ndarray], labels: Callable[[], np.ndarray], activation: str
) -> Invariant:
    """Make the invariant of the predicted probabilities of the true classes of some inputs."""

    def at_inputs(draws: Draws) -> np.ndarray:
        probabilities = softmax(_forward(draws, x(), activation), axis=-1)
        own = np.asarray(labels(), dtype=int)
        return probabilities[..., np.arange(len(own)), own]

    return at_inputs


_ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda h: np.maximum(h, 0.0),
    "tanh": np.tanh,
}


def _forward(draws: Draws, x: np.ndarray, activation: str) -> np.ndarray:
    """Compute outputs (chain, draw, obs, out) chain by chain, to save memory."""
    function = _ACTIVATIONS[activation]
    chains = []
    for own in zip(*(draws[name] for name in ("W1", "b1", "W2", "b2")), strict=True):
        w1, b1, w2, b2 = (np.asarray(part, dtype=np.float64) for part in own)
        chains.append(function(x @ w1 + b1[:, None, :]) @ w2 + b2[:, None, :])
    return np.stack(chains)
