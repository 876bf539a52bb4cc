"""Moments of draws with Monte Carlo errors from ArviZ, and tests for differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from arviz_stats.base import array_stats

import onebasin as ob

Draws = Mapping[str, np.ndarray]
"""Draws (chain, draw, ...) of each variable."""

LARGEST_Z = 5.0
"""Difference, in standard errors, above which a number is wrong. It allows for thousands of comparisons."""
ROUNDING = 1e-8
"""Largest relative difference of log densities due to rounding."""


@dataclass(frozen=True)
class Moments:
    """Means and standard deviations of entries with their Monte Carlo errors, which are 0 for exact moments."""

    mean: np.ndarray
    sd: np.ndarray
    mean_error: np.ndarray
    sd_error: np.ndarray

    @classmethod
    def exact(cls, mean: Any, sd: Any) -> Moments:
        """Make moments without error."""
        mean, sd = np.asarray(mean, dtype=float), np.asarray(sd, dtype=float)
        return cls(mean, sd, np.zeros_like(mean), np.zeros_like(sd))

    @classmethod
    def of(cls, values: np.ndarray) -> Moments:
        """Compute the moments of draws (chain, draw, ...)."""
        error, sd_error = (
            array_stats.mcse(values, chain_axis=0, draw_axis=1, method=m) for m in ("mean", "sd")
        )
        return cls(values.mean((0, 1)), values.std((0, 1)), np.asarray(error), np.asarray(sd_error))


def differ(ours: Draws, expected: Mapping[str, Moments]) -> list[str]:
    """List the means and standard deviations that differ from the expected ones by more than their errors allow."""
    found = []
    for name, truth in expected.items():
        mine = Moments.of(ours[name])
        for part in ("mean", "sd"):
            gap = getattr(mine, part) - getattr(truth, part)
            error = np.hypot(getattr(mine, f"{part}_error"), getattr(truth, f"{part}_error"))
            # Skip moments that are NaN, because they do not exist or are constant.
            z = np.nan_to_num(np.abs(gap) / np.maximum(error, 1e-12 * (1 + np.abs(gap))))
            if z.max() > LARGEST_Z:
                at = np.unravel_index(z.argmax(), z.shape)
                place = "".join(f"[{i}]" for i in at)
                found.append(
                    f"{part} of {name}{place}: {getattr(mine, part)[at]:.4g}, expected {getattr(truth, part)[at]:.4g}, "
                    f"z = {z.max():.1f}"
                )
    return found


def leaves_the_density(target: ob.Target, before: Any, after: Any) -> list[str]:
    """List moved draws whose log density, from the program itself, has changed."""
    old, new = before["posterior"].to_dataset(), after["posterior"].to_dataset()
    was, now = (ob.log_density(target, draws).values for draws in (old, new))
    moved = np.zeros(was.shape, dtype=bool)
    for name in old:
        unequal = old[name].values != new[name].values
        moved |= unequal.reshape(*was.shape, -1).any(axis=-1)
    off = moved & ~(np.abs(now - was) <= ROUNDING * (1 + np.abs(was)))
    if not off.any():
        return []
    worst = np.abs(now - was)[off].max()
    return [f"{off.sum()} of {moved.sum()} moved draws change in log density, by up to {worst:.3g}"]


def quality(*values: np.ndarray) -> str:
    """Judge label-free draws (chain, draw, ...) with ArviZ: ``sound``, ``unsound``, or ``unclear`` near a limit.

    The documented limits are an R-hat of 1.05 and 100 effective draws per chain.
    """
    flat = np.concatenate([v.reshape(*v.shape[:2], -1) for v in values], axis=-1)
    rhat = np.nanmax(array_stats.rhat(flat, chain_axis=0, draw_axis=1))
    share = np.nanmin(array_stats.ess(flat, chain_axis=0, draw_axis=1)) / (100 * flat.shape[0])
    if rhat > 1.07 or share < 0.8:
        return "unsound"
    return "sound" if rhat < 1.04 and share > 1.2 else "unclear"
