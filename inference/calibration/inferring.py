"""How the posteriors of simulations are made: all by one compiled program where that can be, else one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.checks import choose
from onebasin.base.errors import InferenceError, OnebasinError
from onebasin.base.precision import precision
from onebasin.base.settings import given_or_default
from onebasin.models.target import Target
from onebasin.posteriors import schema
from onebasin.stan.home.errors import StanRunError

from ..definition import definition_of, engine_for
from ..engines.engine import engine_named
from ..mcmc.settings import HmcSettings, NutsSettings
from ..microcanonical.settings import MclmcSettings
from ..modes.settings import LaplaceSettings, PathfinderSettings
from ..runs.posterior import build
from ..variational.settings import AdviSettings, SymmetrisedSettings
from .drawn import Drawn, Simulation
from .family import Family
from .quantities import LOG_LIKELIHOOD, LP, LogDensities

Infer = Callable[[Sequence[Simulation]], list[Drawn]]
Own = Callable[[Target, int], xr.DataTree]
"""A method of a user's own: from a target and a seed to a posterior."""
After = Callable[[Target, xr.DataTree, int], xr.DataTree]
"""From a target, a posterior of it and a seed to another posterior that is made of it."""

CHAINS: Mapping[str, type] = {"nuts": NutsSettings, "hmc": HmcSettings, "mclmc": MclmcSettings}
FITS: Mapping[str, type] = {
    "meanfield": AdviSettings,
    "fullrank": AdviSettings,
    "symmetrised": SymmetrisedSettings,
}
MODES: Mapping[str, type] = {"laplace": LaplaceSettings, "pathfinder": PathfinderSettings}
METHODS: Mapping[str, type] = {**CHAINS, **FITS, **MODES}
"""Methods by their words, and their settings."""
FUNCTIONS: Mapping[str, str] = {
    "meanfield": "advi",
    "fullrank": "advi",
    "symmetrised": "symmetrised_vi",
}
"""Functions of the room that are called otherwise than the method."""
ENGINELESS = ("mclmc", "symmetrised")
DEFAULTS: Mapping[str, Any] = {
    "nuts": NutsSettings(chains=2, warmup=500, draws=500),
    "hmc": HmcSettings(chains=2, warmup=500, draws=500),
    "mclmc": MclmcSettings(chains=2, warmup=2000, draws=500),
}
"""Settings of chains where none are given: short ones, since there are hundreds."""


@dataclass(frozen=True)
class Way:
    """How simulations are inferred.

    Attributes
    ----------
    method, engine, settings
        By what.
    infer : callable
        From simulations to draws.
    densities : callable
        From simulations and points (simulation, point, ...) to log densities of each.
    at_once : int
        Simulations that `infer` is given together.
    together : bool
        Whether one compiled program infers them.
    """

    method: str
    engine: str
    settings: Any
    infer: Infer
    densities: Callable[[Sequence[Simulation], Sequence[Mapping[str, Any]]], list[LogDensities]]
    at_once: int
    together: bool = False


def way_of(
    family: Family, method: str | Own, *, engine: str | None, settings: Any, like: Target
) -> Way:
    """Find the way of a method; `like` is the target of some data.

    Raises
    ------
    ValueError
        If a word is unknown, or the method has no such engine.
    TypeError
        If the settings are of another method.
    """
    engine = engine_for(like, engine)
    engine_named(engine)
    from . import compiled

    densities = _Densities(family, engine)
    if callable(method):
        name = getattr(method, "__name__", type(method).__name__)
        return Way(name, engine, settings, _OneByOne(family, method), densities, ONE_BY_ONE)
    choose("method", method, METHODS)
    default = DEFAULTS.get(method)
    chosen = given_or_default(settings or default, METHODS[method], taker="calibrate")
    together: Infer | None = None
    if engine == "numpyro" and family.model is not None:
        if method in CHAINS:
            together = compiled.CompiledChains(family, chosen)
        elif method in FITS and chosen.batch_size is None:
            from .fits import CompiledFits

            together = CompiledFits(family, method, chosen)
    if together is not None:
        return Way(method, engine, chosen, together, densities, compiled.AT_ONCE, together=True)
    own = _method(method, engine, chosen)
    independent = method not in CHAINS
    alone = _OneByOne(family, own, independent=independent)
    return Way(method, engine, chosen, alone, densities, ONE_BY_ONE)


ONE_BY_ONE = 5
"""Simulations between which what was found is kept, where each is inferred by itself."""


def _method(name: str, engine: str, settings: Any) -> Own:
    """A method of ours as one of a target and a seed."""
    how: dict[str, Any] = {"settings": settings, "predictive_mb": 0}
    if name != "symmetrised":
        how["check_symmetry"] = False
    if name not in ENGINELESS:
        how["engine"] = engine
    if isinstance(settings, AdviSettings):
        how["family"] = name
    run: Any = getattr(import_module("..", __package__), FUNCTIONS.get(name, name))
    return lambda target, seed: run(target, seed=seed, **how)


class _OneByOne:
    """Infers each simulation by itself."""

    def __init__(self, family: Family, method: Own, *, independent: bool = False) -> None:
        self.family, self.method, self.independent = family, method, independent

    def __call__(self, simulations: Sequence[Simulation]) -> list[Drawn]:
        """Infer each; a method that fails on one has failed there alone."""
        return [self._one(simulation) for simulation in simulations]

    def _one(self, simulation: Simulation) -> Drawn:
        target = self.family.condition(simulation.data)
        try:
            tree = self.method(target, simulation.seed)
        except (InferenceError, StanRunError) as error:
            return Drawn(failure=str(error))
        return _drawn(simulation, tree, independent=self.independent)


def _drawn(simulation: Simulation, tree: xr.DataTree, *, independent: bool) -> Drawn:
    """Take the draws out of a posterior."""
    posterior = tree[schema.POSTERIOR].to_dataset()
    names = [name for name in simulation.parameters if name in posterior]
    draws = {n: posterior[n].transpose(*schema.SAMPLE_DIMS, ...).values for n in names}
    stats: Any = tree.children.get(schema.SAMPLE_STATS, {})
    diverging = int(stats[schema.DIVERGING].sum()) if schema.DIVERGING in stats else 0
    tree.close()
    return Drawn(draws, diverging, independent)


def followed(way: Way, family: Family, after: After) -> Way:
    """Judge what is made of each posterior, instead of the posterior."""

    def made(simulation: Simulation, drawn: Drawn) -> Drawn:
        if drawn.failure:
            return drawn
        target = family.condition(simulation.data)
        how = {"engine": way.engine, "method": way.method, "settings": {}, "seed": simulation.seed}
        tree = build(target, drawn.draws, {}, how, predictive_mb=0)
        try:
            found = after(target, tree, simulation.seed)
        except OnebasinError as error:
            return Drawn(failure=str(error))
        return replace(_drawn(simulation, found, independent=False), divergences=drawn.divergences)

    def infer(simulations: Sequence[Simulation]) -> list[Drawn]:
        return [made(*each) for each in zip(simulations, way.infer(simulations), strict=True)]

    name = f"{way.method}, {getattr(after, '__name__', type(after).__name__)}"
    return replace(way, method=name, infer=infer, together=False)


class _Densities:
    """Log densities of a family at points: by its model for all simulations at once, else by the engine for each."""

    def __init__(self, family: Family, engine: str) -> None:
        from .compiled import CompiledDensities

        self.family, self.engine = family, engine
        self._together = None if family.model is None else CompiledDensities(family)

    def __call__(
        self, simulations: Sequence[Simulation], points: Sequence[Mapping[str, Any]]
    ) -> list[LogDensities]:
        """Log densities at points (point, ...) of each simulation."""
        if self._together is None:
            return [self._one(s, p) for s, p in zip(simulations, points, strict=True)]
        names = list(simulations[0].parameters)
        values = {n: np.stack([p[n] for p in points]) for n in names}
        both = self._together([s.data for s in simulations], values)
        return [{LOG_LIKELIHOOD: a, LP: b} for a, b in zip(*both, strict=True)]

    def _one(self, simulation: Simulation, points: Mapping[str, Any]) -> LogDensities:
        target = self.family.condition(simulation.data)
        with precision("float64"):
            density = engine_named(definition_of(target, self.engine)).density(target, None)
            values = {name: points[name] for name in density.names}
            found = {LP: np.asarray(density.log_density(values))}
            likelihood = density.log_likelihood(values)
            if likelihood is None and POINTWISE in density.derived:
                each = density.derived_at(values, simulation.seed)[POINTWISE]
                likelihood = each.reshape(len(each), -1).sum(axis=1)
        return found if likelihood is None else {LOG_LIKELIHOOD: likelihood, **found}


POINTWISE = "log_lik"
"""What a Stan program calls the log likelihood of each observation."""
