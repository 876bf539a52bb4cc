"""Compute log likelihoods of observations at any values of a model's variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.errors import ArgumentError
from onebasin.base.precision import precision
from onebasin.models.target import Target
from onebasin.posteriors.leave_one_out import chosen
from onebasin.posteriors.schema import SAMPLE_DIMS

BLOCK = 2**23  # Maximum bytes of log likelihoods computed at once.


class NumpyroTerms:
    """Log likelihoods and log density of a NumPyro model or a network at many draws."""

    def __init__(self, target: Target) -> None:
        from ..density.network import in_double, numpyro_density_of
        from ..runs.groups_numpyro import Sites

        with precision("float64"):
            density, sites = numpyro_density_of(target), Sites.of(target)
        if not sites.observed:
            raise ArgumentError(
                f"The model {target.name!r} has no observed data that could be left out. Give a model with observed "
                "data."
            )
        self.names = density.names
        self._sums = target.is_network
        self._at = in_double(sites.log_likelihood)
        self._unconstrain = in_double(density.unconstrain)
        self.constrain = in_double(density.constrain)
        self.log_density = in_double(density.log_density)

    def at(self, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the log likelihoods (draw, obs...) of each data variable at values (draw, ...)."""
        terms: dict[str, np.ndarray] = self._at({name: values[name] for name in self.names})
        if self._sums:  # An observation of a network is one row with all outputs.
            terms = {n: t.reshape(*t.shape[:2], -1).sum(axis=-1) for n, t in terms.items()}
        return terms

    def unconstrain(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return the unconstrained vectors (draw, param) of values."""
        vectors: np.ndarray = self._unconstrain({name: values[name] for name in self.names})
        return vectors


class StanTerms:
    """Log likelihoods and log density of a Stan program that computes `log_lik`."""

    def __init__(self, target: Target, progress: Callable[[str], None] | None) -> None:
        from onebasin.stan.library import open_library
        from onebasin.stan.program import definition

        self._target, self._program = target, definition(target)
        self._library = open_library(self._program, progress=progress)
        self.names = tuple(self._library.variables())

    @cached_property
    def _own(self) -> dict[str, str]:
        from onebasin.stan.program import find_roles

        from ..runs.posterior import arrays_of

        every = self._library.variables(include_tp=True, include_gq=True)
        shapes = {name: shape for name, shape in every.items() if name not in self.names}
        found = find_roles(self._program.roles, arrays_of(self._program.data), shapes)
        if not found.log_likelihood:
            raise ArgumentError(
                f"The program {self._target.name!r} does not compute the log likelihood of each observation. Add a "
                "generated quantity `log_lik`, or name an existing one with `stan_program(..., log_likelihood=...)`."
            )
        return found.log_likelihood

    def at(self, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the log likelihoods (draw, obs...) of each data variable at values (draw, ...)."""
        rows = self._library.constrain(self.unconstrain(values), include_tp=True, include_gq=True)
        found = self._library.unpack(rows, include_tp=True, include_gq=True)
        return {of: found[own] for of, own in self._own.items()}

    def unconstrain(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return the unconstrained vectors (draw, param) of values."""
        return self._library.unconstrain(self._library.pack({n: values[n] for n in self.names}))

    def constrain(self, vectors: np.ndarray) -> dict[str, np.ndarray]:
        """Return the values (draw, ...) of unconstrained vectors."""
        return self._library.unpack(self._library.constrain(vectors))

    def log_density(self, vectors: np.ndarray) -> np.ndarray:
        """Return the log density (draw,) of unconstrained vectors, up to a constant."""
        return np.asarray(self._library.log_density(vectors))


Terms = NumpyroTerms | StanTerms


def terms_of(target: Target, progress: Callable[[str], None] | None = None) -> Terms:
    """Return the object that computes a target's log likelihoods, from its NumPyro model if it has one."""
    if target.numpyro_model is not None:
        return NumpyroTerms(target)
    return StanTerms(target, progress)


def computed_terms(
    terms: Terms, draws: Mapping[str, np.ndarray], var_name: str | None
) -> xr.DataArray:
    """Compute the log likelihoods (nats) of one data variable at all draws, in blocks.

    `draws` are arrays (chain, draw, ...) of the model's variables. `var_name` may be None if the model has only one
    data variable.
    """
    if lost := [name for name in terms.names if name not in draws]:
        raise ArgumentError(
            f"`posterior` lacks the variable(s) {', '.join(lost)}, which the model needs. Give a posterior of this "
            "model."
        )
    size = next(iter(draws[name] for name in terms.names)).shape[:2]
    flat = {name: draws[name].reshape(-1, *draws[name].shape[2:]) for name in terms.names}
    found = terms.at({name: values[:1] for name, values in flat.items()})
    one, name = chosen(found, var_name)[0], var_name or next(iter(found))
    samples = int(np.prod(size))
    step = min(samples, max(1, BLOCK // max(one.nbytes, 1)))
    every = np.empty((samples, *one.shape))
    for first in range(0, samples, step):
        # All blocks have the same length, because JAX would compile again for every other length.
        first = min(first, samples - step)
        part = {n: values[first : first + step] for n, values in flat.items()}
        every[first : first + step] = terms.at(part)[name]
    axes = (*SAMPLE_DIMS, *(f"{name}_dim_{place}" for place in range(one.ndim)))
    return xr.DataArray(every.reshape(*size, *one.shape), dims=axes, name=name)
