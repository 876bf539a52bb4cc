"""The log density of a Stan program at values of its parameters, computed by its library in this process."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from onebasin.base.errors import StanRunError
from onebasin.models.target import Target
from onebasin.stan.library import open_library
from onebasin.stan.program import definition
from onebasin.stan.run import check_variables

from ..contracts.method import ValueDensity
from .start import RADIUS, TRIES, no_point


def stan_density(target: Target, progress: Callable[[str], None] | None = None) -> ValueDensity:
    """Return the density of a target from its Stan definition; a network's density needs JAX."""
    if target.is_network:
        from .network import StanNetworkValues

        return StanNetworkValues(target, progress)
    return StanDensity(target, progress)


class StanDensity:
    """The density of a target on the constrained scale: without the Jacobian and, as in CmdStan, up to a constant."""

    def __init__(self, target: Target, progress: Callable[[str], None] | None = None) -> None:
        self.target = target
        self.derived: tuple[str, ...] = ()
        self.library = library = open_library(definition(target), progress=progress)
        check_variables(target, library.names(include_tp=True, include_gq=True))
        self.names = tuple(library.variables())
        everything = library.variables(include_tp=True, include_gq=True)
        self.derived = tuple(n for n in everything if n not in self.names)

    def derived_at(self, values: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
        """Return the derived quantities at points (point, ...); `seed` is for `_rng` functions."""
        library = self.library
        everything = {"include_tp": True, "include_gq": True}
        points = self._points(values)
        if np.isnan(library.constrain(points)).any():
            raise StanRunError(
                f"A point violates the constraints of {self.target.name!r}. Check the constraints that the Stan "
                "program declares."
            )
        make = library.generator
        rows = [library.constrain(p, generator=make(seed), **everything) for p in points]
        named = library.unpack(np.stack(rows), **everything)
        return {name: named[name] for name in self.derived}

    def points(self, count: int, seed: int) -> dict[str, np.ndarray]:
        """Draw points, uniform within +-2 in the unconstrained space: name to array (point, ...)."""
        rng = np.random.default_rng(seed)
        vectors = np.stack([self._point(rng) for _ in range(count)])
        return self.library.unpack(self.library.constrain(vectors))

    def log_density(self, values: Mapping[str, Any]) -> Float[np.ndarray, " point"]:
        """Return the log density at points (point, ...), up to a constant; -inf outside the support."""
        vectors = self._points(values)
        found = self.library.log_density(vectors, jacobian=False)
        return np.where(np.isnan(vectors).any(axis=1), -np.inf, found)

    def log_likelihood(self, values: Mapping[str, Any]) -> None:
        """Return None, because Stan does not separate the likelihood from the prior."""

    def _points(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return unconstrained vectors (point, param); NaN outside the support."""
        return self.library.unconstrain(self.library.pack({n: values[n] for n in self.names}))

    def _point(self, rng: np.random.Generator) -> np.ndarray:
        for _ in range(TRIES):
            vector = rng.uniform(-RADIUS, RADIUS, self.library.dim)
            if np.isfinite(self.library.log_density(vector)):
                return vector
        raise no_point(self.target.name, TRIES)
