"""The registry: every method by its name. The command line, calibration and the documentation read it."""

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
"""Every method and its function; a new method is a line here."""

METHODS: Mapping[str, type[Method]] = {method.name: method for method in FUNCTIONS}

WORDS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **{name: (name, {}) for name in METHODS},
    "meanfield": ("advi", {"family": "meanfield"}),
    "fullrank": ("advi", {"family": "fullrank"}),
}
"""The names of methods, and words for a method with some of its fields."""


def method_named(word: str, given: Mapping[str, Any] | None = None) -> Method:
    """Make the method that a word stands for, with fields of the caller's.

    A word or a value that is not allowed raises ValueError, a field that the method does not have TypeError.
    """
    name, fixed = WORDS[choose("method", word, WORDS)]
    return made(METHODS[name], {**fixed, **(given or {})})


def as_word(word: str, method: Method) -> Method:
    """Return a method with the fields that a word fixes; a word that is not a method's changes nothing."""
    name, fixed = WORDS.get(word, ("", {}))
    return replace(method, **fixed) if name == method.name else method
