"""Gaussians that maximise the ELBO of fixed draws: deterministic ADVI (Giordano, Ingram and Broderick 2024).

The expectation under q is a mean over draws that stay, antithetic and standardised so that their mean is exactly zero
and their second moments are exactly the identity. So the objective is a function without noise: L-BFGS needs no step
size, and a Gaussian log density has its own mean and covariance as the exact optimum. Convention: x = c + R (t + T z)
with an optimum c and a square root R of the inverse curvature there. Above 200 coordinates T is diagonal, and the
covariance is the linear response of the optimum: how its mean moves where a linear term is added to the log density.

References: Giordano, Ingram and Broderick 2024, Black box variational inference with a deterministic objective, JMLR
25. Giordano, Broderick and Jordan 2018, Covariances, robustness, and variational Bayes, JMLR 19(51), for the latter.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from ..density.counted import CountedDensity
from .gaussian import NormalFit, Points, Vector, cholesky
from .peaks import Peak

AT_ONCE = 60
"""Evaluations after which coordinates are whitened again, by the fit so far."""
ENOUGH = 1e-5
"""Nats of the ELBO that an iteration gains at least."""
SHRINKS = 12
"""Halvings of the first scale until all draws have a finite log density."""
RESPONSES = 20_000
"""Products of Hessians and vectors that a linear response may take, about; 4 draws are used at least."""
LARGEST = 2000
"""Coordinates above which there is no linear response."""


def standard_draws(count: int, size: int, rng: np.random.Generator, *, whole: bool) -> Points:
    """Antithetic standard normal draws, an even number, whose second moments are exactly the identity.

    Of the `whole` all second moments are; else those of each coordinate alone, for which fewer draws suffice.
    """
    half = rng.standard_normal((count // 2, size))
    if whole:
        lower = np.linalg.cholesky(half.T @ half / len(half))
        half = np.linalg.solve(lower, half.T).T
    else:
        half /= np.sqrt((half**2).mean(axis=0))
    return np.concatenate([half, -half])


def fit(counted: CountedDensity, peak: Peak, draws: Points, iterations: int) -> NormalFit:
    """Maximise the ELBO of fixed standard draws (draw, param) from an optimum, in full rank or by coordinates.

    With one square root a coordinate, these stay independent. The ELBO is evaluated at most `iterations` times.
    """
    found = _Climb(counted, peak.vector, peak.root, draws).climb(min(AT_ONCE, iterations))
    used = len(found.trace)
    while not found.converged and used < iterations:
        again = _Climb(counted, found.loc, found.scale, draws).climb(
            min(AT_ONCE, iterations - used)
        )
        trace = (*found.trace, *again.trace)
        gained, used = again.elbo - found.elbo, used + len(again.trace)
        if again.elbo >= found.elbo:
            found = again
        found = replace(found, trace=trace)
        if gained < 1e-3:  # the line search has come to its end
            return replace(found, converged=True)
    return found


class _Climb:
    """The negative ELBO in whitened coordinates, and its optimisation."""

    def __init__(
        self,
        counted: CountedDensity,
        centre: Vector,
        root: Float[np.ndarray, ...],
        draws: Points,
    ) -> None:
        self.counted, self.centre, self.root, self.draws = counted, centre, root, draws
        self.full = root.ndim == 2
        self.size = len(centre)
        self.rows, self.columns = np.tril_indices(self.size, -1)
        self.log_root = np.linalg.slogdet(root)[1] if self.full else np.log(root).sum()
        self.trace: list[float] = []
        self.wall = math.inf

    def climb(self, evaluations: int) -> NormalFit:
        """Run L-BFGS from the first scale at which every draw has a finite log density."""
        start = np.zeros(2 * self.size + (len(self.rows) if self.full else 0))
        for _ in range(SHRINKS):
            first = self(start)[0]
            if np.isfinite(first):
                break
            start[self.size : 2 * self.size] -= math.log(2)
        else:
            return NormalFit(self.centre, np.ones(self.size), -math.inf, False)
        self.wall = first + 10 * (1 + abs(first))
        options = {"ftol": ENOUGH / max(1.0, abs(first)), "gtol": 1e-4, "maxfun": evaluations}
        end = minimize(self, start, jac=True, method="L-BFGS-B", options=options)
        shift, scale = self._parts(end.x)
        if self.full:
            loc, root = self.centre + self.root @ shift, self.root @ scale
            lower = cholesky(root @ root.T)
            whole = lower if lower is not None else np.diag(np.linalg.norm(root, axis=1))
        else:
            loc, whole = self.centre + self.root * shift, self.root * scale
        ended = bool(np.isfinite(end.fun) and end.status == 0)
        return NormalFit(loc, whole, -float(end.fun), ended, tuple(self.trace))

    def __call__(self, packed: Vector) -> tuple[float, Vector]:
        """The negative ELBO and its gradient; a wall where a draw has no finite log density."""
        shift, scale = self._parts(packed)
        moved = shift + (self.draws @ scale.T if self.full else self.draws * scale)
        points = self.centre + (moved @ self.root.T if self.full else moved * self.root)
        heights, slopes = self.counted.gradient(points)
        log_scale = packed[self.size : 2 * self.size]
        elbo = heights.mean() + log_scale.sum() + self.log_root
        elbo += 0.5 * self.size * (1 + math.log(2 * math.pi))
        if not np.isfinite(elbo):
            return self.wall, np.zeros(len(packed))
        self.trace.append(float(elbo))
        slopes = slopes @ self.root if self.full else slopes * self.root
        if self.full:
            spread = slopes.T @ self.draws / len(self.draws)
            along = np.diag(spread) * np.diag(scale)
            rest = spread[self.rows, self.columns]
        else:
            along, rest = (slopes * self.draws).mean(axis=0) * scale, np.empty(0)
        return -elbo, -np.concatenate([slopes.mean(axis=0), along + 1, rest])

    def _parts(self, packed: Vector) -> tuple[Vector, Float[np.ndarray, ...]]:
        """The shift, and the lower triangle or its diagonal."""
        size = self.size
        diagonal = np.exp(np.clip(packed[size : 2 * size], -50, 50))
        if not self.full:
            return packed[:size], diagonal
        scale = np.diag(diagonal)
        scale[self.rows, self.columns] = packed[2 * size :]
        return packed[:size], scale


def linear_response(counted: CountedDensity, fitted: NormalFit, draws: Points) -> NormalFit | None:
    """Return a mean-field fit with the covariance of its linear response; None where there is none.

    With the mean Hessian A of the log density over draws, its mixed derivatives B by means and log scales and C by log
    scales alone, it is the inverse of -(A - B C^-1 B'), exact where the log density is a Gaussian's. All standard
    deviations are wanted, so that a product a coordinate and draw is the least that any solver takes.
    """
    size = len(fitted.loc)
    if size > LARGEST:
        return None
    pairs = len(draws) // 2
    taken = min(pairs, max(2, RESPONSES // (2 * size)))
    z = np.concatenate([draws[:taken], draws[pairs : pairs + taken]])
    points = fitted.points(z)
    mean, mixed, scales = (np.empty((size, size)) for _ in range(3))
    for j in range(size):
        directions = np.zeros((len(z), size))
        directions[:, j] = 1
        turned = counted.products(points, directions)
        weight = (fitted.scale[j] * z[:, j])[:, None]
        mean[:, j] = turned.mean(axis=0)
        mixed[:, j] = (turned * weight).mean(axis=0)
        scales[:, j] = (turned * weight * fitted.scale * z).mean(axis=0)
    scales -= np.eye(size)  # the slope by the log scale, which is -1 at the optimum
    with np.errstate(all="ignore"):
        try:
            precision = -(mean - mixed @ np.linalg.solve((scales + scales.T) / 2, mixed.T))
            covariance = np.linalg.inv((precision + precision.T) / 2)
        except np.linalg.LinAlgError:
            return None
    scale = cholesky((covariance + covariance.T) / 2)
    return None if scale is None else replace(fitted, scale=scale)
