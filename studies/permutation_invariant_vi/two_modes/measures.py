"""Locate one Gaussian between two equal modes: all optima, descents, and the thresholds of both, as frames.

Convention: `alpha` is half the distance between the modes +alpha u and -alpha u, each of standard deviation `sigma`
(Gelberg et al. 2024, section 3 and Appendix A, where ||mu*|| / alpha is 1 at a mode and 0 midway, so that alpha is half
the distance there too). A `ratio` is alpha / sigma, which alone decides (see
`quadrature`). Three thresholds:

- `vanishing`: below it the midpoint is the only optimum;
- `switching`: above it an optimum near a mode has a lower KL than the midpoint;
- where descents that start at a mode end, which is `vanishing` but for their time and noise (`descend`).

Of every Gaussian three numbers are kept: `shift`, ||mu|| / alpha; `determinant`, det Sigma / sigma^4, in the plane,
1 at a component; and `divergence`, KL(q || p) in nats, by quadrature.

The paper's stochastic descent is of a Gaussian in the plane, from a mode, down a sampled reverse KL. Every step
draws points x_i = mu + L e_i of q = N(mu, L L') and goes down the gradient of (Gelberg et al. 2024, equation 8)

    (1 / M) sum_i log q(x_i) - log p(x_i)

with respect to mu and the lower triangle L, through the draws (reparametrised), by plain gradient descent at a constant
rate. It starts at the component N(alpha u, sigma^2 I).

The paper's numbers of samples and of steps and its rate are missing from our text of it: they are chosen here. The rate
is in units of sigma^2, which makes a descent the same at every sigma but for its draws: gradients are in units of
1 / sigma, mu and L in units of sigma. With one rate for all, sigma = 2 would get a 64th of the time of sigma = 1/4.

Two things move the threshold that a descent finds. Time, steps x rate, near the threshold: where the optimum near the
mode has just vanished, the slope is small, and a descent that is stopped early still stands there. And noise: the
variance of a step is in proportion to rate / M, and where that is large q is knocked over the saddle, though there is
an optimum near the mode.
"""

from collections.abc import Iterator
from dataclasses import field
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from onebasin.base.precision import precision
from onebasin.base.settings import Count, Positive, Seed, Several, settings

from ...lab import Frames, frame_of
from . import quadrature as optima
from .quadrature import LineThroughModes


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
    """Ratios at which they are made, rising, and at most 6: see `quadrature`."""
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


BRANCHES = {"midpoint": optima.midpoint, "mode": optima.mode, "saddle": optima.saddle}
MEASURES = ("shift", "determinant", "divergence")
Row = dict[str, Any]


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
        exact = {"vanishing": optima.vanishing(sigma).alpha, "switching": optima.switching(sigma)}
        thresholds.append({"sigma": sigma, **exact, "low": low, "high": high})
    rows = {"optima": _follow(settings), "descents": descents, "thresholds": thresholds}
    return {name: frame_of(found) for name, found in rows.items()}


def grid(settings: InterpolationSettings) -> np.ndarray:
    """Ratios at which optima are followed: evenly, where descents are, and closer where two optima meet like a root."""
    even = np.linspace(settings.largest / settings.points, settings.largest, settings.points)
    close = optima.vanishing().alpha + np.array([1e-6, 1e-4, 5e-4, 2e-3, 5e-3, 1e-2])
    every = np.concatenate([even.round(6), settings.ratios, close])
    return np.unique(every[every <= settings.largest])


def _follow(settings: InterpolationSettings) -> Iterator[Row]:
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


def _descents(key: jax.Array, settings: InterpolationSettings) -> Iterator[Row]:
    cases = list(product(settings.sigmas, settings.ratios))
    sigmas, ratios = np.repeat(np.array(cases), settings.seeds, axis=0).T
    means, covariances = descend(key, ratios * sigmas, sigmas, settings.descent)
    divergences = [
        optima.divergence_in_plane(
            LineThroughModes(ratio * sigma, sigma), DIRECTION, mean, covariance
        )
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
