"""The scalar parameters of a posterior side by side: their names, their draws, and what is refused.

Convention: draws are (chain, draw, param) in float64; a parameter is one scalar entry of a
variable, named `W1[0,1]` by its coordinates where the variable has them and otherwise by position,
counted from 0 as xarray does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.models.schema import SAMPLE_DIMS

MIN_DRAWS = 4


@dataclass(frozen=True, eq=False)
class Draws:
    """The scalar parameters of a posterior, side by side.

    Attributes
    ----------
    names
        One name per scalar parameter, such as `W1[0,1]`.
    values
        Their draws.
    """

    names: tuple[str, ...]
    values: Float[np.ndarray, "chain draw param"]

    @property
    def num_chains(self) -> int:
        """Number of chains."""
        return self.values.shape[0]

    @property
    def num_draws(self) -> int:
        """Draws in each chain."""
        return self.values.shape[1]

    def of(self, name: str) -> Float[np.ndarray, "chain draw"]:
        """Return the draws of one parameter."""
        return self.values[..., self.names.index(name)]


def lay_out(variables: Sequence[xr.DataArray], argument: str = "posterior") -> Draws:
    """Put the entries of variables side by side; `argument` is what messages call their posterior.

    Raises
    ------
    ValueError
        If a variable is not numeric or without the dimensions chain and draw, if there are no chains, fewer than
        4 draws a chain, or if a draw is not finite.
    """
    variables = [checked(variable, argument) for variable in variables]
    num_draws = variables[0].sizes["draw"]
    if not variables[0].sizes["chain"]:
        raise ValueError(
            "`posterior` has no chains, and at least one is needed to diagnose it: run some."
        )
    if num_draws < MIN_DRAWS:
        raise ValueError(
            f"`{argument}` has {num_draws} draws a chain, and at least {MIN_DRAWS} are needed to "
            "diagnose it: sample longer."
        )
    names = tuple(name for variable in variables for name in entry_names(variable))
    values = np.concatenate([_columns(variable) for variable in variables], axis=-1)
    _refuse_non_finite(names, values, argument)
    return Draws(names, values)


def entry_names(variable: xr.DataArray) -> Iterator[str]:
    """Name the scalar entries of a variable in C order, such as `W1[0,1]`."""
    dims = [dim for dim in variable.dims if dim not in SAMPLE_DIMS]
    labels = [
        variable.coords[dim].values if dim in variable.coords else range(variable.sizes[dim])
        for dim in dims
    ]
    for index in product(*labels):
        yield f"{variable.name}[{','.join(map(str, index))}]" if dims else str(variable.name)


def checked(variable: xr.DataArray, argument: str) -> xr.DataArray:
    """Return a variable with chain and draw in front; refuse one that holds no draws of numbers.

    Raises
    ------
    ValueError
        If it is not numeric or without the dimensions chain and draw.
    """
    check_dims(variable, argument)
    if variable.dtype.kind not in "biuf":
        raise ValueError(
            f"`{argument}` holds `{variable.name}` of type {variable.dtype}, and only real numbers "
            "can be worked with: leave the variable out."
        )
    return variable.transpose(*SAMPLE_DIMS, ...)


def check_dims(variable: xr.DataArray, argument: str) -> None:
    """Refuse a variable without the dimensions chain and draw.

    Raises
    ------
    ValueError
        If one is missing.
    """
    missing = [dim for dim in SAMPLE_DIMS if dim not in variable.dims]
    if missing:
        dims = ", ".join(map(str, variable.dims))
        raise ValueError(
            f"`{argument}` holds `{variable.name}` with dimensions ({dims}), without "
            f"{' and '.join(missing)}: every variable needs (chain, draw, ...)."
        )


def _columns(variable: xr.DataArray) -> Float[np.ndarray, "chain draw param"]:
    chains, draws = variable.shape[:2]
    size = int(np.prod(variable.shape[2:]))  # not -1: a variable may have no entries at all
    return np.asarray(variable.values, dtype=np.float64).reshape(chains, draws, size)


def _refuse_non_finite(
    names: tuple[str, ...], values: Float[np.ndarray, "chain draw param"], argument: str
) -> None:
    bad = (~np.isfinite(values)).sum(axis=(0, 1))
    if not bad.any():
        return
    worst = [f"`{names[i]}` ({bad[i]})" for i in np.flatnonzero(bad)]
    listed = ", ".join(worst[:4]) + (", ..." if len(worst) > 4 else "")
    raise ValueError(
        f"`{argument}` holds {bad.sum()} draws that are not finite, of {listed}: no diagnostic is "
        "defined for them. Find out why the model produces them, or leave the variable out."
    )
