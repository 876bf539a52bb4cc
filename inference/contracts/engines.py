"""The engines, and the answer to every question about them: which one, on which definition, with which methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from onebasin.base.checks import choose

from .engine import Engine, found_at

if TYPE_CHECKING:
    from onebasin.models.target import Target

    from .density import ValueDensity
    from .method import Method

NUMPYRO = Engine("numpyro", ("numpyro",), "onebasin.inference.density.values:NumpyroValues")
"""JAX, in this process."""
STAN = Engine("stan", ("stan",), "onebasin.inference.density.stan:StanDensity")
"""CmdStan's executables, a process a run."""
NUTPIE = Engine(
    "nutpie",
    ("numpyro", "stan"),
    methods={"nuts": "onebasin.inference.mcmc.nutpie:ChainRunner"},
    package="nutpie",
)
"""The sampler of the package nutpie, on either definition."""

ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in (NUMPYRO, STAN, NUTPIE)}
"""Every engine by its name; a new one is a line here."""

DEFINED = ("numpyro", "stan")
"""The engines that a target has definitions for."""


def engine_named(name: str) -> Engine:
    """Find an engine by its name.

    Raises
    ------
    ValueError
        If there is no such engine.
    InferenceError
        If its package is not installed.
    """
    engine = ENGINES[choose("engine", name, ENGINES)]
    engine.check()
    return engine


def engine_for(target: Target, engine: str | None) -> str:
    """Return the name of the engine that was asked for; else NumPyro where the target has a model for it, or Stan."""
    if engine is not None:
        return engine
    return "numpyro" if _has(target, "numpyro") else "stan"


def defined_by(target: Target, engine: str | None) -> str:
    """Return whose definition of a target is evaluated: the one that was asked for, or that of `engine_for`.

    Raises
    ------
    ValueError
        If the engine that was asked for has no definitions of its own.
    """
    return choose("engine", engine_for(target, engine), DEFINED)


def definition_of(target: Target, engine: str) -> str:
    """Return whose definition of a target an engine takes; of no engine of ours, its own name."""
    takes = ENGINES[engine].takes if engine in ENGINES else (engine,)
    return next((name for name in takes if _has(target, name)), takes[0])


def density_by(
    definition: str, target: Target, progress: Callable[[str], None] | None = None
) -> ValueDensity:
    """Return a target's log density over values by one of its definitions."""
    return ENGINES[definition].density_of(target, progress)


def chosen(target: Target, method: type[Method], engine: str | None) -> tuple[str, Any]:
    """Choose who runs a method on a target: the engine's name, and its implementation of the method.

    Raises
    ------
    ValueError
        If there is no such engine, or it does not have the method.
    InferenceError
        If the engine's package is not installed.
    """
    usual = engine_for(target, None)
    if engine is None:
        fitting = [name for name in (usual, *DEFINED) if implemented(method, name)]
        defined = [name for name in fitting if _has(target, name)]
        engine = (defined or fitting)[0]
    found = engine_named(engine)
    if method.by_jax and engine in DEFINED and engine != usual:
        raise ValueError(
            f"`engine` is {engine!r}, but {method.name} moves by JAX on the definition that the target has, "
            f"{usual}'s of {target.name!r}; leave it out."
        )
    place = implemented(method, engine)
    if not place:
        able = " or ".join(repr(name) for name in ENGINES if implemented(method, name))
        brings = ", ".join(found.methods)
        has = f" (it has {brings})" if brings else ""
        raise ValueError(
            f"`engine` is {engine!r}, which has no {method.name}{has}; use engine={able}, or another method."
        )
    return engine, found_at(place)


def implemented(method: type[Method], engine: str) -> str:
    """Return where an engine's implementation of a method is; empty where it has none."""
    return method.engines.get(engine) or ENGINES[engine].methods.get(method.name, "")


def _has(target: Target, definition: str) -> bool:
    """Whether a target has a definition for NumPyro or for Stan."""
    own = target.numpyro_model if definition == "numpyro" else target.stan_program
    return target.is_network or own is not None
