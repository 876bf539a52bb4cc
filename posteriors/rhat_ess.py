"""Compute R-hat, effective sample sizes and Monte Carlo errors of many quantities at once.

Rows are (param, chain, draw). R-hat is the rank-normalised split R-hat, the larger of its values for the draws and for
the folded draws. The bulk ESS is the ESS of the normalised ranks. The tail ESS is the smaller ESS of the indicators of
two quantiles. Geyer's initial monotone sequence truncates the autocorrelations (Vehtari, Gelman, Simpson, Carpenter and
Bürkner 2021, Bayesian Analysis 16:2). The numbers equal those of arviz_stats, which takes one quantity at a time; here
each sort and Fourier transform covers a block of quantities. As there, draws whose range is below 1e-15 count as
constant. Rescale tiny quantities first, as `analysis.summaries.summary` does.

Geyer's sequence has a closed form. Let P_k = rho_2k + rho_2k+1, and let K be the first k with P_k <= 0, or the last k.
Then tau = -1 + 2 sum of min(P_0, ..., P_k) over k < K, plus rho_2K if it is positive or P_K is not negative.

This module needs only NumPy, `scipy.fft` and `scipy.special`, which import quickly.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

from onebasin.base.machine import available_cores

Rows = Float[np.ndarray, "param chain draw"]
PerParam = Float[np.ndarray, " param"]

TAILS = (0.05, 0.95)
LEAST_DRAWS = 4
"""Minimum number of draws per chain for which these quantities are defined."""
_BLOCK = 1 << 17
"""Size of a block, which fits into the processor's cache together with intermediate results."""
_THREADED = 1 << 20
"""From this number of values on, threads share the blocks. NumPy's sort and SciPy's transform release Python's lock."""
_RESOLUTION = np.finfo(np.float64).resolution


class Diagnostics(NamedTuple):
    """R-hat (NaN for a single chain), bulk ESS and tail ESS."""

    rhat: PerParam
    ess_bulk: PerParam
    ess_tail: PerParam


def diagnostics(rows: Rows) -> Diagnostics:
    """Compute R-hat, bulk ESS and tail ESS of quantities that are finite and not constant."""
    return Diagnostics(*map(np.concatenate, zip(*_over_blocks(_of_block, rows), strict=True)))


def _of_block(block: Rows) -> Diagnostics:
    if block.shape[2] < LEAST_DRAWS:
        return Diagnostics(*np.full((3, len(block)), np.nan))
    z, found = _ranked(_split(block))
    return Diagnostics(
        found if block.shape[1] > 1 else np.full(len(block), np.nan),
        _ess(z),
        np.minimum(*(_of_quantile(block, tail) for tail in TAILS)),
    )


def rhat(rows: Rows) -> PerParam:
    """Compute the rank-normalised split R-hat; NaN for a single chain or fewer than four draws."""
    if rows.shape[1] < 2:
        return np.full(len(rows), np.nan)
    return _each(lambda block: _ranked(_split(block))[1], rows)


def bulk_ess(rows: Rows) -> PerParam:
    """Compute the bulk ESS; NaN for fewer than four draws."""
    return _each(lambda block: _ess(_normalised(_split(block))), rows)


def mean_ess(rows: Rows) -> PerParam:
    """Compute the ESS of the mean; NaN for fewer than four draws."""
    return _each(lambda block: _ess(_split(block)), rows)


def _each(function: Callable[[Rows], PerParam], rows: Rows) -> PerParam:
    """Compute a number of each quantity; NaN for fewer than four draws."""
    if rows.shape[2] < LEAST_DRAWS:
        return np.full(len(rows), np.nan)
    return np.concatenate(_over_blocks(function, rows))


def mcse_mean(rows: Rows) -> PerParam:
    """Compute the Monte Carlo standard error of the mean."""
    flat = _flat(rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.std(flat, axis=1, ddof=1) / np.sqrt(mean_ess(rows))


def mcse_sd(rows: Rows) -> PerParam:
    """Compute the Monte Carlo standard error of the standard deviation, by the delta method."""
    flat = _flat(rows)
    square = (flat - flat.mean(axis=1, keepdims=True)) ** 2
    variance = square.mean(axis=1)
    ess = mean_ess(square.reshape(rows.shape))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(((square**2).mean(axis=1) - variance**2) / ess / variance / 4)


def _over_blocks[T](function: Callable[[Rows], T], rows: Rows) -> list[T]:
    """Apply a function to blocks of rows; use several threads for large arrays."""
    size = max(1, _BLOCK // max(1, rows.shape[1] * rows.shape[2]))
    blocks = [rows[first : first + size] for first in range(0, max(1, len(rows)), size)]
    workers = min(available_cores(), len(blocks))
    quietly = np.errstate(divide="ignore", invalid="ignore", over="ignore")(function)
    if workers < 2 or rows.size < _THREADED:
        return [quietly(block) for block in blocks]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(quietly, blocks))


def _flat(rows: Float[np.ndarray, "param _ _"]) -> Float[np.ndarray, "param all"]:
    """Join the draws of all chains."""
    return rows.reshape(len(rows), rows.shape[1] * rows.shape[2])


def _split(rows: Rows) -> Float[np.ndarray, "param half half_draw"]:
    """Split chains into halves; drop the middle draw of an odd number."""
    half = rows.shape[2] // 2
    return np.concatenate([rows[..., :half], rows[..., -half:]], axis=1)


def _ranked(split: Rows) -> tuple[Rows, PerParam]:
    """Return normalised ranks, and the larger R-hat of the ranks of the draws and of the folded draws."""
    z = _normalised(split)
    flat = _flat(split)
    folded = np.abs(split - np.median(flat, axis=1)[:, None, None])
    bulk, tail = _rhat(z), _rhat(_normalised(folded))
    return z, np.where(tail > bulk, tail, bulk)  # `tail` is NaN if the folded draws are constant.


def _normalised(rows: Rows) -> Rows:
    """Replace draws by the normal quantiles of their ranks; ties get their mean rank."""
    flat = _flat(rows)
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    z = np.empty_like(flat)
    np.put_along_axis(z, order, np.broadcast_to(_scores(flat.shape[1]), flat.shape), axis=1)
    for row in np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1)):
        z[row, order[row]] = _blom(_ranks_in_order(ordered[row]))
    return z.reshape(rows.shape)


@lru_cache(16)
def _scores(count: int) -> np.ndarray:
    """Return the normal quantiles of the ranks 1 to `count`."""
    return _blom(np.arange(1.0, count + 1))


def _blom(ranks: np.ndarray) -> np.ndarray:
    """Return normal quantiles of ranks, with Blom's offset of 3/8 (1958)."""
    return np.asarray(ndtri((ranks - 3 / 8) / (ranks.size - 2 * 3 / 8 + 1)))


def mean_ranks(numbers: np.ndarray) -> np.ndarray:
    """Rank numbers from 1, with the mean rank for ties. Importing `scipy.stats` would take too long."""
    order = np.argsort(numbers)
    ranks = np.empty(len(numbers))
    ranks[order] = _ranks_in_order(numbers[order])
    return ranks


def _ranks_in_order(ordered: np.ndarray) -> np.ndarray:
    """Rank ordered numbers, ties by their mean rank."""
    starts = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    places = np.concatenate([np.flatnonzero(starts), [len(ordered)]])
    group = np.cumsum(starts) - 1
    return 0.5 * (places[group] + places[group + 1] + 1)


def _rhat(rows: Rows) -> PerParam:
    """Compute R-hat of unsplit chains (Gelman et al. 2013, equation 11.4); infinite if no chain moves."""
    draws = rows.shape[2]
    between = draws * np.var(rows.mean(axis=2), axis=1, ddof=1)
    within = np.var(rows, axis=2, ddof=1).mean(axis=1)
    still = (rows == rows[..., :1]).all(axis=(1, 2))  # Avoid rounding errors.
    within = np.where(still, 0.0, within)
    return np.sqrt((between / within + draws - 1) / draws)


def _of_quantile(rows: Rows, probability: float) -> PerParam:
    """Compute the ESS of the indicator of a quantile, taken over all draws."""
    level = np.quantile(_flat(rows), probability, axis=1)
    return _ess(_split((rows <= level[:, None, None]).astype(np.float64)))


def _ess(rows: Rows) -> PerParam:
    """Compute the ESS of the mean of unsplit chains; for a constant, the number of draws."""
    _, chains, draws = rows.shape
    # One inverse transform of the summed power spectra gives the mean autocovariances of all chains.
    length = next_fast_len(2 * draws - 1, real=True)
    spectrum = rfft(rows - rows.mean(axis=2, keepdims=True), n=length, axis=2)
    power = (spectrum.real**2 + spectrum.imag**2).sum(axis=1)
    covariance = irfft(power, n=length, axis=1)[:, :draws] / (draws * chains)
    within = covariance[:, 0] * draws / (draws - 1)
    variance = covariance[:, 0]
    if chains > 1:
        variance = variance + np.var(rows.mean(axis=2), axis=1, ddof=1)
    rho = 1 - (within[:, None] - covariance) / variance[:, None]
    rho[:, 0] = 1.0
    size = chains * draws
    tau = np.maximum(_geyer(rho), 1 / np.log10(size))
    still = np.ptp(_flat(rows), axis=1) < _RESOLUTION
    return np.where(still, size, size / tau)


def _geyer(rho: Float[np.ndarray, "param lag"]) -> PerParam:
    """Compute integrated autocorrelation times by the closed form in the module's docstring."""
    draws = rho.shape[1]
    last = max(0, -(-(draws - 2) // 2) - 1)
    pairs = rho[:, : 2 * (last + 1)].reshape(len(rho), last + 1, 2)
    sums = pairs.sum(axis=2)
    ends = sums <= 0
    ends[:, -1] = True
    cut = np.argmax(ends, axis=1)
    lowest = np.minimum.accumulate(sums, axis=1)
    before = np.arange(last + 1) < cut[:, None]
    every = np.arange(len(rho))
    even, pair = pairs[every, cut, 0], sums[every, cut]
    rest = np.where(pair >= 0, even, np.maximum(even, 0))
    tau = -1 + 2 * np.where(before, lowest, 0.0).sum(axis=1) + rest
    return np.where(np.isnan(rho[:, : 2 * (last + 1)]).any(axis=1), np.nan, tau)
