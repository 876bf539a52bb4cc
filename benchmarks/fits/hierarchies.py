"""Random hierarchies with exact posteriors: group effects that are independent given their mean and scale.

The data are counts of successes, counts, measurements, or answers to items of known difficulty. The models are centred
or non-centred. With few groups or few data per group, the scale can approach zero, as in a funnel. The posterior of
mean and scale is computed on a grid, and the posterior of each effect given both by quadrature around its mode.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist
from scipy.special import logsumexp

import onebasin as ob

ROWS, MEANS, SCALES, NODES = 20_000, 81, 161, 121
"""Number of posterior draws, and numbers of grid points for means, scales and effects around their mode."""
FAMILIES = ("binomial", "poisson", "normal", "items")


class Hierarchy:
    """Simulated data of a family, with the log likelihood of a group as a function of its location."""

    def __init__(self, number: int) -> None:
        rng = np.random.default_rng([number, 52])
        self.family = FAMILIES[number % 4]
        self.groups, each = int(rng.integers(3, 16)), int(rng.integers(1, 9))
        self.centred, self.top = bool(rng.random() < 0.5), float(rng.choice([0.5, 1.0, 2.0]))
        self.difficulty = rng.normal(size=each)
        scale = min(abs(rng.normal()) * self.top, 1.5)
        place = rng.normal(0, 0.7) + scale * rng.normal(size=self.groups)
        probability = 1 / (
            1 + np.exp(-(place[:, None] - self.difficulty * (self.family == "items")))
        )
        self.y = {
            "binomial": lambda: rng.binomial(each, probability[:, 0]),
            "poisson": lambda: rng.poisson(each * np.exp(place)),
            "normal": lambda: rng.normal(place, 2 / each**0.5),
            "items": lambda: (rng.random((self.groups, each)) < probability).sum(axis=1),
        }[self.family]().astype(float)
        self.each = each

    def log_likelihood(self, place, y):
        """Return the log likelihood of groups at these locations, in NumPy or JAX."""
        if self.family == "poisson":
            return y * place - self.each * jnp.exp(place)
        if self.family == "normal":
            return -0.5 * self.each * (y - place) ** 2 / 4
        shift = self.difficulty if self.family == "items" else np.zeros(self.each)
        return y * place - jnp.logaddexp(0.0, place[..., None] - shift).sum(axis=-1)

    def model(self) -> None:
        """Define the model with mean, scale and effects; the sum of a person's answers is sufficient."""
        mean = numpyro.sample("mean", dist.Normal(0, 1.5))
        tau = numpyro.sample("tau", dist.HalfNormal(self.top))
        if self.centred:
            effect = numpyro.sample("effect", dist.Normal(0, tau).expand([self.groups]).to_event(1))
        else:
            z = numpyro.sample("z", dist.Normal(0, 1).expand([self.groups]).to_event(1))
            effect = tau * z
        numpyro.factor("y", self.log_likelihood(mean + effect, self.y).sum())

    def conditional(
        self, mean: np.ndarray, tau: np.ndarray, y: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return standardised effects (point, node) of a group around their mode, and their log probabilities."""
        grid = np.linspace(-7, 7, NODES)
        centre, sd = np.zeros(len(mean)), np.ones(len(mean))
        for _ in range(3):  # Narrow the grid to the posterior each time.
            z = centre[:, None] + sd[:, None] * grid
            height = self.log_likelihood(mean[:, None] + tau[:, None] * z, y)
            log = np.asarray(height) - z**2 / 2 + np.log(sd)[:, None]
            p = np.exp(log - logsumexp(log, axis=1, keepdims=True))
            centre = (p * z).sum(axis=1)
            sd = np.sqrt((p * (z - centre[:, None]) ** 2).sum(axis=1)) + 1e-3
        return z, log


def made(number: int) -> tuple[ob.Target, dict[str, np.ndarray]]:
    """Return a target and draws from its posterior."""
    one, rng = Hierarchy(number), np.random.default_rng(number)
    ends = np.array([[-6.0, 6.0], [0.0, 4.5 * one.top]])
    for _ in range(2):  # The second grid covers the posterior found by the first.
        means, scales = (
            low + (np.arange(count) + 0.5) * (high - low) / count
            for (low, high), count in zip(ends, (MEANS, SCALES), strict=True)
        )
        mean, tau = (axis.ravel() for axis in np.meshgrid(means, scales, indexing="ij"))
        log = -0.5 * (mean / 1.5) ** 2 - 0.5 * (tau / one.top) ** 2
        for y in one.y:
            log = log + logsumexp(one.conditional(mean, tau, y)[1], axis=1)
        there = log > log.max() - 18
        wide = means[1] - means[0], scales[1] - scales[0]
        ends = np.array(
            [
                [v[there].min() - w, v[there].max() + w]
                for v, w in zip((mean, tau), wide, strict=True)
            ]
        )
        ends[1, 0] = max(ends[1, 0], 0.0)
    rows = rng.choice(len(log), size=ROWS, p=np.exp(log - logsumexp(log)))
    # Draws are uniform within a cell of the grid.
    wide = [(rng.random(ROWS) - 0.5) * (axis[1] - axis[0]) for axis in (means, scales)]
    mean, tau = mean[rows] + wide[0], tau[rows] + wide[1]
    z = np.empty((ROWS, one.groups))
    for group, y in enumerate(one.y):
        places, log_p = one.conditional(mean, tau, y)
        below = np.cumsum(p := np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True)), axis=1)
        node = np.minimum((below < rng.random((ROWS, 1))).sum(axis=1), p.shape[1] - 1)
        z[:, group] = places[np.arange(ROWS), node]
        z[:, group] += (rng.random(ROWS) - 0.5) * (places[:, 1] - places[:, 0])
    draws = {
        "mean": mean,
        "tau": tau,
        **({"effect": z * tau[:, None]} if one.centred else {"z": z}),
    }
    how = "centred" if one.centred else "apart"
    return ob.Target(f"{one.family}-{how}-{number}", numpyro_model=one.model), draws
