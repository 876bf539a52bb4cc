"""posteriordb's criteria for a reference posterior, as its maker applies them to draws.

Source: posteriordb, `doc/REFERENCE_POSTERIOR_DEFINITION.md`, and the keys `checks_made` of its files. ESS has to lie
within four standard errors of the number of draws, as that of independent ones does; of many quantities some ESS of
independent draws lies beyond that by chance, so the level of four standard errors is asked of all of them together. A
lag-1 autocorrelation is the mean over chains, without its sign. What `checker` tells of a file shares nothing with this
module.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pandas as pd


class ChainFacts(NamedTuple):
    """The facts by which chains themselves are judged."""

    chains: int  # Their number.
    draws: int  # Kept of each.
    divergences: list[int]  # Of each, in all iterations after the warmup.
    efmi: list[float]  # Of each one's kept draws.
    efmi_unthinned: list[float]  # Of each one's iterations after the warmup.


NUM_DRAWS = 10_000
RHAT, LAG1, EFMI = 1.01, 0.05, 0.2
MIN_CHAINS = 4
BY_THINNING = ("ess_within_bounds", "abs_mean_lag1_ac_below_0_05", "r_hat_below_1_01")
"""Checks that more thinning, of as many more draws, could fix."""


def ess_bounds(draws: int = NUM_DRAWS, estimates: int = 1) -> tuple[float, float]:
    """Between which so many estimates of the ESS of independent draws lie; of one, 4 sqrt(7 S) to either side of S."""
    normal = NormalDist()
    width = -normal.inv_cdf(normal.cdf(-4) / estimates)
    half = width * math.sqrt(7 * draws)
    return draws - half, draws + half


def lag1(values: np.ndarray) -> np.ndarray:
    """Mean over chains of the lag-1 autocorrelation of draws (chain, draw, param); NaN where nothing varies."""
    gap = values - values.mean(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        own = (gap[:, 1:] * gap[:, :-1]).sum(axis=1) / (gap**2).sum(axis=1)
    return own.mean(axis=0)


def efmi(energy: np.ndarray) -> list[float]:
    """E-FMI of each chain's energies (chain, draw)."""
    return [float(np.square(np.diff(e)).mean() / e.var()) if e.var() else 0.0 for e in energy]


def checks_made(table: pd.DataFrame, of: ChainFacts) -> dict[str, bool]:
    """Hold a table of quantities, with columns of `describe` and `lag1`, against the criteria."""
    free = table[table["sd"] > 0]
    ess = free[["ess_bulk", "ess_tail"]].to_numpy()
    low, high = ess_bounds(of.chains * of.draws, max(ess.size, 1))
    return {
        "ndraws_is_10k": of.chains * of.draws == NUM_DRAWS,
        "nchains_is_gte_4": of.chains >= MIN_CHAINS,
        "ess_within_bounds": bool(((ess > low) & (ess < high)).all()),
        "r_hat_below_1_01": bool((free["rhat"] < RHAT).all()),
        "efmi_above_0_2": min(*of.efmi, *of.efmi_unthinned) > EFMI,
        "abs_mean_lag1_ac_below_0_05": bool((free["lag1"].abs() < LAG1).all()),
        "no_divergent_transitions": not any(of.divergences),
    }


def diagnostics(table: pd.DataFrame, of: ChainFacts) -> dict[str, Any]:
    """Return the diagnostics under the keys of posteriordb's files."""
    return {
        "diagnostic_information": {"names": list(table.index)},
        "ndraws": of.chains * of.draws,
        "nchains": of.chains,
        "effective_sample_size_bulk": short(table["ess_bulk"]),
        "effective_sample_size_tail": short(table["ess_tail"]),
        "r_hat": short(table["rhat"]),
        "lag1_autocorrelation": short(table["lag1"]),
        "divergent_transitions": of.divergences,
        "expected_fraction_of_missing_information": short(of.efmi),
    }


def short(numbers: Iterable[float]) -> list[float]:
    """Round numbers to six digits."""
    return [float(f"{value:.6g}") for value in numbers]
