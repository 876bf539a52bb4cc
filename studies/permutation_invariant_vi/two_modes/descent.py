"""The paper's stochastic descent: a Gaussian in the plane, from a mode, down a sampled reverse KL.

Every step draws points x_i = mu + L e_i of q = N(mu, L L') and goes down the gradient of (Gelberg et al. 2024,
equation 8)

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

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from scipy.integrate import solve_ivp

from onebasin.base.precision import precision

from .quadrature import Mixture, slope
from .settings import Descent

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
    """Descend for many targets at once, each on draws of its own; return mu and Sigma after the last step.

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


def stopped_early(time: float) -> float:
    """Find the ratio of alpha to sigma above which an exact descent still stands near its mode after a time.

    The time is steps times rate, in units of sigma^2; the ratio rises with it to that of `two_modes.vanishing`.
    """
    low, high = 0.5, 3.0
    while high - low > 1e-5:
        middle = (low + high) / 2
        low, high = (low, middle) if _still_near(middle, time) else (middle, high)
    return (low + high) / 2


def _still_near(ratio: float, time: float) -> bool:
    mixture = Mixture(ratio)
    path = solve_ivp(
        lambda _, q: -slope(mixture, *q),
        (0.0, time),
        (ratio, 1.0),
        method="LSODA",
        rtol=1e-8,
        atol=1e-10,
    )
    return bool(path.y[0, -1] > MIDWAY * ratio)
