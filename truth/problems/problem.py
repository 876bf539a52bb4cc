"""A problem: a model conditioned on fixed data, stated for both engines, with its symmetry; and label-free quantities.

Invariants are functions of draws that no relabelling changes. Each takes arrays (chain, draw, *event) by variable and
returns (chain, draw) or (chain, draw, k). They use only NumPy, so they can be computed from the draws of any posterior.
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
"""From draws to what no relabelling changes: (chain, draw), or (chain, draw, k)."""

RECIPE = Nuts(chains=10, warmup=10_000, draws=10_000)
"""The recipe of posteriordb: 10,000 iterations a chain after as many of warmup, of which every tenth is kept."""
ADAPTED = replace(RECIPE, warmup=1000)
"""The same after a tenth of the warmup, which these posteriors do not need: the criteria are of the draws."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A model conditioned on fixed data."""

    name: str  # Its name on the command line, in files and in tables.
    title: str  # What it is, in a line.
    target: Callable[[], Target]
    """Makes the target: its data are fixed, its symmetry is declared, and it has a NumPyro definition and a Stan
    program whose log densities differ by a constant."""
    family: Callable[[], Family] | None = None
    """Makes the model before its data, with prior and simulator, where that is stated."""
    invariants: Mapping[str, Invariant] = field(default_factory=dict)
    """Name to a function of the draws that no relabelling changes."""
    settings: Nuts = RECIPE
    """The settings that sample a reference of it; `draws` are those of a chain before thinning."""
    references: tuple[str, ...] = ()  # Where the model comes from.
    keywords: tuple[str, ...] = ()  # As posteriordb has them.
    quotient_of: Problem | None = None
    """The problem of which this one's posterior is one copy: its posterior modulo its symmetry, with the same density
    but for the number of copies. None for most."""


def ordered(name: str) -> Invariant:
    """The entries of a vector in increasing order."""
    return lambda draws: np.sort(draws[name], axis=-1)


def mixture_mean(draws: Draws) -> np.ndarray:
    """The mean of an observation of a mixture."""
    return (_weights(draws) * draws["mu"]).sum(axis=-1)


def mixture_sd(draws: Draws) -> np.ndarray:
    """The standard deviation of an observation of a mixture."""
    second = (_weights(draws) * (draws["mu"] ** 2 + draws["sigma"] ** 2)).sum(axis=-1)
    return np.sqrt(second - mixture_mean(draws) ** 2)


def mixture_density(points: Sequence[float]) -> Invariant:
    """The density of an observation of a mixture at some points."""

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
    """Probabilities that the first eight persons answer each item rightly, averaged over those persons."""
    a, b, theta = draws["a"], draws["b"], draws["theta"][..., None, :8]
    return expit(a[..., :, None] * theta - b[..., :, None]).mean(axis=-1)


def sizes(name: str) -> Invariant:
    """The absolute values of a variable's entries."""
    return lambda draws: np.abs(draws[name])


def covariances(draws: Draws) -> np.ndarray:
    """The covariances of the items of a factor analysis, below the diagonal."""
    loadings = draws["L"]
    whole = loadings @ np.swapaxes(loadings, -1, -2)
    return whole[..., *np.tril_indices(whole.shape[-1], -1)]


def word_shares(documents: int) -> Invariant:
    """The probabilities of all words in the first documents."""

    def first(draws: Draws) -> np.ndarray:
        shares = draws["theta"][..., :documents, :] @ draws["phi"]
        return shares.reshape(*shares.shape[:2], -1)

    return first


def staying(draws: Draws) -> np.ndarray:
    """The sum of a hidden Markov model's probabilities to stay in a state."""
    return np.trace(draws["A"], axis1=-2, axis2=-1)


def item_shares(draws: Draws) -> np.ndarray:
    """The share of persons that say yes to each item of a latent class model."""
    return (draws["share"][..., None] * draws["q"]).sum(axis=-2)


def school_effects(draws: Draws) -> np.ndarray:
    """The effects of the eight schools."""
    return draws["mu"][..., None] + draws["tau"][..., None] * draws["eta"]


def outputs(x: Callable[[], np.ndarray], activation: str) -> Invariant:
    """The outputs of a network with one hidden layer at some inputs."""

    def at_inputs(draws: Draws) -> np.ndarray:
        found = _forward(draws, x(), activation)
        return found.reshape(*found.shape[:2], -1)

    return at_inputs


def class_probabilities(
    x: Callable[[], np.ndarray], labels: Callable[[], np.ndarray], activation: str
) -> Invariant:
    """The probability that a classifier gives each input's own class."""

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
    """Outputs (chain, draw, obs, out); draw by draw of each chain, so that memory stays small."""
    function = _ACTIVATIONS[activation]
    chains = []
    for own in zip(*(draws[name] for name in ("W1", "b1", "W2", "b2")), strict=True):
        w1, b1, w2, b2 = (np.asarray(part, dtype=np.float64) for part in own)
        chains.append(function(x @ w1 + b1[:, None, :]) @ w2 + b2[:, None, :])
    return np.stack(chains)
