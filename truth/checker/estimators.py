"""R-hat, effective sample sizes, Monte Carlo errors and E-FMI, written from their definitions.

Convention: draws of one quantity are (chain, draw). Source: Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021,
Rank-normalization, folding, and localization: an improved R-hat, Bayesian Analysis 16(2), sections 3 and 4; Geyer 1992
for the truncation of autocorrelations; Betancourt 2016 for E-FMI.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

TAILS = (0.05, 0.95)


def halves(x: np.ndarray) -> np.ndarray:
    """Every chain as two, the middle draw of an odd number left out."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def rank_normalised(x: np.ndarray) -> np.ndarray:
    """Normal scores of ranks among all draws, ties by their mean rank."""
    ranks = stats.rankdata(x, method="average").reshape(x.shape)
    return stats.norm.ppf((ranks - 0.375) / (x.size + 0.25))


def plain_rhat(x: np.ndarray) -> float:
    """Root of the total variance over that within chains."""
    n = x.shape[1]
    within = x.var(axis=1, ddof=1).mean()
    between = x.mean(axis=1).var(ddof=1)
    return float(np.sqrt((n - 1) / n + between / within))


def rhat(x: np.ndarray) -> float:
    """The larger one of rank-normalised split R-hat and that of the draws folded about their median."""
    split = halves(x)
    folded = np.abs(split - np.median(split))
    return max(plain_rhat(rank_normalised(split)), plain_rhat(rank_normalised(folded)))


def autocovariance(x: np.ndarray) -> np.ndarray:
    """Return the autocovariance of every chain at every lag, divided by the number of draws."""
    n = x.shape[1]
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    spectrum = np.abs(np.fft.rfft(x - x.mean(axis=1, keepdims=True), size, axis=1)) ** 2
    return np.fft.irfft(spectrum, size, axis=1)[:, :n] / n


def ess(x: np.ndarray) -> float:
    """Effective number of draws for a mean: chains as they are, Geyer's initial monotone sequence."""
    chains, n = x.shape
    if np.ptp(x) == 0:
        return float("nan")
    covariance = autocovariance(x).mean(axis=0)
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + (x.mean(axis=1).var(ddof=1) if chains > 1 else 0.0)
    rho = 1 - (within - covariance) / total
    rho[0] = 1.0
    pairs = rho[: (n - 3) // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    last = int(negative[0]) if len(negative) else len(pairs)
    kept = np.minimum.accumulate(pairs[:last])
    rest = max(float(rho[2 * last]), 0.0) if 2 * last < n else 0.0
    tau = -1 + 2 * float(kept.sum()) + rest
    return chains * n / max(tau, 1 / np.log10(chains * n))


def bulk_ess(x: np.ndarray) -> float:
    """ESS of the rank-normalised split chains."""
    return ess(rank_normalised(halves(x)))


def quantile_ess(x: np.ndarray, probability: float) -> float:
    """ESS of the indicator of a quantile, of split chains."""
    split = halves(x)
    return ess((split <= np.quantile(split, probability)).astype(float))


def tail_ess(x: np.ndarray) -> float:
    """The smaller one of the tails' quantiles."""
    return min(quantile_ess(x, probability) for probability in TAILS)


def lag1(x: np.ndarray) -> float:
    """Mean over chains of the autocorrelation of draws that follow one another."""
    gap = x - x.mean(axis=1, keepdims=True)
    own = np.einsum("ij,ij->i", gap[:, 1:], gap[:, :-1]) / np.einsum("ij,ij->i", gap, gap)
    return float(own.mean())


def efmi(energy: np.ndarray) -> float:
    """The least E-FMI of the chains: mean square of the steps of the energy over its variance."""
    own = [np.mean(np.diff(e) ** 2) / np.var(e) if np.var(e) else 0.0 for e in energy]
    return float(min(own))
