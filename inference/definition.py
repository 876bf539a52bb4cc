"""Which definition of a target an engine takes: its own, or for nutpie the one that the target has."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def definition_of(target: Target, engine: str) -> str:
    """Return whose definition of a target an engine takes."""
    return engine_for(target, None) if engine == NUTPIE else engine
