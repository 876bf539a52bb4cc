"""The log density of a network by its Stan program, at values of the network's own parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.stan.library import open_library
from onebasin.stan.network import pack_unconstrained
from onebasin.stan.program import definition

from .numpyro import NumpyroDensity, NumpyroValues


class StanNetworkDensity:
    """Evaluates a network's density by way of NumPyro's unconstrained space, whose packing the program shares.

    Parameters
    ----------
    target : NetworkTarget
        A network conditioned on data.
    progress : callable, optional
        Called with a line of text before something that takes long.

    Attributes
    ----------
    names, derived : tuple of str
        The parameters; nothing follows from them.

    Raises
    ------
    StanError
        If the program cannot be opened.
    """

    derived: tuple[str, ...] = ()

    def __init__(
        self, target: NetworkTarget, progress: Callable[[str], None] | None = None
    ) -> None:
        self.target = target
        self.library = open_library(definition(target), progress=progress)
        self.names: tuple[str, ...] = NumpyroDensity.of(target).names

    def derived_at(self, values: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
        """Return nothing, since nothing is derived."""
        return {}

    def points(self, count: int, seed: int) -> dict[str, np.ndarray]:
        """Return points to try: name to array (point, ...)."""
        return NumpyroValues(self.target).points(count, seed)

    def log_density(self, values: Mapping[str, Any]) -> Float[np.ndarray, " point"]:
        """Log density at points (point, ...), up to a constant."""
        density = NumpyroDensity.of(self.target)
        points = jax.vmap(density.unconstrain)(dict(values))
        jacobians = jax.vmap(density.log_jacobian)(points)
        vectors = []
        for point in points:
            parts = pack_unconstrained(self.target, density.unravel(point))
            vectors.append([*parts["weights_raw"], *parts["biases_raw"], *np.log(parts["sigma"])])
        return np.asarray(self.library.log_density(np.array(vectors)) - np.asarray(jacobians))

    def log_likelihood(self, values: Mapping[str, Any]) -> None:
        """None: Stan does not tell the likelihood from the prior."""
