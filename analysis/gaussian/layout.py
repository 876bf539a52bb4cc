"""Variables side by side: where each scalar parameter of a posterior stands in one row, and back.

Convention: rows are (chain, draw, param) in float64, variables in their order, entries of one in C order.
A positive variable stands there as its logarithm; `log_jacobian` is the log determinant of that change,
log |d log(value) / d value|, which takes a density over rows to one over values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from onebasin.base.errors import ArgumentError
from onebasin.posteriors.draws import checked
from onebasin.posteriors.schema import SAMPLE_DIMS

Rows = Float[np.ndarray, "chain draw param"]


@dataclass(frozen=True)
class Variable:
    """One variable: its name, its shape and axes in one draw, and whether its logarithm is taken."""

    name: str
    shape: tuple[int, ...]
    dims: tuple[str, ...]
    positive: bool = False

    @property
    def size(self) -> int:
        """Number of scalar entries."""
        return int(np.prod(self.shape))


@dataclass(frozen=True, eq=False)
class VariableLayout:
    """Variables in a row, and the labels along their axes, by the axis' name, for axes that have labels."""

    variables: tuple[Variable, ...]
    coords: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of scalar parameters."""
        return sum(variable.size for variable in self.variables)

    @cached_property
    def is_log(self) -> Bool[np.ndarray, " param"]:
        """Which parameters stand as logarithms."""
        return np.concatenate([np.full(v.size, v.positive) for v in self.variables])

    def values(self, draws: Mapping[str, Any] | xr.Dataset, argument: str = "draws") -> Rows:
        """Put the values of draws side by side, no logarithms taken; refuse a missing variable or another shape."""
        columns = []
        for variable in self.variables:
            if variable.name not in draws:
                raise ArgumentError(
                    f"`{argument}` lack {variable.name}; they hold {', '.join(map(str, draws)) or 'none'}. "
                    "Give draws of the variables that were fitted."
                )
            values = draws[variable.name]
            if isinstance(values, xr.DataArray):
                values = _floats(values, argument)
            array = np.asarray(values, dtype=np.float64)
            if array.ndim < 2 or array.shape[2:] != variable.shape:
                raise ArgumentError(
                    f"`{argument}` hold {variable.name} of shape {array.shape}; "
                    f"({', '.join(['chain', 'draw', *map(str, variable.shape)])}) is needed."
                )
            columns.append(array.reshape(*array.shape[:2], variable.size))
        leads = {column.shape[:2] for column in columns}
        if len(leads) > 1:
            raise ArgumentError(
                f"`{argument}` hold variables of different (chain, draw): {sorted(leads)}; give as "
                "many draws of each."
            )
        return np.concatenate(columns, axis=2)

    def take_logs(self, values: Rows) -> Rows:
        """Rows of values; NaN where a positive variable is not positive."""
        rows, logs = values.copy(), self.is_log
        with np.errstate(invalid="ignore", divide="ignore"):
            rows[..., logs] = np.where(values[..., logs] > 0, np.log(values[..., logs]), np.nan)
        return rows

    def take_exponentials(self, rows: Rows) -> Rows:
        """Values of rows."""
        values, logs = rows.copy(), self.is_log
        values[..., logs] = np.exp(rows[..., logs])
        return values

    def log_jacobian(self, rows: Rows) -> Float[np.ndarray, "chain draw"]:
        """Return the term that turns a log density over rows into one over values."""
        return -rows[..., self.is_log].sum(axis=-1)

    def split(self, row: Float[np.ndarray, "*lead param"]) -> dict[str, np.ndarray]:
        """Arrays (*lead, *shape) by variable."""
        ends = np.cumsum([variable.size for variable in self.variables])[:-1]
        pieces = np.split(row, ends, axis=-1)
        return {
            variable.name: piece.reshape((*row.shape[:-1], *variable.shape))
            for variable, piece in zip(self.variables, pieces, strict=True)
        }

    def to_dataset(self, values: Rows) -> xr.Dataset:
        """The group `posterior` with these values."""
        arrays = self.split(values)
        coords = {dim: np.arange(n) for dim, n in zip(SAMPLE_DIMS, values.shape[:2], strict=True)}
        return xr.Dataset(
            {v.name: ((*SAMPLE_DIMS, *v.dims), arrays[v.name]) for v in self.variables},
            coords={**coords, **self.coords},
        )


def layout_of(
    dataset: xr.Dataset, names: Sequence[str], positive: Sequence[str], argument: str = "posterior"
) -> VariableLayout:
    """Lay out some variables of a dataset; refuse one without chain and draw, or not of floating point."""
    variables: list[Variable] = []
    coords: dict[str, np.ndarray] = {}
    for name in names:
        array = _floats(dataset[name], argument)
        dims = tuple(str(dim) for dim in array.dims[2:])
        variables.append(Variable(name, array.shape[2:], dims, name in positive))
        coords |= {dim: array.coords[dim].values for dim in dims if dim in array.coords}
    return VariableLayout(tuple(variables), coords)


def _floats(array: xr.DataArray, argument: str) -> xr.DataArray:
    """Put chain and draw in front; refuse what lacks them, or is not of floating point."""
    if array.dtype.kind in "biu":
        raise ArgumentError(
            f"`{argument}` holds {array.name} of type {array.dtype}; a Gaussian is fitted to "
            "floating point numbers only: leave the variable out with `var_names`."
        )
    return checked(array, argument)
