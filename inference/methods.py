"""The registry: every method by its name. The command line, calibration and the documentation read it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from onebasin.base.checks import choose

from .contracts.method import Method
from .fits.dadvi import Dadvi
from .mcmc.hmc import Hmc
from .mcmc.nuts import Nuts
from .microcanonical.mclmc import Mclmc
from .modes.laplace import Laplace
from .modes.optimize import Optimize
from .modes.pathfinder import Pathfinder
from .modes.sample_modes import Modes
from .training.ensemble import Ensemble
from .variational.advi import Advi
from .variational.symmetrised import Symmetrised

METHODS: Mapping[str, type[Method]] = {
    method.name: method
    for method in (
        Nuts,
        Hmc,
        Mclmc,
        Modes,
        Advi,
        Dadvi,
        Symmetrised,
        Pathfinder,
        Laplace,
        Optimize,
        Ensemble,
    )
}
"""A new method is a line here."""

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
    from .runs.run import made

    name, fixed = WORDS[choose("method", word, WORDS)]
    return made(METHODS[name], {**fixed, **(given or {})})


def as_word(word: str, method: Method) -> Method:
    """Return a method with the fields that a word fixes; a word that is no method's changes nothing."""
    name, fixed = WORDS.get(word, ("", {}))
    return replace(method, **fixed) if name == method.name else method
