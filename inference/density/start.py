"""Starting points as users give them, checks of them and errors about them, for NumPyro models and Stan programs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError, InferenceError
from onebasin.base.text import dotted, read_json_file
from onebasin.posteriors.view import View, as_view

TRIES = 100  # Maximum number of points tried for a start, as in Stan.
RADIUS = 2.0  # Symmetries are checked at points uniform within +-RADIUS in the unconstrained space.


def no_start(name: str, reason: str) -> InferenceError:
    """Return the error for a chain or a fit that has no starting point."""
    return InferenceError(
        f"No starting point with a finite log density was found for {name!r} ({reason}). Check the data and the prior, "
        "or lower `init_radius`."
    )


def no_point(name: str, tried: int) -> InferenceError:
    """Return the error for a symmetry that cannot be checked at any point."""
    return InferenceError(
        f"No point with a finite log density was found for {name!r} among {tried} points within +-{RADIUS:g} in the "
        "unconstrained space. Check the data and the prior."
    )


def check_names(start: Mapping[str, Any], expected: tuple[str, ...]) -> Mapping[str, Any]:
    """Check that a start has exactly the expected variables, and return it."""
    start = dotted(start)
    missing = [name for name in expected if name not in start]
    unknown = [name for name in start if name not in expected]
    if missing or unknown:
        faults = [f"lacks {', '.join(missing)}"] if missing else []
        faults += [f"has {', '.join(map(str, unknown))}, which the target lacks"] if unknown else []
        raise ArgumentError(
            f"`start` {' and '.join(faults)}. Give values for exactly these variables: {', '.join(expected)}."
        )
    return start


def shaped(name: str, shape: tuple[int, ...], start: Any) -> np.ndarray:
    """Return the value of a variable if it has the right shape."""
    values = np.asarray(start, np.float64)
    if values.shape != shape:
        raise ArgumentError(
            f"The value of {name} in `start` has shape {values.shape}, but the target needs shape {shape}."
        )
    return values


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
