"""Posteriors of a few parameters by quadrature: evidence and moments.

Convention: a posterior is known at the nodes of a tensor grid over coordinates, whatever these are (weights, angles, a
radius), by Gauss and Legendre's rule on panels. Edges of panels lie where the log density has kinks, so that the rule
sees smooth functions only. `Exact.error` is by how much the log evidence moves under a rule of a lower order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy.special import logsumexp

Values = dict[str, np.ndarray]
"""Value of every variable at points: name to array (point, ...)."""
Place = Callable[..., tuple[Values, np.ndarray]]
"""From coordinates, each (point,), to values and the log of the volume element."""

LEAST = 1e-13
"""Probability of a node below which its values are not kept."""
TOGETHER = 200_000
"""Nodes that are evaluated at a time."""
COARSER = 1
"""Nodes of a panel that the rule of comparison has less."""


@dataclass(frozen=True)
class Axis:
    """One coordinate of a grid: the edges of its panels, and the nodes of each."""

    edges: tuple[float, ...]
    order: int = 8

    def rule(self, fewer: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights, with `fewer` nodes a panel."""
        node, weight = np.polynomial.legendre.leggauss(self.order - fewer)
        edges = np.asarray(self.edges)
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        return (middle[:, None] + half[:, None] * node).ravel(), (half[:, None] * weight).ravel()


def axis(lower, upper, panels, *, kinks=(), order=8):
    """Equal panels, cut at kinks too."""
    inside = [kink for kink in kinks if lower < kink < upper]
    edges = np.sort([*np.linspace(lower, upper, panels + 1), *inside])
    apart = np.concatenate([[True], np.diff(edges) > 1e-9])
    return Axis(tuple(map(float, edges[apart])), order)


@dataclass(frozen=True, eq=False)
class Exact:
    """A posterior at the nodes of its grid.

    Attributes
    ----------
    values : dict
        Variable to its value (node, ...) at the nodes that matter.
    mass : array (node,)
        Their probabilities, which add up to 1.
    log_evidence, error : float
        In nats; the error by a rule of a lower order.
    """

    values: Values
    mass: np.ndarray
    log_evidence: float
    error: float

    def mean(self, of: np.ndarray) -> float:
        """Posterior mean of a quantity, given at the nodes."""
        return float(self.mass @ of)

    def sd(self, of: np.ndarray) -> float:
        """Posterior standard deviation."""
        return float(np.sqrt(self.mass @ (of - self.mean(of)) ** 2))


def integrate(log_density, place, axes):
    """Integrate a log density of values over a grid of coordinates."""
    coarse = _evaluate(log_density, place, axes, fewer=COARSER)
    fine = _evaluate(log_density, place, axes, fewer=0)
    evidence, before = (float(logsumexp(log_mass)) for _, log_mass in (fine, coarse))
    values, log_mass = fine
    mass = np.exp(log_mass - evidence)
    kept = mass > LEAST
    values = {name: value[kept] for name, value in values.items()}
    return Exact(values, mass[kept] / mass[kept].sum(), evidence, abs(evidence - before))


def _evaluate(log_density, place, axes, fewer):
    """Values and log masses of the grid."""
    nodes, weights = zip(*(a.rule(fewer) for a in axes), strict=True)
    grid = [c.ravel() for c in np.meshgrid(*nodes, indexing="ij")]
    log_weight = reduce(np.add.outer, [np.log(w) for w in weights]).ravel()
    pieces = []
    for start in range(0, len(log_weight), TOGETHER):
        values, log_volume = place(*(c[start : start + TOGETHER] for c in grid))
        pieces.append((values, log_density(values) + log_volume))
    values = {name: np.concatenate([v[name] for v, _ in pieces]) for name in pieces[0][0]}
    return values, np.concatenate([p for _, p in pieces]) + log_weight


def entries(values: Mapping[str, np.ndarray], leading: int = 1) -> dict[str, np.ndarray]:
    """Every entry of every variable under its name, such as ``W1[0, 1]``, without those that never change."""
    found = {}
    for name, value in values.items():
        for index in np.ndindex(value.shape[leading:]):
            entry = value[(..., *index)]
            if np.ptp(entry) > 0:
                found[f"{name}{list(index)}" if index else name] = entry
    return found
