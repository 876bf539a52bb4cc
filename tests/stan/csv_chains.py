"""Chains written by hand in the layout of Stan's CSV files."""

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

ADAPTATION = """\
# Adaptation terminated
# Step size = 0.9
# Diagonal elements of inverse mass matrix:
# 1
"""
TIMING = """\
#
#  Elapsed Time: {} seconds (Warm-up)
#                {} seconds (Sampling)
#                {} seconds (Total)
#
"""


def config(**changes) -> str:
    """The comments at the head of a file of `method=sample`."""
    facts = {
        "model": "toy_model",
        "method": "sample (Default)",
        "num_samples": "1000 (Default)",
        "num_warmup": "1000 (Default)",
        "save_warmup": "false (Default)",
        "thin": "1 (Default)",
        "algorithm": "hmc (Default)",
        "engine": "nuts (Default)",
        "max_depth": "10 (Default)",
    } | changes
    return "".join(f"# {name} = {value}\n" for name, value in facts.items() if value is not None)


def rows(columns: dict[str, np.ndarray]) -> str:
    table = np.column_stack(list(columns.values()))
    return "".join(",".join(f"{value:.17g}" for value in row) + "\n" for row in table)


def sampler_columns(count: int, seed: int) -> dict[str, np.ndarray]:
    """Of a sampler without trouble."""
    rng = np.random.default_rng([seed, 7])
    return {
        "lp__": rng.normal(-7, 1, count),
        "accept_stat__": rng.uniform(0.5, 1, count),
        "stepsize__": np.full(count, 0.9),
        "treedepth__": rng.integers(1, 4, count),
        "n_leapfrog__": rng.integers(1, 8, count),
        "divergent__": np.zeros(count),
        "energy__": rng.normal(8, 1, count),
    }


def write_chains(
    folder: Path,
    columns: dict[str, ArrayLike],
    *,
    warmup: int = 0,
    seconds: tuple[float, float] = (0.5, 2.0),
    **changes,
) -> list[Path]:
    """Write a file for each row of the columns, which are (chain, draw).

    Columns of the sampler's replace the harmless ones; `warmup` rows of nonsense come first.
    """
    arrays = {name: np.atleast_2d(np.asarray(draws, float)) for name, draws in columns.items()}
    chains, count = next(iter(arrays.values())).shape
    changes = {"num_samples": count} | changes
    if warmup:
        changes = {"save_warmup": "true", "num_warmup": warmup} | changes
    paths = []
    for chain in range(chains):
        table = sampler_columns(count, chain) | {name: a[chain] for name, a in arrays.items()}
        nonsense = {name: np.full(warmup, 1e6) for name in table}
        text = config(**changes) + ",".join(table) + "\n" + rows(nonsense) + ADAPTATION
        text += rows(table) + TIMING.format(*seconds, sum(seconds))
        paths.append(folder / f"chain_{chain + 1}.csv")
        paths[-1].write_text(text)
    return paths
