"""Draws in chunks: what alignment reads of a posterior, a bounded piece at a time.

Convention: a chunk is a range of draws, chains one after the other (chain 0 first); its arrays are
(draw, *event). A chunk covers whole chains or lies within one, so that a file which is opened but
not loaded is read piece by piece too. It never writes to the posterior.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

from onebasin.base.checks import check_count
from onebasin.base.errors import ArgumentError
from onebasin.posteriors import schema

Arrays = dict[str, np.ndarray]

MAX_BYTES = 2**25
"""What a chunk may take, with all that is computed of it, if nothing else is asked for."""


@dataclass(frozen=True)
class Chunk:
    """Draws `start` to `stop` of all chains in one row, which are `draws` of the chains `chains`."""

    chains: slice
    draws: slice
    start: int
    stop: int

    @property
    def rows(self) -> slice:
        """The chunk's place among all draws."""
        return slice(self.start, self.stop)


@dataclass(frozen=True, eq=False)
class DrawReader:
    """The variables of a posterior that a symmetry moves.

    Parameters
    ----------
    dataset : Dataset
        Variables (chain, draw, ...), in memory or not.
    names : tuple of str
        Those to read.
    max_bytes : int
        How much one chunk may take, everything computed from it included (roughly).
    argument : str
        What error messages call it.
    extra : int
        Numbers that are computed from each draw beside its variables.

    Raises
    ------
    ValueError
        If a variable is missing, not of real numbers, or without the dimensions chain and draw.
    """

    dataset: xr.Dataset
    names: tuple[str, ...]
    max_bytes: int = MAX_BYTES
    argument: str = "posterior"
    extra: int = 0

    def __post_init__(self) -> None:
        """Check the variables and the budget."""
        check_count("max_bytes", self.max_bytes)
        for name in self.names:
            if name not in self.dataset:
                there = ", ".join(map(str, self.dataset.data_vars)) or "none"
                raise ArgumentError(
                    f"`symmetry` moves {name}, which `{self.argument}` does not hold (it holds "
                    f"{there}); declare the symmetry of this model, or keep the variable."
                )
            self._check(self.dataset[name])

    def _check(self, variable: xr.DataArray) -> None:
        missing = [dim for dim in schema.SAMPLE_DIMS if dim not in variable.dims]
        if missing:
            raise ArgumentError(
                f"`{self.argument}` holds {variable.name} with dimensions {variable.dims}, without "
                f"{' and '.join(missing)}: every variable needs (chain, draw, ...)."
            )
        if variable.dtype.kind not in "biuf":
            raise ArgumentError(
                f"`{self.argument}` holds {variable.name} of type {variable.dtype}, and only real "
                "numbers can be aligned: leave it out of the symmetry."
            )
        if not all(variable.sizes[dim] for dim in schema.SAMPLE_DIMS):
            raise ArgumentError(f"`{self.argument}` holds no draws; give at least one.")

    @property
    def num_chains(self) -> int:
        """Number of chains."""
        return self.dataset.sizes["chain"]

    @property
    def num_draws(self) -> int:
        """Draws in each chain."""
        return self.dataset.sizes["draw"]

    @property
    def lead(self) -> tuple[int, int]:
        """Chains and draws."""
        return self.num_chains, self.num_draws

    @property
    def total(self) -> int:
        """Draws of all chains."""
        return self.num_chains * self.num_draws

    @cached_property
    def variables(self) -> dict[str, xr.DataArray]:
        """The variables, chain and draw first."""
        return {name: self.dataset[name].transpose(*schema.SAMPLE_DIMS, ...) for name in self.names}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each variable in one draw."""
        return {name: variable.shape[2:] for name, variable in self.variables.items()}

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        """All chunks, in order."""
        entries = sum(int(np.prod(shape)) for shape in self.shapes.values())
        # The draws, as read and as moved; matrices of costs are made for a few draws at a time.
        each = 8 * 4 * (entries + self.extra)
        return tuple(_split(*self.lead, max(1, self.max_bytes // each)))

    def read(self, chunk: Chunk) -> Arrays:
        """Return a chunk's arrays (draw, *event)."""
        return {
            name: _flat(variable[chunk.chains, chunk.draws].values)
            for name, variable in self.variables.items()
        }

    def read_one(self, chain: int, draw: int) -> Arrays:
        """Return one draw's arrays (*event)."""
        return {name: v[chain, draw].values for name, v in self.variables.items()}

    def check_finite(self) -> None:
        """Refuse draws that are not finite.

        Raises
        ------
        ValueError
            If there is one; the message names variable, chain and draw.
        """
        for chunk in self.chunks:
            for name, values in self.read(chunk).items():
                bad = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
                if bad.any():
                    chain, draw = divmod(chunk.start + int(np.argmax(bad)), self.num_draws)
                    raise ArgumentError(
                        f"`{self.argument}` holds {name} that is not finite, first in chain "
                        f"{chain}, draw {draw}: no distance is defined there. Find out why the "
                        "model produces it, or leave those draws out."
                    )


def _flat(values: np.ndarray) -> np.ndarray:
    flat = values.reshape(-1, *values.shape[2:])
    return flat if flat.dtype.kind == "f" else flat.astype(np.float64)


def _split(chains: int, draws: int, at_most: int) -> Iterator[Chunk]:
    if at_most >= draws:
        whole = at_most // draws
        for first in range(0, chains, whole):
            last = min(first + whole, chains)
            yield Chunk(slice(first, last), slice(0, draws), first * draws, last * draws)
        return
    for chain in range(chains):
        for first in range(0, draws, at_most):
            last = min(first + at_most, draws)
            base = chain * draws
            yield Chunk(slice(chain, chain + 1), slice(first, last), base + first, base + last)
