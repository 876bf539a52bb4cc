"""What is measured of trained approximations: their own account, and the same by quadrature.

Convention: every number is an array over fits (the posterior's chains). Predictions are averaged over the draws of a
fit, as in the paper; divergences are of the fitted Gaussian, not of its draws.

Source: Gelberg et al. 2024, section 5, Tables 2 and 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import logsumexp

from onebasin.models import predict

from .design import Points, TwoWeightSettings, model
from .gaussian import Approximation, approximation
from .optima import Case
from .truth import statistics

_REPORTED = (
    "final_elbo",
    "final_elbo_mcse",
    "information_lower",
    "information_lower_mcse",
    "symmetrised_elbo_lower",
)


@dataclass(frozen=True, eq=False)
class FitScores:
    """The fits of one method at one alpha.

    Attributes
    ----------
    mse, log_score : array (fit,)
        At the test points: of the mean prediction, and mean log predictive density in nats.
    elbo, elbo_mcse, information, information_mcse, symmetrised_elbo : array (fit,)
        The method's own account, in nats; information and symmetrised ELBO are its lower sides.
    kl, kl_symmetrised : array (fit,)
        Divergences of q and q^G from the posterior, by quadrature.
    gaussians : tuple of Approximation
        The fitted Gaussians, whose ELBO and information are by quadrature.
    """

    mse: Float[np.ndarray, " fit"]
    log_score: Float[np.ndarray, " fit"]
    elbo: Float[np.ndarray, " fit"]
    elbo_mcse: Float[np.ndarray, " fit"]
    information: Float[np.ndarray, " fit"]
    information_mcse: Float[np.ndarray, " fit"]
    symmetrised_elbo: Float[np.ndarray, " fit"]
    kl: Float[np.ndarray, " fit"]
    kl_symmetrised: Float[np.ndarray, " fit"]
    gaussians: tuple[Approximation, ...]

    @property
    def separation(self) -> Float[np.ndarray, " fit"]:
        """Distances of the two means."""
        return np.array([q.separation for q in self.gaussians])

    @property
    def off(self) -> Float[np.ndarray, " fit"]:
        """How far the method's own ELBO is from that by quadrature, in its Monte Carlo errors."""
        truth = np.array([q.elbo for q in self.gaussians])
        return (self.elbo - truth) / self.elbo_mcse

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain types."""
        arrays = {name: value.tolist() for name, value in vars(self).items() if name != "gaussians"}
        return arrays | {
            "loc": [q.loc.tolist() for q in self.gaussians],
            "scale": [q.scale.tolist() for q in self.gaussians],
            "elbo_by_quadrature": [q.elbo for q in self.gaussians],
            "information_by_quadrature": [q.information for q in self.gaussians],
        }


def score_fits(settings: TwoWeightSettings, case: Case, tree: xr.DataTree) -> FitScores:
    """Measure the fits of one method.

    Parameters
    ----------
    settings : TwoWeightSettings
        The part's settings.
    case : Case
        The problem that was fitted, solved.
    tree : DataTree
        Of `inference.symmetrised_vi`.

    Returns
    -------
    FitScores
    """
    found = statistics(case.problem.points("train"), case.problem.noise)
    fitted = tree["variational"].to_dataset()
    gaussians = tuple(
        approximation(loc, scale, found)
        for loc, scale in zip(
            fitted["loc"].transpose("chain", "param").values,
            fitted["scale"].transpose("chain", "param").values,
            strict=True,
        )
    )
    elbo, elbo_mcse, information, information_mcse, symmetrised = (
        np.asarray(fitted[name].values, np.float64) for name in _REPORTED
    )
    mse, log_score = _predict(settings, tree, case.problem.points("test"))
    evidence = case.truth.log_evidence
    return FitScores(
        mse=mse,
        log_score=log_score,
        elbo=elbo,
        elbo_mcse=elbo_mcse,
        information=information,
        information_mcse=information_mcse,
        symmetrised_elbo=symmetrised,
        kl=np.array([evidence - q.elbo for q in gaussians]),
        kl_symmetrised=np.array([evidence - q.symmetrised_elbo for q in gaussians]),
        gaussians=gaussians,
    )


def _predict(
    settings: TwoWeightSettings, tree: xr.DataTree, test: Points
) -> tuple[Float[np.ndarray, " fit"], Float[np.ndarray, " fit"]]:
    draws = {"W1": tree["posterior"].to_dataset()["W1"].values}
    function = predict(model(settings), draws, test.x[:, None])[..., 0]
    mse = np.mean((test.y[None, :] - function.mean(axis=1)) ** 2, axis=-1)
    miss = (test.y[None, None, :] - function) / settings.noise
    each = logsumexp(-(miss**2) / 2, axis=1) - math.log(function.shape[1])
    return mse, each.mean(axis=-1) - math.log(settings.noise * math.sqrt(2 * math.pi))
