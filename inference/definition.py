"""Which definition of a target an engine takes: its own, or for nutpie the one that the target has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onebasin.base.checks import choose

if TYPE_CHECKING:
    from onebasin.models.target import Target

DEFINED = ("numpyro", "stan")
"""The engines that a target has definitions for."""
NUTPIE = "nutpie"
"""The engine that samples either."""


def engine_for(target: Target, engine: str | None) -> str:
    """Return the name of the engine that was asked for; else NumPyro where the target has a model for it, or Stan."""
    if engine is not None:
        return engine
    return "numpyro" if target.is_network or target.numpyro_model is not None else "stan"


def defined_by(target: Target, engine: str | None) -> str:
    """Return whose definition of a target is evaluated: the one that was asked for, or that of `engine_for`.

    Raises
    ------
    ValueError
        If what was asked for has no definitions of its own.
    """
    return choose("engine", engine_for(target, engine), DEFINED)


def definition_of(target: Target, engine: str) -> str:
    """Return whose definition of a target an engine takes."""
    return engine_for(target, None) if engine == NUTPIE else engine
