"""The nearest equivalent modes of all networks of the study, of whatever source, beside the bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.models import BayesianNetwork

from ...lab.images import classifier
from ...lab.study import Outcomes
from ..design import MADE, Config, units, width_key
from .proximity import Nearest, least_useful_width, mean_bound, nearest, theorem_bound, volume_bound
from .widths import WidthResults

SOURCES = {
    "prior": "draws from the prior",
    "hmc": "draws of HMC",
    "networks": "trained networks (MAP)",
    "mfvi": "MFVI, means",
    "recommended": "SGM, recommended, means",
}
"""Where networks come from, by key."""
DRAWS = 50
"""Draws looked at, of the prior and of HMC."""


@dataclass(frozen=True, eq=False)
class ProximityResults:
    """All distances.

    Attributes
    ----------
    part_dim : int
        Weights and biases of a unit.
    threshold : float or None
        Half distance in standard deviations below which one Gaussian between two modes has no optimum but the
        midpoint; None where it was not computed.
    found : mapping
        By key of the source and width.
    """

    part_dim: int
    threshold: float | None
    found: Mapping[tuple[str, int], Nearest]

    @property
    def widths(self) -> tuple[int, ...]:
        """Widths, ascending."""
        return tuple(sorted({width for _, width in self.found}))

    @property
    def sources(self) -> tuple[str, ...]:
        """Keys of the sources that there are."""
        return tuple(key for key in SOURCES if any(k == key for k, _ in self.found))

    def over_widths(self, source: str) -> list[tuple[int, Float[np.ndarray, " network"]]]:
        """Distances of a source, width by width."""
        return [
            (w, self.found[source, w].distance) for w in self.widths if (source, w) in self.found
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        bounds = {
            f"{width}": {
                "theorem": theorem_bound(width, self.part_dim),
                "volume": volume_bound(width, self.part_dim),
                "mean": mean_bound(width),
            }
            for width in self.widths
        }
        rows = [
            {"source": source, "width": width, "networks": len(near.distance), **_summary(near)}
            for (source, width), near in self.found.items()
        ]
        return {
            "part_dim": self.part_dim,
            "threshold": self.threshold,
            "log2_least_useful_width": least_useful_width(self.part_dim),
            "bounds": bounds,
            "distances": rows,
        }


def _summary(near: Nearest) -> dict[str, float]:
    """Means and ends over networks; separations where spreads are known."""
    found = {
        "distance": float(near.distance.mean()),
        "least": float(near.distance.min()),
        "largest": float(near.distance.max()),
    }
    if np.isnan(near.separation).any():
        return found
    apart = {"separation": float(near.separation.mean()), "close": float(near.close.mean())}
    return found | apart


def measure_proximity(
    config: Config, outcomes: Outcomes, results: WidthResults, *, threshold: float | None
) -> ProximityResults:
    """Find the nearest equivalent mode of every network of more than one unit."""
    found: dict[tuple[str, int], Nearest] = {}
    for width in config.widths:
        if width > 1:
            found |= {(source, width): near for source, near in _at_width(config, outcomes, width)}
    for (width, name), fits in results.fits.items():
        if name in SOURCES:
            found[name, width] = fits.nearest
    network = classifier(config.images, config.widths[0]).network
    return ProximityResults(network.in_dim + 1 + network.out_dim, threshold, found)


def _at_width(config: Config, outcomes: Outcomes, width: int) -> Iterator[tuple[str, Nearest]]:
    model, there = classifier(config.images, width), {cell.key for cell in outcomes}
    rng = np.random.default_rng([config.seed, width])
    shapes = model.network.shapes.items()
    block = units(model)
    yield "prior", nearest({n: rng.standard_normal((DRAWS, *shape)) for n, shape in shapes}, block)
    for source, key in (
        ("hmc", width_key(width, "truth", MADE)),
        ("networks", width_key(width, "ensemble")),
    ):
        if key in there:
            yield source, nearest(_networks(outcomes.by_key(key), model), block)


def _networks(tree: xr.DataTree, model: BayesianNetwork) -> dict[str, np.ndarray]:
    """Some draws of all chains, evenly spaced: (network, ...)."""
    posterior = tree["posterior"].to_dataset().transpose("chain", "draw", ...)
    total = posterior.sizes["chain"] * posterior.sizes["draw"]
    rows = np.linspace(0, total - 1, min(DRAWS, total)).astype(int)
    arrays = {name: posterior[name].values for name in model.network.shapes}
    return {name: v.reshape(-1, *v.shape[2:])[rows] for name, v in arrays.items()}
