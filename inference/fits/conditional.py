"""Gaussians along a curved posterior: conditional optima over a grid of a few coordinates.

The scale of effects, the smoothness of a field or the persistence of a series bend a posterior: given such a
coordinate the others are close to normal, but their means and spreads change with it. No single Gaussian fits such a
posterior. A mixture of approximations over a grid of these coordinates, weighted by evidence, does fit: integrated
nested Laplace approximations (Rue, Martino and Chopin 2009, JRSS B 71). Here the coordinates are found from the log
density of any model, and the mixture is a proposal that importance weights correct.

Points are in a fit's standard coordinates u, where x = loc + L u. Fixing z = V'u fixes the chosen coordinates of x,
where V is an orthonormal basis of their rows of L. The free coordinates w belong to the complement, u = V z + Q w.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..density.network import CountedDensity, Heights
from .gaussian import LOG_2PI, NormalFit, Points, Vector, cholesky

PAIRS = 128  # Pairs of opposite points whose gradients are compared with that at the centre.
BENDS, FAINT, HELD = 0.4, 0.1, 3
"""Minimum strength of the first fixed coordinate, and of later ones; maximum number of fixed coordinates."""
CANDIDATES = 3  # Number of strongest coordinates; the one that leaves the least curvature is fixed.
ALONE = 0.2  # Minimum share of a coordinate's sd that remains given the fixed coordinates.
SPACING, WIDTH = 1.4, 1.1
"""Distance of neighbouring grid points, and width of each component along the grid, in sds."""
REACH = 3.0  # The grid grows to points this far below the largest evidence, in nats.
GRID = 400  # Maximum number of points of a grid, or of the grids of several fits together.
CLOSE = 0.8  # Points closer than this, in sds, share a node.
STEPS, SHORTENINGS, LEFT = 30, 6, 0.02
"""Maximum number of steps of a climb, and of shortenings of a step; the gain in nats below which a climb ends."""
LEAST, NO_PEAK = 1e-5, 0.05
"""Minimum curvature of a peak, and its replacement if there is no peak, in the fit's units."""

Stack = Float[np.ndarray, "node row column"]
Steps = Float[np.ndarray, "node row"]
Key = tuple[int, ...]  # Integer position of a grid point.
Proposals = list[tuple[NormalFit, float]]
"""Gaussians, each with the log evidence of the region that it covers."""


def bending(counted: CountedDensity, fit: NormalFit, rng: np.random.Generator) -> list[int]:
    """Find coordinates to fix so that the others are close to normal, the strongest first; none if all are normal.

    The even part of the gradient at opposite points, g(u) + g(-u) - 2 g(0), is zero for a Gaussian. Its mean square
    along a coordinate, over random displacements, is the coordinate's strength. Strengths are computed in the space
    that the fixed coordinates leave free. For y = x^2 + noise both coordinates are strong. Given x the rest is normal,
    but given y it has two modes. So the candidate is fixed that leaves the smallest even and nonlinear odd parts.
    """
    points = rng.standard_normal((PAIRS, counted.size))
    held, (strength, _) = list[int](), _strengths(counted, fit, [], points)
    least = BENDS
    while len(held) < min(HELD, counted.size - 1) and strength.max() >= least:
        least = FAINT
        tried = [
            (*_strengths(counted, fit, [*held, int(c)], points), int(c))
            for c in np.argsort(-strength)[:CANDIDATES]
            if strength[c] >= least
        ]
        strength, _, best = min(tried, key=lambda each: each[1])
        held.append(best)
    return held


def _strengths(
    counted: CountedDensity, fit: NormalFit, held: Sequence[int], points: Points
) -> tuple[Vector, float]:
    """Return mean squares of the even part of the gradient along each coordinate, and of all nonlinear parts."""
    bent = BentFit(counted, fit, held)
    free = bent.free
    moved = points @ free @ free.T
    moved = np.concatenate([moved, -moved, np.zeros((1, counted.size))])
    slopes = bent.gradient(moved)[1]
    one, other = np.split(slopes[:-1], 2)
    there = np.isfinite(one + other).all(axis=1)
    if there.sum() < max(PAIRS / 2, 2 * free.shape[1]):
        return np.zeros(counted.size), np.inf
    even, odd = ((one + other) / 2 - slopes[-1])[there], ((one - other) / 2)[there]
    along = (points @ free)[there]
    odd -= along @ np.linalg.lstsq(along, odd)[0]
    for part in (even, odd):  # Shorten long rows, so that outliers have little influence.
        lengths = np.linalg.norm(part, axis=1, keepdims=True)
        part *= np.minimum(1, 2 * np.median(lengths) / np.maximum(lengths, 1e-300))
    rows = bent.root / fit.sds[:, None] @ free
    own = np.linalg.norm(rows, axis=1)
    strengths = np.square(rows @ even.T).mean(axis=1) / np.maximum(own, ALONE) ** 2
    left = float(np.square(even).sum() + np.square(odd).sum())
    return np.where(own < ALONE, 0.0, strengths), left


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Points of a grid, with the shape of the log density around each."""

    points: Points  # Optima given z, in standard coordinates.
    inverses: Stack  # Inverse curvature of w at the optima.
    slopes: Float[np.ndarray, "node row axis"]  # Derivative of the optimal w with respect to z.
    evidence: Float[np.ndarray, " node"]
    """Log evidence of w given z, in nats; -inf without an optimum."""

    def plus(self, other: _Nodes) -> _Nodes:
        """Append the nodes of `other`."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Nodes(*(np.concatenate(pair) for pair in pairs))


class BentFit:
    """The log density in a fit's standard coordinates, with some coordinates fixed."""

    def __init__(self, counted: CountedDensity, fit: NormalFit, held: Sequence[int]) -> None:
        self.counted, self.fit, self.root = counted, fit, fit.root
        whole = np.linalg.qr(self.root[list(held)].T, mode="complete")[0]
        self.held, self.free = whole[:, : len(held)], whole[:, len(held) :]

    def grid(self, most: int = GRID) -> Proposals:
        """Return Gaussians on a grid that grows from the fit's centre to all neighbours of points with high evidence.

        Return no Gaussians if more than `most` are needed, because an incomplete grid lacks the tails.
        """
        axes = self.held.shape[1]
        moves = np.concatenate([np.eye(axes, dtype=int), -np.eye(axes, dtype=int)])
        nodes = self._settled(np.zeros((1, len(self.root))), np.eye(len(self.root) - axes)[None])
        keys, grown = [(0,) * axes], set[Key]()
        while True:
            new: dict[Key, tuple[int, np.ndarray]] = {}
            least = nodes.evidence.max() - REACH
            for place in np.argsort(-nodes.evidence):
                if nodes.evidence[place] < least or keys[place] in grown:
                    continue
                grown.add(keys[place])
                for move in moves:
                    key = tuple((keys[place] + move).tolist())
                    if key not in keys:
                        new.setdefault(key, (int(place), move))
            if not new:
                return self._proposals(nodes)
            if len(keys) + len(new) > most:
                return []
            parents = np.array([parent for parent, _ in new.values()])
            apart = SPACING * np.stack([move for _, move in new.values()])
            starts = nodes.points[parents] + apart @ self.held.T
            starts += np.einsum("nwz,nz->nw", nodes.slopes[parents], apart) @ self.free.T
            keys += list(new)
            nodes = nodes.plus(self._settled(starts, nodes.inverses[parents]))

    def at(self, points: Points) -> Proposals:
        """Return Gaussians at the fixed coordinates of points; of points close to each other, use only the first."""
        standard, chosen = self.fit.standard(points), list[int]()
        for number, z in enumerate(standard @ self.held):
            apart = np.linalg.norm(standard[chosen] @ self.held - z, axis=1)
            if not (apart < CLOSE).any():
                chosen.append(number)
        size = self.free.shape[1]
        begun = np.tile(np.eye(size), (len(chosen), 1, 1))
        return self._proposals(self._settled(standard[chosen], begun))

    def gradient(self, points: Points) -> tuple[Heights, Float[np.ndarray, "point free"]]:
        """Return log densities and their gradients along w."""
        heights, slopes = self.counted.gradient(self.fit.points(points))
        with np.errstate(invalid="ignore"):  # Some points may lie outside the support.
            return heights, slopes @ self.root @ self.free

    def _settled(self, points: Points, inverses: Stack) -> _Nodes:
        """Climb from all points to the optima given z by BFGS, starting with these inverse curvatures of w."""
        points, inverses = points.copy(), inverses.copy()
        heights, slopes = self.gradient(points)
        rows = np.flatnonzero(np.isfinite(heights))
        for _ in range(STEPS):
            steps = np.einsum("nij,nj->ni", inverses[rows], slopes[rows])
            gains = (steps * slopes[rows]).sum(axis=1)
            open_ = gains > LEFT
            rows, steps, gains = rows[open_], steps[open_], gains[open_]
            if not len(rows):
                break
            shares = np.ones(len(rows))
            for _ in range(SHORTENINGS):
                new = points[rows] + (shares[:, None] * steps) @ self.free.T
                high, slope = self.gradient(new)
                risen = high > heights[rows] + 1e-4 * shares * gains
                if risen.all():
                    break
                shares = np.where(risen, shares, shares / 3)
            rows, new, high, slope = rows[risen], new[risen], high[risen], slope[risen]
            moved, bent = (shares[:, None] * steps)[risen], slopes[rows] - slope
            inverses[rows] = _updated(inverses[rows], moved, bent)
            points[rows], heights[rows], slopes[rows] = new, high, slope
        return self._with_curvature(points, heights)

    def _with_curvature(self, points: Points, heights: Heights) -> _Nodes:
        size = self.counted.size
        places = np.repeat(self.fit.points(points), size, axis=0)
        turned = self.counted.products(places, np.tile(self.root.T, (len(points), 1)))
        curvature = -turned.reshape(len(points), size, size) @ self.root
        there = np.isfinite(curvature).all(axis=(1, 2)) & np.isfinite(heights)
        curvature = np.where(there[:, None, None], curvature, np.eye(size))
        own = self.free.T @ (curvature + curvature.transpose(0, 2, 1)) / 2
        values, vectors = np.linalg.eigh(own @ self.free)
        values = np.where(values > LEAST, values, np.maximum(np.abs(values), NO_PEAK))
        inverses = (vectors / values[:, None]) @ vectors.transpose(0, 2, 1)
        evidence = np.where(there, heights - np.log(values).sum(axis=1) / 2, -np.inf)
        return _Nodes(points, inverses, -inverses @ own @ self.held, evidence)

    def _proposals(self, nodes: _Nodes) -> Proposals:
        """Return the Gaussian of each node, and the log evidence of the grid cell around it in nats."""
        size, axes = self.free.shape[1], self.held.shape[1]
        constant = size / 2 * LOG_2PI + axes * np.log(SPACING) + self.fit.log_determinant
        found: Proposals = []
        for place in np.flatnonzero(np.isfinite(nodes.evidence)):
            # The component is wide along z; along w its width follows from the curvature.
            along = self.held + self.free @ nodes.slopes[place]
            square = WIDTH**2 * along @ along.T + self.free @ nodes.inverses[place] @ self.free.T
            scale = cholesky(self.root @ square @ self.root.T)
            if scale is not None:
                (loc,) = self.fit.points(nodes.points[place : place + 1])
                found.append((NormalFit(loc, scale), float(nodes.evidence[place] + constant)))
        return found


def _updated(inverses: Stack, moved: Steps, bent: Steps) -> Stack:
    """Update inverse curvatures from steps and the changes of the gradient along them (BFGS)."""
    product = (moved * bent).sum(axis=1)
    sure = product > 1e-10
    share = np.where(sure, 1 / np.where(sure, product, 1.0), 0.0)[:, None, None]
    left = np.eye(moved.shape[1]) - share * moved[:, :, None] * bent[:, None, :]
    own = share * moved[:, :, None] * moved[:, None, :]
    return left @ inverses @ left.transpose(0, 2, 1) + own
