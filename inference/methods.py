"""The registry of methods by name, which the command line, calibration and the documentation read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from onebasin.base.checks import choose

from .contracts.method import Method
from .fits.dadvi import Dadvi, dadvi
from .mcmc.nuts import Hmc, Nuts, hmc, nuts
from .microcanonical.mclmc import Mclmc, mclmc
from .modes.optimize import Laplace, Optimize, Pathfinder, laplace, optimize, pathfinder
from .modes.sample_modes import Modes, sample_modes
from .runs.keywords import made
from .training.ensemble import Ensemble, ensemble
from .variational.advi import Advi, advi
from .variational.symmetrised import Symmetrised, symmetrised_vi

if TYPE_CHECKING:
    import xarray as xr

FUNCTIONS: Mapping[type[Method], Callable[..., xr.DataTree]] = {
    Nuts: nuts,
    Hmc: hmc,
    Mclmc: mclmc,
    Modes: sample_modes,
    Advi: advi,
    Dadvi: dadvi,
    Symmetrised: symmetrised_vi,
    Pathfinder: pathfinder,
    Laplace: laplace,
    Optimize: optimize,
    Ensemble: ensemble,
}
"""Every method with its function. A new method needs a line here."""

METHODS: Mapping[str, type[Method]] = {method.name: method for method in FUNCTIONS}

WORDS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **{name: (name, {}) for name in METHODS},
    "meanfield": ("advi", {"family": "meanfield"}),
    "fullrank": ("advi", {"family": "fullrank"}),
}
"""Names of methods, and names for a method with some of its fields fixed."""


def method_named(word: str, given: Mapping[str, Any] | None = None) -> Method:
    """Make the method that a name stands for, with the given fields.

    A name or a value that is not allowed raises ValueError; an unknown field raises TypeError.
    """
    name, fixed = WORDS[choose("method", word, WORDS)]
    return made(METHODS[name], {**fixed, **(given or {})})


def as_word(word: str, method: Method) -> Method:
    """Return a method with the fields that the name fixes; a name of another method changes nothing."""
    name, fixed = WORDS.get(word, ("", {}))
    return replace(method, **fixed) if name == method.name else method
