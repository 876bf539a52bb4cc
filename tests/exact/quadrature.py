"""Posteriors of a few parameters by quadrature: evidence, moments, quantiles, marginals.

A posterior is evaluated at the nodes of a tensor grid over coordinates, such as weights, angles or a radius, with
Gauss-Legendre rules on panels. Panels have edges at the kinks of the log density, so the integrand is smooth on each
panel. `Exact.error` is the change in log evidence under a rule of lower order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy.special import logsumexp

Values = dict[str, np.ndarray]
"""Values of every variable at points, as a map from names to arrays (point, ...)."""
Place = Callable[..., tuple[Values, np.ndarray]]
"""Function from coordinates, each (point,), to values and the log of the volume element."""

LEAST = 1e-13
"""The values of nodes with less probability than this are dropped."""
TOGETHER = 200_000
"""Number of nodes to evaluate at a time."""
COARSER = 1
"""Number of nodes per panel by which the rule for comparison is smaller."""


@dataclass(frozen=True)
class Axis:
    """One coordinate of a grid: the edges of its panels and the number of nodes per panel."""

    edges: tuple[float, ...]
    order: int = 8

    def rule(self, fewer: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return nodes and weights, with `fewer` nodes less per panel."""
        node, weight = np.polynomial.legendre.leggauss(self.order - fewer)
        edges = np.asarray(self.edges)
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        return (middle[:, None] + half[:, None] * node).ravel(), (half[:, None] * weight).ravel()


def axis(
    lower: float, upper: float, panels: int, *, kinks: Iterable[float] = (), order: int = 8
) -> Axis:
    """Make equal panels with additional edges at kinks."""
    inside = [kink for kink in kinks if lower < kink < upper]
    edges = np.sort([*np.linspace(lower, upper, panels + 1), *inside])
    apart = np.concatenate([[True], np.diff(edges) > 1e-9])
    return Axis(tuple(map(float, edges[apart])), order)


@dataclass(frozen=True, eq=False)
class Exact:
    """A posterior at the nodes of its grid.

    Attributes
    ----------
    nodes, weights : tuple of array
        Nodes and weights of each axis.
    all_mass : array
        Probability of every node, with one axis per coordinate.
    values : dict
        Values (node, ...) by variable, at the nodes with noticeable mass.
    mass : array (node,)
        Probabilities of these nodes, which add up to 1.
    log_evidence, error : float
        In nats; the error comes from a rule of lower order.
    """

    nodes: tuple[np.ndarray, ...]
    weights: tuple[np.ndarray, ...]
    all_mass: np.ndarray
    values: Values
    mass: np.ndarray
    log_evidence: float
    error: float

    def mean(self, of: np.ndarray) -> float:
        """Return the posterior mean of a quantity from its values at the nodes."""
        return float(self.mass @ of)

    def sd(self, of: np.ndarray) -> float:
        """Return the posterior standard deviation of a quantity."""
        return float(np.sqrt(self.mass @ (of - self.mean(of)) ** 2))

    def quantiles(
        self, of: np.ndarray, probabilities: Sequence[float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return posterior quantiles, with half of a node's mass below it, and their accuracy, the local grid step."""
        value, place = np.unique(of, return_inverse=True)
        mass = np.bincount(place.ravel(), weights=self.mass)
        below = np.cumsum(mass) - mass / 2
        high = np.clip(np.searchsorted(below, probabilities), 1, len(value) - 1)
        return np.interp(probabilities, below, value), value[high] - value[high - 1]

    def marginal(self, first: int, second: int) -> np.ndarray:
        """Return the joint density of two coordinates at their nodes."""
        low, high = sorted((first, second))
        others = tuple(i for i in range(self.all_mass.ndim) if i not in (low, high))
        area = np.outer(self.weights[low], self.weights[high])
        density = self.all_mass.sum(axis=others) / area
        return density if first < second else density.T


def integrate(
    log_density: Callable[[Values], np.ndarray], place: Place, axes: Sequence[Axis]
) -> Exact:
    """Integrate a log density of values over a grid of coordinates."""
    coarse = _evaluate(log_density, place, axes, fewer=COARSER)
    fine = _evaluate(log_density, place, axes, fewer=0)
    evidence, before = (float(logsumexp(log_mass)) for _, _, _, log_mass in (fine, coarse))
    nodes, weights, values, log_mass = fine
    mass = np.exp(log_mass - evidence)
    kept = mass > LEAST
    return Exact(
        nodes,
        weights,
        mass.reshape([len(node) for node in nodes]),
        {name: value[kept] for name, value in values.items()},
        mass[kept] / mass[kept].sum(),
        evidence,
        abs(evidence - before),
    )


def _evaluate(
    log_density: Callable[[Values], np.ndarray], place: Place, axes: Sequence[Axis], fewer: int
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], Values, np.ndarray]:
    """Return nodes and weights of the axes, and values and log masses on the grid."""
    nodes, weights = zip(*(a.rule(fewer) for a in axes), strict=True)
    grid = [c.ravel() for c in np.meshgrid(*nodes, indexing="ij")]
    log_weight = reduce(np.add.outer, [np.log(w) for w in weights]).ravel()
    pieces = []
    for start in range(0, len(log_weight), TOGETHER):
        values, log_volume = place(*(c[start : start + TOGETHER] for c in grid))
        pieces.append((values, log_density(values) + log_volume))
    values = {name: np.concatenate([v[name] for v, _ in pieces]) for name in pieces[0][0]}
    return nodes, weights, values, np.concatenate([p for _, p in pieces]) + log_weight


def entries(values: Mapping[str, np.ndarray], leading: int = 1) -> dict[str, np.ndarray]:
    """Return every entry that is not constant by its name, such as ``W1[0, 1]``."""
    found = {}
    for name, value in values.items():
        for index in np.ndindex(value.shape[leading:]):
            entry = value[(..., *index)]
            if np.ptp(entry) > 0:
                found[f"{name}{list(index)}" if index else name] = entry
    return found
