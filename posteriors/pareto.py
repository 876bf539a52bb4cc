"""Importance weights: Pareto smoothing, and k-hat of the weights and of the quantities that they estimate.

A mean under weights w depends on w |x - m|, and a standard deviation on w (x - m)^2. These have heavier tails than w,
so weights can be good enough for a mean but not for a standard deviation. Weighted draws are resampled when a posterior
is opened. Source: Vehtari, Simpson, Gelman, Yao and Gabry 2024, Pareto smoothed importance sampling, JMLR 25 (section
3.3 on quantities).
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import logsumexp

from onebasin.base.errors import ArgumentError

from . import schema
from .rhat_ess import bulk_ess

if TYPE_CHECKING:
    import xarray as xr

# With fewer draws, the tail has fewer than six, too few for the fit of arviz_stats.
MIN_DRAWS_FOR_KHAT = 30
_FLAT = 1e-8
_LARGEST_EXPONENT = 700.0  # exp overflows beyond this value.
LogWeights = Float[np.ndarray, " draw"]
LARGE, MANY = 8.0, 1000
"""Among at least `MANY` weights, none is large if all are below `LARGE` times the mean; a heavy tail has larger ones.
k-hat of such bounded weights would depend on how many of them lie close to the bound."""
COVERED, SHORT = 0.25, 0.5
"""Draws reach all of the target if the weights are worth this share of the draws, or if k-hat is at most `SHORT`."""
TAIL = 0.05
"""Probability of each tail."""
ENDS = np.array([TAIL, 1 - TAIL])
STATISTICS = ("location", "spread", "lower", "upper")
"""Statistics of ranks: the mean, the mean distance from the middle, and the shares in both tails."""
CLAIMED = (0.056, 0.024, 0.0155, 0.0155)
"""Limits for the errors of these statistics in a usable fit. They are the errors of a normal distribution whose mean is
off by 0.2 standard deviations, its standard deviation by 15 %, and a quantile by 0.15 standard deviations."""
EVEN = 0.8
"""Weights that are worth more than this share of the draws are nearly equal; their k-hat has no meaning."""


@dataclass(frozen=True, eq=False)
class Tails:
    """k-hat of |x - m| and of (x - m)^2 under the weights, for each entry of a quantity; NaN if it is constant."""

    mean: Float[np.ndarray, " entry"]
    square: Float[np.ndarray, " entry"]


def pareto_khat(log_ratio: Float[np.ndarray, " draw"]) -> float:
    """Return the Pareto shape of the right tail of importance ratios: log target minus log approximating density.

    arviz_stats computes this k-hat. It is 0 if all log ratios agree to within 1e-8, since the approximation is then
    exact, and infinite if the ratios overflow double precision. It is NaN if a ratio is not finite, if there are fewer
    than 30 draws, or if the largest ratios are all equal.
    """
    if log_ratio.size < MIN_DRAWS_FOR_KHAT or not np.isfinite(log_ratio).all():
        return float("nan")
    if np.ptp(log_ratio) < _FLAT:
        return 0.0
    found = _psis(log_ratio)
    if found is None:
        return float("nan")
    khat = found[1]
    beyond = np.isnan(khat) and np.ptp(log_ratio) > _LARGEST_EXPONENT
    return float("inf") if beyond else khat


def smoothed(log_ratio: LogWeights) -> LogWeights:
    """Return Pareto-smoothed log weights, normalised to sum to 1; -inf where a log ratio is not finite."""
    there = np.isfinite(log_ratio)
    out = np.full(len(log_ratio), -np.inf)
    if not there.any():
        return np.full(len(log_ratio), -np.log(len(log_ratio)))
    plain = log_ratio[there] - log_ratio[there].max()
    found = _psis(plain)
    out[there] = found[0] if found and np.isfinite(found[0]).all() else plain
    normalised: LogWeights = out - logsumexp(out)
    return normalised


def _psis(log_ratio: LogWeights) -> tuple[LogWeights, float] | None:
    """Compute smoothed log weights and k-hat with arviz_stats; return None if the largest ratios are all equal."""
    from arviz_stats.base import array_stats

    # psislw expects log likelihoods, as in leave-one-out, and negates them.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # Callers handle overflow.
        try:
            smooth, khat = array_stats.psislw(-log_ratio)
        except ValueError:
            return None
    return np.asarray(smooth), float(khat)


def worth(log_weight: LogWeights) -> float:
    """Return the number of independent draws that weights are worth: (sum w)^2 / sum w^2 (Kish)."""
    return float(np.exp(2 * logsumexp(log_weight) - logsumexp(2 * log_weight)))


def miss_a_region(log_ratio: LogWeights, log_weight: LogWeights) -> bool:
    """Check for draws that hardly reach part of the target: their weights are worth few draws and have a long tail.

    An example is a hierarchical model whose draws stop where the scale becomes small. k-hat alone is too small there,
    since no draw comes from the missing part. In many dimensions, weights may be worth few draws without a long tail,
    although nothing is missing. The log ratios are raw and the log weights smoothed.
    """
    few = worth(log_weight) < COVERED * len(log_weight)
    return few and khat_of_weights(log_ratio) > SHORT


def khat_limit(num_draws: int) -> float:
    """Return the largest acceptable k-hat for this number of draws (Vehtari et al. 2024)."""
    return min(1 - 1 / math.log10(num_draws), 0.7) if num_draws > 1 else float("nan")


LEAST_WORTH = 200.0
"""Usable weights are worth at least this number of independent draws."""


def why_lost(log_ratio: LogWeights, log_weight: LogWeights, limit: float) -> str | None:
    """Return a key that says why the weights are useless; None if they are usable. `limit` is the highest usable k-hat.

    The log ratios are raw and the log weights smoothed.
    """
    draws = worth(log_weight)
    if not khat_of_weights(log_ratio) <= limit and not draws > EVEN * len(log_ratio):
        return "heavy weights"
    if draws < LEAST_WORTH:
        return "few worth"
    return "uneven weights" if miss_a_region(log_ratio, log_weight) else None


def khat_of_weights(log_ratio: LogWeights) -> float:
    """Return k-hat of log ratios; -inf if no ratio is large or all are nearly equal. Log ratios may be -inf."""
    count = len(log_ratio)
    if np.isfinite(log_ratio).all():
        largest = np.exp(log_ratio.max() - logsumexp(log_ratio)) * count
        bounded = count >= MANY and largest < LARGE
        if bounded or worth(log_ratio) > EVEN * count:
            return -np.inf
    return _khat(log_ratio)


def tails_of(
    values: Float[np.ndarray, draw * event], log_ratio: LogWeights, log_weight: LogWeights
) -> Tails:
    """Return k-hat for each entry of a quantity (draw, ...); infinite if a draw with positive weight is not finite.

    The log ratios are raw and the log weights smoothed.
    """
    flat = values.reshape(len(values), -1)
    weights = np.exp(log_weight)
    found = np.full((2, flat.shape[1]), np.nan)
    for place, column in enumerate(flat.T):
        used = np.isfinite(log_ratio)
        if not np.isfinite(column[used]).all():
            found[:, place] = np.inf
            continue
        if not np.ptp(column[used]) > 0:
            continue
        log_apart = np.zeros(len(column))
        with np.errstate(divide="ignore"):
            log_apart[used] = np.log(np.abs(column[used] - weights[used] @ column[used]))
        found[:, place] = [_khat(log_ratio + power * log_apart) for power in (1, 2)]
    return Tails(*found)


@dataclass(frozen=True, eq=False)
class Known:
    """Precision of the weighted mean, standard deviation and quantiles of each entry of a quantity.

    `khats` and `errors` are (3, entry). The rows of `khats` belong to the mean, the square and the shares in the tails.
    The rows of `errors` are the standard error of the mean, the relative error of the standard deviation, and the
    standard error of the worse quantile. The first and the last are in standard deviations.
    """

    khats: Float[np.ndarray, "kind entry"]
    errors: Float[np.ndarray, "kind entry"]
    index: Float[np.ndarray, " entry"]
    """Upper estimate of the tail index: the Pareto shape of the tail of |x - m|, plus its standard error."""

    def lacks(self, limits: tuple[float, float, float]) -> Bool[np.ndarray, "kind entry"]:
        """Return a mask of the imprecise means, standard deviations and quantiles, given the largest k-hat of each."""
        lacks = (self.khats > np.array(limits)[:, None]) | ~(self.errors <= _ENOUGH[:, None])
        lacks[1] |= self.index > NO_VARIANCE
        still = np.isnan(self.khats[0]) & np.isnan(self.errors[0])
        return lacks & ~still


MOVED, NO_VARIANCE = np.array([0.2, 0.15, 0.15]), 0.5
"""Limits for the errors of a mean, a standard deviation and a quantile in a usable fit; and the tail index above which
no standard deviation exists."""
_ENOUGH = MOVED / 2


def known(
    values: Float[np.ndarray, draw * event],
    log_ratio: LogWeights,
    log_weight: LogWeights,
    beside: Float[np.ndarray, " draw"] | None = None,
    *,
    with_khats: bool = True,
) -> Known:
    """Measure the precision of weighted estimates for each entry of a quantity (draw, ...); NaN for constant entries.

    The errors are those of weighted averages. If `beside` gives other weights of the same draws, they are the errors of
    the difference between the two averages. `with_khats=False` omits the k-hats, which take most of the time.
    """
    flat, weights = values.reshape(len(values), -1), np.exp(log_weight)
    khats, errors = (np.full((3, flat.shape[1]), np.nan) for _ in range(2))
    index = np.full(flat.shape[1], np.nan)
    if with_khats:
        tails = tails_of(values, log_ratio, log_weight)
        khats[:2] = tails.mean, tails.square
    share = (weights if beside is None else weights - beside)[:, None] ** 2
    if beside is None:  # Draws without weight may be infinite.
        used = weights > 0
        flat, weights, log_ratio, share = flat[used], weights[used], log_ratio[used], share[used]
    varies = ~np.isposinf(khats[0]) & (np.ptp(flat, axis=0) > 0)
    for place in np.flatnonzero(varies):
        apart = flat[:, place] - weights @ flat[:, place]
        low, high = quantiles(flat[:, place], weights)
        ends = np.stack([flat[:, place] <= low, flat[:, place] >= high], axis=1)
        z = apart / (weights @ apart**2) ** 0.5
        terms = np.column_stack([z, (z**2 - 1) / 2, ends - weights @ ends])
        found = np.sqrt((share * terms**2).sum(axis=0))
        # The error of the worse quantile follows from the errors of the shares in the tails.
        either = np.clip([ENDS - found[2:], ENDS + found[2:]], 0, 1)
        ends_off = np.ptp(quantiles(flat[:, place], weights, either), axis=0).max() / 2
        scale = (weights @ apart**2) ** 0.5
        errors[:, place] = np.nan_to_num([*found[:2], ends_off / scale], nan=np.inf)
        if with_khats:
            khats[2, place] = max(_khat(np.where(end, log_ratio, -np.inf)) for end in ends.T)
        index[place] = _tail_index(np.abs(apart), weights)
    return Known(khats, errors, index)


def quantiles(
    values: Float[np.ndarray, " draw"], weights: Float[np.ndarray, " draw"], at: np.ndarray = ENDS
) -> np.ndarray:
    """Return quantiles of weighted draws, by default those of 5 % and 95 %."""
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    return values[order][np.minimum(np.searchsorted(below, at), len(values) - 1)]


def _tail_index(apart: Float[np.ndarray, " draw"], weights: Float[np.ndarray, " draw"]) -> float:
    """Estimate the Pareto shape of the largest weighted distances, and add its standard error.

    The estimate uses probability-weighted moments (Hosking and Wallis 1987, Technometrics 29(3)). The tail contains 3
    sqrt(n) of n draws, as for k-hat.
    """
    order = np.argsort(-apart)
    count = 1 / (weights**2).sum()
    end = int(np.searchsorted(np.cumsum(weights[order]), min(0.2, 3 / count**0.5)))
    beyond, own = apart[order[:end]] - apart[order[end]], weights[order[:end]]
    if end < MIN_DRAWS_FOR_KHAT or not own.sum() > 0:
        return float("nan")
    own = own / own.sum()
    first, second = own @ beyond, own @ (beyond * (np.cumsum(own) - own / 2))
    if not first > 2 * second > 0:
        return float("nan")
    shape = 2 - first / (first - 2 * second)
    return float(shape + (1 + shape) * np.sqrt((own**2).sum()))


def worst_khat(values: Mapping[str, np.ndarray], log_ratio: LogWeights) -> float:
    """Return the largest k-hat of the ratios and of all entries of the given quantities."""
    log_weight = smoothed(log_ratio)
    every = [tails_of(v, log_ratio, log_weight) for v in values.values()]
    found = [khat_of_weights(log_ratio), *(t.square for t in every), *(t.mean for t in every)]
    return float(np.nanmax(np.concatenate([np.atleast_1d(each) for each in found])))


def _khat(log_ratio: LogWeights) -> float:
    """Return k-hat of the right tail; a draw without weight gets the smallest finite ratio."""
    there = np.isfinite(log_ratio)
    if there.sum() < 2 or np.isposinf(log_ratio).any():
        return float("inf")
    return pareto_khat(np.where(there, log_ratio, log_ratio[there].min()))


def resampled(
    weights: Float[np.ndarray, " row"], count: int, rng: np.random.Generator
) -> Int[np.ndarray, " draw"]:
    """Choose rows in random order; each appears in proportion to its weight, rounded up or down."""
    ends = np.cumsum(weights)
    places = (np.arange(count) + rng.uniform()) / count * ends[-1]
    rows = np.minimum(np.searchsorted(ends, places, side="right"), len(ends) - 1)
    return rng.permutation(rows)


def taken_by_weight(tree: xr.DataTree, argument: str = "posterior") -> xr.DataTree:
    """Resample the draws of a posterior by their weights, given by `log_weight` in `sample_stats` up to a constant.

    The result has the same number of draws, in one chain, and is marked as an approximation. The original draws become
    the group `weighted`. A posterior without weights is returned unchanged.
    """
    import xarray as xr

    stats = tree.children.get(schema.SAMPLE_STATS)
    if stats is None or schema.LOG_WEIGHT not in stats or schema.VARIATIONAL in tree.children:
        return tree
    draws = tree[schema.POSTERIOR].to_dataset() if schema.POSTERIOR in tree.children else None
    weights = stats[schema.LOG_WEIGHT].transpose(..., *schema.SAMPLE_DIMS, missing_dims="ignore")
    log_ratio = np.asarray(weights.values, np.float64)
    shape = None if draws is None else tuple(map(draws.sizes.get, schema.SAMPLE_DIMS))
    usable = (log_ratio < np.inf).all() and (log_ratio > -np.inf).any()  # no NaN
    if draws is None or log_ratio.shape != shape or not usable:
        raise ArgumentError(
            f"`log_weight` in `{argument}` must contain one log weight for each chain and draw, and no NaN or +inf."
        )
    log_weight = smoothed(log_ratio.ravel())
    rows = resampled(np.exp(log_weight), log_ratio.size, np.random.default_rng(0))
    numbers = {"chain": [0], "draw": np.arange(len(rows))}
    groups = {}
    for name, child in tree.children.items():
        held = child.to_dataset().drop_vars(schema.LOG_WEIGHT, errors="ignore")
        if {*schema.SAMPLE_DIMS} <= {*held.dims}:
            if tuple(map(held.sizes.get, schema.SAMPLE_DIMS)) != shape or not held:
                continue  # The group has only some of the draws, or only the weights.
            flat = held.stack({schema.SAMPLE: schema.SAMPLE_DIMS}, create_index=False)
            flat = flat.drop_vars(schema.SAMPLE_DIMS, errors="ignore").transpose(schema.SAMPLE, ...)
            if name == schema.POSTERIOR:
                groups[schema.WEIGHTED] = flat
            held = flat.isel({schema.SAMPLE: rows}).rename({schema.SAMPLE: "draw"})
            held = held.expand_dims("chain").assign_coords(numbers)
        groups[name] = held
    own = {schema.LOG_RATIO: log_ratio.ravel(), schema.LOG_WEIGHT: log_weight}
    groups[schema.VARIATIONAL] = xr.Dataset({n: (schema.SAMPLE, v) for n, v in own.items()})
    made = xr.DataTree.from_dict(groups)
    made.attrs = {**tree.attrs, schema.WORTH: worth(log_weight) * _efficiency(draws)}
    return made


def _efficiency(draws: xr.Dataset) -> float:
    """Return the ESS per draw of the worst entry; it is small if chains disagree, and 1 for a single chain."""
    chains, length = (draws.sizes[dim] for dim in schema.SAMPLE_DIMS)
    least = [1.0]
    for variable in draws.data_vars.values() if chains > 1 else ():
        if variable.dtype.kind == "f" and variable.size:
            rows = variable.transpose(..., *schema.SAMPLE_DIMS).values.reshape(-1, chains, length)
            rows = rows[np.isfinite(rows).all(axis=(1, 2)) & (np.ptp(rows, axis=(1, 2)) > 0)]
            least += [float(np.nanmin(bulk_ess(rows), initial=np.inf)) / (chains * length)]
    return min(least)


_WEIGHTS = re.compile(r"(log_?)?(importance_?)?(sample_?)?(weight|wt)s?", re.IGNORECASE)


def is_of_weights(name: object) -> bool:
    """Check whether a name is a common name for weights of draws."""
    return _WEIGHTS.fullmatch(str(name)) is not None


def unread_weights(stats: Iterable[xr.DataArray], others: Iterable[xr.DataArray]) -> str:
    """Return the name of a statistic or scalar that looks like unused weights of draws, or an empty string.

    A scalar named `weight` may be the weight of a person or of a mixture component. It counts as weights of draws only
    if it is normalised, has integer values, or has a name that is plural or starts with `log`.
    """
    every = [*((True, variable) for variable in stats), *((False, variable) for variable in others)]
    for of_draws, variable in every:
        name, values = str(variable.name), np.asarray(variable.values)
        of_scalars = {*variable.dims} == {*schema.SAMPLE_DIMS} and values.dtype.kind in "iuf"
        if not is_of_weights(name) or not of_scalars or (values == values.flat[:1]).all():
            continue
        sums = np.array([values.sum(), values.mean(), values.max()])
        surely = of_draws or name.lower().startswith("log") or name.lower().endswith("s")
        if surely or np.isclose(sums, 1, rtol=1e-6).any() or (values == np.rint(values)).all():
            return name
    return ""
