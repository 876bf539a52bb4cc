"""Open posteriors from files, recognised by content and then by name, and from objects of other packages.

Files `NAME_1.csv`, `NAME_2.csv`, ... in one folder (or `NAME-1.csv`, `NAME.1.csv`) are the chains of one posterior,
called NAME. A folder that is not a Zarr store stands for its CSV files, and a pattern (`'fits/a_*.csv'`) for the files
that match. Any other file is a whole posterior. Groups of draws have the axes (chain, draw, ...), and statistics have
ArviZ's current names. A slash in a name becomes a dot, since no file can store a slash. Masked draws become NaN.
"""

from __future__ import annotations

import glob
import json
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.checks import Paths, check_paths, checks_arguments
from onebasin.base.errors import (
    ArgumentError,
    ArgumentTypeError,
    FormatError,
    OnebasinError,
    PosteriorFileError,
)
from onebasin.base.files import netcdf

from . import schema, tables
from .join import join
from .schema import adopted
from .storable import dataset_of, storable_names
from .tables import CHAIN_COLUMNS, GZIP, ORDER_COLUMNS, ChainFile, groups_of
from .writing import is_store, read_store

Files = tuple[Path, ...]

_CHAIN = re.compile(r"(?P<stem>.+)[-_.](?P<chain>\d+)")
_TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_SUFFIXES = (".nc", ".nc4", ".netcdf", ".zarr", *_TABLES, ".parquet")


def is_csv(path: Path) -> bool:
    """Check by its name whether a file is a CSV file, compressed or not."""
    return path.name.lower().endswith(_TABLES)


def expanded(path: Path) -> Files:
    """Return the files that a path stands for: matches of a pattern, CSV files of a folder, or the path itself."""
    if path.is_dir() and not is_store(path):
        return tuple(sorted(filter(is_csv, path.iterdir()), key=_order)) or (path,)
    if glob.has_magic(str(path)) and not path.exists():
        return tuple(sorted(map(Path, glob.glob(str(path))), key=_order)) or (path,)
    return (path,)


def grouped(paths: Iterable[Path]) -> list[Files]:
    """Group paths by run, in the order in which each run first appears."""
    groups: dict[tuple[Path, str] | Path, list[Path]] = {}
    for path in paths:
        if path.is_dir() and not is_store(path):
            groups.setdefault(path, []).extend(expanded(path))
            continue
        for file in expanded(path):
            found = _CHAIN.fullmatch(_bare(file)) if is_csv(file) else None
            groups.setdefault((file.parent, found["stem"]) if found else file, []).append(file)
    return [tuple(sorted(files, key=_order)) for files in groups.values()]


def stem(files: Sequence[Path]) -> Path:
    """Return the common name of a posterior's files, without suffix and chain number."""
    first = files[0]
    found = _CHAIN.fullmatch(_bare(first)) if is_csv(first) and len(files) > 1 else None
    return first.with_name(found["stem"] if found else _bare(first))


def _bare(path: Path) -> str:
    """Return a file's name without its suffixes."""
    lower = path.name.lower()
    ends = [suffix for suffix in _SUFFIXES if lower.endswith(suffix)] or [path.suffix]
    return path.name[: len(path.name) - max(map(len, ends))] or path.name


def _order(path: Path) -> tuple[str, int, str]:
    """Return a sort key that orders chains by number, so that 10 follows 9."""
    found = _CHAIN.fullmatch(_bare(path))
    if found is None:
        return (str(path), 0, "")
    return (str(path.parent / found["stem"]), int(found["chain"]), str(path))


_WRITER = "onebasin or ArviZ"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_CLASSIC = b"CDF"
_HEAD = 512


def open_tree(paths: Sequence[Path], *, lazy: bool = False, argument: str = "path") -> xr.DataTree:
    """Read a posterior from files or stores; several files become the chains of one posterior.

    If `lazy`, arrays are read when they are used, until the tree is closed. Raise `PosteriorFileError` if the files
    contain no posterior; its message calls them `argument`.
    """
    files = [file for path in paths for file in expanded(path)]
    try:
        tree = _read(files, lazy=lazy)
    except FormatError as fault:
        raise PosteriorFileError(f"`{argument}` must name a posterior, but {fault}") from fault
    except PosteriorFileError as fault:
        raise PosteriorFileError(str(fault).replace("`path`", f"`{argument}`", 1)) from fault
    except PermissionError as fault:
        raise PosteriorFileError(
            f"`{argument}` must name a posterior, but you do not have permission to read "
            f"{fault.filename or files[0]}."
        ) from fault
    return adopted(tree)


def _read(files: Sequence[Path], *, lazy: bool) -> xr.DataTree:
    if not files:
        raise FormatError("nothing", "was given: name a file")
    if len(files) == 1:
        return _read_one(files[0], lazy=lazy)
    for file in files:
        if not file.is_file() and not (file.is_dir() and is_store(file)):
            what = "is a folder" if file.is_dir() else "does not exist or is not a file"
            raise FormatError(file, what)
    seen: dict[str, Path] = {}
    for file in files:
        if seen.setdefault(os.path.realpath(file), file) is not file:
            raise FormatError(file, "is given twice: give each file once")
    if all(map(is_csv, files)):
        chains = list(map(ChainFile.of, files))
        if not any(_says(chain, CHAIN_COLUMNS) for chain in chains):
            return tables.read_chains(chains)
    return join([_read_one(file, lazy=True) for file in files], files)


def _read_one(path: Path, *, lazy: bool) -> xr.DataTree:
    """Read a file or store in the format of its content, or of its name if the content is ambiguous."""
    if path.is_dir():
        if is_store(path):
            return _with_draws(read_store(path), path)
        raise FormatError(path, "is a folder that is not a Zarr store and contains no CSV files")
    if not path.is_file() and glob.has_magic(str(path)):
        raise FormatError(path, "is a pattern that no file matches: correct the pattern")
    if path.suffix == ".stan" and path.is_file():
        raise FormatError(path, "is a Stan program: sample it, then give the file with the draws")
    head = _CLASSIC  # The NetCDF reader reports a missing file.
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(_HEAD)
    if head.startswith(tables.PARQUET):
        return tables.read_parquet(path)
    is_text = is_csv(path) or head.startswith(GZIP) or b"stan_version" in head
    if is_text and not head.startswith((_HDF5, _CLASSIC)):
        table = ChainFile.of(path)
        if _says(table, (*CHAIN_COLUMNS, *ORDER_COLUMNS)):
            return tables.read_csv(table)
        return tables.read_chains([table])
    tree = netcdf.read_tree(path, None, error=PosteriorFileError, writer=_WRITER, lazy=lazy)
    return _with_draws(tree, path)


def _says(file: ChainFile, columns: tuple[str, ...]) -> bool:
    """Check whether a table that is not CmdStan's has one of these columns."""
    return not file.header.is_stans and any(name in file.columns for name in columns)


def _with_draws(tree: xr.DataTree, path: Path) -> xr.DataTree:
    """Return a tree with the group `posterior`; a dataset without groups becomes this group."""
    if schema.POSTERIOR in tree.children:
        return tree
    alone = tree.to_dataset()
    if not set(schema.SAMPLE_DIMS) <= set(alone.sizes):
        tree.close()
        raise FormatError(
            path,
            f"has no group '{schema.POSTERIOR}' with draws: give a file with the draws of a "
            "posterior",
        )
    made = type(tree).from_dict({schema.POSTERIOR: alone})
    made.set_close(tree.close)
    return made


def names_files(value: Any) -> bool:
    """Check whether a value is a path or a list of paths."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(path, str | os.PathLike) for path in value)
    return isinstance(value, str | os.PathLike)


def convert(value: Any, argument: str = "posterior") -> xr.DataTree:
    """Convert the result of a sampler to a tree with onebasin's names; messages call it `argument`.

    The result may be a finished `MCMC` of NumPyro, a fit of cmdstanpy, a sampler of emcee, a dataset, a mapping of
    arrays (chain, draw, ...) or of groups of such arrays, a pandas table with one row per draw, or anything that ArviZ
    converts. Raise `TypeError` for other objects and `ValueError` if a variable is not numeric.
    """
    try:
        return adopted(_tree_of(value, argument))
    except OnebasinError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise ArgumentTypeError(
            f"`{argument}` must be an `xarray.DataTree`, the result of an inference method, one or more paths of "
            "posterior files, a mapping from names to arrays of shape (chain, draw, ...), or another object that "
            f"ArviZ can convert; got {type(value).__name__}."
        ) from error


def _tree_of(value: Any, argument: str) -> xr.DataTree:
    maker = type(value).__module__.split(".")[0]
    if maker == "numpyro" and hasattr(value, "get_samples"):
        return _of_numpyro(value, argument)
    if maker == "cmdstanpy":
        runs = getattr(value, "runset", None) or getattr(value, "_runset", None)
        if runs is None:
            raise ArgumentTypeError(
                f"`{argument}` is of type {type(value).__name__}, which contains no draws. Give the fit that the "
                "method `sample` returns."
            )
        return open_tree([Path(file) for file in runs.csv_files], argument=argument)
    if maker == "emcee" and hasattr(value, "get_chain"):  # Its walkers count as chains.
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
    dataset = dataset.unstack(stacked)  # ArviZ's `extract` stacks chains and draws.
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
    """Convert a mapping from names to arrays, or to groups of arrays; Stan's columns such as `lp__` are statistics."""
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
                f"`{argument}` has the group `posterior`, so each entry must be a group of arrays, but {group} is "
                f"not. Convert {group!r} to a group."
            )
    return xr.DataTree.from_dict(groups)


def _of_numpyro(mcmc: Any, argument: str) -> xr.DataTree:
    if getattr(mcmc, "last_state", None) is None:
        raise ArgumentTypeError(
            f"`{argument}` is an `MCMC` object that has not been run: call `mcmc.run(rng_key)` first."
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
            warnings.filterwarnings("ignore", "Found chain dimension")  # Many short chains.
            tree = from_numpyro(mcmc)
    free = getattr(mcmc.last_state, "z", None)
    if isinstance(free, dict) and schema.POSTERIOR in tree.children:
        own = {name.replace("/", ".") for name in free}
        names = map(str, tree[schema.POSTERIOR].data_vars)
        kinds = {name: "parameter" if name in own else "transformed" for name in names}
        tree.attrs[schema.KINDS] = json.dumps(kinds)
    tree.attrs[schema.ENGINE] = "numpyro"
    depth = getattr(mcmc.sampler, "_max_tree_depth", None)
    if isinstance(depth, tuple):  # The depths for warmup and for sampling.
        depth = depth[-1]
    if isinstance(depth, int):
        tree.attrs[schema.MAX_TREE_DEPTH] = depth
    return tree


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
