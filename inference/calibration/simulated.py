"""Simulate data, and draw from the posterior of each simulation with a method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.checks import check_class
from onebasin.base.errors import ArgumentTypeError, code_of_user
from onebasin.base.text import dotted
from onebasin.models.target import Target
from onebasin.posteriors import schema

from .family import Data, Family, Values


@dataclass(frozen=True)
class Simulation:
    """Parameters of the prior, and data that follow from them, as `Family.simulate` gave them.

    All that is random in it follows from the run's seed and its number, from 0.
    """

    number: int
    parameters: Mapping[str, np.ndarray]
    data: Data
    seed: int  # of the method
    rng: np.random.Generator  # of what is random in ranks


@dataclass(frozen=True)
class SimulationDraws:
    """The draws (chain, draw, ...) of a method for one simulation's data; none where it failed."""

    draws: Values = field(default_factory=dict)
    divergences: int = 0
    independent: bool = False  # as the draws of an approximation are
    failure: str = ""  # why there are none


def draws_of(simulation: Simulation, tree: xr.DataTree, *, independent: bool) -> SimulationDraws:
    """Take the draws out of a posterior."""
    posterior = tree[schema.POSTERIOR].to_dataset()
    names = [name for name in simulation.parameters if name in posterior]
    draws = {n: posterior[n].transpose(*schema.SAMPLE_DIMS, ...).values for n in names}
    stats: Any = tree.children.get(schema.SAMPLE_STATS, {})
    diverging = int(stats[schema.DIVERGING].sum()) if schema.DIVERGING in stats else 0
    tree.close()
    return SimulationDraws(draws, diverging, independent)


def simulated(family: Family, seed: int, number: int) -> Simulation:
    """Simulate once; anything but parameters and data by name is refused."""
    parent = np.random.SeedSequence([seed, number])
    of_family, of_ranks = parent.spawn(2)
    simulator = f"`simulate` of the family {family.name!r}, at draw {number} of seed {seed},"
    with code_of_user(simulator):
        given = family.simulate(np.random.default_rng(of_family))
    pair = isinstance(given, tuple) and len(given) == 2
    if not pair or not all(isinstance(part, Mapping) for part in given):
        raise ArgumentTypeError(
            f"{simulator} gave a {type(given).__name__}; it must give two mappings, of the parameters and of the data."
        )
    parameters, data = dotted(given[0]), given[1]
    try:
        values = {n: np.asarray(value, np.float64) for n, value in parameters.items()}
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{simulator} gave parameters that are no numbers.") from error
    rng = np.random.default_rng(of_ranks)
    return Simulation(number, values, data, int(parent.generate_state(1)[0]), rng)


def target_of(family: Family, simulation: Simulation) -> Target:
    """Condition the model on a simulation's data."""
    with code_of_user(f"`condition` of the family {family.name!r}, at draw {simulation.number},"):
        target = family.condition(simulation.data)
    check_class("condition", target, Target, remedy="it must return a target")
    return target
