"""The engines, and the one way to a method's part that depends on them.

Every family of methods has a part for each engine, with one signature: `density.base.ValueDensity`,
`mcmc.chains.Chains`, `variational.fit.Fit`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onebasin.models.checks import choose

ENGINES = ("numpyro", "stan")


def for_engine(name: str, *, numpyro: Callable[[], Any], stan: Callable[[], Any]) -> Any:
    """Call what loads the part of an engine; the other engine's packages are not imported.

    Raises
    ------
    ValueError
        If there is no such engine.
    """
    return {"numpyro": numpyro, "stan": stan}[choose("engine", name, ENGINES)]()
