"""What is measured of classifiers of growing width, method by method and seed by seed.

Convention: arrays are over fits, each of which has a seed that all methods share; a comparison of two methods is of
the differences fit by fit. A symmetrised ELBO is that of the same estimator for all methods, whatever they were
trained with: the lower end of its interval where nothing else is said. Accuracies and log scores are of test images, of
class probabilities averaged over draws of q.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from scipy import stats

from onebasin.models import BayesianNetwork

from ...lab.images import image_split
from ...lab.study import Outcomes
from ..design import Config, Method, methods, units, width_key
from .proximity import Nearest, nearest

PerFit = Float[np.ndarray, " fit"]
CONFIDENCE = 0.95
"""Of the intervals within which a mean difference is said to be known."""
MARGINS: Mapping[str, float] = MappingProxyType(
    {"symmetrised": 0.1, "accuracy": 0.002, "log_score": 0.002}
)
"""Gains below which nothing is gained that matters: nats, and share of images."""
FIELDS = ("elbo", "symmetrised", "accuracy", "log_score", "draw_accuracy")
"""Measures of a fit that methods are compared in."""


@dataclass(frozen=True, eq=False)
class Fits:
    """One method's fits at one width.

    Attributes
    ----------
    width : int
        Hidden units.
    method : Method
        How they were trained.
    chosen : str
        The estimator that trained them.
    log_order : float
        Log order of the group, the most that symmetrising can gain.
    elbo, elbo_mcse
        ELBO of q, and its Monte Carlo error.
    lower, upper, lower_mcse
        Interval of the mutual information, and the error of its lower end.
    symmetrised, symmetrised_upper
        Interval of the symmetrised ELBO.
    accuracy, log_score
        Of averaged class probabilities.
    draw_accuracy
        Of one draw, averaged over draws.
    nearest : Nearest
        The nearest equivalent mode of the means.
    seconds : float
        Wall time of all fits, compiling included.
    """

    width: int
    method: Method
    chosen: str
    log_order: float
    elbo: PerFit
    elbo_mcse: PerFit
    lower: PerFit
    upper: PerFit
    lower_mcse: PerFit
    symmetrised: PerFit
    symmetrised_upper: PerFit
    accuracy: PerFit
    log_score: PerFit
    draw_accuracy: PerFit
    nearest: Nearest
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        arrays = {k: v.tolist() for k, v in vars(self).items() if isinstance(v, np.ndarray)}
        near = {f"nearest_{k}": v.tolist() for k, v in vars(self.nearest).items()}
        rest = {"chosen": self.chosen, "log_order": self.log_order, "seconds": self.seconds}
        return {"width": self.width, "method": self.method.name, **rest, **arrays, **near}


@dataclass(frozen=True)
class Paired:
    """Differences of two methods, fit by fit.

    Attributes
    ----------
    mean, error
        Mean, and its standard error; NaN of a single pair.
    low, high
        Student's interval of the mean, at `CONFIDENCE`.
    wins, num
        Pairs in which the first is above, and pairs.
    """

    mean: float
    error: float
    low: float
    high: float
    wins: int
    num: int

    @property
    def above(self) -> bool | None:
        """Whether the first method is above the second; None where the interval holds zero."""
        if self.low > 0:
            return True
        return False if self.high < 0 else None

    def gains(self, margin: float) -> bool | None:
        """Whether the first method is above; False where it is not by more than `margin`, None where that is open."""
        if self.low > 0:
            return True
        return False if self.high < margin else None

    def write(self, decimals: int = 2) -> str:
        """Write the mean with its error, and the wins."""
        error = "" if np.isnan(self.error) else f" ± {self.error:.{decimals}f}"
        return f"{self.mean:+.{decimals}f}{error}, {self.wins} of {self.num} seeds"


@dataclass(frozen=True, eq=False)
class WidthResults:
    """All fits that succeeded.

    Attributes
    ----------
    fits : mapping
        By width and name of the method.
    """

    fits: Mapping[tuple[int, str], Fits]

    @property
    def widths(self) -> tuple[int, ...]:
        """Widths, ascending."""
        return tuple(sorted({width for width, _ in self.fits}))

    def at(self, width: int, kind: str) -> tuple[Fits, ...]:
        """Fits of a width by methods of a kind: see `Method.kind`."""
        return tuple(f for f in self.fits.values() if f.width == width and f.method.kind == kind)

    def mfvi(self, width: int) -> Fits | None:
        """The plain fits of a width."""
        return self.fits.get((width, "mfvi"))

    def recommended(self, width: int) -> Fits | None:
        """Those by the recommended estimator."""
        return self.fits.get((width, "recommended"))

    def best_infonce(self, width: int) -> Fits | None:
        """InfoNCE at the K with the highest mean symmetrised ELBO."""
        found = self.at(width, "infonce")
        return max(found, key=lambda fits: fits.symmetrised.mean()) if found else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain types: fits, and the paired differences that the statements rest on."""
        return {
            "fits": [fits.to_dict() for fits in self.fits.values()],
            "paired": [
                {
                    "width": a.width,
                    "method": a.method.name,
                    "against": b.method.name,
                    "measure": name,
                }
                | vars(paired(a, b, name))
                for a, b in self.comparisons()
                for name in FIELDS
            ],
        }

    def comparisons(self) -> tuple[tuple[Fits, Fits], ...]:
        """Pairs of methods: all with MFVI, and those by the permanent with InfoNCE at its best K."""
        found = []
        for width in self.widths:
            plain, infonce = self.mfvi(width), self.best_infonce(width)
            others = (*self.at(width, "infonce"), *self.at(width, "permanent"))
            found += [(fits, plain) for fits in others if plain]
            found += [(fits, infonce) for fits in self.at(width, "permanent") if infonce]
        return tuple(found)


def paired(first: Fits, second: Fits, name: str) -> Paired:
    """Compare two methods in a measure, seed by seed."""
    return pair(getattr(first, name) - getattr(second, name))


def pair(difference: PerFit) -> Paired:
    """Summarise differences."""
    num, mean = len(difference), float(difference.mean())
    if num < 2:
        error = half = float("nan")
    else:
        error = float(difference.std(ddof=1) / np.sqrt(num))
        half = float(stats.t.ppf((1 + CONFIDENCE) / 2, num - 1)) * error
    wins = int((difference > 0).sum())
    return Paired(mean, error, mean - half, mean + half, wins, num)


def measure_widths(config: Config, outcomes: Outcomes, *, within: float) -> WidthResults:
    """Measure every classifier's fits that succeeded.

    Parameters
    ----------
    config : Config
        The study's settings.
    outcomes : Outcomes
        Posteriors of its cells.
    within : float
        Separation, in standard deviations of q, up to which two units count as close.
    """
    there = {cell.key for cell in outcomes}
    labels = np.asarray(image_split(config.images, config.seed).test.y, dtype=np.int64)
    found = {}
    for width in config.widths:
        for method in methods(config, width):
            key = width_key(width, method.name)
            if key in there:
                tree = outcomes.by_key(key)
                found[width, method.name] = measure(tree, width, method, labels, within)
    return WidthResults(found)


def measure(
    tree: xr.DataTree, width: int, method: Method, labels: Int[np.ndarray, " obs"], within: float
) -> Fits:
    """Read one cell's numbers."""
    final, predictive = tree["variational"].to_dataset(), tree["predictive"].to_dataset()
    log_probability = predictive["log_probability"].values

    def read(name: str) -> PerFit:
        return np.asarray(final[name].values, dtype=np.float64)

    return Fits(
        width=width,
        method=method,
        chosen=str(tree.attrs["mutual_information"]),
        log_order=float(tree.attrs["log_group_order"]),
        elbo=read("final_elbo"),
        elbo_mcse=read("final_elbo_mcse"),
        lower=read("information_lower"),
        upper=read("information_upper"),
        lower_mcse=read("information_lower_mcse"),
        symmetrised=read("symmetrised_elbo_lower"),
        symmetrised_upper=read("symmetrised_elbo_upper"),
        accuracy=(log_probability.argmax(axis=-1) == labels).mean(axis=1),
        log_score=log_probability[:, np.arange(len(labels)), labels].mean(axis=1),
        draw_accuracy=predictive["draw_accuracy"].values.mean(axis=1),
        nearest=nearest_of(tree, within),
        seconds=float(tree.attrs["wall_time"]),
    )


def nearest_of(tree: xr.DataTree, within: float) -> Nearest:
    """Find the nearest equivalent mode of every fit's means."""
    block = units(BayesianNetwork.from_description(tree.attrs["model"]))
    values, sd = (
        {str(n): v.values for n, v in tree[group].to_dataset().items()}
        for group in ("centre", "spread")
    )
    return nearest(values, block, sd=sd, within=within)
