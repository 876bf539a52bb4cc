"""Simulators of the data, one function per kind."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .references import Data

Rng = np.random.Generator


def normals(rng: Rng, means: list, scales: list, shares: list, size: int, **more: object) -> Data:
    """Simulate draws from a normal mixture."""
    part = rng.choice(len(means), p=shares, size=size)
    y = np.array(means)[part] + np.array(scales)[part] * rng.normal(size=size)
    return {"K": len(means), "N": size, "y": y, "prior": 2.0, **more}


def line(rng: Rng) -> Data:
    """Simulate a regression on four inputs."""
    x = rng.normal(size=(40, 4))
    return {"N": 40, "P": 4, "X": x, "y": 1 + x @ rng.normal(size=4) + rng.normal(size=40)}


def nearly_collinear(rng: Rng) -> Data:
    """Simulate a regression with nearly collinear inputs."""
    x = rng.normal(size=(40, 1)) + 0.03 * rng.normal(size=(40, 4))
    return {"N": 40, "P": 4, "X": x, "y": 1 + x.sum(axis=1) + rng.normal(size=40)}


def groups(rng: Rng) -> Data:
    """Simulate noisy measurements of six groups with similar means."""
    error = rng.uniform(4, 12, size=6)
    return {"J": 6, "y": 3 * rng.normal(size=6) + error * rng.normal(size=6), "error": error}


def states(rng: Rng) -> Data:
    """Simulate a hidden Markov model with two persistent states."""
    now = [0]
    for _ in range(119):
        now.append(now[-1] if rng.random() < 0.85 else 1 - now[-1])
    y = np.array([-1.5, 2.0])[now] + np.array([0.6, 1.0])[now] * rng.normal(size=120)
    return {"K": 2, "T": 120, "y": y}


def scales(factors: int) -> Callable[[Rng], Data]:
    """Make a simulator of scores of persons on six scales."""

    def simulate(rng: Rng) -> Data:
        load = rng.uniform(0.6, 1.2, size=(factors, 6))
        if factors > 1:
            load *= rng.choice([-1, 1], size=load.shape)
        y = rng.normal(size=(60, factors)) @ load + 0.5 * rng.normal(size=(60, 6))
        return {"N": 60, "P": 6, "y": y} | ({"F": factors} if factors > 1 else {})

    return simulate


def answers(rng: Rng) -> Data:
    """Simulate the answers of forty persons to eight informative items."""
    slope, easy = rng.uniform(1.6, 2.6, size=8), rng.normal(size=8)
    chance = 1 / (1 + np.exp(-(slope[:, None] * rng.normal(size=40) + easy[:, None])))
    return {"I": 8, "J": 40, "y": (rng.random((8, 40)) < chance).astype(int)}


def two_humps(apart: float, size: int, centre: float = 0.0) -> Callable[[Rng], Data]:
    """Make a simulator of two modes with different masses and widths."""

    def simulate(rng: Rng) -> Data:
        width = np.array([1.0, rng.uniform(0.6, 0.9)])
        place = centre + np.array([-apart / 2, apart / 2]) * width.mean()
        return {"P": size, "mass": rng.uniform(0.55, 0.8), "place": place, "width": width}

    return simulate


def slow_walk(rng: Rng) -> Data:
    """Simulate noisy observations of a random walk."""
    return {"T": 60, "y": np.cumsum(0.3 * rng.normal(size=60)) + 0.5 * rng.normal(size=60)}


def planes(rng: Rng) -> Data:
    """Simulate two clusters that differ almost only in the second coordinate."""
    part = rng.choice(2, p=[0.4, 0.6], size=80)
    centre = np.array([[0.0, -2.0], [0.1, 2.0]])
    return {"N": 80, "y": centre[part] + 0.7 * rng.normal(size=(80, 2))}


def two_decays(rng: Rng) -> Data:
    """Simulate the sum of a fast and a slow decay."""
    t = np.linspace(0, 12, 40)
    y = rng.uniform(4, 6) * np.exp(-1.5 * t) + rng.uniform(2, 4) * np.exp(-0.15 * t)
    return {"N": 40, "t": t, "y": y + 0.1 * rng.normal(size=40)}


def two(rng: Rng) -> Data:
    """Simulate two clusters."""
    return normals(rng, [-2.0, 2.0], [0.6, 1.0], [0.4, 0.6], 60)


def three(rng: Rng) -> Data:
    """Simulate three clusters."""
    return normals(rng, [-4.0, 0.0, 5.0], [0.7, 0.5, 1.0], [0.3, 0.3, 0.4], 90)


def two_named(rng: Rng) -> Data:
    """Simulate two clusters whose priors identify the components."""
    return normals(rng, [-1.5, 1.5], [0.6, 0.8], [0.5, 0.5], 60, centre=[-1.5, 1.5], width=0.7)
