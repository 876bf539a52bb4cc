"""Posteriors as `DataTree`s: building, saving and loading. docs/reference/posterior.md says what they hold."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import xarray as xr

from onebasin.base.checks import Paths, check_class, check_path, check_paths, checks_arguments
from onebasin.base.errors import ArgumentError, PosteriorFileError
from onebasin.base.files.writing import claim
from onebasin.models.target import Target
from onebasin.posteriors import schema
from onebasin.posteriors.open import open_tree
from onebasin.posteriors.pointwise import LIMIT_MB, DrawGroup, Values
from onebasin.posteriors.scratch import close_with
from onebasin.posteriors.writing import format_of, write_tree

from ..contracts.engines import definition_of
from ..contracts.method import Found
from .groups import beside
from .origin import NOWHERE, Origin, machine, versions


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
    """Write a posterior in the format that the name's suffix says; it appears whole or not at all.

    Parameters
    ----------
    tree : DataTree
        The posterior.
    path : path
        ``.nc`` is NetCDF, ``.zarr`` and ``.zarr.zip`` are Zarr: these hold everything. ``.csv`` and ``.parquet`` hold
        draws and statistics; a notice says what they leave out.
    force : bool
        Whether what is there may be replaced.

    Returns
    -------
    pathlib.Path
        Where it is.

    Raises
    ------
    TypeError, ValueError
        If `tree` is no posterior, `path` no path or of an unknown suffix, or the format cannot hold what is there.
    PosteriorFileError
        If the file exists and `force` is false, is no plain file, or its folder cannot be written to.
    InUse
        If somebody else is writing it.
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
    """Read a posterior from files, whatever their format: NetCDF, Zarr, CmdStan's CSV, tables.

    Parameters
    ----------
    path : path or sequence of paths
        A file or a store. Several are runs of one model, put together as the chains of one posterior: what they were
        made with must agree, but for seed and number of chains. A pattern stands for the files that match, a folder for
        its CSV files.
    lazy : bool
        Whether a NetCDF file is read as far as it is asked for, until the tree is closed; otherwise the posterior is
        read into memory, as other formats and several files always are.

    Returns
    -------
    DataTree
        With the groups and attributes that the files hold, statistics under ArviZ's names.

    Raises
    ------
    TypeError, ValueError
        If `path` is no path.
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
