"""Log likelihoods of observations at any values of a model's variables, computed from the model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import xarray as xr

from onebasin.base.errors import ArgumentError
from onebasin.base.precision import precision
from onebasin.models.target import Target
from onebasin.posteriors import schema
from onebasin.posteriors.leave_one_out import chosen
from onebasin.posteriors.pointwise import DrawGroup
from onebasin.posteriors.scratch import Room

BLOCK = 2**24
"""Bytes of log likelihoods that are computed at once."""


class Terms(Protocol):
    """A model's log likelihoods and log density at many draws.

    Attributes
    ----------
    names : tuple of str
        The variables.
    """

    names: tuple[str, ...]

    def at(self, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the log likelihoods (draw, obs...) at values (draw, ...), by the data that they are of."""

    def unconstrain(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return the unconstrained vectors (draw, param) of values."""

    def constrain(self, vectors: np.ndarray) -> dict[str, np.ndarray]:
        """Return the values (draw, ...) of unconstrained vectors."""

    def log_density(self, vectors: np.ndarray) -> np.ndarray:
        """Return the log density (draw,) of unconstrained vectors, up to one constant."""


def terms_of(target: Target, progress: Callable[[str], None] | None = None) -> Terms:
    """Return the log likelihoods of a target, by its NumPyro model where it has one.

    Raises
    ------
    ValueError
        If the model observes nothing, or a Stan program does not compute `log_lik`.
    """
    if target.numpyro_model is not None:
        return _OfNumpyro(target)
    return _OfStan(target, progress)


class _OfNumpyro:
    def __init__(self, target: Target) -> None:
        import jax

        from ..density.network import numpyro_density_of
        from ..runs.groups_numpyro import Sites

        with precision("float64"):
            self._density = density = numpyro_density_of(target)
            sites = Sites.of(target)
        if not sites.observed:
            raise ArgumentError(
                f"The model {target.name} observes no data, so that no observation can be left out."
            )
        self.names = density.names
        self._sums = target.is_network
        self._at = jax.jit(jax.vmap(sites.log_likelihood))
        self._constrain = jax.jit(jax.vmap(density.constrain))
        self._unconstrain = jax.jit(jax.vmap(density.unconstrain))
        self._log_density = jax.jit(jax.vmap(density.log_density))

    def at(self, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        with precision("float64"):
            found = self._at({name: values[name] for name in self.names})
        terms = {name: np.asarray(term) for name, term in found.items()}
        if self._sums:  # a network's observation is a row, whatever its outputs
            terms = {n: t.reshape(*t.shape[:2], -1).sum(axis=-1) for n, t in terms.items()}
        return terms

    def unconstrain(self, values: Mapping[str, Any]) -> np.ndarray:
        with precision("float64"):
            return np.asarray(self._unconstrain({name: values[name] for name in self.names}))

    def constrain(self, vectors: np.ndarray) -> dict[str, np.ndarray]:
        with precision("float64"):
            return {n: np.asarray(v) for n, v in self._constrain(vectors).items()}

    def log_density(self, vectors: np.ndarray) -> np.ndarray:
        with precision("float64"):
            return np.asarray(self._log_density(vectors))


class _OfStan:
    def __init__(self, target: Target, progress: Callable[[str], None] | None) -> None:
        from onebasin.stan.library import open_library
        from onebasin.stan.program import definition

        self._target, self._program = target, definition(target)
        self._library = open_library(self._program, progress=progress)
        self.names = tuple(self._library.variables())

    @cached_property
    def _own(self) -> dict[str, str]:
        from onebasin.stan.groups import find_roles

        from ..runs.groups import arrays_of

        every = self._library.variables(include_tp=True, include_gq=True)
        shapes = {name: shape for name, shape in every.items() if name not in self.names}
        found = find_roles(self._program.roles, arrays_of(self._program.data), shapes)
        if not found.log_likelihood:
            raise ArgumentError(
                f"The program {self._target.name} does not compute the log likelihood of each observation: add a "
                "generated quantity `log_lik`, or name yours by `stan_program(..., log_likelihood=...)`."
            )
        return found.log_likelihood

    def at(self, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        everything = {"include_tp": True, "include_gq": True}
        rows = self._library.constrain(self.unconstrain(values), **everything)
        found = self._library.unpack(rows, **everything)
        return {of: found[own] for of, own in self._own.items()}

    def unconstrain(self, values: Mapping[str, Any]) -> np.ndarray:
        return self._library.unconstrain(self._library.pack({n: values[n] for n in self.names}))

    def constrain(self, vectors: np.ndarray) -> dict[str, np.ndarray]:
        return self._library.unpack(self._library.constrain(vectors))

    def log_density(self, vectors: np.ndarray) -> np.ndarray:
        return np.asarray(self._library.log_density(vectors))


@contextmanager
def computed_terms(
    terms: Terms, draws: Mapping[str, np.ndarray], var_name: str | None
) -> Iterator[xr.DataArray]:
    """Compute the log likelihoods of one variable at all draws; on disk meanwhile where they are many.

    Parameters
    ----------
    terms : Terms
        The model's.
    draws : mapping of str to array (chain, draw, ...)
        Its variables.
    var_name : str or None
        The data whose log likelihoods are meant; the only ones by default.

    Yields
    ------
    DataArray (chain, draw, obs...)
        In nats.

    Raises
    ------
    ValueError
        If a variable is missing, or there are log likelihoods of several data and none is chosen.
    WriteError
        If the disk has no room for them.
    """
    if lost := [name for name in terms.names if name not in draws]:
        raise ArgumentError(
            f"`posterior` lacks {', '.join(lost)} of the model; give a posterior of this model."
        )
    held = {name: draws[name] for name in terms.names}
    chains, count = next(iter(held.values())).shape[:2]
    first = chosen(terms.at({name: values[0, :1] for name, values in held.items()}), var_name)
    name = var_name or next(iter(terms.at({n: v[0, :1] for n, v in held.items()})))
    step = min(count, max(1, BLOCK // max(first.nbytes, 1)))
    room = Room(chains, count, Path(tempfile.gettempdir()))
    for chain in range(chains):
        for start in range(0, count, step):
            # The last block begins earlier rather than to be shorter: another length would be compiled again.
            start = min(start, count - step)
            part = {n: values[chain, start : start + step] for n, values in held.items()}
            room.put(chain, start, {schema.LOG_LIKELIHOOD: {name: terms.at(part)[name]}})
    try:
        group = DrawGroup(room.group(schema.LOG_LIKELIHOOD)).to_dataset()
        yield group[name]
    finally:
        if room.filed is not None:
            room.filed.close()
