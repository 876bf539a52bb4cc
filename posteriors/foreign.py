"""Posteriors of other makers in our words: results of samplers in this process, mappings, tables, older files.

Convention: groups of draws have the axes (chain, draw, ...), statistics ArviZ's present names. A slash in a name, as
NumPyro's scopes write it, becomes a dot: no file can store it. Draws that a masked array hides are NaN.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.errors import ArgumentError, ArgumentTypeError, OnebasinError

from . import schema
from .opening import open_tree
from .schema import adopted
from .storable import dataset_of, storable_names
from .tables import groups_of


def names_files(value: Any) -> bool:
    """Tell whether a value is a path, or several of them."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(path, str | os.PathLike) for path in value)
    return isinstance(value, str | os.PathLike)


def convert(value: Any, argument: str = "posterior") -> xr.DataTree:
    """Convert what a sampler has returned to a tree in our words; messages call it `argument`.

    That is an `MCMC` of NumPyro that has run, a fit of cmdstanpy, emcee's sampler, a dataset, a mapping of arrays
    (chain, draw, ...) or of groups of them, a table of pandas with a row a draw, or anything that ArviZ converts.

    Raises
    ------
    TypeError
        If it is nothing of the kind.
    ValueError
        If it has not run, names or shapes of its variables do not fit, or a variable holds no numbers.
    PosteriorFileError
        If the files of a fit are gone or hold no draws.
    """
    try:
        return adopted(_tree_of(value, argument))
    except OnebasinError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise ArgumentTypeError(
            f"`{argument}` is a {type(value).__name__}, and an `xarray.DataTree` is needed: pass what an inference "
            "method returned, files of a posterior (which `ob.open_posterior` opens), arrays (chain, draw, ...) by "
            "name, or what ArviZ converts."
        ) from error


def _tree_of(value: Any, argument: str) -> xr.DataTree:
    maker = type(value).__module__.split(".")[0]
    if maker == "numpyro" and hasattr(value, "get_samples"):
        return _of_numpyro(value, argument)
    if maker == "cmdstanpy":
        runs = getattr(value, "runset", None) or getattr(value, "_runset", None)
        if runs is None:
            raise ArgumentTypeError(
                f"`{argument}` is a {type(value).__name__}, which holds no draws."
            )
        return open_tree([Path(file) for file in runs.csv_files], argument=argument)
    if maker == "emcee" and hasattr(value, "get_chain"):  # its walkers are chains
        draws, lp = (np.swapaxes(v, 0, 1) for v in (value.get_chain(), value.get_log_prob()))
        groups = {schema.POSTERIOR: {"x": draws}, schema.SAMPLE_STATS: {schema.LP: lp}}
        return _of_mapping(groups, argument)
    if maker == "pandas" and hasattr(value, "columns"):
        return _of_mapping(groups_of(value, argument), argument)
    if isinstance(value, xr.Dataset | xr.DataArray):
        return _of_xarray(value, argument)
    if isinstance(value, Mapping) or hasattr(value, "__array__"):
        return _of_mapping(value if isinstance(value, Mapping) else {"x": value}, argument)
    from arviz_base import convert_to_datatree

    return convert_to_datatree(value)


def _of_xarray(value: xr.Dataset | xr.DataArray, argument: str) -> xr.DataTree:
    dataset = value if isinstance(value, xr.Dataset) else value.to_dataset(name=value.name or "x")
    own = {dim: dataset.indexes[dim] for dim in dataset.dims if dim in dataset.indexes}
    stacked = [dim for dim, index in own.items() if {*schema.SAMPLE_DIMS} <= {*index.names}]
    dataset = dataset.unstack(stacked)  # as ArviZ's `extract` stacks them
    if (numbers := own.get("draw")) is not None and not numbers.is_monotonic_increasing:
        dataset = dataset.sortby("draw")
    there = {str(name): name for name in (*dataset.variables, *dataset.dims)}
    slashed = {name: own.replace("/", ".") for own, name in there.items() if "/" in own}
    if slashed:
        storable_names(dict.fromkeys(dataset.data_vars), argument)
        dataset = dataset.rename(slashed)
    tree = xr.DataTree.from_dict({schema.POSTERIOR: dataset})
    tree.attrs = dict(dataset.attrs)
    return tree


def _of_mapping(value: Mapping[Any, Any], argument: str) -> xr.DataTree:
    """Give arrays by name, or groups of them by theirs; Stan's columns such as `lp__` are statistics."""
    if not isinstance(value.get(schema.POSTERIOR), Mapping):
        stats = {n: v for n, v in value.items() if isinstance(n, str) and n.endswith("__")}
        draws = {name: held for name, held in value.items() if name not in stats}
        value = {schema.POSTERIOR: draws} | ({schema.SAMPLE_STATS: stats} if stats else {})
    groups = {}
    for group, held in value.items():
        if isinstance(held, xr.Dataset):
            groups[group] = _of_xarray(held, argument)[schema.POSTERIOR].to_dataset()
        elif isinstance(held, Mapping):
            lead = () if group in schema.DATA_GROUPS else schema.SAMPLE_DIMS
            groups[group] = dataset_of(held, argument, lead=lead)
        else:
            raise ArgumentError(
                f"`{argument}` holds {group!r} besides the group `posterior`, and every entry must be a group of "
                "arrays then."
            )
    return xr.DataTree.from_dict(groups)


def _of_numpyro(mcmc: Any, argument: str) -> xr.DataTree:
    if getattr(mcmc, "last_state", None) is None:
        raise ArgumentTypeError(
            f"`{argument}` is an MCMC that has not run yet: call `mcmc.run(rng_key)` first."
        )
    samples = mcmc.get_samples(group_by_chain=True)
    if isinstance(samples, dict) and any("/" in name for name in samples):
        stats = dict(mcmc.get_extra_fields(group_by_chain=True))
        if "potential_energy" in stats:
            stats[schema.LP] = -stats.pop("potential_energy")
        tree = _of_mapping({schema.POSTERIOR: samples, schema.SAMPLE_STATS: stats}, argument)
    else:
        from arviz_base import from_numpyro

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Found chain dimension")  # many short chains
            tree = from_numpyro(mcmc)
    free = getattr(mcmc.last_state, "z", None)
    if isinstance(free, dict) and schema.POSTERIOR in tree.children:
        own = {name.replace("/", ".") for name in free}
        names = map(str, tree[schema.POSTERIOR].data_vars)
        kinds = {name: "parameter" if name in own else "transformed" for name in names}
        tree.attrs[schema.KINDS] = json.dumps(kinds)
    tree.attrs[schema.ENGINE] = "numpyro"
    depth = getattr(mcmc.sampler, "_max_tree_depth", None)
    if isinstance(depth, tuple):  # NumPyro's of warmup and of draws
        depth = depth[-1]
    if isinstance(depth, int):
        tree.attrs[schema.MAX_TREE_DEPTH] = depth
    return tree
