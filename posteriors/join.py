"""Join runs of one model from separate files into one posterior with the chains of all runs.

Several machines can thus produce one posterior: each runs some chains with its own seed. The attributes that describe
the model and the method must agree. The attribute `joined` records the seed, machine, command and times of each run.
The module `tables` reads CmdStan's CSV files, one per chain.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.errors import FormatError
from onebasin.base.files.netcdf import loaded, pieces
from onebasin.models.symmetry.evidence import Evidence

from . import schema
from .schema import adopted
from .scratch import close_with

_MCMC = ("nuts", "hmc")
"""Methods whose draws form Markov chains."""
_AGREE = {
    schema.METHOD: "method",
    schema.ENGINE: "engine",
    schema.MODEL: "network",
    schema.PROGRAM: "program",
    schema.DATA_SHA256: "data",
    schema.SYMMETRY: "symmetry",
}
"""Attributes that must agree between runs, and their names in messages."""
_OWN = (schema.SEED, schema.COMMAND, schema.CREATED_AT, schema.MACHINE, schema.WALL_TIME)
"""Attributes that belong to a single run."""


def join(trees: Sequence[xr.DataTree], paths: Sequence[Path]) -> xr.DataTree:
    """Join runs in memory; the chains keep the order of the files.

    Reject runs of different models, methods or settings, and a chain that appears twice. Messages and the attribute
    `joined` use the paths.
    """
    runs = [adopted(tree) for tree in trees]
    for run in runs:
        run.attrs = {name: schema.plain(value) for name, value in run.attrs.items()}
    for run, path in zip(runs[1:], paths[1:], strict=True):
        for difference in _differences(run, runs[0], paths[0]):
            raise FormatError(path, difference)
    _check_chains(runs, paths)
    groups = {}
    for name in (schema.POSTERIOR, schema.SAMPLE_STATS, *schema.DRAW_GROUPS):
        each = [run[name].to_dataset() for run in runs if name in run.children]
        if len(each) == len(runs) and (joined := _chains(each)) is not None:
            groups[name] = joined
    for name in schema.DATA_GROUPS:
        if name in runs[0].children:
            groups[name] = runs[0][name].to_dataset()
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = _attributes(runs, paths)
    for run in trees:
        close_with(tree, run)
    with tree:
        return loaded(tree)


def _differences(run: xr.DataTree, first: xr.DataTree, other: Path) -> Iterator[str]:
    """Say why a run does not belong to the posterior of the first run, whose file is `other`."""
    method = run.attrs.get(schema.METHOD) or first.attrs.get(schema.METHOD)
    aligned = schema.ALIGNMENT in run.children
    if (method and method not in _MCMC) or aligned:
        what = "an aligned posterior" if aligned else f"of the method {method}"
        yield f"is {what}, so it cannot be joined with {other}: join only unaligned runs of nuts or hmc"
    for name, word in _AGREE.items():
        if run.attrs.get(name) != first.attrs.get(name):
            yield f"differs from {other} in its {word}: join runs of one posterior, or use `compare`"
    for name, (value, there) in _differing(_settings(run), _settings(first)):
        yield (
            f"was made with {name}={value}, whereas {other} was made with {name}={there}: join runs with the same "
            "settings"
        )
    shapes = (
        {
            str(name): tuple(size for dim, size in values.sizes.items() if dim != "chain")
            for name, values in each[schema.POSTERIOR].data_vars.items()
        }
        for each in (run, first)
    )
    for name, (here, there) in _differing(*shapes):
        yield (
            f"differs from {other} in its variables or number of draws (shapes of {name}: {here or 'missing'} and "
            f"{there or 'missing'}). Join runs of the same model with equal numbers of draws"
        )


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for name in {**a, **b}:
        if a.get(name) != b.get(name):
            yield name, (a.get(name), b.get(name))


def _settings(run: xr.DataTree) -> dict[str, Any]:
    """Return the settings of a run except the number of chains."""
    settings = schema.decode(run.attrs, schema.SETTINGS)
    held = settings if isinstance(settings, dict) else {}
    return {name: value for name, value in held.items() if name != "chains"}


def _check_chains(runs: Sequence[xr.DataTree], paths: Sequence[Path]) -> None:
    """Reject a chain that appears in two files."""
    seen: dict[bytes, Path] = {}
    for run, path in zip(runs, paths, strict=True):
        draws = run[schema.POSTERIOR].to_dataset().transpose("chain", "draw", ...)
        for chain in range(draws.sizes["chain"]):
            digest = hashlib.sha256()
            for values in draws.data_vars.values():
                for rows in pieces(values[chain]):
                    digest.update(np.ascontiguousarray(rows.values).tobytes())
            twin = seen.setdefault(digest.digest(), path)
            if twin is not path:
                raise FormatError(
                    path, f"has the same chain as {twin}: give every run its own seed"
                )


def _chains(datasets: Sequence[xr.Dataset]) -> xr.Dataset | None:
    """Join one group of all runs; return None if the runs store different draws or variables in it."""
    alike = all(
        dataset.sizes["draw"] == datasets[0].sizes["draw"]
        and set(dataset.data_vars) == set(datasets[0].data_vars)
        and ("draw" not in dataset.coords or dataset["draw"].equals(datasets[0]["draw"]))
        for dataset in datasets
    )
    if not alike:
        return None
    joined = xr.concat(datasets, dim="chain", join="override", combine_attrs="drop_conflicts")
    return joined.assign_coords(chain=np.arange(joined.sizes["chain"]))


def _attributes(runs: Sequence[xr.DataTree], paths: Sequence[Path]) -> dict[str, Any]:
    """Return the shared attributes, the sums of additive attributes, and the attributes of each run."""
    kept: dict[str, Any] = {
        str(name): value
        for name, value in runs[0].attrs.items()
        if name != schema.FINGERPRINT and all(run.attrs.get(name) == value for run in runs[1:])
    }
    sizes = [run[schema.POSTERIOR].sizes["chain"] for run in runs]
    if any(schema.SETTINGS in run.attrs for run in runs):
        kept[schema.SETTINGS] = json.dumps({**_settings(runs[0]), "chains": sum(sizes)})
    for name in (schema.WARMUP_SECONDS, schema.SAMPLING_SECONDS):
        lists = [schema.decode(run.attrs, name) for run in runs]
        if all(isinstance(seconds, list) for seconds in lists):
            kept[name] = json.dumps([second for seconds in lists for second in seconds])
    if any(schema.RESTARTS in run.attrs for run in runs):
        restarts = [
            schema.decode(run.attrs, schema.RESTARTS) or [[]] * size
            for run, size in zip(runs, sizes, strict=True)
        ]
        kept[schema.RESTARTS] = json.dumps([draws for each in restarts for draws in each])
    for name in (schema.GRADIENT_EVALUATIONS, schema.WALL_TIME):
        if all(name in run.attrs for run in runs):
            summed = sum(schema.number(run.attrs, name) or 0 for run in runs)
            kept[name] = int(summed) if name == schema.GRADIENT_EVALUATIONS else summed
    found = [evidence for run in runs if (evidence := schema.evidence_of(run.attrs)) is not None]
    if found:
        kept[schema.SYMMETRY_EVIDENCE] = reduce(Evidence.joined, found).to_json()
    kept[schema.CREATED_AT] = schema.now()
    kept[schema.JOINED] = json.dumps(
        [
            {"file": path.name, "chains": size} | {n: run.attrs[n] for n in _OWN if n in run.attrs}
            for run, path, size in zip(runs, paths, sizes, strict=True)
        ]
    )
    return kept
