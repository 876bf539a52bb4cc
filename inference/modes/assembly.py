"""A posterior out of basins: draws by the weights of the modes, and the table of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.posteriors import schema
from onebasin.posteriors.chains import rhat

from .basins import Basin, Regions, Walks
from .bridge import Estimate
from .tops import Tops, unseen
from .weights import Weights, shares_of_draws

TOO_NEAR = 10.0
"""Nats by which a mode that is not sampled has to lie below the highest to be left out of the weights."""


@dataclass(frozen=True)
class LeftOut:
    """A mode that was met and not sampled: nats that it lies below the highest, and the starts that led to it."""

    below: float
    starts: int


@dataclass(frozen=True, eq=False)
class WeighedModes:
    """Basins, the heaviest first, with what was found of each.

    Attributes
    ----------
    regions : Regions
        The basins.
    estimates : tuple of Estimate
        Their log evidences, all copies included.
    weights : Weights
        Their shares.
    """

    regions: Regions
    estimates: tuple[Estimate, ...]
    weights: Weights

    @property
    def basins(self) -> tuple[Basin, ...]:
        """Of every mode its basin."""
        return self.regions.basins


def draws_by_weight(
    modes: WeighedModes, walks: Walks, *, chains: int, draws: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "chain draw param"], dict[str, np.ndarray]]:
    """Draws of the posterior: in each chain as many of every mode as its weight says, in the order they were drawn."""
    rows = np.empty((chains, draws, 3), int)
    places = [
        _own_places(modes.regions, number, basin, chains)
        for number, basin in enumerate(modes.basins)
    ]
    for chain in range(chains):
        labels = np.array(shares_of_draws(np.exp(modes.weights.log), draws, rng))
        for number, own in enumerate(places):
            at = np.flatnonzero(labels == number)
            there = own[chain]
            picked = there[np.linspace(0, len(there) - 1, len(at)).round().astype(int)]
            rows[chain, at] = np.column_stack([picked, np.full(len(at), number)])
    which = rows[..., 0], rows[..., 1]
    stats = {name: values[which] for name, values in walks.stats.items()}
    return walks.vectors[which], {**stats, schema.MODE: rows[..., 2]}


def _own_places(regions: Regions, number: int, basin: Basin, chains: int) -> list[np.ndarray]:
    """For every chain of the posterior, the draws of a basin that it may take: chain and draw of each."""
    num_draws = basin.folded.shape[1]
    flat = basin.folded.reshape(-1, basin.folded.shape[-1])
    inside = (regions.of(flat) == number).reshape(-1, num_draws)
    every = np.array(
        [(basin.chains[c], d) for c, d in zip(*np.nonzero(inside), strict=True)], int
    ).reshape(-1, 2)
    if not len(every):
        every = np.array([(basin.chains[0], 0)])
    own = []
    for chain in range(chains):
        mine = every[np.isin(every[:, 0], basin.chains[chain::chains])]
        own.append(mine if len(mine) else every)
    return own


def table(modes: WeighedModes, walks: Walks, tops: Tops, left: Sequence[LeftOut]) -> xr.Dataset:
    """The group `modes`."""
    regions, weights = modes.regions, modes.weights
    columns: dict[str, Any] = {
        "weight": np.exp(weights.log),
        "weight_low": weights.low,
        "weight_high": weights.high,
        "log_weight": weights.log,
        "log_evidence": [estimate.value for estimate in modes.estimates],
        "log_evidence_error": [estimate.error for estimate in modes.estimates],
        "starts": [basin.starts for basin in modes.basins],
        "height": [basin.tops[0].height for basin in modes.basins],
        "rhat": [_worst_rhat(basin, walks) for basin in modes.basins],
        "strays": [_strays(regions, number, b) for number, b in enumerate(modes.basins)],
        "divergences": [int(walks.stats["diverging"][list(b.chains)].sum()) for b in modes.basins],
    }
    near = min((mode.below for mode in left), default=math.inf)
    counts = [basin.starts for basin in modes.basins] + [mode.starts for mode in left]
    attributes = {
        "known": int(weights.known and near > TOO_NEAR),
        "starts": tops.starts,
        "failed": tops.failed,
        "unseen": unseen(counts, tops.starts),
        "log_group_order": modes.regions.folding.log_order,
        "not_sampled": len(left),
        "nearest_not_sampled": near if left else math.nan,
    }
    data = {name: ("mode", np.asarray(column)) for name, column in columns.items()}
    return xr.Dataset(data, attrs=attributes)


def _worst_rhat(basin: Basin, walks: Walks) -> float:
    """R-hat within a mode, of folded coordinates and of the log density."""
    heights = walks.stats["lp"][list(basin.chains)]
    together = np.concatenate([basin.folded, heights[..., None]], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nanmax(rhat(np.moveaxis(together, -1, 0))))


def _strays(regions: Regions, number: int, basin: Basin) -> float:
    flat = basin.folded.reshape(-1, basin.folded.shape[-1])
    return float((regions.of(flat) != number).mean())
