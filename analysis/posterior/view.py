"""Reading a posterior: groups, draws by parameter name, attributes.

Convention: draws are (chain, draw, param) in float64; a parameter is one scalar entry of a
variable, named `W1[0,1]` by its coordinates where the variable has them and otherwise by position,
counted from 0 as xarray does. Source: docs/architecture.md. It never writes to the tree.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork
    from onebasin.models.symmetry.blocks import Symmetry

MIN_DRAWS = 4
_SAMPLE_DIMS = ("chain", "draw")


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


def get_group(tree: xr.DataTree, name: str) -> xr.Dataset | None:
    """Return a group of the tree as a dataset, or None where the tree has no such group.

    Raises
    ------
    TypeError
        If `tree` is not a `DataTree`.
    """
    if not isinstance(tree, xr.DataTree):
        raise TypeError(
            f"`posterior` is a {type(tree).__name__}, and an `xarray.DataTree` is needed: pass "
            "what an inference method returned, or `xarray.open_datatree(path, engine='h5netcdf')`."
        )
    return tree[name].to_dataset() if name in tree.children else None


def posterior_group(tree: xr.DataTree) -> xr.Dataset:
    """Return the group `posterior`, which every posterior must have.

    Raises
    ------
    ValueError
        If the group is missing or empty.
    """
    dataset = get_group(tree, "posterior")
    if dataset is None:
        there = ", ".join(tree.children) or "none"
        raise ValueError(
            f"`posterior` has no group `posterior` (groups there are: {there}): pass the whole "
            "tree that an inference method returned."
        )
    if not dataset.data_vars:
        raise ValueError("`posterior` has an empty group `posterior`: nothing to diagnose.")
    return dataset


def read_draws(tree: xr.DataTree, var_names: str | Sequence[str] | None = None) -> Draws:
    """Lay the posterior's variables out as scalar parameters.

    Parameters
    ----------
    tree
        The posterior.
    var_names
        The variables to take, in this order; all of them by default.

    Returns
    -------
    Draws
        Names and draws of the scalar parameters.

    Raises
    ------
    ValueError
        If a variable is unknown, not numeric or without the dimensions chain and draw, if there
        are fewer than 4 draws a chain, or if a draw is not finite.
    """
    dataset = posterior_group(tree)
    variables = [_checked(dataset[name]) for name in _choose(dataset, var_names)]
    num_draws = variables[0].sizes["draw"]
    if num_draws < MIN_DRAWS:
        raise ValueError(
            f"`posterior` has {num_draws} draws a chain, and at least {MIN_DRAWS} are needed to "
            "diagnose it: sample longer."
        )
    names = tuple(name for variable in variables for name in entry_names(variable))
    columns = [_columns(variable) for variable in variables]
    values = np.concatenate(columns, axis=-1)
    _refuse_non_finite(names, values)
    return Draws(names, values)


def entry_names(variable: xr.DataArray) -> Iterator[str]:
    """Name the scalar entries of a variable in C order, such as `W1[0,1]`."""
    dims = [dim for dim in variable.dims if dim not in _SAMPLE_DIMS]
    labels = [
        variable.coords[dim].values if dim in variable.coords else range(variable.sizes[dim])
        for dim in dims
    ]
    for index in product(*labels):
        yield f"{variable.name}[{','.join(map(str, index))}]" if dims else str(variable.name)


def json_attribute(tree: xr.DataTree, name: str) -> Any:
    """Return a root attribute that holds JSON text, parsed; None where it is missing or empty.

    Raises
    ------
    ValueError
        If the attribute is not JSON.
    """
    text = tree.attrs.get(name)
    if text is None:
        return None
    if not isinstance(text, str):
        return np.asarray(text).tolist()
    if not text:
        return None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"`posterior` has an attribute `{name}` that is not JSON ({error}): got {text[:60]!r}. "
            f"Write it with json.dumps, or delete it."
        ) from error


def network_of(posterior: xr.DataTree | xr.Dataset) -> "BayesianNetwork | None":
    """Rebuild the network that a posterior is of; None where its attributes describe none.

    Raises
    ------
    ValueError
        If the attribute does not describe a network.
    """
    text = posterior.attrs.get("model")
    if not text:
        return None
    from onebasin.models.networks.bayesian import BayesianNetwork  # loads JAX, as below

    return BayesianNetwork.from_description(text)


def symmetry_of(posterior: xr.DataTree | xr.Dataset) -> "Symmetry":
    """Return the symmetry that a posterior's attributes declare; empty where they declare none.

    Raises
    ------
    ValueError
        If the attribute is not the JSON of a symmetry.
    """
    text = posterior.attrs.get("symmetry")
    if not text:
        return ()
    from onebasin.models.symmetry.blocks import (
        from_json,  # loads JAX, which a posterior without one can do without
    )

    return from_json(text)


def declares_equal_modes(posterior: xr.DataTree) -> bool:
    """Tell whether a posterior declares a symmetry that makes equal modes, still to be divided out."""
    blocks = symmetry_of(posterior)
    if not blocks or "alignment" in posterior.attrs:
        return False
    from onebasin.models.symmetry.blocks import Rescalable

    # A rescaling keeps the network's function but not the prior: it makes no equal modes.
    return any(not isinstance(block, Rescalable) for block in blocks)


def is_variational(tree: xr.DataTree) -> bool:
    """Tell whether the draws are independent ones from an approximation, not a Markov chain."""
    stats = get_group(tree, "sample_stats")
    return "variational" in tree.children or (stats is not None and "log_q" in stats)


def _choose(dataset: xr.Dataset, var_names: str | Sequence[str] | None) -> list[str]:
    there = [str(name) for name in dataset.data_vars]
    if var_names is None:
        return there
    chosen = [var_names] if isinstance(var_names, str) else list(var_names)
    unknown = [name for name in chosen if name not in there]
    if unknown or not chosen:
        got = ", ".join(f"`{name}`" for name in unknown) or "no names"
        raise ValueError(
            f"`var_names` asks for {got}, which the posterior does not have; "
            f"its variables are: {', '.join(there)}."
        )
    return chosen


def _checked(variable: xr.DataArray) -> xr.DataArray:
    missing = [dim for dim in _SAMPLE_DIMS if dim not in variable.dims]
    if missing:
        raise ValueError(
            f"`posterior` holds `{variable.name}` with dimensions {tuple(variable.dims)}, without "
            f"{' and '.join(missing)}: every variable needs (chain, draw, ...)."
        )
    if variable.dtype.kind not in "biuf":
        raise ValueError(
            f"`posterior` holds `{variable.name}` of type {variable.dtype}, and only real numbers "
            "can be diagnosed: leave it out with `var_names`."
        )
    return variable.transpose(*_SAMPLE_DIMS, ...)


def _columns(variable: xr.DataArray) -> Float[np.ndarray, "chain draw param"]:
    chains, draws = variable.shape[:2]
    size = int(np.prod(variable.shape[2:]))  # not -1: a variable may have no entries at all
    return np.asarray(variable.values, dtype=np.float64).reshape(chains, draws, size)


def _refuse_non_finite(
    names: tuple[str, ...], values: Float[np.ndarray, "chain draw param"]
) -> None:
    bad = (~np.isfinite(values)).sum(axis=(0, 1))
    if not bad.any():
        return
    worst = [f"`{names[i]}` ({bad[i]})" for i in np.flatnonzero(bad)]
    listed = ", ".join(worst[:4]) + (", ..." if len(worst) > 4 else "")
    raise ValueError(
        f"`posterior` holds {bad.sum()} draws that are not finite, of {listed}: no diagnostic is "
        "defined for them. Find out why the model produces them, or leave the variable out with "
        "`var_names`."
    )
