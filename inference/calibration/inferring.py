"""Draw from the posteriors of simulations: all by one compiled program where that can be, else one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.checks import check_class, choose
from onebasin.base.errors import (
    ArgumentError,
    ArgumentTypeError,
    InferenceError,
    OnebasinError,
    UserCodeFailed,
    code_of_user,
)
from onebasin.base.precision import precision
from onebasin.models.target import Target
from onebasin.stan.home.errors import StanRunError

from ..contracts.engines import chosen, density_by, engine_for, engine_named
from ..contracts.method import Method
from ..methods import METHODS, WORDS, method_named
from ..runs.posterior import build
from ..runs.run import run
from . import compiled
from .compiled import together
from .family import Family
from .quantities import LOG_LIKELIHOOD, LP, LogDensities
from .simulated import Simulation, SimulationDraws, draws_of, target_of

Infer = Callable[[Sequence[Simulation]], list[SimulationDraws]]
Densities = Callable[[Sequence[Simulation], Sequence[Mapping[str, Any]]], list[LogDensities]]
Own = Callable[[Target, int], xr.DataTree]
"""A method of a user's own: from a target and a seed to a posterior."""
After = Callable[[Target, xr.DataTree, int], xr.DataTree]
"""From a target, a posterior of it and a seed to another posterior that is made of it."""


@dataclass(frozen=True)
class Way:
    """The way in which simulations are inferred; `densities` are those at points (simulation, point, ...)."""

    method: str
    engine: str
    settings: Any
    infer: Infer
    densities: Densities
    at_once: int  # simulations that `infer` is given together
    together: bool = False  # one compiled program infers them


def method_of(word: str) -> Method:
    """Make the method of a word that gives a posterior, with short chains, since there are hundreds."""
    able = [name for name, (method, _) in WORDS.items() if METHODS[method].gives_posterior]
    return method_named(choose("method", word, able), METHODS[WORDS[word][0]].for_calibration)


def way_of(family: Family, method: Method | Own, *, engine: str | None, like: Target) -> Way:
    """Find the way of a method; `like` is the target of some data."""
    if not isinstance(method, Method):
        engine = engine_for(like, engine)
        name = getattr(method, "__name__", type(method).__name__)

        def users(target: Target, seed: int) -> xr.DataTree:
            with code_of_user(f"`method`, which is {name}, at seed {seed},"):
                tree = method(target, seed)
            check_class("method", tree, xr.DataTree, remedy="it must return a posterior")
            return tree

        densities = _densities(family, engine)
        return Way(name, engine, None, _one_by_one(family, users), densities, ONE_BY_ONE)
    engine = chosen(like, type(method), engine)[0]
    densities = _densities(family, engine)
    compiled_infer = together(family, method) if engine == "numpyro" else None
    if compiled_infer is not None:
        at_once = compiled.AT_ONCE
        return Way(method.word, engine, method, compiled_infer, densities, at_once, together=True)

    def own(target: Target, seed: int) -> xr.DataTree:
        how: dict[str, Any] = dict.fromkeys(("symmetry", "check_symmetry", "progress"), False)
        how["predictive_mb"] = 0
        return run(target, method, engine=engine, seed=seed, **how)

    alone = _one_by_one(family, own, independent=not method.correlated)
    return Way(method.word, engine, method, alone, densities, ONE_BY_ONE)


ONE_BY_ONE = 5
"""Simulations between which what was found is kept, where each is inferred by itself."""


def _one_by_one(family: Family, method: Own, *, independent: bool = False) -> Infer:
    """Infer each simulation by itself; a method that fails on one has failed there alone."""

    def one(simulation: Simulation) -> SimulationDraws:
        target = target_of(family, simulation)
        try:
            tree = method(target, simulation.seed)
        except (InferenceError, StanRunError) as error:
            return SimulationDraws(failure=str(error))
        return draws_of(simulation, tree, independent=independent)

    return lambda simulations: [one(simulation) for simulation in simulations]


def followed(way: Way, family: Family, after: After) -> Way:
    """Judge what is made of each posterior, instead of the posterior."""

    def made(simulation: Simulation, drawn: SimulationDraws) -> SimulationDraws:
        if drawn.failure:
            return drawn
        target = target_of(family, simulation)
        how = {"engine": way.engine, "method": way.method, "settings": {}, "seed": simulation.seed}
        tree = build(target, drawn.draws, {}, how, predictive_mb=0)
        try:
            with code_of_user(f"`after`, at draw {simulation.number},"):
                found = after(target, tree, simulation.seed)
        except (ArgumentError, ArgumentTypeError, UserCodeFailed):
            raise
        except OnebasinError as error:
            return SimulationDraws(failure=str(error))
        return replace(
            draws_of(simulation, found, independent=False), divergences=drawn.divergences
        )

    def infer(simulations: Sequence[Simulation]) -> list[SimulationDraws]:
        return [made(*each) for each in zip(simulations, way.infer(simulations), strict=True)]

    name = f"{way.method}, {getattr(after, '__name__', type(after).__name__)}"
    return replace(way, method=name, infer=infer, together=False)


def _densities(family: Family, engine: str) -> Densities:
    """Log densities of a family at points: by its model for all simulations at once, else by the engine for each."""
    if family.model is not None:
        return compiled.CompiledDensities(family)
    by = engine_named(engine).name

    def one(simulation: Simulation, points: Mapping[str, Any]) -> LogDensities:
        target = target_of(family, simulation)
        with precision("float64"):
            density = density_by(by, target)
            values = {name: points[name] for name in density.names}
            found = {LP: np.asarray(density.log_density(values))}
            likelihood = density.log_likelihood(values)
            if likelihood is None and POINTWISE in density.derived:
                each = density.derived_at(values, simulation.seed)[POINTWISE]
                likelihood = each.reshape(len(each), -1).sum(axis=1)
        return found if likelihood is None else {LOG_LIKELIHOOD: likelihood, **found}

    return lambda simulations, points: [
        one(*each) for each in zip(simulations, points, strict=True)
    ]


POINTWISE = "log_lik"
"""A Stan program's name for the log likelihood of each observation."""
