"""One Gaussian between two equal modes, by reverse KL: all optima by quadrature, descents, and the thresholds of both.

The target is p = 1/2 N(-alpha u, sigma^2 I) + 1/2 N(alpha u, sigma^2 I) with a unit vector u (Gelberg et al. 2024,
section 3 and Appendix A): `alpha` is half the distance between the modes. The fit is q = N(mu, Sigma) with any mu and
Sigma, and what is minimised is KL(q || p), in nats. ||mu|| / alpha is 1 at a mode and 0 midway.

One dimension is enough. Across u the target is N(0, sigma^2 I) whatever the coordinate along u is. So
KL(q || p) = KL(q_u || p_u) + E_q KL(q(rest | u) || N(0, sigma^2 I)); for any q_u the last term has one stationary
point in the other parameters, where it is zero. Every optimum has mu on the line through the modes and
Sigma = s^2 u u' + sigma^2 (I - u u'), in two dimensions det Sigma = s^2 sigma^2, and its KL is that of N(m, s^2):

    K(m, s) = -log(s / sigma) - 1/2 + E f(m + s e)
    f(x) = (x^2 + alpha^2) / (2 sigma^2) - log cosh(alpha x / sigma^2)

with e standard normal. The problem has no scale of its own: KL does not change when q and p are both stretched, so that
mu / alpha, Sigma / sigma^2 and K depend on alpha / sigma alone.

The midpoint is a local minimum at every alpha: where the slope in s is zero, E f'' = 1 / s^2 > 0, and E f'' is the
curvature along m. So nothing drives q from the middle, however far apart the modes are. What alpha decides is whether
there is an optimum besides, near each mode. Tests count them: below `vanishing` there is none, above it there is one
and a saddle between it and the midpoint, and from `switching` on it is the better of the two.

Expectations are sums over equally spaced e (trapezium rule), with errors below 1e-10 up to an alpha of 6 sigma.

The paper's descents start at the component N(alpha u, sigma^2 I), and go down a sampled reverse KL (its equation 8),

    (1 / M) sum_i log q(x_i) - log p(x_i),    x_i = mu + L e_i,

with respect to mu and the lower triangle L, at a constant rate. Its numbers of samples and of steps and its rate are
missing from our text: they are chosen here. The rate is in units of sigma^2, which makes a descent the same at every
sigma but for its draws. Two things move the threshold that a descent finds. A descent that is stopped early still
stands near the mode where the optimum has just vanished, since the slope is small there. And where the noise of a step
is large, in proportion to rate / M, q is knocked over the saddle though there is an optimum near the mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from scipy.optimize import brentq, root

from onebasin.base.precision import precision
from onebasin.base.settings import Count, Positive, Seed, Several, settings

from ..lab.study import Frames, frame_of

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


@settings
class Descent:
    """Settings of a descent."""

    samples: Count = 100  # Points of q a step, M.
    learning_rate: Positive = 0.02  # In units of sigma^2.
    steps: Count = 10_000  # Steps.


@settings
class InterpolationSettings:
    """Settings of the experiment."""

    sigmas: tuple[Positive, ...] = (0.25, 0.5, 1.0, 2.0)  # Standard deviations of the components.
    largest: float = 4.5  # Ratio of alpha to sigma up to which optima are followed.
    points: Several = 181
    """Ratios at which they are, besides those of the descents and a few above the threshold."""
    descent: Descent = field(default_factory=Descent)  # The descents of every sigma.
    ratios: tuple[float, ...] = (
        *(0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.3, 2.35, 2.4, 2.45, 2.5),
        *(2.6, 2.75, 3.0, 3.25, 3.5, 4.0, 4.5),
    )
    """Ratios at which they are made, rising, and at most 6: see `LineThroughModes`."""
    seeds: Several = 4  # Descents a ratio.
    seed: Seed = 0  # Of all draws.


QUICK = InterpolationSettings(
    points=46,
    descent=Descent(20, 0.05, 2_000),
    ratios=(0.5, 1.0, 1.5, 2.0, 2.3, 2.5, 3.0, 3.5, 4.5),
    seeds=2,
)
"""Seconds where the default takes a minute."""


DIRECTION = np.array([np.cos(np.pi / 6), np.sin(np.pi / 6)])
"""The unit vector u; along no axis, so that L has to turn."""
MIDWAY = 0.5
"""A descent has stayed at its mode where ||mu|| / alpha is above this, and else gone to the midpoint."""


def descend(
    rng_key: Key[Array, ""],
    alphas: Float[np.ndarray, " run"],
    sigmas: Float[np.ndarray, " run"],
    descent: Descent,
) -> tuple[Float[np.ndarray, "run plane"], Float[np.ndarray, "run plane plane"]]:
    """Descend for many targets at once, each on its own draws; return mu and Sigma after the last step.

    `alphas` are half the distances between the modes, `sigmas` each component's standard deviation.
    """
    with precision("float64"):
        keys = jax.random.split(rng_key, len(alphas))
        means, factors = _descend(keys, jnp.asarray(alphas), jnp.asarray(sigmas), descent)
        return np.asarray(means), np.asarray(factors @ jnp.swapaxes(factors, 1, 2))


def sampled_divergence(
    q: tuple[Float[Array, " plane"], Float[Array, "plane plane"]],
    noise: Float[Array, "sample plane"],
    alpha: Float[Array, ""],
    sigma: Float[Array, ""],
) -> Float[Array, ""]:
    """Estimate KL(q || p) in nats on points of q (equation 8); `q` is mu and L, `noise` the e of the points."""
    mean, factor = q[0], jnp.tril(q[1])
    x, mode = mean[None] + noise @ factor.T, alpha * jnp.asarray(DIRECTION)[None]
    log_q = -0.5 * (noise**2).sum(1) - jnp.log(jnp.abs(jnp.diag(factor))).sum()
    left, right = (-0.5 * ((x - side * mode) ** 2).sum(1) / sigma**2 for side in (-1, 1))
    log_p = jnp.logaddexp(left, right) - jnp.log(2.0) - 2 * jnp.log(sigma)
    return (log_q - log_p).mean()


@partial(jax.jit, static_argnames="descent")
@partial(jax.vmap, in_axes=(0, 0, 0, None))
def _descend(
    key: Key[Array, ""], alpha: Float[Array, ""], sigma: Float[Array, ""], descent: Descent
) -> tuple[Float[Array, " plane"], Float[Array, "plane plane"]]:
    rate = descent.learning_rate * sigma**2

    def step(q: tuple[Array, Array], key_step: Array) -> tuple[tuple[Array, Array], None]:
        noise = jax.random.normal(key_step, (descent.samples, 2))
        gradient = jax.grad(sampled_divergence)(q, noise, alpha, sigma)
        return jax.tree.map(lambda now, down: now - rate * down, q, gradient), None

    start = (alpha * jnp.asarray(DIRECTION), sigma * jnp.eye(2))
    return jax.lax.scan(step, start, jax.random.split(key, descent.steps))[0]


def bracket(
    stayed: Float[np.ndarray, " ratio"], ratios: Float[np.ndarray, " ratio"]
) -> tuple[float, float]:
    """Enclose the threshold: the last ratio at which not most descents stayed at their mode, and the next.

    `stayed` is the share of the descents that stayed, at `ratios` of alpha to sigma, rising. NaN stands on the side
    where no ratio was tried.
    """
    left = np.flatnonzero(stayed <= 0.5)
    last = left[-1] if len(left) else -1
    low = float(ratios[last]) if last >= 0 else float("nan")
    high = float(ratios[last + 1]) if last + 1 < len(ratios) else float("nan")
    return low, high


BRANCHES = {"midpoint": midpoint, "mode": mode, "saddle": saddle}
MEASURES = ("shift", "determinant", "divergence")


def run(settings: InterpolationSettings) -> Frames:
    """Follow the optima, descend from modes, and find the thresholds.

    The frames: `optima`, a row a sigma and branch, with lists over the ratios at which the branch exists; `descents`, a
    row a sigma and ratio, with lists over seeds; `thresholds`, a row a sigma, of alpha by quadrature, and of the ratio
    between whose values `low` and `high` descents leave their mode.
    """
    key_descents, _ = jax.random.split(jax.random.key(settings.seed))
    descents = list(_descents(key_descents, settings))
    thresholds = []
    for sigma in settings.sigmas:
        mine = [row for row in descents if row["sigma"] == sigma]
        stayed = np.array([(row["shift"] > MIDWAY).mean() for row in mine])
        low, high = bracket(stayed, np.array([row["ratio"] for row in mine]))
        exact = {"vanishing": vanishing(sigma).alpha, "switching": switching(sigma)}
        thresholds.append({"sigma": sigma, **exact, "low": low, "high": high})
    rows = {"optima": _follow(settings), "descents": descents, "thresholds": thresholds}
    return {name: frame_of(found) for name, found in rows.items()}


def grid(settings: InterpolationSettings) -> np.ndarray:
    """Ratios at which optima are followed: evenly, where descents are, and closer where two optima meet like a root."""
    even = np.linspace(settings.largest / settings.points, settings.largest, settings.points)
    close = vanishing().alpha + np.array([1e-6, 1e-4, 5e-4, 2e-3, 5e-3, 1e-2])
    every = np.concatenate([even.round(6), settings.ratios, close])
    return np.unique(every[every <= settings.largest])


def _follow(settings: InterpolationSettings) -> Iterator[dict[str, Any]]:
    for sigma, (branch, find) in product(settings.sigmas, BRANCHES.items()):
        at = [
            (ratio, find(LineThroughModes(float(ratio) * sigma, sigma))) for ratio in grid(settings)
        ]
        there = [(float(ratio), one) for ratio, one in at if one is not None]
        yield {
            "sigma": sigma,
            "branch": branch,
            "ratio": [ratio for ratio, _ in there],
            "shift": [one.mean / (ratio * sigma) for ratio, one in there],
            "determinant": [(one.sd / sigma) ** 2 for _, one in there],
            "divergence": [one.divergence for _, one in there],
        }


def _descents(key: jax.Array, settings: InterpolationSettings) -> Iterator[dict[str, Any]]:
    cases = list(product(settings.sigmas, settings.ratios))
    sigmas, ratios = np.repeat(np.array(cases), settings.seeds, axis=0).T
    means, covariances = descend(key, ratios * sigmas, sigmas, settings.descent)
    divergences = [
        divergence_in_plane(LineThroughModes(ratio * sigma, sigma), DIRECTION, mean, covariance)
        for ratio, sigma, mean, covariance in zip(ratios, sigmas, means, covariances, strict=True)
    ]
    measured = {
        "shift": np.linalg.norm(means, axis=1) / (ratios * sigmas),
        "determinant": np.linalg.det(covariances) / sigmas**4,
        "divergence": np.array(divergences),
    }
    for place, (sigma, ratio) in enumerate(cases):
        mine = slice(place * settings.seeds, (place + 1) * settings.seeds)
        yield {"sigma": sigma, "ratio": ratio, **{name: v[mine] for name, v in measured.items()}}
