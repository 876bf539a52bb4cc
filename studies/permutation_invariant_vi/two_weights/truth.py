"""The posterior of the network with two weights, by quadrature.

Convention: f is linear on either side of zero, f(x) = |x| s(w), with the slopes

    s_+(w) = relu(w1) + relu(w2)  where x > 0,    s_-(w) = relu(-w1) + relu(-w2)  where x < 0,

so that the likelihood needs five numbers of the data (`Statistics`), and inside each quadrant of the weights the log
posterior is quadratic. The rule is Gauss and Legendre's on equal panels in both weights, with an edge at zero, where
the log density has its kinks; panels are halved until the evidence stands still.

Source: Gelberg et al. 2024, section 5, where the posterior is called tractable; they show it only as a picture.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from onebasin.base.errors import InferenceError

from .design import Points

BEYOND = 8.5
"""Standard deviations between a slope's mean and the edge of the grid."""
ORDER = 8
"""Nodes of a panel."""
FEWEST, MOST = 16, 256
"""Panels of an axis, first and last; even."""
STILL = 1e-8
"""Nats by which the log evidence may move when the panels are halved."""
_LEAST = 1e-12
"""Share of the mass below which a node is left out of a prediction."""
_TOGETHER = 16
"""Test points that are predicted at a time."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """What the likelihood needs of the data: log p(y | w) = constant + sum over sides of b s - a s^2 / 2."""

    a: Float[np.ndarray, " side"]
    """Sum of x^2 / noise^2 over the points with x > 0, and over those with x < 0."""
    b: Float[np.ndarray, " side"]  # Sum of |x| y / noise^2, likewise.
    constant: float  # Log likelihood of f = 0.


@dataclass(frozen=True, eq=False)
class Truth:
    """The posterior on a grid."""

    node: Float[np.ndarray, " node"]
    weight: Float[np.ndarray, " node"]  # `node`, `weight`: of the rule in each weight.
    log_density: Float[np.ndarray, "node node_bis"]
    """Normalised log posterior density; w1 goes with the first axis."""
    log_evidence: float  # In nats.
    moved: float  # By how much the log evidence moved in the last halving of the panels.

    @property
    def mass(self) -> Float[np.ndarray, "node node_bis"]:
        """Probability of each node; they add up to 1."""
        return np.exp(self.log_density) * np.outer(self.weight, self.weight)

    @property
    def separation(self) -> float:
        """Mean of |w1 - w2|: how far apart the two weights are, whichever is called the first.

        Good to some 1e-5 of itself, as its kink is not on the panels' edges.
        """
        return self.mean(np.abs(self.node[:, None] - self.node[None, :]))

    def mean(self, values: Float[np.ndarray, "node node_bis"]) -> float:
        """Posterior mean of a function of the weights, given at the nodes."""
        return float(np.sum(self.mass * values))

    def mean_slopes(self) -> Float[np.ndarray, " side"]:
        """Posterior means of s_+ and s_-: the mean prediction is |x| times one of them."""
        return np.array([self.mean(s) for s in slopes(self.node[:, None], self.node[None, :])])


def statistics(data: Points, noise: float) -> Statistics:
    """Sum up the data for a likelihood with this standard deviation of the noise."""
    sides = (data.x > 0, data.x < 0)
    size = len(data.y)
    rest = float(data.y @ data.y) / (2 * noise**2) + size * math.log(noise * math.sqrt(2 * math.pi))
    return Statistics(
        a=np.array([np.sum(data.x[side] ** 2) for side in sides]) / noise**2,
        b=np.array([np.abs(data.x[side]) @ data.y[side] for side in sides]) / noise**2,
        constant=-rest,
    )


def slopes(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The slopes s_+ and s_- of f, for weights that broadcast."""
    return (
        np.maximum(first, 0) + np.maximum(second, 0),
        np.maximum(-first, 0) + np.maximum(-second, 0),
    )


def log_joint(found: Statistics, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Log prior plus log likelihood, for weights that broadcast; nothing is dropped."""
    value = found.constant - math.log(2 * math.pi) - (first**2 + second**2) / 2
    for a, b, slope in zip(found.a, found.b, slopes(first, second), strict=True):
        value = value + b * slope - a * slope**2 / 2
    return value


def solve(found: Statistics) -> Truth:
    """Integrate the posterior, with panels halved until the log evidence stands still."""
    before = math.inf
    # Of two weights that share a slope, the prior is narrowest in the slope where they are equal: precision 1/2.
    precision = found.a + 0.5
    edge = float(np.max(np.abs(found.b) / precision + BEYOND / np.sqrt(precision)))
    for node, weight in _rules(edge):
        values = log_joint(found, node[:, None], node[None, :])
        evidence = float(logsumexp(values, b=np.outer(weight, weight)))
        moved = abs(evidence - before)
        if moved < STILL:
            return Truth(node, weight, values - evidence, evidence, moved)
        before = evidence
    raise InferenceError(
        f"The log evidence still moves by {moved:.1e} nats at {MOST} panels; allowed are "
        f"{STILL:g}. The likelihood is too narrow for the grid: take fewer points or more noise."
    )


def _rules(edge: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    node, weight = np.polynomial.legendre.leggauss(ORDER)
    panels = FEWEST
    while panels <= MOST:
        bounds = np.linspace(-edge, edge, panels + 1)
        half = edge / panels
        middle = (bounds[1:] + bounds[:-1]) / 2
        yield (middle[:, None] + half * node[None, :]).ravel(), np.tile(half * weight, panels)
        panels *= 2


def log_score(
    truth: Truth, mass: Float[np.ndarray, "node node_bis"], test: Points, noise: float
) -> float:
    """Mean log predictive density of test points, in nats.

    `mass` are probabilities of the truth's nodes: `Truth.mass`, or those of an approximation.
    """
    kept = mass > _LEAST
    first, second = (w[kept] for w in np.meshgrid(truth.node, truth.node, indexing="ij"))
    total, weight = 0.0, mass[kept]
    for positive, slope in zip((True, False), slopes(first, second), strict=True):
        side = np.flatnonzero((test.x > 0) == positive)
        for some in np.array_split(side, len(side) // _TOGETHER + 1):
            miss = (test.y[some, None] - np.abs(test.x[some, None]) * slope[None, :]) / noise
            total += float(np.sum(logsumexp(-(miss**2) / 2, b=weight[None, :], axis=1)))
    return total / len(test.x) - math.log(noise * math.sqrt(2 * math.pi))
