"""What is measured of trained approximations: their own account, and the same by quadrature.

Convention: lists are over fits (the posterior's chains). Predictions are averaged over the draws of a fit, as in the
paper; divergences are of the fitted Gaussian, not of its draws.

Source: Gelberg et al. 2024, section 5, Tables 2 and 3.
"""

import math
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import logsumexp

from onebasin.models import predict

from ...lab import Row
from .design import WORDS, Points, Problem, TwoWeightSettings, model
from .gaussian import approximation
from .truth import statistics

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
    problem = Problem(settings, case["alpha"], case["noise"])
    found, evidence = statistics(problem.points("train"), problem.noise), case["log_evidence"]
    fitted = tree["variational"].to_dataset().transpose("chain", ...)
    gaussians = [
        approximation(loc, scale, found)
        for loc, scale in zip(fitted["loc"].values, fitted["scale"].values, strict=True)
    ]
    mse, log_score = _predict(settings, tree, problem.points("test"))
    return {
        "alpha": case["alpha"],
        "method": method,
        "label": WORDS[method],
        "log_evidence": evidence,
        "truth": case["exact"]["separation"],
        "best": case["mfvi"]["kl"] if method == "mfvi" else case["sgm"]["kl_symmetrised"],
        "mse": mse,
        "log_score": log_score,
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


def off(fit: Row) -> Float[np.ndarray, " fit"]:
    """How far the method's own ELBO is from that by quadrature, in its Monte Carlo errors."""
    apart = np.array(fit["elbo"]) - fit["by_quadrature"]["elbo"]
    return np.asarray(apart / fit["elbo_mcse"])


def _predict(
    settings: TwoWeightSettings, tree: xr.DataTree, test: Points
) -> tuple[Float[np.ndarray, " fit"], Float[np.ndarray, " fit"]]:
    draws = {"W1": tree["posterior"].to_dataset()["W1"].values}
    function = predict(model(settings), draws, test.x[:, None])[..., 0]
    mse = np.mean((test.y[None, :] - function.mean(axis=1)) ** 2, axis=-1)
    miss = (test.y[None, None, :] - function) / settings.noise
    each = logsumexp(-(miss**2) / 2, axis=1) - math.log(function.shape[1])
    return mse, each.mean(axis=-1) - math.log(settings.noise * math.sqrt(2 * math.pi))
