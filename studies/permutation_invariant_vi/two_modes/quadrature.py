"""Gaussians fitted by reverse KL to two equal Gaussian modes: all optima, by quadrature.

The target is p = 1/2 N(-alpha u, sigma^2 I) + 1/2 N(alpha u, sigma^2 I) with a unit vector u (Gelberg et al. 2024,
section 3): `alpha` is half the distance between the modes. The fit is q = N(mu, Sigma) with any mu and Sigma, and what
is minimised is KL(q || p), in nats.

One dimension is enough. Across u the target is N(0, sigma^2 I) whatever the coordinate along u is. So
KL(q || p) = KL(q_u || p_u) + E_q KL(q(rest | u) || N(0, sigma^2 I)); for any q_u the last term has one stationary
point in the other parameters, where it is zero. Every optimum has mu on the line through the modes and
Sigma = s^2 u u' + sigma^2 (I - u u'), in two dimensions det Sigma = s^2 sigma^2, and its KL is that of N(m, s^2):

    K(m, s) = -log(s / sigma) - 1/2 + E f(m + s e)
    f(x) = (x^2 + alpha^2) / (2 sigma^2) - log cosh(alpha x / sigma^2)

with e standard normal. The problem has no scale of its own: KL does not change when q and p are both stretched, so that
mu / alpha, Sigma / sigma^2 and K depend on alpha / sigma alone.

The midpoint is a local minimum at every alpha. On m = 0, with slope s (E f'' - 1 / s^2) in s, E f'' rises with s, so
one s is stationary and it is a minimum along s; there E f'' = 1 / s^2 > 0, and E f'' is the curvature along m (the
mixed one is zero by symmetry). So nothing drives q from the middle, however far apart the modes are. What alpha decides
is whether there is an optimum besides, near each mode. This is not proved here but counted (in the tests): below
`vanishing` there is none, above it there is one and a saddle between it and the midpoint, and from `switching` on it
is the better of the two.

Expectations are sums over equally spaced e (trapezium rule), whose error falls exponentially in the distance of the
integrand's nearest pole from the real line, pi sigma^2 / (2 alpha s), over the spacing: below 1e-10 up to an alpha of
6 sigma. Gauss-Hermite's falls with the root of the number of nodes, and needs thousands where alpha is 4 sigma.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq, root

SPACING, REACH = 0.01, 10.0
_NODES = np.arange(-REACH, REACH + SPACING / 2, SPACING)
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()
# A start for the root finder, in units of sigma; any close to (2.1, 1.3, 2.4) leads to the same root.
_NEAR_VANISHING = (2.1, 1.3, 2.4)


@dataclass(frozen=True)
class LineThroughModes:
    """The target along the line through its modes."""

    alpha: float  # Half the distance between the modes, at most 6 sigma.
    sigma: float = 1.0  # Standard deviation of each component.


@dataclass(frozen=True)
class StationaryPoint:
    """A stationary point of the KL: mean and sd of q along the line through the modes, and KL(q || p) in nats."""

    mean: float
    sd: float
    divergence: float


def divergence(mixture: LineThroughModes, mean: float, sd: float) -> float:
    """KL(q || p) in nats, of q with this mean and standard deviation along u, and the target's across it."""
    x, variance = mean + sd * _NODES, mixture.sigma**2
    pull = mixture.alpha * x / variance
    log_cosh = np.logaddexp(pull, -pull) - np.log(2.0)
    energy = _WEIGHTS @ ((x**2 + mixture.alpha**2) / (2 * variance) - log_cosh)
    return float(energy - np.log(sd / mixture.sigma) - 0.5)


def slope(mixture: LineThroughModes, mean: float, sd: float) -> Float[np.ndarray, " parameter"]:
    """Derivatives of the KL with respect to mean and sd."""
    x, variance = mean + sd * _NODES, mixture.sigma**2
    first = (x - mixture.alpha * np.tanh(mixture.alpha * x / variance)) / variance
    return np.array([_WEIGHTS @ first, _WEIGHTS @ (_NODES * first) - 1 / sd])


def curvature(
    mixture: LineThroughModes, mean: float, sd: float
) -> Float[np.ndarray, "parameter parameter"]:
    """Second derivatives of the KL with respect to mean and sd."""
    rate = mixture.alpha / mixture.sigma**2
    bend = 1 - np.tanh(rate * (mean + sd * _NODES)) ** 2
    second = 1 / mixture.sigma**2 - rate**2 * bend
    mixed, last = (_WEIGHTS @ (_NODES**power * second) for power in (1, 2))
    return np.array([[_WEIGHTS @ second, mixed], [mixed, last + 1 / sd**2]])


def midpoint(mixture: LineThroughModes) -> StationaryPoint:
    """Find the optimum midway between the modes; it exists for every target."""
    return _optimum(mixture, 0.0, _best_sd(mixture, 0.0))


def mode(mixture: LineThroughModes) -> StationaryPoint | None:
    """Find the optimum near the mode at +alpha; None below the threshold where there is none."""
    if mixture.alpha <= vanishing(mixture.sigma).alpha:
        return None
    found = root(
        lambda at: slope(mixture, *at),
        (mixture.alpha, mixture.sigma),
        jac=lambda at: curvature(mixture, *at),
        tol=1e-13,
    )
    return _optimum(mixture, *found.x)


def saddle(mixture: LineThroughModes) -> StationaryPoint | None:
    """Find the saddle between midpoint and mode; None below the threshold where there is none.

    It lies left of where the two met at the threshold, and the mode's optimum right of it; there one sd is stationary
    at every mean.
    """
    meeting = vanishing(mixture.sigma)
    if mixture.alpha <= meeting.alpha:
        return None

    def along(mean: float) -> float:
        return float(slope(mixture, mean, _best_sd(mixture, mean))[0])

    mean = brentq(along, 1e-3 * mixture.sigma, meeting.mean, xtol=1e-12 * mixture.sigma)
    return _optimum(mixture, mean, _best_sd(mixture, mean))


@dataclass(frozen=True)
class Vanishing:
    """The fold where the optimum near a mode and its saddle meet and vanish, as alpha falls; mean and sd as above."""

    alpha: float
    mean: float
    sd: float


def vanishing(sigma: float = 1.0) -> Vanishing:
    """Find the alpha below which the midpoint is the only optimum: slope and det curvature are zero there.

    An exact descent that starts at a mode and is given time ends at the midpoint below it, and near the mode above.
    """

    def conditions(scaled: np.ndarray) -> list[float]:
        mean, sd, alpha = sigma * scaled
        mixture = LineThroughModes(float(alpha), sigma)
        bend = np.linalg.det(sigma**2 * curvature(mixture, mean, sd))
        return [*(sigma * slope(mixture, mean, sd)), bend]

    mean, sd, alpha = sigma * root(conditions, _NEAR_VANISHING, tol=1e-13).x
    return Vanishing(float(alpha), float(mean), float(sd))


def switching(sigma: float = 1.0) -> float:
    """Find the alpha above which the optimum near a mode has a lower KL than the midpoint."""

    def gain(alpha: float) -> float:
        mixture = LineThroughModes(alpha, sigma)
        near = mode(mixture)
        assert near is not None, "alpha is above the threshold"
        return midpoint(mixture).divergence - near.divergence

    lowest = vanishing(sigma).alpha + 1e-6 * sigma
    return float(brentq(gain, lowest, 4 * sigma, xtol=1e-12 * sigma))


def divergence_in_plane(
    mixture: LineThroughModes,
    direction: Float[np.ndarray, " plane"],
    mean: Float[np.ndarray, " plane"],
    covariance: Float[np.ndarray, "plane plane"],
) -> float:
    """KL(q || p) in nats of any Gaussian in two dimensions, by the decomposition above.

    `direction` is the unit vector u from one mode to the other.
    """
    across = np.array([-direction[1], direction[0]])
    along, wide = direction @ covariance @ direction, across @ covariance @ across
    left = wide - (direction @ covariance @ across) ** 2 / along  # of the variance across, given u
    variance = mixture.sigma**2
    rest = (wide + (across @ mean) ** 2) / variance - 1 - np.log(left / variance)
    return divergence(mixture, float(direction @ mean), float(np.sqrt(along))) + 0.5 * float(rest)


def _best_sd(mixture: LineThroughModes, mean: float) -> float:
    """Standard deviation that is stationary at this mean, between sigma's half and that of the moments."""
    most = 2 * np.hypot(mixture.alpha, mixture.sigma)
    return brentq(
        lambda sd: slope(mixture, mean, sd)[1], mixture.sigma / 2, most, xtol=1e-14 * mixture.sigma
    )


def _optimum(mixture: LineThroughModes, mean: float, sd: float) -> StationaryPoint:
    return StationaryPoint(float(mean), float(sd), divergence(mixture, mean, sd))
