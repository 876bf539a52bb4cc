"""Where one Gaussian sits between two equal modes: all optima, descents, and the thresholds of both, as frames.

Convention: `alpha` is half the distance between the modes +alpha u and -alpha u, each of standard deviation `sigma`
(Gelberg et al. 2024, section 3 and Appendix A, where ||mu*|| / alpha is 1 at a mode and 0 midway, so that alpha is half
the distance there too). A `ratio` is alpha / sigma, which alone decides (see
`quadrature`). Three thresholds:

- `vanishing`: below it the midpoint is the only optimum;
- `switching`: above it an optimum near a mode has a lower KL than the midpoint;
- where descents that start at a mode end, which is `vanishing` but for their time and noise (`descent`).

Of every Gaussian three numbers are kept: `shift`, ||mu|| / alpha; `determinant`, det Sigma / sigma^4, in the plane,
1 at a component; and `divergence`, KL(q || p) in nats, by quadrature.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import jax
import numpy as np

from ...lab import Frame
from . import quadrature as optima
from .descent import DIRECTION, MIDWAY, bracket, descend, stopped_early
from .quadrature import Mixture
from .settings import Descent, InterpolationSettings

BRANCHES = {"midpoint": optima.midpoint, "mode": optima.mode, "saddle": optima.saddle}
MEASURES = ("shift", "determinant", "divergence")
Row = dict[str, Any]


def run(settings: InterpolationSettings) -> Mapping[str, Frame]:
    """Follow the optima, descend from modes, and find the thresholds.

    The frames: `optima`, a row a sigma and branch, with lists over the ratios at which the branch exists; `descents`, a
    row a sigma and ratio, with lists over seeds; `thresholds`, a row a sigma, of alpha by quadrature, and of the ratio
    between whose values `low` and `high` descents leave their mode; `ways`, a row a way to descend, with the share of
    descents that stayed near their mode, over ratios, and the same two; `stops`, a row a time after which an exact
    descent is stopped, and the ratio above which it then still stands near its mode.
    """
    key_descents, key_ways = jax.random.split(jax.random.key(settings.seed))
    descents = list(_descents(key_descents, settings))
    rows = {
        "optima": _follow(settings),
        "descents": descents,
        "thresholds": [_thresholds(sigma, descents) for sigma in settings.sigmas],
        "ways": _ways(key_ways, settings),
        "stops": ({"time": time, "ratio": stopped_early(time)} for time in settings.times),
    }
    return {name: Frame.of(found) for name, found in rows.items()}


def grid(settings: InterpolationSettings) -> np.ndarray:
    """Ratios at which optima are followed: evenly, where descents are, and closer where two optima meet like a root."""
    even = np.linspace(settings.largest / settings.points, settings.largest, settings.points)
    close = optima.vanishing().alpha + np.array([1e-6, 1e-4, 5e-4, 2e-3, 5e-3, 1e-2])
    every = np.concatenate([even.round(6), settings.ratios, close])
    return np.unique(every[every <= settings.largest])


def _follow(settings: InterpolationSettings) -> Iterator[Row]:
    for sigma, (branch, find) in product(settings.sigmas, BRANCHES.items()):
        at = [(ratio, find(Mixture(float(ratio) * sigma, sigma))) for ratio in grid(settings)]
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
        optima.divergence_in_plane(Mixture(ratio * sigma, sigma), DIRECTION, mean, covariance)
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


def _thresholds(sigma: float, descents: list[Row]) -> Row:
    mine = [row for row in descents if row["sigma"] == sigma]
    stayed = np.array([(row["shift"] > MIDWAY).mean() for row in mine])
    low, high = bracket(stayed, np.array([row["ratio"] for row in mine]))
    return {
        "sigma": sigma,
        "vanishing": optima.vanishing(sigma).alpha,
        "switching": optima.switching(sigma),
        "low": low,
        "high": high,
    }


def _ways(key: jax.Array, settings: InterpolationSettings) -> Iterator[Row]:
    keys = jax.random.split(key, len(settings.noisy))
    for key_way, way in zip(keys, settings.noisy, strict=True):
        stayed = _stayed(key_way, way, settings)
        low, high = bracket(stayed, np.asarray(settings.noisy_ratios))
        how = {"samples": way.samples, "rate": way.learning_rate, "steps": way.steps}
        found = {"stayed": stayed, "ratio": settings.noisy_ratios, "low": low, "high": high}
        yield {**how, "noise": way.noise, **found}


def _stayed(key: jax.Array, way: Descent, settings: InterpolationSettings) -> np.ndarray:
    """Share of the descents that end near their mode, over ratios, at sigma 1."""
    ratios = np.repeat(settings.noisy_ratios, settings.noisy_seeds)
    means, _ = descend(key, ratios, np.ones_like(ratios), way)
    stayed = np.linalg.norm(means, axis=1) > MIDWAY * ratios
    return stayed.reshape(-1, settings.noisy_seeds).mean(axis=1)
