"""Posteriors that are usable without alignment, although some look as if they had labels."""

from __future__ import annotations

import numpy as np

from .simulation import NUTS, Posterior, Walk, autoregressive, logistic, nuts_stats, softmax


def regression(
    rng: np.random.Generator,
    *,
    covariates: int = 6,
    chains: int = 4,
    draws: int = 1000,
    stats: bool = True,
    log_lik: int = 0,
    alike: bool = False,
    slow: tuple[float, float] = (0.0, 0.6),
) -> Posterior:
    """Simulate a regression; with `alike`, all coefficients have the same posterior."""
    walk = Walk(rng, covariates + 2, chains=chains, draws=draws, autocorrelation=slow)
    beta = walk.take(covariates) * 0.2
    if not alike:
        beta = beta * rng.uniform(0.3, 2, size=covariates) + rng.normal(0, 1, size=covariates)
    values = {"alpha": walk.take(1)[..., 0], "beta": beta}
    values["sigma"] = np.exp(0.1 * walk.take(1)[..., 0])
    if log_lik:
        spread = rng.uniform(0.02, 0.5, size=log_lik)
        values["log_lik"] = (
            -1.4 - rng.gamma(1, size=log_lik) + spread * rng.normal(size=(chains, draws, log_lik))
        )
        values["y_rep"] = rng.normal(size=(chains, draws, log_lik))
    return Posterior(values, walk.stats() if stats else {}, dict(NUTS) if stats else {})


def effects(rng: np.random.Generator, *, groups: int = 8, kind: str = "hierarchical") -> Posterior:
    """Simulate a hierarchical model: group effects with a common prior of unknown scale."""
    walk = Walk(rng, groups + 2)
    scale = np.exp(0.35 * walk.take(1)[..., 0] - 0.2)
    centre = 0.4 * walk.take(1)[..., 0]
    raw = walk.take(groups)
    if kind == "sum to zero":
        raw = raw - raw.mean(axis=-1, keepdims=True)
    elif kind == "uniform":
        raw = 2 * logistic(1.7 * raw) - 1
    elif kind == "two humps":
        raw = np.sign(rng.normal(size=raw.shape)) * 2 + 0.4 * raw
    elif kind == "unlike":
        raw = raw * rng.uniform(0.2, 1.0, size=groups) + rng.normal(0, 1.5, size=groups)
    values = {"mu": centre, "tau": scale, "effect": centre[..., None] + scale[..., None] * raw}
    return Posterior(values, walk.stats(), dict(NUTS))


def simplexes(rng: np.random.Generator, *, parts: int = 4, equal: bool = True) -> Posterior:
    """Simulate a simplex with a Dirichlet posterior of equal or different counts."""
    counts = np.full(parts, 12.0) if equal else rng.uniform(5, 60, size=parts)
    draws = rng.dirichlet(counts, size=(4, 1000))
    lp = np.sum(counts * np.log(draws), axis=-1)
    return Posterior({"p": draws}, nuts_stats(rng, lp, parts - 1), dict(NUTS))


def coin(rng: np.random.Generator) -> Posterior:
    """Simulate a probability and its complement."""
    share = logistic(0.3 * autoregressive(rng, (4, 1000, 1), (0.0, 0.5)))
    values = {"p": np.concatenate([share, 1 - share], axis=-1)}
    return Posterior(values, nuts_stats(rng, -0.5 * np.log(share[..., 0]) ** 2, 1), dict(NUTS))


def correlations(rng: np.random.Generator, *, size: int = 3) -> Posterior:
    """Simulate a correlation matrix with scales, and its Cholesky factor, with constant zeros and a constant one."""
    walk = Walk(rng, size * size + size)
    raw = walk.take(size, size) * 0.25 + np.eye(size) + rng.normal(0, 0.3, size=(size, size))
    root = np.linalg.cholesky(raw @ np.swapaxes(raw, -1, -2) + 0.3 * np.eye(size))
    root /= np.linalg.norm(root, axis=-1, keepdims=True)
    values = {
        "Omega": root @ np.swapaxes(root, -1, -2),
        "L_Omega": root,
        "tau": np.exp(0.2 * walk.take(size) + rng.normal(0, 0.4, size=size)),
    }
    return Posterior(values, walk.stats(), dict(NUTS))


def gaussian_process(rng: np.random.Generator, *, points: int = 10) -> Posterior:
    """Simulate a Gaussian process: length scale, amplitude, and a Cholesky factor that is NaN above its diagonal."""
    walk = Walk(rng, points + 3)
    rho, alpha = np.exp(0.2 * walk.take(1)), np.exp(0.3 * walk.take(1))
    x = np.linspace(0, 3, points)
    apart = (x[:, None] - x[None, :]) ** 2
    cov = alpha[..., None] ** 2 * np.exp(-0.5 * apart / rho[..., None] ** 2)
    root = np.linalg.cholesky(cov + 1e-6 * np.eye(points))
    f = np.einsum("cdij,cdj->cdi", root, walk.take(points))
    root[..., *np.triu_indices(points, 1)] = np.nan
    values = {"rho": rho[..., 0], "alpha": alpha[..., 0], "f": f, "L_K": root}
    values["sigma"] = np.exp(0.1 * walk.take(1)[..., 0])
    return Posterior(values, walk.stats(), dict(NUTS))


def ordered(rng: np.random.Generator, *, chains: int = 4) -> Posterior:
    """Simulate a mixture with ordered means."""
    walk = Walk(rng, 9, chains=chains)
    mu = np.array([-2.0, 0, 2.5]) + np.array([0.2, 0.4, 0.2]) * walk.take(3)
    values = {
        "mu": np.sort(mu, axis=-1),
        "sigma": np.exp(0.1 * walk.take(3) + rng.normal(0, 0.4, size=3)),
        "theta": softmax(0.15 * walk.take(3) + rng.normal(0, 0.3, size=3)),
    }
    return Posterior(values, walk.stats(), dict(NUTS))


def square(rng: np.random.Generator) -> Posterior:
    """Simulate a vector autoregression with a square matrix of different coefficients."""
    walk = Walk(rng, 9 + 6)
    values = {
        "Phi": 0.4 * np.eye(3) + rng.normal(0, 0.2, size=(3, 3)) + 0.07 * walk.take(3, 3),
        "intercept": rng.normal(0, 0.3, size=3) + 0.1 * walk.take(3),
        "scale": np.exp(0.08 * walk.take(3)),
    }
    return Posterior(values, walk.stats(), dict(NUTS))


def heavy(rng: np.random.Generator, *, freedom: float = 3.0) -> Posterior:
    """Simulate coefficients with Student t posteriors, from a sampler that mixes well."""
    walk = Walk(rng, 8, autocorrelation=(0.0, 0.3))
    raw = walk.take(7)
    mixing = rng.chisquare(freedom, size=(4, 1000, 1)) / freedom
    beta = rng.normal(0, 1, size=7) + 0.3 * raw / np.sqrt(mixing)
    values = {"beta": beta, "sigma": np.exp(0.1 * walk.take(1)[..., 0])}
    return Posterior(values, walk.stats(), dict(NUTS))


def metropolis(rng: np.random.Generator, *, size: int = 4, draws: int = 4000) -> Posterior:
    """Simulate draws of random-walk Metropolis, which rejects most proposals and repeats draws."""
    scale = np.exp(rng.normal(0, 0.5, size=size))
    here = scale * rng.normal(size=(4, size))
    kept, densities = np.empty((4, draws, size)), np.empty((4, draws))
    lp = -0.5 * np.sum((here / scale) ** 2, axis=-1)
    for draw in range(draws):
        there = here + 2.4 / np.sqrt(size) * scale * rng.normal(size=(4, size))
        there_lp = -0.5 * np.sum((there / scale) ** 2, axis=-1)
        taken = np.log(rng.random(4)) < there_lp - lp
        here, lp = np.where(taken[:, None], there, here), np.where(taken, there_lp, lp)
        kept[:, draw], densities[:, draw] = here, lp
    return Posterior({"beta": kept}, {"lp": densities}, {})


def not_centred(rng: np.random.Generator) -> Posterior:
    """Simulate a non-centred hierarchical model that mixes well even if tau is small."""
    walk = Walk(rng, 10, autocorrelation=(0.0, 0.4))
    tau = np.exp(1.0 * walk.take(1)[..., 0])
    raw, mu = walk.take(8), 4 + 3 * walk.take(1)[..., 0]
    values = {"mu": mu, "tau": tau, "eta": raw, "theta": mu[..., None] + tau[..., None] * raw}
    return Posterior(values, walk.stats(), dict(NUTS))


def horseshoe(rng: np.random.Generator) -> Posterior:
    """Simulate a horseshoe: each coefficient has a half-Cauchy scale, and some are far from zero."""
    walk = Walk(rng, 22, autocorrelation=(0.0, 0.4))
    tau = 0.1 * np.exp(0.4 * walk.take(1)[..., 0])
    scales = np.abs(np.tan(np.pi * (logistic(1.7 * walk.take(10)) - 0.5)))
    signal = np.where(rng.random(10) < 0.3, rng.normal(0, 3, size=10), 0.0)
    beta = np.where(signal != 0, signal + 0.15 * walk.take(10), 0.0)
    beta = np.where(signal != 0, beta, tau[..., None] * scales * rng.normal(size=beta.shape))
    values = {"beta": beta, "lambda": scales, "tau": tau}
    return Posterior(values, walk.stats(), dict(NUTS))


def random_walk(rng: np.random.Generator, *, steps: int = 60) -> Posterior:
    """Simulate a random walk: states of a time series, each close to its neighbours."""
    walk = Walk(rng, steps + 2)
    noise = np.cumsum(walk.take(steps), axis=-1)
    bridge = noise - noise[..., -1:] * np.linspace(0, 1, steps)
    states = np.cumsum(rng.normal(size=steps)) + 0.1 * bridge
    values = {"x": states, "sigma": np.exp(0.1 * walk.take(1)[..., 0])}
    return Posterior(values, walk.stats(), dict(NUTS))


def ridge(rng: np.random.Generator) -> Posterior:
    """Simulate two coefficients of which the data determine only the sum."""
    walk = Walk(rng, 5)
    level, rest = 5 * walk.take(1), walk.take(3)
    beta = np.concatenate([level, 2 - level + 0.05 * rest[..., :1], rest[..., 1:]], axis=-1)
    return Posterior({"beta": beta}, walk.stats(), dict(NUTS))


def some_diverge(rng: np.random.Generator) -> Posterior:
    """Simulate a regression with three divergent transitions at random among 4,000 draws."""
    posterior = regression(rng)
    where = rng.choice(4000, size=3, replace=False)
    posterior.stats["diverging"].reshape(-1)[where] = True
    return posterior


def banana(rng: np.random.Generator) -> Posterior:
    """Simulate a curved ridge (banana) that the chains explore well."""
    walk = Walk(rng, 4, autocorrelation=(0.0, 0.4))
    x, y, other = walk.take(1)[..., 0], walk.take(1)[..., 0], walk.take(2)
    values = {"x": x, "y": y * 0.3 + 0.8 * x**2, "beta": other}
    return Posterior(values, walk.stats(), dict(NUTS))


def logits(rng: np.random.Generator, *, categories: int = 4) -> Posterior:
    """Simulate a softmax regression whose level only the prior determines; coefficients differ between categories."""
    walk = Walk(rng, categories * 3)
    level = 1.5 * walk.take(1)[..., 0]
    coefficients = rng.normal(0, 1, size=(categories, 2)) + 0.15 * walk.take(categories, 2)
    bias = rng.normal(0, 1, size=categories - 1) + 0.1 * walk.take(categories - 1)
    values = {"W": coefficients + level[..., None, None], "b": bias}
    return Posterior(values, walk.stats(), dict(NUTS))
