"""Where chains of NUTS and static HMC start on each of many simulations: where `nuts` and `hmc` let them."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np
from jaxtyping import Array, Float

from onebasin.base.errors import InferenceError
from onebasin.models.target import Target

from ..mcmc.hmc import Hmc
from ..mcmc.numpyro import chain_starts, points_to_climb_from
from ..mcmc.nuts import Nuts
from ..mcmc.optimum import BestOptimum
from .family import Family
from .traced import traced

Stacked = Mapping[str, np.ndarray]
"""Data of simulations along a leading axis."""
Points = Float[Array, "simulation chain param"] | Float[np.ndarray, "simulation chain param"]


class Starts:
    """Finds starting points; compiled once for the data of all simulations.

    Parameters
    ----------
    family : Family
        With a model.
    like : Target
        The target of one simulation's data.
    settings : Nuts or Hmc
        Of the chains.
    """

    def __init__(self, family: Family, like: Target, settings: Nuts | Hmc) -> None:
        self._climbs = settings.init == "optimum"
        points = points_to_climb_from if self._climbs else chain_starts
        self._points = jax.jit(
            jax.vmap(lambda data, seed: points(traced(family, like, data), settings, seed))
        )
        self._search = BestOptimum(lambda v, data: traced(family, like, data).log_density(v))

    def __call__(self, data: Stacked, seeds: np.ndarray) -> tuple[Points, list[str]]:
        """Starting points (simulation, chain, param), and why a simulation has none; empty where it has."""
        points = self._points(data, seeds)
        failures = [""] * len(seeds)
        if not self._climbs:
            return points, failures
        tops = np.array(points[:, :, 0])  # where none is found, the first point stands in
        for number in range(len(seeds)):
            its = {name: values[number] for name, values in data.items()}
            try:
                tops[number] = [self._search(several, its) for several in points[number]]
            except InferenceError as error:
                failures[number] = str(error)
        return tops, failures
