"""Posteriors as `DataTree`s: building, saving and loading. docs/reference/posterior.md says what they hold.

All that a posterior holds next to its draws, whatever the model is stated in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import xarray as xr

from onebasin.base.checks import Paths, check_class, check_path, check_paths, checks_arguments
from onebasin.base.errors import ArgumentError, PosteriorFileError
from onebasin.base.files.netcdf import pieces
from onebasin.base.files.writing import claim
from onebasin.base.precision import precision
from onebasin.base.run_log import notice
from onebasin.models.target import Named, Target
from onebasin.posteriors import schema
from onebasin.posteriors.open import open_tree
from onebasin.posteriors.pointwise import (
    LIMIT_MB,
    DrawGroup,
    Values,
    bytes_a_draw,
    labelled,
    network_groups,
    why_left_out,
)
from onebasin.posteriors.schema import LOG_LIKELIHOOD, LOG_PRIOR, POSTERIOR_PREDICTIVE
from onebasin.posteriors.scratch import close_with
from onebasin.posteriors.view import GENERATED, PARAMETER
from onebasin.posteriors.writing import format_of, write_tree
from onebasin.stan.program import ProgramQuantities, definition, find_roles

from ..contracts.method import Found, definition_of
from .origin import NOWHERE, Origin, machine, versions, with_axes

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import NetworkTarget


def build(
    target: Target,
    draws: Mapping[str, Values],
    stats: Mapping[str, Values],
    attributes: Mapping[str, Any],
    *,
    origin: Origin = NOWHERE,
    groups: Mapping[str, xr.Dataset] = MappingProxyType({}),
    predictive_mb: float = LIMIT_MB,
    folder: Path | None = None,
) -> xr.DataTree:
    """Put draws and statistics into a posterior, with the groups and attributes of docs/reference/posterior.md.

    Draws are arrays (chain, draw, ...) by variable, statistics arrays (chain, draw); a `DataArray` that is still in its
    file stays there. `attributes` say how it was made: numbers and text, or anything that JSON can say. `origin` is
    what the target was made of when the run began; without it, nothing is computed next to the draws. `groups` are more
    groups, such as the parameters of a fit. Log likelihoods, predictions and log priors may take `predictive_mb`
    megabytes together, and are laid down in `folder` where they are many; without one they stay in memory.
    """
    engine = definition_of(target, attributes.get(schema.ENGINE, "numpyro"))
    settings = attributes.get(schema.SETTINGS)
    rest = beside(
        target,
        draws,
        origin,
        engine=engine,
        seed=attributes.get(schema.SEED, 0),
        dtype=settings.get("dtype", "float64") if isinstance(settings, Mapping) else "float64",
        limit_mb=predictive_mb,
        folder=folder,
    )
    whole = {
        schema.POSTERIOR: DrawGroup(rest.draws, {**target.dims, **origin.dims}).to_dataset(
            target.coords
        ),
        schema.SAMPLE_STATS: DrawGroup(stats).to_dataset(),
        **rest.datasets(target.coords),
        **groups,
    }
    tree = xr.DataTree.from_dict(whole)
    described = {
        schema.TARGET: target.name,
        schema.MODEL: target.describe(),
        schema.SYMMETRY: schema.encode_symmetry(target.symmetry),
        schema.VERSIONS: versions(),
        schema.MACHINE: machine(engine),
        schema.COMMAND: "",
        schema.CREATED_AT: schema.now(),
        schema.ATTEMPTS: [],
    } | origin.attributes(rest.draws)
    if rest.left_out:
        described[schema.LEFT_OUT] = rest.left_out
    tree.attrs = {k: schema.encode(v) for k, v in {**described, **attributes}.items()}
    for group in rest.groups.values():
        if group.filed is not None:
            close_with(tree, group.filed)
    return tree


def add_warmup(tree: xr.DataTree, found: Found) -> None:
    """Add the draws of a warmup to a posterior: the same variables, with the names and labels of the same axes."""
    like = tree[schema.POSTERIOR].to_dataset()
    dims = {str(n): tuple(map(str, v.dims[2:])) for n, v in like.data_vars.items()}
    values = {name: found.draws[name] for name in dims}
    labels = {
        str(name): axis.values
        for name, axis in like.coords.items()
        if name not in schema.SAMPLE_DIMS
    }
    tree[schema.WARMUP_POSTERIOR] = xr.DataTree(DrawGroup(values, dims).to_dataset(labels))
    tree[schema.WARMUP_SAMPLE_STATS] = xr.DataTree(DrawGroup(found.stats).to_dataset())
    if found.filed is not None:
        close_with(tree, found.filed)


@checks_arguments
def save(tree: xr.DataTree, path: str | Path, *, force: bool = False) -> Path:
    """Write a posterior in the format of the suffix. The file is written completely or not at all.

    Parameters
    ----------
    tree : DataTree
        The posterior.
    path : path
        ``.nc`` is NetCDF, ``.zarr`` and ``.zarr.zip`` are Zarr: these store everything. ``.csv`` and ``.parquet``
        store draws and statistics; a notice names what they omit.
    force : bool
        Whether to replace an existing file.

    Returns
    -------
    pathlib.Path
        The path.

    Raises
    ------
    TypeError, ValueError
        If `tree` is not a posterior, `path` is not a path or has an unknown suffix, or the format cannot store the
        posterior.
    PosteriorFileError
        If the file exists and `force` is false, it is not a plain file, or its folder is not writable.
    InUse
        If another process is writing it.
    WriteError
        If it cannot be written, such as on a full disk.

    Examples
    --------
    >>> ob.save(posterior, "run.nc", force=True).name
    'run.nc'
    """
    check_class("tree", tree, xr.DataTree, remedy="give what an inference method returned")
    if schema.POSTERIOR not in tree.children:
        raise ArgumentError(
            f"`tree` has no group `{schema.POSTERIOR}`; give what an inference method returned."
        )
    place = check_path("path", path)
    form = format_of(place)
    with claim(place, force=force, error=PosteriorFileError, replaces=form.replaces) as output:
        return write_tree(tree, output, new=not force)


@checks_arguments
def open_posterior(path: Paths, *, lazy: bool = False) -> xr.DataTree:
    """Read a posterior from files of any supported format: NetCDF, Zarr, CmdStan's CSV, or tables.

    Parameters
    ----------
    path : path or sequence of paths
        A file or a store. Several are runs of one model, joined as the chains of one posterior: all settings except
        the seed and the number of chains must agree. A pattern stands for the matching files, a folder for its CSV
        files.
    lazy : bool
        Whether to read a NetCDF file only on access, until the tree is closed; otherwise, and for other formats or
        several files, the posterior is read into memory.

    Returns
    -------
    DataTree
        The groups and attributes of the files, with statistics under ArviZ's names.

    Raises
    ------
    TypeError, ValueError
        If `path` is not a path.
    PosteriorFileError
        If a file does not exist, is damaged, or holds no posterior.

    Examples
    --------
    >>> _ = ob.save(posterior, "again.nc", force=True)
    >>> again = ob.open_posterior("again.nc")
    >>> again["posterior"]["mu"].equals(posterior["posterior"]["mu"])
    True
    """
    return open_tree(check_paths("path", path), lazy=lazy)


Draws = dict[str, Values]


def stan_groups(
    target: Target, draws: Mapping[str, Values], origin: Origin
) -> tuple[Draws, dict[str, DrawGroup], ProgramQuantities]:
    """Take draws apart: what stays in the posterior, the groups next to it, and what is what.

    What the declared symmetry moves stays, whatever it is called. Nothing is copied and no draw left out: the program
    has computed them.
    """
    program = definition(target)
    kinds = origin.kinds
    moved = {name for block in target.symmetry for name in block.variables}
    named = {name for _, name in program.roles.named}
    shapes = {
        name: values.shape[2:]
        for name, values in draws.items()
        if (kinds.get(name) == GENERATED and name not in moved) or name in named
    }
    derived = [n for n in draws if kinds.get(n, PARAMETER) != PARAMETER and n not in moved]
    data = arrays_of(program.data)
    found = find_roles(program.roles, data, shapes, priors=derived)
    whole = {
        own: _as_whole(draws[own])
        for of, own in found.posterior_predictive.items()
        if of in data and data[of].dtype.kind in "biu"
    }
    draws = {**draws, **whole}
    groups = {
        LOG_LIKELIHOOD: _group(draws, found.log_likelihood, target, found),
        POSTERIOR_PREDICTIVE: _group(draws, found.posterior_predictive, target, found),
        LOG_PRIOR: _group(draws, {n: n for n in found.log_prior}, target, found),
    }
    stays = {name: values for name, values in draws.items() if name not in found.moved}
    if not stays:  # a posterior of nothing is none
        return dict(draws), {}, found
    return stays, {name: group for name, group in groups.items() if group.values}, found


def arrays_of(data: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The data that are arrays of numbers; a tuple of Stan's is none."""
    arrays = {n: np.asarray(v) for n, v in data.items() if not isinstance(v, Mapping)}
    return {name: array for name, array in arrays.items() if array.dtype.kind in "biufc"}


def axes_of(target: Target, found: ProgramQuantities, name: str) -> tuple[str, ...] | None:
    """Names of the axes of observed data: their own, or those of what is of them; None if there are none."""
    for of in (name, found.posterior_predictive.get(name), found.log_likelihood.get(name)):
        if of is not None and of in target.dims:
            return tuple(target.dims[of])
    return None


def _as_whole(values: Values) -> Values:
    """Whole numbers as such, which CmdStan's files do not tell from others; so ArviZ knows counts from measurements."""
    if values.dtype.kind != "f":
        return values
    if isinstance(values, np.ndarray):
        return values.astype(np.int64) if _is_whole(values) else values
    if not all(_is_whole(rows.values) for chain in values for rows in pieces(chain)):
        return values
    return values.astype(np.int64)


def _is_whole(values: np.ndarray) -> bool:
    return bool((values == np.rint(values)).all())


def _group(
    draws: Mapping[str, Values], names: Mapping[str, str], target: Target, found: ProgramQuantities
) -> DrawGroup:
    values = {name: draws[own] for name, own in names.items()}
    dims = {n: axes for n in names if (axes := axes_of(target, found, n)) is not None}
    fitting = {n: axes[: values[n].ndim - 2] for n, axes in dims.items()}
    return DrawGroup(values, {n: a for n, a in fitting.items() if len(a) == values[n].ndim - 2})


POINTWISE = (LOG_LIKELIHOOD, POSTERIOR_PREDICTIVE)


class Beside(NamedTuple):
    """The groups next to the draws, and the draws that are left."""

    draws: Mapping[str, Values]  # the group `posterior`
    groups: Mapping[str, DrawGroup]  # log likelihoods, predictions, log priors
    observed: Mapping[str, Named]  # the data: axes and array
    constant: Mapping[str, Named]
    left_out: Mapping[str, str] = MappingProxyType({})  # groups that could be there, and why not

    def datasets(self, coords: Mapping[str, Any]) -> dict[str, xr.Dataset]:
        """The groups next to `posterior`."""
        found = {name: group.to_dataset(coords) for name, group in self.groups.items()}
        data = {schema.OBSERVED_DATA: self.observed, schema.CONSTANT_DATA: self.constant}
        for name, arrays in data.items():
            if arrays:
                found[name] = labelled(xr.Dataset(dict(arrays)), coords)
        return found


def beside(
    target: Target,
    draws: Mapping[str, Values],
    origin: Origin,
    *,
    engine: str,
    seed: int,
    dtype: str,
    limit_mb: float,
    folder: Path | None = None,
) -> Beside:
    """Find or compute all that goes next to a run's draws.

    What is much of it goes to `folder`, if one is given. Draws are never lost over it: where a log likelihood or a
    prediction cannot be computed, a notice says why, and so does `left_out`.
    """
    groups: dict[str, DrawGroup] = {}
    left: dict[str, str] = {}
    if origin is NOWHERE:
        return Beside(draws, {}, target.outputs, target.inputs)
    if target.is_network:
        net = cast("NetworkTarget", target)
        with precision(dtype):
            pointwise = network_groups(
                net.model, draws, net.x, net.y, seed=seed, limit_mb=limit_mb, folder=folder
            )
        if pointwise is None:
            why = why_left_out(bytes_a_draw(net.model, net.y), limit_mb)
            left = dict.fromkeys(POINTWISE, why)
        return Beside(draws, pointwise or {}, net.outputs, net.inputs, left)
    if engine == "stan":
        stays, groups, found = stan_groups(target, draws, origin)
        arrays = arrays_of(definition(target).data)
        named = with_axes(arrays, {n: axes_of(target, found, n) or () for n in arrays})
        observed = {name: named[name] for name in found.observed}
        constant = {name: value for name, value in named.items() if name not in observed}
        return Beside(stays, groups, observed, constant)
    from .groups_numpyro import numpyro_groups, reason

    if origin.observed:
        try:
            with precision(dtype):
                groups, left = numpyro_groups(
                    target, draws, origin.dims, seed=seed, limit_mb=limit_mb, folder=folder
                )
        except Exception as error:
            left = dict.fromkeys(POINTWISE, reason(error))
        if limit_mb:
            for group, why in left.items():
                notice(f"The posterior of {target.name!r} has no group {group}: {why}.")
    return Beside(draws, groups, origin.observed, origin.constant, left)
