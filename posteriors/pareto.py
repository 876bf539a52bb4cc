"""Importance weights: smoothing, and Pareto k-hat of the weights and of the quantities that they estimate.

A mean under weights w depends on w |x - m|, a standard deviation on w (x - m)^2. These have heavier tails than w, so
that weights may be good enough for a mean but not for a standard deviation. Draws with weights are resampled when they
are opened. Source: Vehtari, Simpson, Gelman, Yao and Gabry 2024, Pareto smoothed importance sampling, JMLR 25 (section
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

MIN_DRAWS_FOR_KHAT = (
    30  # with fewer, less than six draws are in the tail, too few for arviz_stats' fit
)
_FLAT = 1e-8
_LARGEST_EXPONENT = 700.0  # exp overflows beyond
LogWeights = Float[np.ndarray, " draw"]
LARGE, MANY = 8.0, 1000
"""Ratio to the mean below which no weight is large, for at least so many weights: a heavy tail has larger ones. k-hat
of bounded weights would depend on how many lie close to the bound."""
COVERED, SHORT = 0.25, 0.5
"""Draws reach all of the target if weights are worth this share of them, or if k-hat is at most this value."""
TAIL = 0.05
"""Probability of each tail."""
STATISTICS = ("location", "spread", "lower", "upper")
"""Statistics of ranks: the mean, the mean distance from the middle, and the shares in the tails."""
CLAIMED = (0.056, 0.024, 0.0155, 0.0155)
"""Limits for the errors of these in a usable fit: those of a normal distribution whose mean is off by 0.2 standard
deviations, whose standard deviation is off by 15 %, and whose quantile is off by 0.15 standard deviations."""
EVEN = 0.8
"""Weights worth more than this share of the draws are nearly equal, and their k-hat means nothing."""


@dataclass(frozen=True, eq=False)
class Tails:
    """k-hat of |x - m| and of (x - m)^2 under the weights, for each entry of a quantity; NaN if it is constant."""

    mean: Float[np.ndarray, " entry"]
    square: Float[np.ndarray, " entry"]


def pareto_khat(log_ratio: Float[np.ndarray, " draw"]) -> float:
    """Return the Pareto shape of the right tail of importance ratios: log target minus log approximating density.

    It is k-hat by arviz_stats; 0 if all ratios are equal to 1e-8, as the approximation is exact; infinite if the ratios
    span more than a double can hold; NaN if a ratio is not finite, there are fewer than 30 draws, or the largest ratios
    are all equal.
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
    """Return Pareto-smoothed log weights whose exponentials sum to 1; -inf for ratios that are not finite."""
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
    """Return smoothed log weights and k-hat by arviz_stats; None if the largest ratios are all equal."""
    from arviz_stats.base import array_stats

    # psislw negates its argument, a log likelihood in leave-one-out.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # callers handle overflow
        try:
            smooth, khat = array_stats.psislw(-log_ratio)
        except ValueError:
            return None
    return np.asarray(smooth), float(khat)


def worth(log_weight: LogWeights) -> float:
    """Return how many independent draws weights are worth: (sum w)^2 / sum w^2 (Kish)."""
    return float(np.exp(2 * logsumexp(log_weight) - logsumexp(2 * log_weight)))


def miss_a_region(log_ratio: LogWeights, log_weight: LogWeights) -> bool:
    """Check whether draws hardly reach part of the target: the weights are worth few draws and have a long tail.

    An example is a hierarchy whose draws end where its scale becomes small. k-hat alone is too small there, since no
    draw comes from the missing part. With many coordinates, weights are worth few draws without a long tail, and
    nothing is missing. Log ratios are raw, log weights smoothed.
    """
    few = worth(log_weight) < COVERED * len(log_weight)
    return few and khat_of_weights(log_ratio) > SHORT


def khat_limit(num_draws: int) -> float:
    """Return the largest acceptable k-hat for this number of draws (Vehtari et al. 2024)."""
    return min(1 - 1 / math.log10(num_draws), 0.7) if num_draws > 1 else float("nan")


LEAST_WORTH = 200.0
"""Minimum number of independent draws that usable weights are worth."""


def why_lost(log_ratio: LogWeights, log_weight: LogWeights, limit: float) -> str | None:
    """Return why the weights are useless, as a key; None if they are usable. `limit` is the largest allowed k-hat.

    Log ratios are raw, log weights smoothed.
    """
    draws = worth(log_weight)
    if not khat_of_weights(log_ratio) <= limit and not draws > EVEN * len(log_ratio):
        return "heavy weights"
    if draws < LEAST_WORTH:
        return "few worth"
    return "uneven weights" if miss_a_region(log_ratio, log_weight) else None


def khat_of_weights(log_ratio: LogWeights) -> float:
    """Return k-hat of log ratios (-inf for draws without weight); -inf if none is large or they are nearly equal."""
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
    """Return k-hat of the entries of a quantity (draw, ...); infinite if a draw with weight is not finite.

    Log ratios are raw, log weights smoothed.
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
    """Precision of the mean, standard deviation and quantiles of each entry of a quantity under weights.

    `khats` and `errors` are (3, entry): k-hat of the mean, of the square and of the shares in the tails; and standard
    errors of the mean and of the worse quantile in standard deviations, and the relative error of the standard
    deviation.
    """

    khats: Float[np.ndarray, "kind entry"]
    errors: Float[np.ndarray, "kind entry"]
    index: Float[np.ndarray, " entry"]
    """Upper estimate of the tail index: the Pareto shape of the tail of |x - m|, plus its standard error."""

    def lacks(self, limits: tuple[float, float, float]) -> Bool[np.ndarray, "kind entry"]:
        """Return which means, standard deviations and quantiles are imprecise, given the largest k-hat of each."""
        lacks = (self.khats > np.array(limits)[:, None]) | ~(self.errors <= _ENOUGH[:, None])
        lacks[1] |= self.index > NO_VARIANCE
        still = np.isnan(self.khats[0]) & np.isnan(self.errors[0])
        return lacks & ~still


MOVED, NO_VARIANCE = np.array([0.2, 0.15, 0.15]), 0.5
"""Limits for the errors of a mean, a standard deviation and a quantile in a usable fit; and the tail index above which
there is no standard deviation."""
_ENOUGH = MOVED / 2


def known(
    values: Float[np.ndarray, draw * event],
    log_ratio: LogWeights,
    log_weight: LogWeights,
    beside: Float[np.ndarray, " draw"] | None = None,
    *,
    with_khats: bool = True,
) -> Known:
    """Measure the precision of each entry of a quantity (draw, ...) under weights; NaN if an entry is constant.

    Errors are those of weighted averages; with `beside`, other weights of the same draws, those of the difference
    between the two averages. `with_khats=False` leaves out the k-hats, which take most of the time.
    """
    flat, weights = values.reshape(len(values), -1), np.exp(log_weight)
    khats, errors = (np.full((3, flat.shape[1]), np.nan) for _ in range(2))
    index = np.full(flat.shape[1], np.nan)
    if with_khats:
        tails = tails_of(values, log_ratio, log_weight)
        khats[:2] = tails.mean, tails.square
    share = (weights if beside is None else weights - beside)[:, None] ** 2
    if beside is None:  # draws without weight may be infinite
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
        ends_off = _quantile_errors(flat[:, place], weights, found[2:])
        scale = (weights @ apart**2) ** 0.5
        errors[:, place] = np.nan_to_num([*found[:2], ends_off / scale], nan=np.inf)
        if with_khats:
            khats[2, place] = max(_khat(np.where(end, log_ratio, -np.inf)) for end in ends.T)
        index[place] = _tail_index(np.abs(apart), weights)
    return Known(khats, errors, index)


def quantiles(
    values: Float[np.ndarray, " draw"], weights: Float[np.ndarray, " draw"]
) -> Float[np.ndarray, " end"]:
    """Return the 5 % and the 95 % quantile of weighted draws."""
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    return values[order][np.minimum(np.searchsorted(below, [TAIL, 1 - TAIL]), len(values) - 1)]


def _quantile_errors(
    values: Float[np.ndarray, " draw"],
    weights: Float[np.ndarray, " draw"],
    shares: Float[np.ndarray, " end"],
) -> float:
    """Return the larger standard error of the two quantiles, from the errors of the shares in the tails."""
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    middle = np.array([TAIL, 1 - TAIL])
    either = np.clip([middle - shares, middle + shares], 0, 1)
    low, high = values[order][np.minimum(np.searchsorted(below, either), len(values) - 1)]
    return float((high - low).max() / 2)


def _tail_index(apart: Float[np.ndarray, " draw"], weights: Float[np.ndarray, " draw"]) -> float:
    """Estimate the Pareto shape of the largest weighted distances plus its standard error.

    Source: Hosking and Wallis 1987, Technometrics 29(3), by probability-weighted moments. The tail has 3 sqrt(n) of n
    draws, as for k-hat.
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
    """Return the largest k-hat of the ratios and of all entries of some quantities."""
    log_weight = smoothed(log_ratio)
    every = [tails_of(v, log_ratio, log_weight) for v in values.values()]
    found = [khat_of_weights(log_ratio), *(t.square for t in every), *(t.mean for t in every)]
    return float(np.nanmax(np.concatenate([np.atleast_1d(each) for each in found])))


def _khat(log_ratio: LogWeights) -> float:
    """Return k-hat of the right tail; draws without weight count as the smallest."""
    there = np.isfinite(log_ratio)
    if there.sum() < 2 or np.isposinf(log_ratio).any():
        return float("inf")
    return pareto_khat(np.where(there, log_ratio, log_ratio[there].min()))


def resampled(
    weights: Float[np.ndarray, " row"], count: int, rng: np.random.Generator
) -> Int[np.ndarray, " draw"]:
    """Choose rows in random order, each in proportion to its weight, rounded up or down."""
    ends = np.cumsum(weights)
    places = (np.arange(count) + rng.uniform()) / count * ends[-1]
    rows = np.minimum(np.searchsorted(ends, places, side="right"), len(ends) - 1)
    return rng.permutation(rows)


def taken_by_weight(tree: xr.DataTree, argument: str = "posterior") -> xr.DataTree:
    """Resample the draws of a posterior by their weights, `log_weight` in `sample_stats` up to a constant.

    The result has as many draws, in one chain, and is marked as an approximation; the original draws with their weights
    become the group `weighted`. A posterior without weights is returned unchanged.
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
            f"`{argument}` has `log_weight`, which must be the logarithm of one weight per draw (chain, draw)."
        )
    log_weight = smoothed(log_ratio.ravel())
    rows = resampled(np.exp(log_weight), log_ratio.size, np.random.default_rng(0))
    numbers = {"chain": [0], "draw": np.arange(len(rows))}
    groups = {}
    for name, child in tree.children.items():
        held = child.to_dataset().drop_vars(schema.LOG_WEIGHT, errors="ignore")
        if {*schema.SAMPLE_DIMS} <= {*held.dims}:
            if tuple(map(held.sizes.get, schema.SAMPLE_DIMS)) != shape or not held:
                continue  # the group has only some of the draws, or only the weights
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
    """Return the ESS per draw of the worst entry of several chains: small if chains disagree."""
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
    """Check whether a name is usual for weights of draws."""
    return _WEIGHTS.fullmatch(str(name)) is not None


def unread_weights(stats: Iterable[xr.DataArray], others: Iterable[xr.DataArray]) -> str:
    """Return the name of a statistic or scalar that looks like unused weights of draws; empty if there is none.

    A scalar named weight may belong to a body or a component. Weights of draws are normalised, or count draws, or have
    a name in the plural or with log.
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
