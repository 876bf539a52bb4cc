r"""Bridge sampling: the integral of a density, from draws of it and draws of a Gaussian fitted to other draws of it.

With $p = \tilde p / Z$, a normalised $q$ and any function $h$, $Z = E_q[h \tilde p] / E_p[h q]$. The best $h$ is
$1 / (s_1 p + s_2 q)$ (Meng and Wong 1996), which holds $Z$ itself, so that the estimate is iterated. Here $q$ is
N(0, I) and $p$ is moved to it: centred, scaled by its covariance's factor $C$ and made even, $\tilde p(\eta) = |C|
[\tilde p(\mu + C \eta) + \tilde p(\mu - C \eta)] / 2$ (Meng and Schilling 2002, warp III), which leaves the integral
as it is, and a skewed density costs little. The relative mean squared error is Frühwirth-Schnatter's (2004), with
effective numbers of draws in it.

Convention: log densities in nats, points (point, param) of the unconstrained space.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from onebasin.posteriors.rhat_ess import mean_ess

from ..fits.gaussian import LOG_2PI, NormalFit, Points

ITERATIONS = 1000
TOLERANCE = 1e-10

Density = Callable[[Points], Float[np.ndarray, " point"]]


@dataclass(frozen=True)
class LogIntegral:
    """A log integral with its standard error, in nats."""

    value: float
    error: float


def fitted_normal(points: Points) -> NormalFit:
    """Return the Gaussian with the mean and the covariance of points.

    Correlations are shrunk by the share param / (param + point), so that few points give a covariance with an
    inverse; a coordinate that never varies gets a spread of next to nothing.
    """
    num, size = points.shape
    mean = points.mean(axis=0)
    covariance = np.cov(points, rowvar=False, ddof=1).reshape(size, size)
    spread = np.maximum(np.diag(covariance), 1e-20 * (1 + mean**2))
    shrunk = num / (num + size) * covariance
    np.fill_diagonal(shrunk, spread)
    return NormalFit(mean, np.linalg.cholesky(shrunk))


def log_integral(
    density: Density, draws: Float[np.ndarray, "chain draw param"], rng: np.random.Generator
) -> LogIntegral:
    """Estimate the log integral of an unnormalised density from chains of it.

    The density is the log of it at points, -inf outside of its support; draws (chain, draw, param) that are NaN are
    none, as a chain was elsewhere then. Each half of every chain has its turn: the Gaussian is fitted to one and the
    other is compared with it, and the two estimates are averaged. Where they disagree by more than their errors
    explain, their disagreement is the error.
    """
    middle = draws.shape[1] // 2
    halves = draws[:, :middle], draws[:, middle:]
    estimates = []
    for fitted, other in (halves, halves[::-1]):
        normal = fitted_normal(fitted[np.isfinite(fitted).all(axis=-1)])
        there = np.isfinite(other).all(axis=-1)
        ratios = np.full(there.shape, np.nan)
        ratios[there] = _log_ratio(density, normal, normal.standard(other[there]))
        standard = rng.normal(size=other[there].shape)
        estimates.append(bridged(ratios, _log_ratio(density, normal, standard)))
    first, second = estimates
    error = max(math.hypot(first.error, second.error) / 2, abs(first.value - second.value) / 2)
    return LogIntegral((first.value + second.value) / 2, error)


def _log_ratio(
    density: Density, normal: NormalFit, standard: Points
) -> Float[np.ndarray, " point"]:
    """Log of the density, moved to the standard Gaussian and made even, over that Gaussian."""
    there, back = (density(normal.points(s * standard)) for s in (1, -1))
    gaussian = -0.5 * ((standard**2).sum(axis=1) + standard.shape[1] * LOG_2PI)
    even: Any = np.logaddexp(there, back) - math.log(2)
    return even + normal.log_determinant - gaussian


def bridged(
    of_draws: Float[np.ndarray, "chain draw"], of_gaussian: Float[np.ndarray, " point"]
) -> LogIntegral:
    """The iterated estimate of Meng and Wong, and its error.

    `of_draws` are logs of the unnormalised density over the normalised one, at draws of the first, NaN where there is
    none; `of_gaussian` the same at independent draws of the second. The error is infinite where the two do not meet: no
    draw of the second lies in the first's support.
    """
    known = of_draws[np.isfinite(of_draws)]
    if known.size < 4 or not np.isfinite(of_gaussian).any():
        return LogIntegral(math.nan, math.inf)
    level = float(np.median(known))
    # The effective number of draws for 1 / (1 + ratio) counts; where there is no draw, its mean stands.
    value = 1 / (1 + np.exp(np.clip(of_draws - level, -700, 700)))
    effective = _ess(np.where(np.isfinite(value), value, np.nanmean(value)))
    first, second = (n / (effective + len(of_gaussian)) for n in (effective, len(of_gaussian)))
    log_z = level
    for _ in range(ITERATIONS):
        above = of_gaussian - np.logaddexp(math.log(first) + of_gaussian, math.log(second) + log_z)
        below = -np.logaddexp(math.log(first) + known, math.log(second) + log_z)
        after = float(
            logsumexp(above) - math.log(len(above)) - logsumexp(below) + math.log(len(below))
        )
        if abs(after - log_z) < TOLERANCE:
            break
        log_z = after
    if not math.isfinite(log_z):
        return LogIntegral(math.nan, math.inf)
    # The standard error of the log is the root of the relative mean squared error.
    gaussian = 1 / (first + second * np.exp(np.clip(-(of_gaussian - log_z), -700, 700)))
    draws = 1 / (first * np.exp(np.clip(of_draws - log_z, -700, 700)) + second)
    draws = np.where(np.isfinite(draws), draws, np.nanmean(draws))
    terms = (
        gaussian.var(ddof=1) / gaussian.mean() ** 2 / len(gaussian),
        draws.var(ddof=1) / draws.mean() ** 2 / _ess(draws),
    )
    return LogIntegral(log_z, math.sqrt(sum(terms)))


def _ess(values: Float[np.ndarray, "chain draw"]) -> float:
    """Effective number of draws for the mean."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = float(mean_ess(values[None])[0])
    return min(found, float(values.size)) if math.isfinite(found) and found > 0 else 1.0
