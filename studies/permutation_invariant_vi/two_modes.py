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
mu / alpha, Sigma / sigma^2 and K depend only on alpha / sigma. Below, all is in units of sigma, and `ratio` is
alpha / sigma.

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

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, partial
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
# A start for the root finder; any close to it leads to the same root.
_NEAR_VANISHING = (2.1, 1.3, 2.4)


@dataclass(frozen=True)
class StationaryPoint:
    """A stationary point of the KL: mean and sd of q along the line through the modes, and KL(q || p) in nats."""

    mean: float
    sd: float
    divergence: float


def divergence(ratio: float, mean: float, sd: float) -> float:
    """KL(q || p) in nats, of q with this mean and standard deviation along u, and the target's across it."""
    x = mean + sd * _NODES
    log_cosh = np.logaddexp(ratio * x, -ratio * x) - np.log(2.0)
    energy = _WEIGHTS @ ((x**2 + ratio**2) / 2 - log_cosh)
    return float(energy - np.log(sd) - 0.5)


def slope(ratio: float, mean: float, sd: float) -> Float[np.ndarray, " parameter"]:
    """Derivatives of the KL with respect to mean and sd."""
    x = mean + sd * _NODES
    first = x - ratio * np.tanh(ratio * x)
    return np.array([_WEIGHTS @ first, _WEIGHTS @ (_NODES * first) - 1 / sd])


def curvature(ratio: float, mean: float, sd: float) -> Float[np.ndarray, "parameter parameter"]:
    """Second derivatives of the KL with respect to mean and sd."""
    second = 1 - ratio**2 * (1 - np.tanh(ratio * (mean + sd * _NODES)) ** 2)
    mixed, last = (_WEIGHTS @ (_NODES**power * second) for power in (1, 2))
    return np.array([[_WEIGHTS @ second, mixed], [mixed, last + 1 / sd**2]])


def midpoint(ratio: float) -> StationaryPoint:
    """Find the optimum midway between the modes; it exists for every target."""
    return _optimum(ratio, 0.0, _best_sd(ratio, 0.0))


def mode(ratio: float) -> StationaryPoint | None:
    """Find the optimum near the mode at +alpha; None below the threshold where there is none."""
    if ratio <= vanishing()[2]:
        return None
    how: dict[str, Any] = {"jac": lambda at: curvature(ratio, *at), "tol": 1e-13}
    return _optimum(ratio, *root(lambda at: slope(ratio, *at), (ratio, 1.0), **how).x)


def saddle(ratio: float) -> StationaryPoint | None:
    """Find the saddle between midpoint and mode; None below the threshold where there is none.

    It lies left of where the two met at the threshold, and the mode's optimum right of it; there one sd is stationary
    at every mean.
    """
    meeting, _, threshold = vanishing()
    if ratio <= threshold:
        return None

    def along(mean: float) -> float:
        return float(slope(ratio, mean, _best_sd(ratio, mean))[0])

    mean = brentq(along, 1e-3, meeting, xtol=1e-12)
    return _optimum(ratio, mean, _best_sd(ratio, mean))


@cache
def vanishing() -> tuple[float, float, float]:
    """Find where the optimum near a mode and its saddle meet and vanish, as the ratio falls: mean, sd and ratio.

    Slope and det curvature are zero there. An exact descent that starts at a mode and is given time ends at the
    midpoint below that ratio, and near the mode above.
    """

    def conditions(at: np.ndarray) -> list[float]:
        mean, sd, ratio = map(float, at)
        return [*slope(ratio, mean, sd), np.linalg.det(curvature(ratio, mean, sd))]

    mean, sd, ratio = map(float, root(conditions, _NEAR_VANISHING, tol=1e-13).x)
    return mean, sd, ratio


@cache
def switching() -> float:
    """Find the ratio above which the optimum near a mode has a lower KL than the midpoint."""

    def gain(ratio: float) -> float:
        near = mode(ratio)
        assert near is not None, "the ratio is above the threshold"
        return midpoint(ratio).divergence - near.divergence

    return float(brentq(gain, vanishing()[2] + 1e-6, 4, xtol=1e-12))


def divergence_in_plane(
    ratio: float, mean: Float[np.ndarray, " plane"], covariance: Float[np.ndarray, "plane plane"]
) -> float:
    """KL(q || p) in nats of any Gaussian in two dimensions, by the decomposition above; u is `DIRECTION`."""
    across = np.array([-DIRECTION[1], DIRECTION[0]])
    along, wide = DIRECTION @ covariance @ DIRECTION, across @ covariance @ across
    left = wide - (DIRECTION @ covariance @ across) ** 2 / along  # of the variance across, given u
    rest = wide + (across @ mean) ** 2 - 1 - np.log(left)
    return divergence(ratio, float(DIRECTION @ mean), float(np.sqrt(along))) + 0.5 * float(rest)


def _best_sd(ratio: float, mean: float) -> float:
    """Standard deviation that is stationary at this mean, between sigma's half and that of the moments."""
    most = 2 * np.hypot(ratio, 1)
    return brentq(lambda sd: slope(ratio, mean, sd)[1], 0.5, most, xtol=1e-14)


def _optimum(ratio: float, mean: float, sd: float) -> StationaryPoint:
    return StationaryPoint(float(mean), float(sd), divergence(ratio, mean, sd))


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
    """Ratios at which they are made, rising, and at most 6."""
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
    rng_key: Key[Array, ""], ratios: Float[np.ndarray, " run"], descent: Descent
) -> tuple[Float[np.ndarray, "run plane"], Float[np.ndarray, "run plane plane"]]:
    """Descend for many targets at once, each on its own draws; return mu and Sigma after the last step."""
    with precision("float64"):
        keys = jax.random.split(rng_key, len(ratios))
        means, factors = _descend(keys, jnp.asarray(ratios), descent)
        return np.asarray(means), np.asarray(factors @ jnp.swapaxes(factors, 1, 2))


def sampled_divergence(
    q: tuple[Float[Array, " plane"], Float[Array, "plane plane"]],
    noise: Float[Array, "sample plane"],
    ratio: Float[Array, ""],
) -> Float[Array, ""]:
    """Estimate KL(q || p) in nats on points of q (equation 8); `q` is mu and L, `noise` the e of the points."""
    mean, factor = q[0], jnp.tril(q[1])
    x, mode = mean[None] + noise @ factor.T, ratio * jnp.asarray(DIRECTION)[None]
    log_q = -0.5 * (noise**2).sum(1) - jnp.log(jnp.abs(jnp.diag(factor))).sum()
    left, right = (-0.5 * ((x - side * mode) ** 2).sum(1) for side in (-1, 1))
    return (log_q - jnp.logaddexp(left, right) + jnp.log(2.0)).mean()


@partial(jax.jit, static_argnames="descent")
@partial(jax.vmap, in_axes=(0, 0, None))
def _descend(
    key: Key[Array, ""], ratio: Float[Array, ""], descent: Descent
) -> tuple[Float[Array, " plane"], Float[Array, "plane plane"]]:
    def step(q: tuple[Array, Array], key_step: Array) -> tuple[tuple[Array, Array], None]:
        noise = jax.random.normal(key_step, (descent.samples, 2))
        gradient = jax.grad(sampled_divergence)(q, noise, ratio)
        return jax.tree.map(lambda now, down: now - descent.learning_rate * down, q, gradient), None

    start = (ratio * jnp.asarray(DIRECTION), jnp.eye(2))
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

    The frames: `optima`, one row per sigma and branch, with lists over the ratios at which the branch exists;
    `descents`, one row per sigma and ratio, with lists over seeds; `thresholds`, one row per sigma, of alpha by
    quadrature, and of the ratio between whose values `low` and `high` descents leave their mode.
    """
    key_descents, _ = jax.random.split(jax.random.key(settings.seed))
    followed, descents = list(_follow(settings)), list(_descents(key_descents, settings))
    thresholds = []
    for sigma in settings.sigmas:
        mine = [row for row in descents if row["sigma"] == sigma]
        stayed = np.array([(row["shift"] > MIDWAY).mean() for row in mine])
        low, high = bracket(stayed, np.array([row["ratio"] for row in mine]))
        exact = {"vanishing": sigma * vanishing()[2], "switching": sigma * switching()}
        thresholds.append({"sigma": sigma, **exact, "low": low, "high": high})
    optima = [{"sigma": sigma, **row} for sigma in settings.sigmas for row in followed]
    rows = {"optima": optima, "descents": descents, "thresholds": thresholds}
    return {name: frame_of(found) for name, found in rows.items()}


def grid(settings: InterpolationSettings) -> np.ndarray:
    """Ratios at which optima are followed: evenly, where descents are, and closer where two optima meet like a root."""
    even = np.linspace(settings.largest / settings.points, settings.largest, settings.points)
    close = vanishing()[2] + np.array([1e-6, 1e-4, 5e-4, 2e-3, 5e-3, 1e-2])
    every = np.concatenate([even.round(6), settings.ratios, close])
    return np.unique(every[every <= settings.largest])


def _follow(settings: InterpolationSettings) -> Iterator[dict[str, Any]]:
    for branch, find in BRANCHES.items():
        at = [(float(ratio), find(float(ratio))) for ratio in grid(settings)]
        there = [(ratio, one) for ratio, one in at if one is not None]
        yield {
            "branch": branch,
            "ratio": [ratio for ratio, _ in there],
            "shift": [one.mean / ratio for ratio, one in there],
            "determinant": [one.sd**2 for _, one in there],
            "divergence": [one.divergence for _, one in there],
        }


def _descents(key: jax.Array, settings: InterpolationSettings) -> Iterator[dict[str, Any]]:
    cases = list(product(settings.sigmas, settings.ratios))
    ratios = np.repeat([ratio for _, ratio in cases], settings.seeds)
    means, covariances = descend(key, ratios, settings.descent)
    found = zip(ratios, means, covariances, strict=True)
    measured = {
        "shift": np.linalg.norm(means, axis=1) / ratios,
        "determinant": np.linalg.det(covariances),
        "divergence": np.array([divergence_in_plane(*one) for one in found]),
    }
    for place, (sigma, ratio) in enumerate(cases):
        mine = slice(place * settings.seeds, (place + 1) * settings.seeds)
        yield {"sigma": sigma, "ratio": ratio, **{name: v[mine] for name, v in measured.items()}}
