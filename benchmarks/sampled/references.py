"""Reference posteriors: by quadrature, by formula, or by a long run of a program without label switching."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import logsumexp

import onebasin as ob

from .numbers import Draws, Moments, quality

PROGRAMS = Path(__file__).parent / "programs"
Data = dict[str, Any]
Expected = Mapping[str, Moments]
Reference = Callable[[Data, Draws, int], Expected]
"""Function of data, the judged draws (which show the mode) and a seed that returns moments."""


def sampled(target: ob.Target, settings: ob.Nuts, seed: int) -> Any:
    """Sample a program with the interpreter."""
    return ob.infer(target, settings, engine="stanli", seed=seed, symmetry=False)


def arrays(tree: Any) -> dict[str, np.ndarray]:
    """Return the draws of a posterior by name, with log density and divergences."""
    found = tree["posterior"].to_dataset().data_vars.items()
    told = {name: tree["sample_stats"][name].values for name in ("lp", "diverging")}
    return {str(name): draws.values for name, draws in found} | told


def rerun(program: str, quantities: Callable[[Draws], Draws], **more: Any) -> Reference:
    """Make a reference by a longer run of another form of the model; it is empty if the chains have not converged."""

    def run(data: Data, _: Draws, seed: int) -> Expected:
        target = ob.stan_program(PROGRAMS / f"{program}.stan", data | more)
        tree = sampled(target, ob.Nuts(chains=4, warmup=500, draws=1000), seed + 100_000)
        found = quantities(arrays(tree))
        if quality(*found.values()) != "sound":
            return {}
        return {name: Moments.of(values) for name, values in found.items()}

    return run


def regression(data: Data, _: Draws, __: int) -> Expected:
    """Compute moments of a regression: Gaussian coefficients given the noise scale, which is on a grid."""
    x = np.column_stack([np.ones(data["N"]), data["X"]])
    log_sigma = np.linspace(-4, 4, 2001)
    logs, means, squares = [], [], []
    for sigma in np.exp(log_sigma):
        precision = x.T @ x / sigma**2 + np.eye(x.shape[1]) / 4
        cov = np.linalg.inv(precision)
        mean = cov @ (x.T @ data["y"]) / sigma**2
        height = -data["N"] * np.log(sigma) - 0.5 * (data["y"] @ data["y"]) / sigma**2
        height += 0.5 * mean @ precision @ mean + 0.5 * np.linalg.slogdet(cov)[1]
        logs.append(height - sigma + np.log(sigma))
        means.append(mean)
        squares.append(mean**2 + np.diag(cov))
    mean, sd = _averaged(logs, means, squares)
    sigma_mean, sigma_sd = _averaged(logs, np.exp(log_sigma), np.exp(2 * log_sigma))
    return {
        "alpha": Moments.exact(mean[0], sd[0]),
        "beta": Moments.exact(mean[1:], sd[1:]),
        "sigma": Moments.exact(sigma_mean, sigma_sd),
    }


LEAST_SCALE = 0.5
"""Smallest relevant scale of groups that are measured with errors of at least 4."""


def effects(data: Data, _: Draws, __: int) -> Expected:
    """Compute moments of a hierarchy: Gaussian mean and effects given the scale of groups, which is on a grid."""
    y, error = np.asarray(data["y"], dtype=float), np.asarray(data["error"], dtype=float)
    log_tau = np.linspace(-12, 8, 8001)
    log_scale = np.log(np.maximum(np.exp(log_tau), LEAST_SCALE))
    logs, means, squares = [], [], []
    for tau in np.exp(log_tau):
        spread = error**2 + tau**2
        variance = 1 / (1 / 25 + np.sum(1 / spread))
        mu = variance * np.sum(y / spread)
        height = -0.5 * np.sum(np.log(spread) + y**2 / spread) + 0.5 * mu**2 / variance
        height += 0.5 * np.log(variance) - np.log1p((tau / 5) ** 2) + np.log(tau)
        pull = error**2 / spread
        effect = y * tau**2 / spread + mu * pull
        noise = pull * tau**2 + pull**2 * variance
        logs.append(height)
        means.append([mu, *effect])
        squares.append([mu**2 + variance, *(effect**2 + noise)])
    mean, sd = _averaged(logs, means, squares)
    tau_mean, tau_sd = _averaged(logs, log_tau, log_tau**2)
    seen = _averaged(logs, log_scale, log_scale**2)
    return {
        "mu": Moments.exact(mean[0], sd[0]),
        "effect": Moments.exact(mean[1:], sd[1:]),
        "log_tau": Moments.exact(tau_mean, tau_sd),
        "log_scale": Moments.exact(*seen),
    }


def effects_without_tail(data: Data, draws: Draws, seed: int) -> Expected:
    """Return the moments of `effects` without `log_tau`, because few draws reach its long tail."""
    return {n: each for n, each in effects(data, draws, seed).items() if n != "log_tau"}


def _averaged(logs: Any, means: Any, squares: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and sd of a mixture over a uniform grid, from log heights and moments of the components."""
    weight = np.exp(np.asarray(logs) - logsumexp(logs))
    mean = np.tensordot(weight, np.asarray(means), axes=1)
    return mean, np.sqrt(np.tensordot(weight, np.asarray(squares), axes=1) - mean**2)


HEAVY_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def heavy(data: Data, _: Draws, __: int) -> Expected:
    """Return moments of indicators for exact quantiles, because a t with two degrees of freedom has no variance."""
    level = np.asarray(HEAVY_LEVELS)[:, None] * np.ones(data["P"])
    return {"below": Moments.exact(level, np.sqrt(level * (1 - level)))}


def below_quantiles(data: Data, draws: Draws) -> Draws:
    """Return indicators of draws below the exact quantiles."""
    at = stats.t.ppf(np.asarray(HEAVY_LEVELS)[:, None], 2, data["place"], data["width"])
    return {"below": (draws["x"][:, :, None, :] < at).astype(float)}


def bound(data: Data, _: Draws, __: int) -> Expected:
    """Return the moments of a truncated Gaussian, a beta and exponentials."""
    cut = stats.truncnorm(-data["mean"], np.inf, data["mean"], 1)
    p, wait = stats.beta(1, data["few"]), np.full(3, 1 / data["rate"])
    return {
        "cut": Moments.exact(cut.mean(), cut.std()),
        "p": Moments.exact(p.mean(), p.std()),
        "wait": Moments.exact(wait, wait),
    }


def humps(data: Data, draws: Draws, _: int) -> Expected:
    """Return the moments of two Gaussians, or of one if all draws are in it."""
    share = np.array([data["mass"], 1 - data["mass"]])
    place, width = np.asarray(data["place"]), np.asarray(data["width"])
    near = nearest_hump(data, draws)
    if (near == near[0, 0]).all():
        share = np.eye(2)[near[0, 0]]
    mean = share @ place
    sd = np.sqrt(share @ (place**2 + width**2) - mean**2)
    size = np.ones(data["P"])
    return {"x": Moments.exact(mean * size, sd * size), "other": Moments.exact(1, 2)}


def nearest_hump(data: Data, draws: Draws) -> np.ndarray:
    """Return the mode of each draw (chain, draw)."""
    place, width = np.asarray(data["place"]), np.asarray(data["width"])
    away = ((draws["x"][..., None] - place) / width) ** 2 / 2 + np.log(width)
    return away.sum(axis=2).argmin(axis=-1)


def mass_of_quick_absorption(data: Data) -> float:
    """Return the probability that absorption is faster: log volume integrated out, other parameters on a grid."""
    rate = np.linspace(-3.5, 1.5, 161)
    noise = np.exp(np.linspace(-4, 0, 41))
    into, out = np.exp(rate)[:, None], np.exp(rate)
    t, log_seen = np.asarray(data["t"]), np.log(data["seen"])
    with np.errstate(invalid="ignore", divide="ignore"):  # Equal rates have measure zero.
        rise = [(np.exp(-out * x) - np.exp(-into * x)) / (into - out) for x in t]
        gap = np.stack(
            [y - np.log(data["dose"] * into * r) for y, r in zip(log_seen, rise, strict=True)]
        )
    gap += 2
    size, prior = len(t), 1.5**2
    square, total = (gap**2).sum(axis=0)[..., None], gap.sum(axis=0)[..., None]
    spread = 1 + size * prior / noise**2
    log = -0.5 * (square / noise**2 - prior * total**2 / (noise**4 * spread))
    log += -size * np.log(noise) - 0.5 * np.log(spread) - 3 * noise + np.log(noise)
    log = (
        np.nan_to_num(log, nan=-np.inf)
        - 0.5 * (((np.log(into * out) + 2) ** 2) / 1.5**2)[..., None]
    )
    log += (np.log(into) + 1)[..., None] * (np.log(out) + 1)[..., None] / 1.5**2
    weight = np.exp(log - logsumexp(log)).sum(axis=-1)
    return float(np.tril(weight, -1).sum())
