"""Simulate data, and draw from the posterior of each simulation with a method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from .family import Data, Family, Values


@dataclass(frozen=True)
class Simulation:
    """Parameters of the prior, and data that follow from them.

    Attributes
    ----------
    number : int
        From 0; all that is random in it follows from the run's seed and this number.
    parameters, data : mapping
        As `Family.simulate` gave them.
    seed : int
        Of the method.
    rng : Generator
        Of what is random in ranks.
    """

    number: int
    parameters: Mapping[str, np.ndarray]
    data: Data
    seed: int
    rng: np.random.Generator


@dataclass(frozen=True)
class Drawn:
    """The draws of a method for one simulation's data.

    Attributes
    ----------
    draws : dict of str to array (chain, draw, ...)
        Empty where it failed.
    divergences : int
        Among the draws.
    independent : bool
        Whether the draws are, as those of an approximation.
    failure : str
        Why there are none; empty where there are.
    """

    draws: Values = field(default_factory=dict)
    divergences: int = 0
    independent: bool = False
    failure: str = ""


def simulated(family: Family, seed: int, number: int) -> Simulation:
    """Simulate once."""
    parent = np.random.SeedSequence([seed, number])
    of_family, of_ranks = parent.spawn(2)
    parameters, data = family.simulate(np.random.default_rng(of_family))
    return Simulation(
        number,
        {name: np.asarray(value, np.float64) for name, value in parameters.items()},
        data,
        int(parent.generate_state(1)[0]),
        np.random.default_rng(of_ranks),
    )
