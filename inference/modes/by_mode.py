"""Implementation of `sample_modes`: find optima and their basins, run chains in each, and combine them.

The weight of a mode is its share of the total evidence. Draws are taken in proportion to these weights, and a table
describes every mode.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import expit, log_expit, logsumexp

from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose
from onebasin.posteriors import schema
from onebasin.posteriors.rhat_ess import rhat

from ..contracts.method import Found, Job
from ..density.network import in_double
from ..fits.weighting import resampled
from .basins import Basin, LogIntegral, Regions, Walks, first_basins, full_basins, log_integral
from .methods import Modes
from .optima import Folding, Points, find_tops, highest_evidence, unseen

MOST_ERROR = 0.5  # A weight is known if the error of its log odds is at most this, in nats,
NEGLIGIBLE = 0.01  # or if its interval lies below this, or above 1 minus this.
_WITHIN = 1.959963984540054  # Standard errors on either side in a 95 % interval.


@dataclass(frozen=True, eq=False)
class Weights:
    """Shares of modes in the posterior."""

    log: Float[np.ndarray, " mode"]
    error: Float[np.ndarray, " mode"]  # Standard errors of the shares' log odds, in nats.
    low: Float[np.ndarray, " mode"]  # Lower ends of 95 % intervals.
    high: Float[np.ndarray, " mode"]
    known: bool  # Whether every share is known or clearly near 0 or 1.


def weigh(estimates: Sequence[LogIntegral]) -> Weights:
    r"""Compute the share of each mode from its log evidence.

    Log evidences $z_k$ of independent chains have independent errors $e_k$. To first order, the log odds of the share
    $w_k$ have the variance $e_k^2 + \sum_{j \ne k} (w_j / (1 - w_k))^2 e_j^2$, which gives the interval of the share.
    """
    values = np.array([estimate.value for estimate in estimates])
    if len(values) == 1:
        one = np.ones(1)
        return Weights(np.zeros(1), np.zeros(1), one, one, math.isfinite(values[0]))
    errors = np.array([estimate.error for estimate in estimates])
    usable = np.where(np.isfinite(values), values, -np.inf)
    if not np.isfinite(usable).any():
        usable = np.zeros(len(values))
    log = usable - logsumexp(usable)
    odds, error = np.empty(len(log)), np.empty(len(log))
    for k in range(len(log)):
        others = np.delete(usable, k)
        rest = float(logsumexp(others))
        shares = np.exp(others - rest) if np.isfinite(rest) else np.zeros(len(others))
        odds[k] = usable[k] - rest
        terms = shares[shares > 0] * np.delete(errors, k)[shares > 0]
        error[k] = math.sqrt(errors[k] ** 2 + float((terms**2).sum()))
    with np.errstate(invalid="ignore"):
        low, high = (
            np.nan_to_num(expit(odds + s * _WITHIN * error), nan=e)
            for s, e in ((-1, 0.0), (1, 1.0))
        )
    settled = (
        (error <= MOST_ERROR)
        | (high < NEGLIGIBLE)
        | (np.exp(log_expit(-(odds - _WITHIN * error))) < NEGLIGIBLE)
    )
    return Weights(log, error, low, high, bool(settled.all() and np.isfinite(values).all()))


TOO_NEAR = 10.0
"""A mode without chains is negligible if its log evidence is this much lower, in nats."""

LeftOut = tuple[float, int]
"""A mode without chains: how far its log evidence is below the highest, in nats, and how many starts led to it."""


def draws_by_weight(
    regions: Regions,
    weights: Weights,
    walks: Walks,
    *,
    chains: int,
    draws: int,
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "chain draw param"], dict[str, np.ndarray]]:
    """Combine draws into a posterior: in each chain, modes have draws in proportion to their weights, in order."""
    rows = np.empty((chains, draws, 3), int)
    places = []  # Chains and draws to choose from, for each basin and chain of the posterior.
    for number, basin in enumerate(regions.basins):
        flat = basin.folded.reshape(-1, basin.folded.shape[-1])
        inside = (regions.of(flat) == number).reshape(-1, basin.folded.shape[1])
        every = np.argwhere(inside) if inside.any() else np.zeros((1, 2), int)
        every[:, 0] = np.asarray(basin.chains)[every[:, 0]]
        mine = [every[np.isin(every[:, 0], basin.chains[c::chains])] for c in range(chains)]
        places.append([some if len(some) else every for some in mine])
    for chain in range(chains):
        labels = resampled(np.exp(weights.log), draws, rng)
        for number, own in enumerate(places):
            at = np.flatnonzero(labels == number)
            there = own[chain]
            picked = there[np.linspace(0, len(there) - 1, len(at)).round().astype(int)]
            rows[chain, at] = np.column_stack([picked, np.full(len(at), number)])
    which = rows[..., 0], rows[..., 1]
    stats = {name: values[which] for name, values in walks.stats.items()}
    return walks.vectors[which], {**stats, schema.MODE: rows[..., 2]}


def table(
    regions: Regions,
    estimates: Sequence[LogIntegral],
    weights: Weights,
    walks: Walks,
    left: Sequence[LeftOut],
    *,
    starts: int,
    failed: int,
) -> xr.Dataset:
    """Make the group `modes`, with one row per basin; `estimates` are log evidences that include all copies."""
    rhats, strays = [], []
    for number, basin in enumerate(regions.basins):
        # Compute R-hat within a mode for folded coordinates and the log density.
        heights = walks.stats["lp"][list(basin.chains)]
        together = np.concatenate([basin.folded, heights[..., None]], axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            rhats.append(float(np.nanmax(rhat(np.moveaxis(together, -1, 0)))))
        flat = basin.folded.reshape(-1, basin.folded.shape[-1])
        strays.append(float((regions.of(flat) != number).mean()))
    columns: dict[str, Any] = {
        "weight": np.exp(weights.log),
        "weight_low": weights.low,
        "weight_high": weights.high,
        "log_weight": weights.log,
        "log_evidence": [estimate.value for estimate in estimates],
        "log_evidence_error": [estimate.error for estimate in estimates],
        "starts": [basin.starts for basin in regions.basins],
        "height": [basin.tops[0].height for basin in regions.basins],
        "rhat": rhats,
        "strays": strays,
        "divergences": [
            int(walks.stats["diverging"][list(b.chains)].sum()) for b in regions.basins
        ],
    }
    near = min((below for below, _ in left), default=math.inf)
    counts = [basin.starts for basin in regions.basins] + [count for _, count in left]
    attributes = {
        "known": int(weights.known and near > TOO_NEAR),
        "starts": starts,
        "failed": failed,
        "unseen": unseen(counts, starts),
        "log_group_order": regions.folding.log_order,
        "not_sampled": len(left),
        "nearest_not_sampled": near if left else math.nan,
    }
    data = {name: ("mode", np.asarray(column)) for name, column in columns.items()}
    return xr.Dataset(data, attrs=attributes)


AT_ONCE = 512  # Number of points per evaluation of the log density.


def sampled(job: Job[Modes]) -> Found:
    """Sample every mode, and combine the draws."""
    settings, seed = job.method, job.seed
    amount = {"warmup": settings.warmup, "draws": settings.draws}
    lead = {"chains": settings.chains, "draws": settings.draws}
    with precision("float64"):
        folding = Folding.of(job.target, job.bars.say)
        density = folding.density
        start = settings.starts, settings.init_radius
        tops, failed = find_tops(folding, job.bars, *start, seed)
        short, pilots, lost = first_basins(job, folding, tops)
        # Keep the basins with the largest log evidence: for a Gaussian, the mean log density plus the entropy.
        lp = pilots.stats["lp"]
        heights = [float(lp[list(one.chains)].mean()) + one.normal.entropy for one in short]
        order = np.argsort(np.nan_to_num(heights, nan=-np.inf))[::-1]
        kept = tuple(short[n] for n in order[: settings.most])
        best = heights[order[0]]
        left = tuple((best - heights[n], short[n].starts) for n in order[settings.most :])
        # Use Laplace's estimate for optima that their chains left.
        highest = highest_evidence(tops)
        left += tuple((highest - top.log_evidence, top.starts) for top in lost)
        job.bars.expect(chains=len(kept) * settings.chains, **amount)
        basins, walks = full_basins(job, folding, kept)
        regions, estimates = _ordered(folding, basins, seed)
        weights = weigh(estimates)
        rng = np.random.default_rng([seed, int(Purpose.MODE_WEIGHTS), 1])
        vectors, stats = draws_by_weight(regions, weights, walks, **lead, rng=rng)
        constrain = in_double(lambda v: density.quantities(density.unravel(v)), AT_ONCE)
        draws = constrain(vectors.reshape(-1, vectors.shape[-1]))
        group = table(
            regions, estimates, weights, walks, left, starts=settings.starts, failed=failed
        )
    return Found(
        {name: value.reshape(*lead.values(), *value.shape[1:]) for name, value in draws.items()},
        stats,
        {
            "warmup_seconds": list(walks.warmup_seconds),
            "sampling_seconds": list(walks.sampling_seconds),
            "gradient_evaluations": int(walks.stats["n_steps"].sum()),
            "max_tree_depth": settings.max_tree_depth,
        },
        {schema.MODES: group},
    )


def _ordered(
    folding: Folding, basins: Sequence[Basin], seed: int
) -> tuple[Regions, list[LogIntegral]]:
    """Estimate the integral over each basin with all its copies, and sort the basins by it, the largest first."""
    rng = np.random.default_rng([seed, int(Purpose.MODE_WEIGHTS)])
    regions = Regions(folding, tuple(basins))
    heights = in_double(folding.density.log_density, AT_ONCE)
    found = []
    for number, basin in enumerate(basins):

        def density(points: Points, number: int = number) -> Float[np.ndarray, " point"]:
            out = np.full(len(points), -np.inf)
            inside = regions.inside(number, points)
            if inside.any():
                here = heights(points[inside])
                out[inside] = np.where(np.isfinite(here), here, -np.inf)
            return out

        own = basin.folded.copy()
        flat = own.reshape(-1, own.shape[-1])
        flat[regions.of(flat) != number] = np.nan  # The chain was in another basin.
        estimate = log_integral(density, own, rng)
        found.append(LogIntegral(estimate.value + folding.log_order, estimate.error))
    order = sorted(
        range(len(found)), key=lambda n: -np.inf if math.isnan(found[n].value) else found[n].value
    )[::-1]
    return Regions(folding, tuple(basins[n] for n in order)), [found[n] for n in order]
