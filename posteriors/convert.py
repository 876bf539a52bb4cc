"""Results of samplers in this process as trees: NumPyro's `MCMC`, fits of cmdstanpy, and what ArviZ converts."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.errors import ArgumentError, ArgumentTypeError

from . import schema
from .adopt import adopted
from .opening import open_tree


def names_files(value: Any) -> bool:
    """Whether a value is a path, or several of them."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(path, str | os.PathLike) for path in value)
    return isinstance(value, str | os.PathLike)


def convert(value: Any) -> xr.DataTree:
    """Convert what a sampler has returned to a tree in our words.

    Parameters
    ----------
    value
        An `MCMC` of NumPyro that has run, a fit of cmdstanpy with draws, a dataset or mapping of arrays (chain, draw,
        ...), or anything else that ArviZ converts.

    Raises
    ------
    TypeError, ValueError
        If it is nothing of the kind, or has not run.
    PosteriorFileError
        If the files of a fit are gone or hold no draws.
    """
    from arviz_base import convert_to_datatree

    module = type(value).__module__
    if module.startswith("numpyro.") and hasattr(value, "get_samples"):
        return adopted(_of_numpyro(value))
    if module.startswith("cmdstanpy."):
        return _of_cmdstanpy(value)
    if any(map(np.ma.is_masked, value.values() if isinstance(value, Mapping) else [value])):
        raise ArgumentError("it has masked entries")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of lengths that are judged later
        tree = convert_to_datatree(value)
    if isinstance(value, xr.Dataset):
        tree.attrs = dict(value.attrs)
    return adopted(tree)


def _of_numpyro(mcmc: Any) -> xr.DataTree:
    from arviz_base import from_numpyro

    if getattr(mcmc, "last_state", None) is None:
        raise ArgumentError("it has not run yet: call `mcmc.run(rng_key)` first")
    tree = from_numpyro(mcmc)
    free = getattr(mcmc.last_state, "z", None)
    if isinstance(free, dict) and schema.POSTERIOR in tree.children:
        names = map(str, tree[schema.POSTERIOR].data_vars)
        kinds = {name: "parameter" if name in free else "transformed" for name in names}
        tree.attrs[schema.KINDS] = json.dumps(kinds)
    tree.attrs[schema.ENGINE] = "numpyro"
    depth = getattr(mcmc.sampler, "_max_tree_depth", None)
    if isinstance(depth, tuple):  # NumPyro's of warmup and of draws
        depth = depth[-1]
    if isinstance(depth, int):
        tree.attrs[schema.MAX_TREE_DEPTH] = depth
    return tree


def _of_cmdstanpy(fit: Any) -> xr.DataTree:
    runs = getattr(fit, "runset", None) or getattr(fit, "_runset", None)
    if runs is None:
        raise ArgumentTypeError("it holds no draws")
    return open_tree([Path(file) for file in runs.csv_files])
