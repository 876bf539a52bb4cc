"""Initial values by chain, as users give them: a mapping, a list, files, or an earlier posterior."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError
from onebasin.base.text import dotted, read_json_file
from onebasin.posteriors.view import View, as_view


def initial_values(
    given: Any, chains: int, seed: int
) -> tuple[list[Mapping[str, Any]], View | None]:
    """Read initial values: one mapping for all chains or one per chain, JSON files with these, or a posterior.

    Return for each chain a mapping from names to constrained values, in which names may be missing. Also return the
    posterior, if one is given; its draws may have more variables than the model. Chain c gets a draw, chosen by the
    seed, from chain c of the posterior, modulo its number of chains.
    """
    if isinstance(given, Mapping) and not hasattr(given, "sizes"):  # xarray's mappings have sizes.
        return [dotted(given)] * chains, None
    if isinstance(given, str | Path) and Path(given).suffix == ".json":
        return [_read(given)] * chains, None
    if isinstance(given, Sequence) and not isinstance(given, str):
        if len(given) != chains:
            raise ArgumentError(
                f"`init` must have one entry per chain (entries: {len(given)}; chains: {chains})."
            )
        found = [_read(each) if isinstance(each, str | Path) else each for each in given]
        for each in found:
            if not isinstance(each, Mapping):
                raise ArgumentError(
                    f"`init` has an entry of type {type(each).__name__}. For each chain, give a JSON file or a "
                    "mapping from names to values."
                )
        return dotted(found), None
    view = as_view(given, "init")
    arrays = {name: view.values(name) for name in view.kinds.named("parameter")}
    places = tuple(
        (
            chain % view.num_chains,
            int(np.random.default_rng([seed, chain]).integers(view.num_draws)),
        )
        for chain in range(chains)
    )
    return [{n: v[at] for n, v in arrays.items()} for at in places], view


def _read(path: str | Path) -> dict[str, Any]:
    return dotted(read_json_file(Path(path), error=ArgumentError, argument="init"))
