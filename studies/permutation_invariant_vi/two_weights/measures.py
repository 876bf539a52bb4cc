"""The network of two weights: everything that is measured of it.

A trained approximation is held against the exact posterior, which is known here, and against the best approximation of
its kind, which is found without chance; so what a method could do is told from what its training does.

Source: Gelberg et al. 2024, section 5, "Tractable posterior neural networks", Figure 4, Tables 2 and 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from .design import (
    METHODS,
    QUICK,
    WORDS,
    Problem,
    TwoWeightSettings,
    fit_settings,
    model,
    target,
)
from .fits import FitScores, score_fits
from .gaussian import approximation
from .optima import Average, Case, Curve, average, curve, solve_case, threshold
from .truth import Statistics

__all__ = [
    "METHODS",
    "QUICK",
    "WORDS",
    "TwoWeightResults",
    "TwoWeightSettings",
    "fit_settings",
    "measure",
    "model",
    "target",
]

_RANDOM, _SEED = 200, 0


@dataclass(frozen=True, eq=False)
class TwoWeightResults:
    """All numbers of the part.

    Attributes
    ----------
    settings : TwoWeightSettings
        What was asked for.
    cases : mapping
        Posterior and best Gaussians, by noise and alpha.
    averages : mapping
        Errors of predictions over data sets, by noise and alpha.
    thresholds : mapping
        The alpha up to which the best mean field interpolates, by noise; None where that is outside `alphas`.
    curve : Curve
        The best Gaussians over a fine range of alpha.
    fits : mapping
        Of the trained approximations, by alpha and method; those whose posterior is missing are not there.
    random_information, alike_information : array (gaussian,)
        Information of random Gaussians, and of random ones with both units alike.
    """

    settings: TwoWeightSettings
    cases: Mapping[tuple[float, float], Case]
    averages: Mapping[tuple[float, float], Average]
    thresholds: Mapping[float, float | None]
    curve: Curve
    fits: Mapping[tuple[float, str], FitScores]
    random_information: Float[np.ndarray, " gaussian"]
    alike_information: Float[np.ndarray, " gaussian"]

    def fitted_case(self, alpha: float) -> Case:
        """The case to which methods are fitted at this alpha."""
        return self.cases[self.settings.noise, alpha]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain types."""
        return {
            "settings": asdict(self.settings),
            "cases": [case.to_dict() for case in self.cases.values()],
            "averages": [found.to_dict() for found in self.averages.values()],
            "thresholds": {f"{noise:g}": value for noise, value in self.thresholds.items()},
            "curve": self.curve.to_dict(),
            "fits": [
                {"alpha": alpha, "method": method, **scores.to_dict()}
                for (alpha, method), scores in self.fits.items()
            ],
            "random_information": self.random_information.tolist(),
            "alike_information": self.alike_information.tolist(),
        }


def measure(
    settings: TwoWeightSettings, fits: Mapping[tuple[float, str], xr.DataTree]
) -> TwoWeightResults:
    """Solve every case, and measure the trained approximations.

    Parameters
    ----------
    settings : TwoWeightSettings
        The part's settings.
    fits : mapping
        Posteriors of `inference.symmetrised_vi` on `target(settings, alpha)`, by alpha and label of `METHODS`; some may
        be missing.

    Returns
    -------
    TwoWeightResults

    Raises
    ------
    ValueError
        If a posterior is of an alpha or a method that is not the part's.
    """
    for alpha, method in fits:
        if alpha not in settings.alphas or method not in METHODS:
            raise ValueError(
                f"`fits` have {alpha, method}; give pairs of one of the alphas {settings.alphas} "
                f"and one of the methods {', '.join(METHODS)}."
            )
    pairs = [(noise, alpha) for noise in settings.noises for alpha in settings.alphas]
    cases = {pair: solve_case(Problem(settings, pair[1], pair[0])) for pair in pairs}
    return TwoWeightResults(
        settings=settings,
        cases=cases,
        averages={pair: average(settings, *pair) for pair in pairs},
        thresholds={noise: threshold(settings, noise) for noise in settings.noises},
        curve=curve(settings),
        fits={
            (alpha, method): score_fits(settings, cases[settings.noise, alpha], tree)
            for (alpha, method), tree in fits.items()
        },
        random_information=_informations(alike=False),
        alike_information=_informations(alike=True),
    )


def _informations(*, alike: bool) -> Float[np.ndarray, " gaussian"]:
    """Information of random Gaussians; it does not depend on the data."""
    rng = np.random.default_rng(_SEED)
    nothing = Statistics(np.zeros(2), np.zeros(2), 0.0)
    loc = rng.standard_normal((_RANDOM, 2))
    scale = np.exp(rng.uniform(-1.5, 0.0, (_RANDOM, 2)))
    if alike:
        loc, scale = (np.repeat(values[:, :1], 2, axis=1) for values in (loc, scale))
    return np.array(
        [approximation(m, s, nothing).information for m, s in zip(loc, scale, strict=True)]
    )
