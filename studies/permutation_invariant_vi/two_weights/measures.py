"""Measure the best mean-field Gaussians over alpha, noise and data sets, and trained approximations.

Convention: KL divergences are from the approximation to the posterior, in nats. The error of a prediction is the
expected squared distance of its mean from the true function, E_x[(f_mean(x) - alpha |x|)^2] over x ~ N(0, 1): half the
summed squares of the two slopes' errors. Added to the noise's variance it is the expected test MSE. `separation` is
how far apart two means are, and of the posterior the mean of |w1 - w2|.

Of trained approximations lists are over fits (the posterior's chains). Predictions are averaged over the draws of a
fit, as in the paper; divergences are of the fitted Gaussian, not of its draws.

Source: Gelberg et al. 2024, section 5, Tables 2 and 3, for the fits of one data set; all else goes beyond it.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import logsumexp

from onebasin.models import predict

from ...lab import Frames, Row, frame_of
from . import posterior
from .design import WORDS, TwoWeightSettings, WeightsProblem, model
from .posterior import Approximation, GridPosterior, statistics

OBJECTIVES: Mapping[str, bool] = {"mfvi": False, "sgm": True}
"""The objectives by name; True for the symmetrised ELBO."""
TOGETHER = 0.5
"""An approximation interpolates where its means are less than this times as far apart as the truth's weights are."""


def run(settings: TwoWeightSettings) -> Frames:
    """Solve every case without chance: all but the trained approximations.

    The frames: `cases`, a row a noise and alpha: see `solve_case` and `over_data_sets`; `curve`, a row an alpha of a
    fine range, see `_along`.
    """
    pairs = [(noise, alpha) for noise in settings.noises for alpha in settings.alphas]
    alphas = np.geomspace(settings.alphas[0], settings.alphas[-1], settings.curve_points)
    rows: dict[str, Any] = {
        "cases": (
            solve_case(WeightsProblem(settings, alpha, noise))
            | over_data_sets(settings, noise, alpha)
            for noise, alpha in pairs
        ),
        "curve": (
            _along(WeightsProblem(settings, float(alpha), settings.noise)) for alpha in alphas
        ),
    }
    return {name: frame_of(found) for name, found in rows.items()}


def solve_case(problem: WeightsProblem) -> dict[str, Any]:
    """Solve a problem: the posterior, under `exact`, and the best Gaussian by either objective, and what each predicts.

    `moved` is by how much the log evidence moved in the last halving of the panels; `error`, `mse` and `log_score` are
    of the mean prediction (see above), and of the test points, in nats.
    """
    truth, best = _solve(problem)
    exact = _predict(problem, truth, truth.mass, truth.mean_slopes())
    row: dict[str, Any] = {
        "noise": problem.noise,
        "alpha": problem.alpha,
        "log_evidence": truth.log_evidence,
        "moved": truth.moved,
        "exact": {"separation": truth.separation, **exact},
    }
    for name, q in best.items():
        gaussian = {"loc": q.loc, "scale": q.scale, "elbo": q.elbo, "information": q.information}
        predicted = _predict(problem, truth, q.mass(truth), q.mean_slopes())
        row[name] = {**gaussian, **_distances(truth, q), **predicted}
    return row


def over_data_sets(settings: TwoWeightSettings, noise: float, alpha: float) -> dict[str, Any]:
    """Take the errors over data sets, and the share of these for which the best mean field interpolates."""
    problems = (
        WeightsProblem(settings, alpha, noise, number) for number in range(settings.data_sets)
    )
    solved = [_solve(problem) for problem in problems]
    errors = {"exact": [error_of(truth.mean_slopes(), alpha) for truth, _ in solved]}
    for name in OBJECTIVES:
        errors[name] = [error_of(best[name].mean_slopes(), alpha) for _, best in solved]
    share = np.mean([_interpolates(truth, best["mfvi"]) for truth, best in solved])
    return {"errors": errors, "interpolates": float(share)}


def relative_separation(case: Row, name: str) -> float:
    """Distance of the best Gaussian's means over the truth's mean of |w1 - w2|."""
    return float(case[name]["separation"] / case["exact"]["separation"])


def error_of(slopes: Float[np.ndarray, " side"], alpha: float) -> float:
    """Expected squared distance, over x ~ N(0, 1), of |x| times its side's slope from alpha |x|."""
    return float(np.sum((slopes - alpha) ** 2) / 2)


def _along(problem: WeightsProblem) -> dict[str, Any]:
    """Return the weights' distance, and divergences from the posterior, of the best Gaussians at one alpha."""
    truth, best = _solve(problem)
    found = {name: _distances(truth, q) for name, q in best.items()}
    return {"alpha": problem.alpha, "truth": truth.separation, **found}


def _solve(problem: WeightsProblem) -> tuple[GridPosterior, dict[str, Approximation]]:
    found = statistics(problem.points("train"), problem.noise)
    best = {name: posterior.optimum(found, symmetrised=flag) for name, flag in OBJECTIVES.items()}
    return posterior.solve(found), best


def _distances(truth: GridPosterior, q: Approximation) -> dict[str, float]:
    return {
        "separation": q.separation,
        "kl": truth.log_evidence - q.elbo,
        "kl_symmetrised": truth.log_evidence - q.symmetrised_elbo,
    }


def _interpolates(truth: GridPosterior, q: Approximation) -> bool:
    return q.separation < TOGETHER * truth.separation


def _predict(
    problem: WeightsProblem,
    truth: GridPosterior,
    mass: Float[np.ndarray, "node node_bis"],
    slopes: Float[np.ndarray, " side"],
) -> dict[str, float]:
    test = problem.points("test")
    mean = np.abs(test.x) * np.where(test.x > 0, slopes[0], slopes[1])
    return {
        "error": error_of(slopes, problem.alpha),
        "mse": float(np.mean((test.y - mean) ** 2)),
        "log_score": posterior.log_score(truth, mass, test, problem.noise),
    }


_REPORTED = {
    "elbo": "final_elbo",
    "elbo_mcse": "final_elbo_mcse",
    "information": "information_lower",
    "information_mcse": "information_lower_mcse",
    "symmetrised_elbo": "symmetrised_elbo_lower",
}
"""The method's own account, in nats; information and symmetrised ELBO are its lower sides."""


def score_fits(
    settings: TwoWeightSettings, case: Row, method: str, tree: xr.DataTree
) -> dict[str, Any]:
    """Measure the fits of one method; `case` is the problem that was fitted, solved: see `optima.solve_case`.

    Lists are over fits: `mse` and `log_score` at the test points; the method's own account; `by_quadrature`, ELBO and
    information of the fitted Gaussians, `loc` and `scale`; `kl` and `kl_symmetrised`, the divergences of q and q^G from
    the posterior. `truth` is the posterior's separation, `best` the least divergence of what is trained for.
    """
    problem = WeightsProblem(settings, case["alpha"], case["noise"])
    found, evidence = statistics(problem.points("train"), problem.noise), case["log_evidence"]
    fitted = tree["variational"].to_dataset().transpose("chain", ...)
    gaussians = [
        posterior.approximation(loc, scale, found)
        for loc, scale in zip(fitted["loc"].values, fitted["scale"].values, strict=True)
    ]
    test, draws = problem.points("test"), {"W1": tree["posterior"].to_dataset()["W1"].values}
    function = predict(model(settings), draws, test.x[:, None])[..., 0]
    miss = (test.y[None, None, :] - function) / settings.noise
    each = logsumexp(-(miss**2) / 2, axis=1) - math.log(function.shape[1])
    return {
        "alpha": case["alpha"],
        "method": method,
        "label": WORDS[method],
        "log_evidence": evidence,
        "truth": case["exact"]["separation"],
        "best": case["mfvi"]["kl"] if method == "mfvi" else case["sgm"]["kl_symmetrised"],
        "mse": np.mean((test.y[None, :] - function.mean(axis=1)) ** 2, axis=-1),
        "log_score": each.mean(axis=-1) - math.log(settings.noise * math.sqrt(2 * math.pi)),
        **{ours: np.asarray(fitted[name].values, float) for ours, name in _REPORTED.items()},
        "kl": [evidence - q.elbo for q in gaussians],
        "kl_symmetrised": [evidence - q.symmetrised_elbo for q in gaussians],
        "loc": [q.loc for q in gaussians],
        "scale": [q.scale for q in gaussians],
        "by_quadrature": {
            "elbo": [q.elbo for q in gaussians],
            "information": [q.information for q in gaussians],
        },
    }


def separations(fit: Row) -> Float[np.ndarray, " fit"]:
    """Distances of the two means."""
    loc = np.array(fit["loc"])
    return np.abs(loc[:, 0] - loc[:, 1])
