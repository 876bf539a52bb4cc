"""Synthetic data of every problem, with the truth that made them.

Convention: what a program's data block takes, and the truth under the names of its parameters. Sizes and truths
are fixed; the generator decides the noise.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np


class Simulated(NamedTuple):
    """Data by the names of a program's data block (`x` and `y` for a network), and the parameters that made them."""

    data: Mapping[str, Any]
    truth: Mapping[str, np.ndarray]
    """Empty where no parameters of the model did."""


Simulate = Callable[[np.random.Generator], Simulated]


def observe_mixture(
    rng: np.random.Generator, num_obs: int, weight: np.ndarray, mu: np.ndarray, sigma: np.ndarray
) -> np.ndarray:
    """Draw observations of a mixture of normals."""
    part = rng.choice(len(weight), size=num_obs, p=weight)
    return rng.normal(mu[part], sigma[part])


def observe_walk(
    rng: np.random.Generator,
    num_obs: int,
    start: np.ndarray,
    A: np.ndarray,
    mu: np.ndarray,
    sigma: np.ndarray,
) -> np.ndarray:
    """Draw observations of a hidden Markov model with the transition matrix `A` and normal emissions."""
    states = [rng.choice(len(start), p=start)]
    for _ in range(num_obs - 1):
        states.append(rng.choice(len(start), p=A[states[-1]]))
    return rng.normal(mu[states], sigma[states])


def mixture(
    rng: np.random.Generator,
    *,
    num_obs: int,
    weight: tuple[float, ...],
    mu: tuple[float, ...],
    sigma: tuple[float, ...],
) -> Simulated:
    """Draw from a mixture of normals."""
    truth = {"weight": np.array(weight), "mu": np.array(mu), "sigma": np.array(sigma)}
    y = observe_mixture(rng, num_obs, **truth)
    return Simulated({"num_components": len(weight), "num_obs": num_obs, "y": y}, truth)


def clusters(
    rng: np.random.Generator, *, num_obs: int, num_components: int, centres: tuple[float, ...]
) -> Simulated:
    """Draw clusters with sd 1 that another number of components is to describe: there is no truth."""
    y = rng.normal(np.resize(np.array(centres), num_obs), 1.0)
    return Simulated({"num_components": num_components, "num_obs": num_obs, "y": y}, {})


def topics(
    rng: np.random.Generator, *, num_docs: int = 30, num_words: int = 12, length: int = 60
) -> Simulated:
    """Write documents from two topics, which share a third of their words."""
    third = num_words // 3
    heights = np.ones((2, num_words))
    heights[0, : 2 * third] = heights[1, third:] = 8.0
    phi = heights * rng.gamma(4.0, size=heights.shape)
    phi /= phi.sum(axis=1, keepdims=True)
    theta = rng.dirichlet([0.5, 0.5], size=num_docs)
    counts = rng.multinomial(length, theta @ phi).astype(float)
    sizes = {"num_topics": 2, "num_docs": num_docs, "num_words": num_words}
    data = {**sizes, "counts": counts, "alpha": 0.5, "beta": 1.0}
    return Simulated(data, {"theta": theta, "phi": phi})


def factors(
    rng: np.random.Generator, *, num_obs: int = 300, num_factors: int = 3, items_each: int = 4
) -> Simulated:
    """Draw items of which each has one large loading, of either sign."""
    num_items = num_factors * items_each
    loadings = np.zeros((num_items, num_factors))
    for item in range(num_items):
        loadings[item, item // items_each] = rng.uniform(0.7, 1.2) * rng.choice([-1.0, 1.0])
    psi = rng.uniform(0.4, 0.8, size=num_items)
    scores = rng.normal(size=(num_obs, num_factors))
    y = scores @ loadings.T + psi * rng.normal(size=(num_obs, num_items))
    y -= y.mean(axis=0)
    sizes = {"num_factors": num_factors, "num_items": num_items, "num_obs": num_obs}
    data = {**sizes, "scatter": y.T @ y, "loading_scale": 0.3}
    return Simulated(data, {"L": loadings, "psi": psi})


def hidden_markov(rng: np.random.Generator, *, num_obs: int = 250) -> Simulated:
    """Walk through three sticky states, none of which is left for each of the others equally often."""
    transition = np.array([[0.85, 0.12, 0.03], [0.05, 0.80, 0.15], [0.20, 0.05, 0.75]])
    start = np.full(3, 1 / 3)
    mu, sigma = np.array([-3.0, 0.5, 3.0]), np.array([0.8, 0.6, 1.0])
    truth = {"start": start, "A": transition, "mu": mu, "sigma": sigma}
    y = observe_walk(rng, num_obs, **truth)
    return Simulated({"num_states": 3, "num_obs": num_obs, "y": y}, truth)


def teacher(rng: np.random.Generator, *, num_obs: int = 80, noise: float = 0.1) -> Simulated:
    """Draw from a network with tanh units that switch at different places."""
    weights = {
        "W1": np.array([[2.0, -2.5, 2.0]]),
        "b1": np.array([3.5, 0.0, -3.5]),
        "W2": np.array([[1.5], [1.0], [-1.2]]),
        "b2": np.array([0.3]),
    }
    x = np.linspace(-3.0, 3.0, num_obs)[:, None]
    mean = np.tanh(x @ weights["W1"] + weights["b1"]) @ weights["W2"] + weights["b2"]
    y = mean + noise * rng.normal(size=mean.shape)
    return Simulated({"x": x, "y": y}, weights | {"sigma": np.array(noise)})
