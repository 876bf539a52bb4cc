"""The best mean-field Gaussians over alpha, noise and data sets, beside the exact posterior.

Convention: KL divergences are from the approximation to the posterior, in nats. The error of a prediction is the
expected squared distance of its mean from the true function, E_x[(f_mean(x) - alpha |x|)^2] over x ~ N(0, 1): half the
summed squares of the two slopes' errors. Added to the noise's variance it is the expected test MSE.

Beyond the source (Gelberg et al. 2024, section 5): all of it; the paper shows fits of one data set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from .design import Problem, TwoWeightSettings
from .gaussian import Approximation, optimum
from .truth import Truth, log_score, solve, statistics

OBJECTIVES: Mapping[str, bool] = {"mfvi": False, "sgm": True}
"""Whether the symmetrised ELBO is what is highest."""
TOGETHER = 0.5
"""An approximation interpolates where its means are less than this times as far apart as the truth's weights are."""
_HALVINGS = 14


@dataclass(frozen=True)
class Prediction:
    """How good a prediction is.

    Attributes
    ----------
    error : float
        Expected squared distance of its mean from the true function.
    mse : float
        Mean squared error of its mean at the test points.
    log_score : float
        Mean log predictive density there, in nats.
    """

    error: float
    mse: float
    log_score: float


@dataclass(frozen=True, eq=False)
class Best:
    """The best Gaussian by one objective.

    Attributes
    ----------
    q : Approximation
        The Gaussian.
    kl, kl_symmetrised : float
        Divergences of q and of q^G from the posterior.
    prediction : Prediction
        Of q, which is that of q^G.
    """

    q: Approximation
    kl: float
    kl_symmetrised: float
    prediction: Prediction


@dataclass(frozen=True, eq=False)
class Case:
    """One problem solved: the posterior and the best Gaussian by either objective.

    Attributes
    ----------
    problem : Problem
        The problem.
    truth : Truth
        The posterior.
    exact : Prediction
        Of the posterior.
    best : mapping
        By the names of `OBJECTIVES`.
    """

    problem: Problem
    truth: Truth
    exact: Prediction
    best: Mapping[str, Best]

    def relative_separation(self, name: str) -> float:
        """Distance of the best Gaussian's means over the truth's mean of |w1 - w2|."""
        return self.best[name].q.separation / self.truth.separation

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain types."""
        return {
            "noise": self.problem.noise,
            "alpha": self.problem.alpha,
            "log_evidence": self.truth.log_evidence,
            "separation": self.truth.separation,
            "prediction": vars(self.exact),
            "best": {
                name: {
                    "loc": best.q.loc.tolist(),
                    "scale": best.q.scale.tolist(),
                    "elbo": best.q.elbo,
                    "information": best.q.information,
                    "kl": best.kl,
                    "kl_symmetrised": best.kl_symmetrised,
                    "prediction": vars(best.prediction),
                }
                for name, best in self.best.items()
            },
        }


@dataclass(frozen=True, eq=False)
class Average:
    """Errors of predictions over data sets, for one alpha and noise.

    Attributes
    ----------
    noise, alpha : float
        Which.
    exact, mfvi, sgm : array (data_set,)
        Errors of the posterior's prediction, and of the best Gaussians'.
    interpolates : float
        Share of the data sets for which the best mean field interpolates.
    """

    noise: float
    alpha: float
    exact: Float[np.ndarray, " data_set"]
    mfvi: Float[np.ndarray, " data_set"]
    sgm: Float[np.ndarray, " data_set"]
    interpolates: float

    @property
    def gain(self) -> tuple[float, float]:
        """Mean by which symmetrising lowers the error, and the standard error of that mean."""
        return paired(self.mfvi, self.sgm)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain types."""
        arrays = {name: getattr(self, name).tolist() for name in ("exact", "mfvi", "sgm")}
        rest = {"noise": self.noise, "alpha": self.alpha, "interpolates": self.interpolates}
        return rest | arrays


@dataclass(frozen=True, eq=False)
class Curve:
    """Over a fine range of alpha: how far apart the weights are, and divergences from the posterior.

    Attributes
    ----------
    alpha : array (alpha,)
        The range.
    truth : array (alpha,)
        Mean of |w1 - w2| under the posterior.
    separation, kl, kl_symmetrised : mapping
        Arrays (alpha,) by the names of `OBJECTIVES`: distance of the means, and the divergences of q and q^G.
    """

    alpha: Float[np.ndarray, " alpha"]
    truth: Float[np.ndarray, " alpha"]
    separation: Mapping[str, Float[np.ndarray, " alpha"]]
    kl: Mapping[str, Float[np.ndarray, " alpha"]]
    kl_symmetrised: Mapping[str, Float[np.ndarray, " alpha"]]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain types."""
        several = {
            name: {key: values.tolist() for key, values in getattr(self, name).items()}
            for name in ("separation", "kl", "kl_symmetrised")
        }
        return {"alpha": self.alpha.tolist(), "truth": self.truth.tolist(), **several}


def paired(
    first: Float[np.ndarray, " pair"], second: Float[np.ndarray, " pair"]
) -> tuple[float, float]:
    """Mean of the differences, first less second, and its standard error; NaN of a single pair."""
    differences = first - second
    if len(differences) < 2:
        return float(differences.mean()), math.nan
    return float(differences.mean()), float(differences.std(ddof=1) / len(differences) ** 0.5)


def error_of(slopes: Float[np.ndarray, " side"], alpha: float) -> float:
    """Expected squared distance, over x ~ N(0, 1), of |x| times its side's slope from alpha |x|."""
    return float(np.sum((slopes - alpha) ** 2) / 2)


def solve_case(problem: Problem) -> Case:
    """Solve a problem: the posterior, the best Gaussians, and what each predicts."""
    truth, best = _solve(problem)
    scored = {
        name: Best(
            q=q,
            kl=truth.log_evidence - q.elbo,
            kl_symmetrised=truth.log_evidence - q.symmetrised_elbo,
            prediction=_predict(problem, truth, q.mass(truth), q.mean_slopes()),
        )
        for name, q in best.items()
    }
    exact = _predict(problem, truth, truth.mass, truth.mean_slopes())
    return Case(problem, truth, exact, scored)


def average(settings: TwoWeightSettings, noise: float, alpha: float) -> Average:
    """Take the errors over data sets."""
    solved = [
        _solve(Problem(settings, alpha, noise, number)) for number in range(settings.data_sets)
    ]
    errors = {
        name: np.array([error_of(best[name].mean_slopes(), alpha) for _, best in solved])
        for name in OBJECTIVES
    }
    exact = np.array([error_of(truth.mean_slopes(), alpha) for truth, _ in solved])
    share = np.mean([_interpolates(truth, best["mfvi"]) for truth, best in solved])
    return Average(noise, alpha, exact, errors["mfvi"], errors["sgm"], float(share))


def curve(settings: TwoWeightSettings) -> Curve:
    """Follow the best Gaussians over alpha, at the noise of the fits."""
    alphas = np.geomspace(settings.alphas[0], settings.alphas[-1], settings.curve_points)
    solved = [_solve(Problem(settings, float(alpha), settings.noise)) for alpha in alphas]
    evidence = np.array([truth.log_evidence for truth, _ in solved])
    gaussians = {name: [best[name] for _, best in solved] for name in OBJECTIVES}
    return Curve(
        alpha=alphas,
        truth=np.array([truth.separation for truth, _ in solved]),
        separation={n: np.array([q.separation for q in qs]) for n, qs in gaussians.items()},
        kl={n: evidence - np.array([q.elbo for q in qs]) for n, qs in gaussians.items()},
        kl_symmetrised={
            n: evidence - np.array([q.symmetrised_elbo for q in qs]) for n, qs in gaussians.items()
        },
    )


def threshold(settings: TwoWeightSettings, noise: float) -> float | None:
    """Find the alpha above which the best mean field no longer interpolates, by bisection.

    Returns
    -------
    float or None
        None where it does at the largest of `alphas`, or does not at the smallest.
    """

    def inside(alpha: float) -> bool:
        problem = Problem(settings, alpha, noise)
        found = statistics(problem.points("train"), noise)
        return _interpolates(solve(found), optimum(found, symmetrised=False))

    low, high = settings.alphas[0], settings.alphas[-1]
    if not inside(low) or inside(high):
        return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) else (low, middle)
    return (low + high) / 2


def _solve(problem: Problem) -> tuple[Truth, dict[str, Approximation]]:
    found = statistics(problem.points("train"), problem.noise)
    best = {name: optimum(found, symmetrised=flag) for name, flag in OBJECTIVES.items()}
    return solve(found), best


def _interpolates(truth: Truth, q: Approximation) -> bool:
    return q.separation < TOGETHER * truth.separation


def _predict(
    problem: Problem,
    truth: Truth,
    mass: Float[np.ndarray, "node node_bis"],
    slopes: Float[np.ndarray, " side"],
) -> Prediction:
    test = problem.points("test")
    mean = np.abs(test.x) * np.where(test.x > 0, slopes[0], slopes[1])
    return Prediction(
        error=error_of(slopes, problem.alpha),
        mse=float(np.mean((test.y - mean) ** 2)),
        log_score=log_score(truth, mass, test, problem.noise),
    )
