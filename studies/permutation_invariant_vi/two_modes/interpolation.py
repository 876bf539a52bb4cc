"""Where one Gaussian sits between two equal modes: all optima, descents, and the thresholds of both.

Convention: `alpha` is half the distance between the modes +alpha u and -alpha u, each of standard deviation `sigma`
(Gelberg et al. 2024, section 3 and Appendix A, where ||mu*|| / alpha is 1 at a mode and 0 midway, so that alpha is half
the distance there too). A `ratio` is alpha / sigma, which alone decides (see `optima`). Three thresholds:

- `vanishing`: below it the midpoint is the only optimum;
- `switching`: above it an optimum near a mode has a lower KL than the midpoint;
- where descents that start at a mode end, which is `vanishing` but for their time and noise (`descent`).

Determinants are of Sigma in the plane, in units of `sigma` to the fourth power: 1 at a component.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float

from . import optima
from .descent import (
    DIRECTION,
    MIDWAY,
    bracket,
    descend,
    stopped_early,
)
from .optima import Mixture
from .settings import QUICK, InterpolationSettings

__all__ = [
    "BRANCHES",
    "MEASURES",
    "QUICK",
    "Fits",
    "InterpolationResults",
    "InterpolationSettings",
    "from_dataset",
    "run",
    "to_dataset",
]

BRANCHES = {"midpoint": optima.midpoint, "mode": optima.mode, "saddle": optima.saddle}
MEASURES = ("shift", "determinant", "divergence")


@dataclass(frozen=True, eq=False)
class Fits:
    """Measures of fitted Gaussians, arrays alike in shape; NaN where there is none.

    Attributes
    ----------
    shift : array
        ||mu|| / alpha: 0 midway, 1 at a mode.
    determinant : array
        det Sigma / sigma^4.
    divergence : array
        KL(q || p), nats, by quadrature.
    """

    shift: Float[np.ndarray, "*shape"]
    determinant: Float[np.ndarray, "*shape"]
    divergence: Float[np.ndarray, "*shape"]


@dataclass(frozen=True, eq=False)
class InterpolationResults:
    """All numbers of the experiment.

    Attributes
    ----------
    settings : InterpolationSettings
        What was computed.
    ratios : array (ratio,)
        Ratios at which optima were followed, those of the descents among them.
    branches : mapping of str to Fits (sigma, ratio)
        The midpoint, the optimum near a mode and the saddle between them.
    vanishing, switching : arrays (sigma,)
        Thresholds of alpha.
    descents : Fits (sigma, descent ratio, seed)
        Ends of the descents from a mode.
    stayed : array (noisy, noisy ratio)
        Share of the descents that stayed near their mode, by the way to descend.
    stopped : array (time,)
        Ratio above which an exact descent still stands near its mode, by the time at which it is stopped.
    """

    settings: InterpolationSettings
    ratios: Float[np.ndarray, " ratio"]
    branches: Mapping[str, Fits]
    vanishing: Float[np.ndarray, " sigma"]
    switching: Float[np.ndarray, " sigma"]
    descents: Fits
    stayed: Float[np.ndarray, "noisy noisy_ratio"]
    stopped: Float[np.ndarray, " time"]

    def descent_brackets(self) -> tuple[tuple[float, float], ...]:
        """Enclose the ratio at which descents leave their mode, for each sigma."""
        stayed = (self.descents.shift > MIDWAY).mean(axis=-1)
        return tuple(bracket(row, np.asarray(self.settings.ratios)) for row in stayed)

    def noisy_brackets(self) -> tuple[tuple[float, float], ...]:
        """Enclose the same ratio for each way to descend."""
        return tuple(bracket(row, np.asarray(self.settings.noisy_ratios)) for row in self.stayed)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain types; None where there is none."""
        values = {str(name): _plain(array.values) for name, array in to_dataset(self).items()}
        values["ratio"] = _plain(self.ratios)
        return {"settings": asdict(self.settings), **values}


def run(settings: InterpolationSettings | None = None) -> InterpolationResults:
    """Follow the optima, descend from modes, and find the thresholds."""
    settings = settings or InterpolationSettings()
    ratios = _grid(settings)
    key_descents, key_noisy = jax.random.split(jax.random.key(settings.seed))
    return InterpolationResults(
        settings,
        ratios,
        {name: _follow(name, settings.sigmas, ratios) for name in BRANCHES},
        np.array([optima.vanishing(sigma).alpha for sigma in settings.sigmas]),
        np.array([optima.switching(sigma) for sigma in settings.sigmas]),
        _descents(key_descents, settings),
        _noisy(key_noisy, settings),
        np.array([stopped_early(time) for time in settings.times]),
    )


def _grid(settings: InterpolationSettings) -> np.ndarray:
    """Ratios at which optima are followed: evenly, where descents are, and closer where two optima meet like a root."""
    even = np.linspace(settings.largest / settings.points, settings.largest, settings.points)
    close = optima.vanishing().alpha + np.array([1e-6, 1e-4, 5e-4, 2e-3, 5e-3, 1e-2])
    every = np.concatenate([even.round(6), settings.ratios, close])
    return np.unique(every[every <= settings.largest])


def _follow(branch: str, sigmas: tuple[float, ...], ratios: np.ndarray) -> Fits:
    found = np.full((len(MEASURES), len(sigmas), len(ratios)), np.nan)
    for (row, sigma), (column, ratio) in product(enumerate(sigmas), enumerate(ratios)):
        at = BRANCHES[branch](Mixture(float(ratio) * sigma, sigma))
        if at is not None:
            shift, determinant = at.mean / (ratio * sigma), (at.sd / sigma) ** 2
            found[:, row, column] = shift, determinant, at.divergence
    return Fits(*found)


def _descents(key: jax.Array, settings: InterpolationSettings) -> Fits:
    shape = (len(settings.sigmas), len(settings.ratios), settings.seeds)
    cases = product(settings.sigmas, settings.ratios, range(settings.seeds))
    sigmas, ratios = np.array([(sigma, ratio) for sigma, ratio, _ in cases]).T
    means, covariances = descend(key, ratios * sigmas, sigmas, settings.descent)
    divergences = [
        optima.divergence_in_plane(Mixture(ratio * sigma, sigma), DIRECTION, mean, covariance)
        for ratio, sigma, mean, covariance in zip(ratios, sigmas, means, covariances, strict=True)
    ]
    shift = np.linalg.norm(means, axis=1) / (ratios * sigmas)
    measured = (shift, np.linalg.det(covariances) / sigmas**4, np.array(divergences))
    return Fits(*(values.reshape(shape) for values in measured))


def _noisy(key: jax.Array, settings: InterpolationSettings) -> np.ndarray:
    ratios = np.repeat(settings.noisy_ratios, settings.noisy_seeds)
    rows = []
    keys = jax.random.split(key, len(settings.noisy))
    for key_way, way in zip(keys, settings.noisy, strict=True):
        means, _ = descend(key_way, ratios, np.ones_like(ratios), way)
        stayed = np.linalg.norm(means, axis=1) > MIDWAY * ratios
        rows.append(stayed.reshape(-1, settings.noisy_seeds).mean(axis=1))
    return np.array(rows)


def to_dataset(results: InterpolationResults) -> xr.Dataset:
    """Lay the results out as a dataset that a file can keep; `from_dataset` reads it back."""
    settings = results.settings
    fits = {
        f"{branch}_{name}": (("sigma", "ratio"), getattr(found, name))
        for branch, found in results.branches.items()
        for name in MEASURES
    }
    ends = {
        f"descent_{name}": (("sigma", "descent_ratio", "seed"), getattr(results.descents, name))
        for name in MEASURES
    }
    return xr.Dataset(
        {
            **fits,
            **ends,
            "vanishing": ("sigma", results.vanishing),
            "switching": ("sigma", results.switching),
            "stayed": (("noisy", "noisy_ratio"), results.stayed),
            "stopped": ("time", results.stopped),
        },
        coords={
            "sigma": list(settings.sigmas),
            "ratio": results.ratios,
            "descent_ratio": list(settings.ratios),
            "noisy_ratio": list(settings.noisy_ratios),
            "time": list(settings.times),
        },
        attrs={"settings": json.dumps(asdict(settings))},
    )


def from_dataset(dataset: xr.Dataset) -> InterpolationResults:
    """Read results back from `to_dataset`'s dataset."""

    def fits(kind: str) -> Fits:
        return Fits(*(dataset[f"{kind}_{name}"].values for name in MEASURES))

    return InterpolationResults(
        InterpolationSettings.from_dict(json.loads(dataset.attrs["settings"])),
        dataset["ratio"].values,
        {name: fits(name) for name in BRANCHES},
        dataset["vanishing"].values,
        dataset["switching"].values,
        fits("descent"),
        dataset["stayed"].values,
        dataset["stopped"].values,
    )


def _plain(values: np.ndarray) -> Any:
    """Turn an array into lists, NaN into None."""
    plain = values.astype(object)
    plain[np.isnan(values)] = None
    return plain.tolist()
