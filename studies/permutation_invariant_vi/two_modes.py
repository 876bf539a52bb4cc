"""One Gaussian between two equal modes: optima of the reverse KL by quadrature, sampled descents, and thresholds.

The target is p = 1/2 N(-alpha u, sigma^2 I) + 1/2 N(alpha u, sigma^2 I) with a unit vector u (Gelberg et al. 2024,
section 3 and Appendix A). `alpha` is half the distance between the modes. The fit q = N(mu, Sigma) minimises
KL(q || p), in nats, over any mu and Sigma. ||mu|| / alpha is 1 at a mode and 0 midway.

One dimension is enough. Across u the target is N(0, sigma^2 I), independent of the coordinate along u. So
KL(q || p) = KL(q_u || p_u) + E_q KL(q(rest | u) || N(0, sigma^2 I)). For any q_u the last term has one stationary
point in the other parameters, and it is zero there. Every optimum has mu on the line through the modes and
Sigma = s^2 u u' + sigma^2 (I - u u'). In two dimensions det Sigma = s^2 sigma^2. Its KL equals the KL of N(m, s^2):

    K(m, s) = -log(s / sigma) - 1/2 + E f(m + s e)
    f(x) = (x^2 + alpha^2) / (2 sigma^2) - log cosh(alpha x / sigma^2)

with e standard normal. KL does not change if q and p are scaled together, so mu / alpha, Sigma / sigma^2 and K depend
only on alpha / sigma. Below, lengths are in units of sigma, and `ratio` is alpha / sigma.

The midpoint is a local minimum at every alpha: at zero slope in s, E f'' = 1 / s^2 > 0, and E f'' is the curvature
along m. So nothing drives q from the middle, at any distance between the modes. alpha decides whether an additional
optimum exists near each mode. Below `vanishing` no such optimum exists. Above it there is one, with a saddle between it
and the midpoint. Above `switching` it is better than the midpoint. The tests count these optima.

Expectations are sums over equally spaced e (trapezium rule), with errors below 1e-10 for alpha up to 6 sigma.

The paper's descents start at the component N(alpha u, sigma^2 I) and minimise a sampled reverse KL (its equation 8),

    (1 / M) sum_i log q(x_i) - log p(x_i),    x_i = mu + L e_i,

with respect to mu and the lower triangle L, at a constant rate. The text available to us lacks the numbers of samples
and steps and the rate, so we chose them. The rate is in units of sigma^2, so descents at different sigmas differ only
by their draws. Two effects move the threshold that a descent finds. A descent that stops early can still be near a mode
whose optimum has just vanished, because the slope is small there. If the noise of a step is large (it is proportional
to rate / M), q can jump over the saddle although an optimum exists near the mode.
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
# Start of the root finder: mean, sd and ratio. Nearby starts lead to the same root.
_NEAR_VANISHING = (2.1, 1.3, 2.4)


@dataclass(frozen=True)
class StationaryPoint:
    """Stationary point of the KL: mean and sd of q along the line through the modes, and KL(q || p) in nats."""

    mean: float
    sd: float
    divergence: float


def divergence(ratio: float, mean: float, sd: float) -> float:
    """Return KL(q || p) in nats, for q with this mean and sd along u and the distribution of the target across u."""
    x = mean + sd * _NODES
    log_cosh = np.logaddexp(ratio * x, -ratio * x) - np.log(2.0)
    energy = _WEIGHTS @ ((x**2 + ratio**2) / 2 - log_cosh)
    return float(energy - np.log(sd) - 0.5)


def slope(ratio: float, mean: float, sd: float) -> Float[np.ndarray, " parameter"]:
    """Return the derivatives of the KL with respect to mean and sd."""
    x = mean + sd * _NODES
    first = x - ratio * np.tanh(ratio * x)
    return np.array([_WEIGHTS @ first, _WEIGHTS @ (_NODES * first) - 1 / sd])


def curvature(ratio: float, mean: float, sd: float) -> Float[np.ndarray, "parameter parameter"]:
    """Return the second derivatives of the KL with respect to mean and sd."""
    second = 1 - ratio**2 * (1 - np.tanh(ratio * (mean + sd * _NODES)) ** 2)
    mixed, last = (_WEIGHTS @ (_NODES**power * second) for power in (1, 2))
    return np.array([[_WEIGHTS @ second, mixed], [mixed, last + 1 / sd**2]])


def midpoint(ratio: float) -> StationaryPoint:
    """Find the optimum midway between the modes, which exists for every target."""
    return _optimum(ratio, 0.0, _best_sd(ratio, 0.0))


def mode(ratio: float) -> StationaryPoint | None:
    """Find the optimum near the mode at +alpha; return None if `ratio` is below the threshold."""
    if ratio <= vanishing()[2]:
        return None
    how: dict[str, Any] = {"jac": lambda at: curvature(ratio, *at), "tol": 1e-13}
    return _optimum(ratio, *root(lambda at: slope(ratio, *at), (ratio, 1.0), **how).x)


def saddle(ratio: float) -> StationaryPoint | None:
    """Find the saddle between the midpoint and the mode; return None if `ratio` is below the threshold.

    At the threshold, the saddle and the optimum near the mode meet at a point. The saddle lies to its left and the
    optimum to its right. On the left, every mean has exactly one stationary sd.
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
    """Find the mean, sd and ratio at which the optimum near a mode and its saddle meet and vanish.

    The slope and the determinant of the curvature are zero at this point. Below this ratio, a long exact descent from a
    mode ends at the midpoint. Above it, the descent ends near the mode.
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
    """Return KL(q || p) in nats for any Gaussian in two dimensions, with u = `DIRECTION`."""
    across = np.array([-DIRECTION[1], DIRECTION[0]])
    along, wide = DIRECTION @ covariance @ DIRECTION, across @ covariance @ across
    # The variance across u, given the coordinate along u.
    left = wide - (DIRECTION @ covariance @ across) ** 2 / along
    rest = wide + (across @ mean) ** 2 - 1 - np.log(left)
    return divergence(ratio, float(DIRECTION @ mean), float(np.sqrt(along))) + 0.5 * float(rest)


def _best_sd(ratio: float, mean: float) -> float:
    """Find the stationary standard deviation at this mean."""
    most = 2 * np.hypot(ratio, 1)
    return brentq(lambda sd: slope(ratio, mean, sd)[1], 0.5, most, xtol=1e-14)


def _optimum(ratio: float, mean: float, sd: float) -> StationaryPoint:
    return StationaryPoint(float(mean), float(sd), divergence(ratio, mean, sd))


@settings
class Descent:
    """Settings of a descent."""

    samples: Count = 100  # Number of draws from q per step, M.
    learning_rate: Positive = 0.02  # Learning rate in units of sigma^2.
    steps: Count = 10_000  # Number of steps.


@settings
class InterpolationSettings:
    """Settings of the experiment with two modes."""

    sigmas: tuple[Positive, ...] = (0.25, 0.5, 1.0, 2.0)  # Standard deviations of the components.
    largest: float = 4.5  # Largest ratio of alpha to sigma at which optima are computed.
    points: Several = 181
    """Number of evenly spaced ratios for the optima. The ratios of descents and a few above the threshold are added."""
    descent: Descent = field(default_factory=Descent)  # Settings of the descents at every sigma.
    ratios: tuple[float, ...] = (
        *(0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.3, 2.35, 2.4, 2.45, 2.5),
        *(2.6, 2.75, 3.0, 3.25, 3.5, 4.0, 4.5),
    )
    """Ratios of alpha to sigma for descents, in ascending order, at most 6."""
    seeds: Several = 4  # Number of descents per ratio.
    seed: Seed = 0  # Seed of all draws.


QUICK = InterpolationSettings(
    points=46,
    descent=Descent(20, 0.05, 2_000),
    ratios=(0.5, 1.0, 1.5, 2.0, 2.3, 2.5, 3.0, 3.5, 4.5),
    seeds=2,
)
"""Settings that take seconds instead of a minute."""


DIRECTION = np.array([np.cos(np.pi / 6), np.sin(np.pi / 6)])
"""The unit vector u. It is oblique, so L must have an off-diagonal entry."""
MIDWAY = 0.5
"""Threshold of ||mu|| / alpha above which a descent has stayed at its mode."""


def descend(
    rng_key: Key[Array, ""], ratios: Float[np.ndarray, " run"], descent: Descent
) -> tuple[Float[np.ndarray, "run plane"], Float[np.ndarray, "run plane plane"]]:
    """Descend for many targets at once, each with its own draws; return the final mu and Sigma."""
    with precision("float64"):
        keys = jax.random.split(rng_key, len(ratios))
        means, factors = _descend(keys, jnp.asarray(ratios), descent)
        return np.asarray(means), np.asarray(factors @ jnp.swapaxes(factors, 1, 2))


Normal = tuple[Float[Array, " plane"], Float[Array, "plane plane"]]


def sampled_divergence(
    q: Normal, noise: Float[Array, "sample plane"], ratio: Float[Array, ""]
) -> Float[Array, ""]:
    """Estimate KL(q || p) in nats from draws of q (equation 8); `q` is mu and L, `noise` the e of the draws."""
    mean, factor = q[0], jnp.tril(q[1])
    x, mode = mean[None] + noise @ factor.T, ratio * jnp.asarray(DIRECTION)[None]
    log_q = -0.5 * (noise**2).sum(1) - jnp.log(jnp.abs(jnp.diag(factor))).sum()
    left, right = (-0.5 * ((x - side * mode) ** 2).sum(1) for side in (-1, 1))
    return (log_q - jnp.logaddexp(left, right) + jnp.log(2.0)).mean()


@partial(jax.jit, static_argnames="descent")
@partial(jax.vmap, in_axes=(0, 0, None))
def _descend(key: Key[Array, ""], ratio: Float[Array, ""], descent: Descent) -> Normal:
    def step(q: Normal, key_step: Array) -> tuple[Normal, None]:
        noise = jax.random.normal(key_step, (descent.samples, 2))
        gradient = jax.grad(sampled_divergence)(q, noise, ratio)
        return jax.tree.map(lambda now, down: now - descent.learning_rate * down, q, gradient), None

    start = (ratio * jnp.asarray(DIRECTION), jnp.eye(2))
    return jax.lax.scan(step, start, jax.random.split(key, descent.steps))[0]


def bracket(
    stayed: Float[np.ndarray, " ratio"], ratios: Float[np.ndarray, " ratio"]
) -> tuple[float, float]:
    """Bracket the threshold: return the last ratio at which at most half the descents stayed, and the next ratio.

    `stayed` is the share of descents that stayed at their mode, at ascending `ratios` of alpha to sigma. An end is NaN
    if no tried ratio lies on that side.
    """
    left = np.flatnonzero(stayed <= 0.5)
    last = left[-1] if len(left) else -1
    low = float(ratios[last]) if last >= 0 else float("nan")
    high = float(ratios[last + 1]) if last + 1 < len(ratios) else float("nan")
    return low, high


BRANCHES = {"midpoint": midpoint, "mode": mode, "saddle": saddle}
MEASURES = ("shift", "determinant", "divergence")


def run(settings: InterpolationSettings) -> Frames:
    """Compute the optima, descend from modes, and find the thresholds.

    Return three frames. `optima` has one row per sigma and branch, with lists over the ratios at which the branch
    exists. `descents` has one row per sigma and ratio, with lists over seeds. `thresholds` has one row per sigma: the
    thresholds of alpha by quadrature, and the ratios `low` and `high` between which descents leave their mode.
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
    """Return the ratios for optima: evenly spaced ones, those of descents, and closer ones just above the threshold."""
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
