"""Simulated chains: autocorrelated, correlated and skewed draws, and the statistics of a sampler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

Array = np.ndarray
Values = dict[str, Array]


@dataclass
class Posterior:
    """A simulated posterior of a family.

    Attributes
    ----------
    values
        Draws (chain, draw, ...) by variable.
    stats
        Sampler statistics; empty if the sampler recorded none.
    attributes, groups
        Attributes and further groups of the tree.
    """

    values: Values
    stats: Values = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    groups: Mapping[str, Values] = field(default_factory=dict)

    def tree(self) -> xr.DataTree:
        """Return the posterior as a tree, as ArviZ readers do."""
        groups = {"posterior": self.values, **self.groups}
        if self.stats:
            groups["sample_stats"] = self.stats
        tree = xr.DataTree.from_dict({name: _dataset(group) for name, group in groups.items()})
        tree.attrs.update(self.attributes)
        return tree


def _dataset(values: Mapping[str, Array]) -> xr.Dataset:
    return xr.Dataset(
        {
            name: (("chain", "draw", *(f"{name}_dim_{i}" for i in range(array.ndim - 2))), array)
            for name, array in values.items()
        }
    )


class Walk:
    """Standard normal coordinates in which a posterior is nearly Gaussian, as stationary autoregressive chains.

    Each coordinate has a different autocorrelation. Parameters share coordinates, so they are correlated.

    Parameters
    ----------
    rng
        Source of randomness.
    size
        Number of coordinates.
    chains, draws
        Numbers of chains and of draws per chain.
    autocorrelation
        Smallest and largest autocorrelation of successive draws.
    correlation
        Scale of the shared part of the coordinates.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        size: int,
        *,
        chains: int = 4,
        draws: int = 1000,
        autocorrelation: tuple[float, float] = (0.0, 0.6),
        correlation: float = 0.3,
    ) -> None:
        self.rng, self.chains, self.draws, self._next = rng, chains, draws, 0
        self.independent = autoregressive(rng, (chains, draws, size), autocorrelation)
        shared = rng.normal(size=(size, min(size, 4))) * correlation
        mixed = self.independent + self.independent[..., : shared.shape[1]] @ shared.T
        self.coordinates = mixed / mixed.std(axis=(0, 1))
        self.lp = -0.5 * np.sum(self.independent**2, axis=-1) - 0.7 * size

    def take(self, *shape: int) -> Array:
        """Return the next coordinates in this shape."""
        size = int(np.prod(shape))
        taken = self.coordinates[..., self._next : self._next + size]
        if taken.shape[-1] < size:
            raise ValueError(f"`size` is {size}, but only {taken.shape[-1]} coordinates are left")
        self._next += size
        return taken.reshape(*taken.shape[:2], *shape)

    def stats(self, shift: Array | float = 0.0, diverging: Array | None = None) -> Values:
        """Return NUTS statistics of the draws; `shift` is added to the log density."""
        return nuts_stats(self.rng, self.lp + shift, self.independent.shape[-1], diverging)


def autoregressive(
    rng: np.random.Generator, shape: tuple[int, ...], between: tuple[float, float]
) -> Array:
    """Simulate stationary standard normal chains (chain, draw, coordinate), with autocorrelations in a range."""
    noise = rng.normal(size=shape)
    phi = rng.uniform(*between, size=shape[2:])
    scale = np.sqrt(1 - phi**2)
    for draw in range(1, shape[1]):
        noise[:, draw] = phi * noise[:, draw - 1] + scale * noise[:, draw]
    return noise


def nuts_stats(
    rng: np.random.Generator, lp: Array, size: int, diverging: Array | None = None
) -> Values:
    """Simulate the statistics that NUTS records for draws with this log density."""
    depth = rng.choice([2, 3, 4], p=[0.1, 0.8, 0.1], size=lp.shape)
    return {
        "lp": lp,
        "energy": -lp + 0.5 * rng.chisquare(size, lp.shape),
        "diverging": np.zeros(lp.shape, bool) if diverging is None else diverging,
        "tree_depth": depth,
        "n_steps": 2**depth - 1,
        "acceptance_rate": rng.beta(9, 1, size=lp.shape),
        "step_size": np.broadcast_to(rng.uniform(0.3, 0.5, size=(lp.shape[0], 1)), lp.shape).copy(),
    }


NUTS = {"inference_library": "stan", "max_tree_depth": 10}
"""Root attributes of a file from a different tool."""


def softmax(values: Array) -> Array:
    """Return softmax probabilities over the last axis."""
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def logistic(values: Array) -> Array:
    """Return the logistic function of the values."""
    return 1 / (1 + np.exp(-values))


def orders(rng: np.random.Generator, how: str, chains: int, draws: int, parts: int) -> Array:
    """Simulate the labels (chain, draw, part) of every draw.

    Parameters
    ----------
    rng
        Source of randomness.
    how
        ``one``: the same labelling for all draws; ``chains``: one labelling per chain, at least two different ones;
        ``draws``: a random labelling at every draw; ``rare``: a new labelling about every 300 draws; ``once``: one
        chain changes its labelling once; ``half``: half of the chains have a random labelling at every draw.
    chains, draws, parts
        Numbers of chains, of draws per chain, and of components.
    """
    same = np.broadcast_to(np.arange(parts), (chains, draws, parts)).copy()
    anew = rng.permuted(same, axis=-1)
    if how == "one":
        return same
    if how == "chains":
        found = np.repeat(anew[:, :1], draws, axis=1)
        while (found == found[:1]).all():
            found = np.repeat(rng.permuted(same[:, :1], axis=-1), draws, axis=1)
        return found
    if how == "draws":
        return anew
    if how == "half":
        same[: chains // 2] = anew[: chains // 2]
        return same
    if how == "once":
        same[0, rng.integers(draws // 4, draws // 2) :] = np.roll(np.arange(parts), 1)
        return same
    if how == "rare":
        changes = rng.random((chains, draws)) < 1 / 300
        changes[:, 0] = True
        last = np.maximum.accumulate(np.where(changes, np.arange(draws), 0), axis=1)
        return np.take_along_axis(anew, last[..., None], axis=1)
    raise ValueError(how)


def relabelled(values: Values, axes: Mapping[str, tuple[int, ...]], labels: Array) -> Values:
    """Permute the components of some variables along their axes."""
    moved = dict(values)
    for name, places in axes.items():
        for axis in places:
            shape = [1] * moved[name].ndim
            shape[:2], shape[2 + axis] = labels.shape[:2], labels.shape[2]
            moved[name] = np.take_along_axis(moved[name], labels.reshape(shape), axis=2 + axis)
    return moved


def signs(rng: np.random.Generator, how: str, chains: int, draws: int, parts: int) -> Array:
    """Simulate signs (chain, draw, part); `how` has the same meaning as in `orders`."""
    drawn = rng.choice([-1.0, 1.0], size=(chains, draws, parts))
    if how == "one":
        return np.ones_like(drawn)
    if how == "draws":
        return drawn
    if how == "chains":
        found = np.repeat(drawn[:, :1], draws, axis=1)
        while (found == found[:1]).all():
            found = np.repeat(rng.choice([-1.0, 1.0], size=(chains, 1, parts)), draws, axis=1)
        return found
    if how == "once":
        found = np.ones_like(drawn)
        found[0, rng.integers(draws // 4, draws // 2) :] = -1
        return found
    raise ValueError(how)
