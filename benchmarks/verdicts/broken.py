"""Unusable posteriors: funnels, stuck or short chains, several modes, and non-finite numbers."""

from __future__ import annotations

import numpy as np

from .plain import regression
from .simulation import NUTS, Posterior, Walk, autoregressive, nuts_stats


def funnel(
    rng: np.random.Generator,
    *,
    groups: int = 8,
    stats: bool = True,
    names: tuple[str, str] = ("tau", "theta"),
) -> Posterior:
    """Simulate a centred hierarchical model with a slow scale, and divergences at a neck that no chain enters."""
    chains, draws = 4, 1000
    slow = autoregressive(rng, (chains, draws, 1), (0.985, 0.99))[..., 0]
    log_scale = 1.3 * slow + 0.3
    floor = -1.6 + 0.2 * rng.normal(size=(chains, 1))
    log_scale = np.where(log_scale < floor, 2 * floor - log_scale, log_scale)  # Reflected.
    scale = np.exp(log_scale)
    raw = autoregressive(rng, (chains, draws, groups), (0.1, 0.5))
    mu = 0.5 * autoregressive(rng, (chains, draws, 1), (0.3, 0.6))[..., 0]
    danger = 0.25 * np.exp(-2.0 * (log_scale - floor))
    diverging = rng.random((chains, draws)) < danger
    lp = -groups * log_scale - 0.5 * np.sum(raw**2, axis=-1) - 0.5 * mu**2
    values = {"mu": mu, names[0]: scale, names[1]: mu[..., None] + scale[..., None] * raw}
    recorded = nuts_stats(rng, lp, groups + 2, diverging) if stats else {}
    return Posterior(values, recorded, dict(NUTS) if stats else {})


def repeats(rng: np.random.Generator, *, share: float = 0.35) -> Posterior:
    """Simulate a regression in which one chain repeats a single draw for a while."""
    posterior = regression(rng)
    chain, length = rng.integers(4), int(share * 1000)
    start = rng.integers(0, 1000 - length)
    for array in (*posterior.values.values(), posterior.stats["lp"]):
        array[chain, start : start + length] = array[chain, start]
    return posterior


def never_moves(rng: np.random.Generator) -> Posterior:
    """Simulate a regression in which one chain never moves."""
    posterior = regression(rng)
    chain = rng.integers(4)
    for array in (*posterior.values.values(), posterior.stats["lp"]):
        array[chain] = array[chain, :1]
    return posterior


def shrunken(rng: np.random.Generator) -> Posterior:
    """Simulate a regression in which one chain hardly moves, as with a bad step size."""
    posterior = regression(rng)
    chain = rng.integers(4)
    for name in ("alpha", "beta", "sigma"):
        array = posterior.values[name]
        array[chain] = array[chain, :1] + 0.002 * (array[chain] - array[chain, :1])
    return posterior


def short(rng: np.random.Generator, *, draws: int = 1000, stats: bool = True) -> Posterior:
    """Simulate chains that each cover only a part of the posterior."""
    walk = Walk(rng, 8, draws=draws, autocorrelation=(0.992, 0.996))
    values = {
        "alpha": walk.take(1)[..., 0],
        "beta": rng.normal(0, 1, size=6) + 0.3 * walk.take(6),
        "sigma": np.exp(0.2 * walk.take(1)[..., 0]),
    }
    return Posterior(values, walk.stats() if stats else {}, dict(NUTS))


def drifting(rng: np.random.Generator) -> Posterior:
    """Simulate chains that start far away and have not converged."""
    posterior = regression(rng)
    time = np.linspace(0, 1, 1000)
    far = rng.normal(0, 6, size=(4, 1, 6))
    posterior.values["beta"] = posterior.values["beta"] + far * np.exp(-1.5 * time)[:, None]
    posterior.stats["lp"] = posterior.stats["lp"] - 0.5 * np.sum(far**2, axis=-1) * np.exp(
        -3 * time
    )
    return posterior


def modes(rng: np.random.Generator, *, heights: bool = True, chains_apart: int = 1) -> Posterior:
    """Simulate a regression in which some chains are in a second mode, lower or equally high."""
    posterior = regression(rng)
    apart = rng.choice(4, size=chains_apart, replace=False)
    shift = rng.uniform(4, 12) * rng.choice([-1, 1], size=6) * rng.uniform(0.5, 1, size=6)
    posterior.values["beta"][apart] += shift
    posterior.values["sigma"][apart] *= rng.uniform(1.3, 2.0)
    if heights:
        lower = rng.uniform(6, 40)
        posterior.stats["lp"][apart] -= lower
        posterior.stats["energy"][apart] += lower
    return posterior


def every_chain_its_own(rng: np.random.Generator) -> Posterior:
    """Simulate a rugged posterior with every chain in a different mode."""
    posterior = regression(rng, covariates=15)
    posterior.values["beta"] += rng.normal(0, 3, size=(4, 1, 15))
    height = rng.uniform(0, 60, size=(4, 1))
    posterior.stats["lp"] -= height
    posterior.stats["energy"] += height
    return posterior


def not_finite(rng: np.random.Generator, *, kind: float = np.nan, late: bool = True) -> Posterior:
    """Simulate a regression in which one entry of one chain is non-finite, from some draw on or in a few draws."""
    posterior = regression(rng)
    chain, entry = rng.integers(4), rng.integers(6)
    if late:
        posterior.values["beta"][chain, rng.integers(200, 900) :, entry] = kind
    else:
        posterior.values["beta"][chain, rng.choice(1000, size=3, replace=False), entry] = kind
    return posterior


def few(rng: np.random.Generator) -> Posterior:
    """Simulate chains that mix well, with far too few draws."""
    walk = Walk(rng, 8, draws=60, autocorrelation=(0.5, 0.9))
    values = {"alpha": walk.take(1)[..., 0], "beta": rng.normal(0, 1, size=6) + walk.take(6)}
    return Posterior(values, walk.stats(), dict(NUTS))
