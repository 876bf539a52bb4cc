"""A problem: a model conditioned on fixed data, stated for both engines, with its symmetry; and its family.

A family is the model before its data, with prior and simulator in NumPy. A simulator shares no line with the model's
density, so that an error in either is seen by calibration. Sizes are those of the problem's own data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from onebasin.inference import Nuts
from onebasin.models import Target
from onebasin.models.numpyro_target import numpyro_model

from .label_switching_data import observe_mixture, observe_walk

if TYPE_CHECKING:
    from onebasin.inference.calibration.family import Family

Draws = Mapping[str, np.ndarray]
"""Arrays (chain, draw, *event) by variable."""
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
    """Makes the model before its data, prior and simulator, where that is stated."""
    invariants: Mapping[str, Invariant] = field(default_factory=dict)
    """Name to a function of the draws that no relabelling changes."""
    settings: Nuts = RECIPE
    """The settings that sample a reference of it; `draws` are those of a chain before thinning."""
    references: tuple[str, ...] = ()  # Where the model comes from.
    keywords: tuple[str, ...] = ()  # As posteriordb has them.
    quotient_of: Problem | None = None
    """The problem of which this one's posterior is one copy: its posterior modulo its symmetry, with the same density
    but for the number of copies. None for most."""


Values = dict[str, np.ndarray]
Simulate = Callable[[np.random.Generator, Mapping[str, int]], tuple[Values, np.ndarray]]
"""From a generator and sizes to parameters and the data `y`."""


def mixture_of_two(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Values, np.ndarray]:
    """Simulate `mixture-2`."""
    mu, sigma, theta = rng.normal(0, 5, 2), np.abs(rng.normal(0, 2, 2)), rng.beta(5, 5)
    part = np.where(rng.uniform(size=sizes["N"]) < theta, 0, 1)
    values = {"mu": mu, "sigma": sigma, "theta": np.array(theta)}
    return values, rng.normal(mu[part], sigma[part])


def mixture(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Values, np.ndarray]:
    """Simulate `mixture-3` and its like."""
    count = sizes["num_components"]
    weight, mu = rng.dirichlet(np.full(count, 2.0)), rng.normal(0, 5, count)
    sigma = rng.lognormal(0, 0.5, count)
    values = {"weight": weight, "mu": mu, "sigma": sigma}
    return values, observe_mixture(rng, sizes["num_obs"], **values)


def item_response(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Values, np.ndarray]:
    """Simulate `item-response-2pl`."""
    theta, a = rng.normal(size=sizes["J"]), rng.normal(0, 2, sizes["I"])
    b = rng.normal(0, 3, sizes["I"])
    right = rng.uniform(size=(sizes["I"], sizes["J"])) < expit(np.outer(a, theta) - b[:, None])
    return {"theta": theta, "a": a, "b": b}, right.astype(int)


def hidden_markov(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Values, np.ndarray]:
    """Simulate `hidden-markov`."""
    count = sizes["num_states"]
    start, transition = rng.dirichlet(np.ones(count)), rng.dirichlet(np.ones(count), size=count)
    mu, sigma = rng.normal(0, 5, count), rng.lognormal(0, 0.5, count)
    values = {"start": start, "A": transition, "mu": mu, "sigma": sigma}
    return values, observe_walk(rng, sizes["num_obs"], **values)


def family(
    name: str,
    stated: Stated,
    data: Mapping[str, Any],
    simulate: Simulate,
    invariants: Mapping[str, Invariant],
) -> Family:
    """Put a problem's family together: its model in both engines, and a simulator of data of the problem's sizes.

    `invariants` are the problem's own, which become test quantities.
    """
    from onebasin.inference.calibration.family import Family

    sizes = {key: value for key, value in data.items() if isinstance(value, int)}

    def simulated(rng: np.random.Generator) -> tuple[Values, dict[str, np.ndarray]]:
        values, y = simulate(rng, sizes)
        return values, {"y": y}

    def of_points(f: Invariant, values: Mapping[str, np.ndarray], data: object) -> np.ndarray:
        return f({key: np.asarray(value)[None] for key, value in values.items()})[0]

    return Family(
        name,
        simulated,
        lambda drawn: stated.condition(name, {**sizes, **drawn}),
        model=lambda drawn: partial(stated.model, **sizes, **drawn),
        quantities={key: partial(of_points, f) for key, f in invariants.items()},
    )


@dataclass(frozen=True)
class Stated:
    """A model in both engines, before its data."""

    model: Callable[..., None]  # In NumPyro; its arguments are the program's data.
    program: Path
    symmetry: str = ""  # A word of `models.symmetry.words`; empty without one.
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def condition(self, name: str, data: Mapping[str, Any]) -> Target:
        """Condition it on data."""
        from onebasin.stan import stan_program

        target = numpyro_model(
            self.model, dict(data), symmetry=self.symmetry or (), name=name, dims=self.dims
        )
        program = stan_program(self.program, dict(data)).stan_program
        return replace(target, stan_program=program)
