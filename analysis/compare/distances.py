"""Differences between two posteriors: in means and standard deviations, and in joint distributions.

Means: `d` is the difference divided by the pooled sd, and `z` the difference divided by its standard error. This error
is the larger of sqrt(mcse_a^2 + mcse_b^2) and the error that both would have with the pooled sd. R-hat and ESS are
checked first, because a stuck chain inflates the Monte Carlo error. A variational fit has no R-hat and needs only
enough ESS. A single Markov chain does not pass. The verdict is "differ" if some |z| exceeds a Bonferroni bound for the
number of means, or if a ratio of sds is certainly outside `SPREADS`. If only |d| is above `D_BOUND`, there are too few
draws and the verdict is "undecided". `power` is the probability of detecting a shift.

Tests: samples are (draw, param) in common units. The squared energy distance, 2 E|X - Y| - E|X - X'| - E|Y - Y'|
(Székely and Rizzo 2013, equation 2.1), is estimated without bias, so it may be negative. The p-value comes from
permutations of draws. These would reject equal Markov chains if `thin` did not make the draws nearly independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import ndtr, ndtri

from onebasin.base.errors import ArgumentError
from onebasin.base.text import json_safe
from onebasin.posteriors.draws import Draws
from onebasin.posteriors.rhat_ess import bulk_ess
from onebasin.posteriors.view import Posterior, View, as_view

from ..summaries.sampler import NAN
from ..summaries.summary import in_rows, is_constant, power_of_two, summary, units_of

ERRORS = 0.02
"""Allowed probability of reporting a false difference of means.

Monte Carlo errors from 200 to 300 effective draws are 2 to 3 % too small, so with 2,000 means the probability rises to
0.04. With one or 20 means of lognormal, gamma and t distributions it is at most 0.03, for 100 to 2,000 draws per
sample. `compare` adds the energy test at 0.01. Together they report a false difference in at most 5 % of comparisons.
"""
MAX_RHAT, MIN_ESS = 1.05, 200.0
"""Largest R-hat and smallest bulk ESS of either posterior for a parameter to be compared."""
SPREADS, SPREAD_ERRORS, VAGUE = (0.85, 1.15), 0.01, 0.25
"""Ratios of sds that count as equal; allowed probability of a false difference; and the standard error of a log ratio
above which the ratio is not judged.

A ratio is outside if its interval is, and if the widths of the central 90 % differ, too. With heavy tails, sds and
their errors are both too small, but widths are not. For equal normal, gamma, lognormal and t distributions (1 to 3
degrees of freedom) with 200 to 4,000 draws, none of 2,700 comparisons reported a difference.
"""
D_BOUND = 0.1
"""Largest |d| at which means agree."""
SHIFT = 0.2
"""Shift, in sds, for which power is reported."""
POWER = 0.8
"""Smallest power at which means agree if no difference was detected."""


@dataclass(frozen=True, eq=False)
class MomentComparison:
    """The differences between the means and standard deviations of two posteriors."""

    table: pd.DataFrame
    """One row per parameter: mean_a, mean_b, difference, sd_a, sd_b, z, d, error (the standard error of d), sd_ratio
    (of b to a) with its 95 % interval sd_ratio_low to sd_ratio_high, spread (the ratio is certainly outside .85 to
    1.15), rhat_a, rhat and ess (of the worse posterior), gated (not judged because of R-hat or ESS)."""
    max_abs_z: float  # Largest among the judged parameters; NaN if there are none.
    max_abs_d: float
    z_bound: float  # Bonferroni bound on |z|, at level `ERRORS` for all parameters.
    gated: tuple[str, ...]  # Parameters that were not judged.
    unmixed: tuple[str, ...]  # Parameters on which the first posterior's chains disagree.
    power: float
    """Probability of detecting a shift of 0.2 sds in the least precise judged parameter; NaN if none was judged."""
    verdict: str
    """`differ` if some |z| is above its bound or a ratio of sds is certainly outside .85 to 1.15. `agree` if there is
    no such difference, every parameter was judged, every |d| is within its bound, and `power` is at least 0.8.
    Otherwise `undecided`, because there are too few effective draws."""

    d_bound: ClassVar[float] = D_BOUND  # On |d|.

    @property
    def spreads(self) -> list[str]:
        """Parameters whose sds certainly differ, the most different first."""
        ratio = np.log(self.table.loc[self.table["spread"], "sd_ratio"]).abs()
        return list(map(str, ratio.sort_values(ascending=False).index))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain types for JSON; numbers that are not finite become None."""
        rows = [{"parameter": name, **row} for name, row in self.table.to_dict("index").items()]
        fields = ("verdict", "max_abs_z", "max_abs_d", "z_bound", "d_bound", "gated", "power")
        return json_safe({name: getattr(self, name) for name in fields} | {"parameters": rows})


def compare_moments(
    a: Posterior,
    b: Posterior,
    *,
    var_names: Sequence[str] | None = None,
    rhat: pd.Series | None = None,
) -> MomentComparison:
    """Compare the means and sds of two posteriors, for each parameter in the common or chosen variables.

    Entries must have the same names. If `a` has only some chains of a posterior, give the R-hat of all its chains, in
    the same labelling, as `rhat`, because some chains may agree on a mode that others missed.
    """
    first, second = as_view(a, "a"), as_view(b, "b")
    names = var_names or [n for n in first.variables if n in second.variables]
    draws_a, draws_b = first.draws(names), second.draws(names)
    if draws_a.names != draws_b.names:
        unlike = sorted(set(draws_a.names) ^ set(draws_b.names))
        raise ArgumentError(
            f"`a` and `b` have different variables: only one of them has {', '.join(unlike[:6])}. Give draws of the "
            "same model, or choose common variables with `var_names`."
        )
    free = (first.is_independent, second.is_independent)
    table = _table(draws_a, draws_b, free, rhat)
    trusted = table.loc[~table["gated"]]
    z_bound = float(-ndtri(ERRORS / 2 / max(len(trusted), 1)))
    largest_z, largest_d = _largest(trusted["z"]), _largest(trusted["d"])
    gated = tuple(table.index[table["gated"]])
    unmixed = tuple(table.index[table["rhat_a"] > MAX_RHAT])
    worst = SHIFT / _largest(trusted["error"])
    power = float(ndtr(worst - z_bound) + ndtr(-worst - z_bound))
    verdict = "undecided"
    if largest_z > z_bound or table["spread"].any():
        verdict = "differ"
    # Constants have no error and no power, so equal constants are not evidence of agreement.
    elif not gated and largest_d <= D_BOUND and power >= POWER:
        verdict = "agree"
    return MomentComparison(table, largest_z, largest_d, z_bound, gated, unmixed, power, verdict)


def rhat_of(view: View, names: Sequence[str]) -> pd.Series | None:
    """Return the R-hat of every entry of some variables, or None for independent draws."""
    return None if view.is_independent else summary(view.draws(names))["rhat"]


def _table(
    draws_a: Draws, draws_b: Draws, free: tuple[bool, bool], rhat: pd.Series | None
) -> pd.DataFrame:
    left, right = summary(draws_a), summary(draws_b)
    table = pd.DataFrame({"mean_a": left["mean"], "mean_b": right["mean"]})
    table["difference"], fixed = _differences(draws_a, draws_b)
    # Squares of very large or small draws would overflow, so use `hypot`.
    pooled = np.hypot(left["sd"], right["sd"]) / np.sqrt(2)
    errors = [(own["mcse_mean"], own["sd"].where(own["sd"] > 0)) for own in (left, right)]
    alike = pooled * np.hypot(*(mcse / sd for mcse, sd in errors))
    scale = np.fmax(np.hypot(left["mcse_mean"], right["mcse_mean"]), alike)
    table["z"] = _over(table["difference"], scale, fixed)
    table["d"] = _over(table["difference"], pooled, fixed)
    table["sd_a"], table["sd_b"] = left["sd"], right["sd"]
    table["error"] = scale / pooled.where(pooled > 0)
    table["sd_ratio"] = np.where(fixed, NAN, right["sd"] / left["sd"].where(left["sd"] > 0))
    table["rhat_a"] = NAN if free[0] else (left["rhat"] if rhat is None else rhat)
    rhats = [
        rhat for rhat, skip in zip((table["rhat_a"], right["rhat"]), free, strict=True) if not skip
    ]
    table["rhat"] = pd.concat(rhats, axis=1).max(axis=1, skipna=False) if rhats else NAN
    relative = [own["mcse_sd"] / own["sd"].where(own["sd"] > 0) for own in (left, right)]
    vague = np.sqrt(2) * np.maximum(*relative)
    log_ratio = np.log(table["sd_ratio"].where(table["sd_ratio"] > 0))
    for side, word in ((-1, "low"), (1, "high")):
        table[f"sd_ratio_{word}"] = np.exp(log_ratio + side * float(ndtri(0.975)) * vague)
    table["ess"] = np.minimum(left["ess_bulk"], right["ess_bulk"])
    mixed = (table["rhat"] <= MAX_RHAT) if rhats else pd.Series(True, index=table.index)
    known = table["z"].notna() & table["d"].notna()
    table["gated"] = ~(known & ((mixed & (table["ess"] >= MIN_ESS)) | fixed))
    bound = float(-ndtri(SPREAD_ERRORS / 2 / max(int((~table["gated"]).sum()), 1))) * vague
    low, high = np.log(SPREADS)
    outside = (log_ratio + bound < low) | (log_ratio - bound > high)
    table["spread"] = outside & (vague < VAGUE) & ~table["gated"]
    for name in table.index[table["spread"]]:
        spans = [
            _span(draws.of(name), own.loc[name, "ess_tail"], float(bound[name] / vague[name]))
            for draws, own in ((draws_a, left), (draws_b, right))
        ]
        narrow, wide = spans if log_ratio[name] > 0 else spans[::-1]
        table.loc[name, "spread"] = wide[0] > narrow[1]
    return table


def _span(draws: np.ndarray, ess: float, z: float) -> tuple[float, float]:
    """Return an interval for the width of the central 90 % of draws, `z` standard errors to each side."""
    off = z * np.sqrt(0.05 * 0.95 / max(ess, 1.0))
    at = [0.05 + off, 0.95 - off, 0.05 - off, 0.95 + off]
    inner, outer = np.quantile(draws, np.clip(at, 0.0, 1.0)).reshape(2, 2)
    return float(inner[1] - inner[0]), float(outer[1] - outer[0])


def _differences(a: Draws, b: Draws) -> tuple[np.ndarray, np.ndarray]:
    """Return differences of means without loss of precision, and a mask of parameters constant in both.

    Constants that are equal up to rounding error have difference 0.
    """
    differences, constants = [np.empty(0)], [np.empty(0, bool)]
    for part in a.parts(b):
        left, right = a.read(part), b.read(part)
        units = units_of(left, right)
        means = [in_rows(units.into(values)).mean(axis=1) for values in (left, right)]
        fixed = units_of(left).constant & units_of(right).constant
        difference = np.where(fixed & units.constant, 0.0, units.unit * (means[1] - means[0]))
        differences.append(difference)
        constants.append(fixed)
    return np.concatenate(differences), np.concatenate(constants)


def _over(difference: pd.Series, scale: pd.Series, fixed: np.ndarray) -> pd.Series:
    """Divide differences by a scale. The result for two constants is 0 or infinite."""
    apart = np.where(difference == 0, 0.0, np.inf)
    return (difference / scale.where(scale > 0)).where(~fixed, apart * np.sign(difference))


def _largest(column: pd.Series) -> float:
    return float(column.abs().max()) if len(column) else NAN


MAX_DRAWS = 1000
EXCESS = 0.05
"""Growth of a two-sample statistic tolerated from the remaining autocorrelation, in standard deviations."""
_ENTRIES = 500


def thin(
    draws: Draws, *, autocorrelated: bool = True, max_draws: int = MAX_DRAWS
) -> Float[np.ndarray, "kept param"]:
    """Take every k-th draw of each chain, counted back from its last draw, so that draws are nearly independent.

    At most `max_draws` are taken, because memory use grows with the square of their number.
    """
    least = -(-draws.num_chains * draws.num_draws // max_draws)
    return draws.every(max(stride(draws) if autocorrelated else 1, least))


def stride(draws: Draws) -> int:
    """Return the distance between nearly independent draws, from 1 to the length of a chain.

    Each parameter is modelled as a first-order autoregression with its bulk ESS. A correlation r at the stride
    multiplies the squared distance of means by (1 + r) / (1 - r). The stride is chosen such that the growth of all
    parameters together is at most a twentieth of the null distribution's standard deviation for independent parameters.
    For one parameter, the stride is about 3.5 times the number of draws per effective draw; for many it is larger.
    Negative correlations count by their absolute value. At most 500 evenly spaced parameters that vary are used.
    """
    size = len(draws.names)
    chosen = np.linspace(0, size - 1, min(size, _ENTRIES)).astype(np.intp)
    ess = [np.empty(0)]
    for part in draws.parts():
        here = chosen[(chosen >= part.start) & (chosen < part.stop)] - part.start
        values = draws.read(part)[..., here]
        values = np.moveaxis(values[..., ~is_constant(values)], -1, 0)
        if len(values):
            ess.append(bulk_ess(values))
    per_effective = draws.num_chains * draws.num_draws / np.concatenate(ess)
    # Antithetic chains have more effective draws for means but not for spreads, so use the absolute correlation.
    correlation = np.abs((per_effective - 1) / (per_effective + 1))
    if not len(correlation):
        return 1
    varying = size / min(size, _ENTRIES) * len(correlation)
    tolerated = EXCESS * np.sqrt(2 * varying) * len(correlation) / varying
    low, high = 1, draws.num_draws
    while low < high:
        middle = (low + high) // 2
        left = correlation**middle
        if (2 * left / (1 - left)).sum() <= tolerated:
            high = middle
        else:
            low = middle + 1
    return low


Sample = Float[np.ndarray, "draw param"]
Other = Float[np.ndarray, "other param"]
Pairs = Float[np.ndarray, "pooled pooled"]

MIN_DRAWS = 10
"""Minimum number of draws in each sample for a p-value."""
_BATCH = 64


class TwoSample(NamedTuple):
    """The unbiased estimate of the squared energy distance of two samples, with its p-value.

    The p-value is at least 1 / (permutations + 1). It is NaN if a sample has fewer than 10 draws.
    """

    energy: float
    energy_p: float


def two_sample(a: Sample, b: Other, *, permutations: int = 499, seed: int = 0) -> TwoSample:
    """Test by the energy distance whether two samples of independent draws (draw, param) differ."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    for name, sample in (("a", a), ("b", b)):
        if len(sample) < 2:
            raise ArgumentError(f"`{name}` must have at least two draws; got {len(sample)}.")
    pairs, unit = _distances(np.concatenate([a, b]))
    labels = np.zeros((1, len(pairs)))
    labels[0, : len(a)] = 1
    observed = float(_energies(pairs, labels)[0])
    if min(len(a), len(b)) < MIN_DRAWS or not np.isfinite(observed):
        return TwoSample(unit * observed, NAN)
    # Count the relabellings, including the observed one, whose distance is as large up to rounding error.
    rng, as_large, least = np.random.default_rng(seed), 1, observed - 1e-12 * pairs.max()
    for start in range(0, permutations, _BATCH):
        batch = min(_BATCH, permutations - start)
        labels = np.zeros((batch, len(pairs)))
        chosen = rng.permuted(np.tile(np.arange(len(pairs)), (batch, 1)), axis=1)[:, : len(a)]
        np.put_along_axis(labels, chosen, 1.0, axis=1)
        as_large += int((_energies(pairs, labels) >= least).sum())
    return TwoSample(unit * observed, as_large / (permutations + 1))


def _distances(points: Float[np.ndarray, "pooled param"]) -> tuple[Pairs, float]:
    """Return the Euclidean distances of all pairs, divided by a power of two, and this power."""
    # Centre and scale each variable so that no precision is lost and squares do not overflow.
    low, high = points.min(axis=0), points.max(axis=0)
    half = high / 2 - low / 2
    unit = float(power_of_two(np.asarray(half.max(initial=0.0))))
    points = (points - (low + half)) / unit
    points -= points.mean(axis=0)
    squares = np.square(points).sum(axis=1)
    out = points @ points.T
    out *= -2
    out += squares[:, None]
    out += squares
    np.maximum(out, 0, out=out)  # Rounding can make this negative.
    np.sqrt(out, out=out)
    np.fill_diagonal(out, 0)
    return (out + out.T) / 2, unit


def _energies(
    pairs: Pairs, labels: Float[np.ndarray, "batch pooled"]
) -> Float[np.ndarray, " batch"]:
    """Return twice the mean distance between samples minus the means within, for rows of labels 1 (first) and 0."""
    first = labels[0].sum()
    second = labels.shape[1] - first
    within_first = ((labels @ pairs) * labels).sum(axis=-1)
    rows = pairs.sum(axis=-1)
    touching = labels @ rows
    between = touching - within_first
    within_second = rows.sum() - touching - between
    inside = within_first / (first * (first - 1)) + within_second / (second * (second - 1))
    return np.asarray(2 * between / (first * second) - inside)
