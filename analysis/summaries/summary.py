"""The table of parameters, and the choice of variables and draws for a verdict.

The table has mean, median, sd, quantiles, Monte Carlo errors, R-hat and effective sample sizes. R-hat is the
rank-normalised split version, and `ess_tail` the smaller ESS of the 5 % and 95 % quantiles (Vehtari, Gelman, Simpson,
Carpenter and Bürkner 2021, Bayesian Analysis 16:2). Ranks do not depend on offset and unit. Moments and their Monte
Carlo errors are computed in units of each parameter. ArviZ's own table uses the tail ESS of its default interval. If a
parameter varies only by rounding error, its R-hat and ESS are NaN.

Units make results independent of the origin and scale of draws: z = (x - centre) / unit. The centre is the middle of
the range. The unit is a power of two near half of the range, so dividing by it is exact. Sums of squares then neither
overflow nor underflow, and an offset costs no precision. Ranks need no units.

The verdict depends on parameters. It does not depend on integers (in allocations, labels are values and not positions),
on whole numbers that recur like integers, or on generated quantities. Without parameters, it depends on all variables.

Two chains share draws if one is a copy, an overlapping part or a thinned version of the other. Resampled particles
recur in any order, and are worth at most as many draws as there are distinct ones. Independent chains of continuous
parameters have no draws in common. Rounded numbers and draws that a sampler repeats also recur within a chain; such
chains cannot be checked for copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, UInt64

from onebasin.posteriors import rhat_ess
from onebasin.posteriors.draws import (
    RECUR,
    ROUNDING,
    Columns,
    Draws,
    checked,
    distinct_and_moves,
    unwrapped,
)
from onebasin.posteriors.view import View

_ROUNDING = ROUNDING * np.finfo(np.float64).eps
"""Relative spread up to which a computed quantity, such as a norm or a sum of shares, counts as constant."""


@dataclass(frozen=True, eq=False)
class Units:
    """A centre and a unit for each parameter."""

    centre: Float[np.ndarray, " param"]  # The middle of the range.
    unit: Float[np.ndarray, " param"]  # A power of two; 1 if the parameter never varies.
    constant: Bool[np.ndarray, " param"]  # The parameter varies only by rounding error.

    def into(self, values: Float[np.ndarray, "*lead param"]) -> Float[np.ndarray, "*lead param"]:
        """Convert draws to these units."""
        out = values - self.centre
        out /= self.unit
        return out

    def mean_of(self, values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, " param"]:
        """Return the means of draws in their original units."""
        return self.centre + self.unit * in_rows(self.into(values)).mean(axis=1)

    def sd_of(self, values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, " param"]:
        """Return the standard deviations of draws (based on unbiased variances) in their original units."""
        return self.unit * in_rows(self.into(values)).std(axis=1, ddof=1)


def units_of(*samples: Float[np.ndarray, "_ _ param"]) -> Units:
    """Find the units of one sample, or of several together."""
    low = np.minimum.reduce([np.min(s, axis=(0, 1), initial=np.inf) for s in samples])
    high = np.maximum.reduce([np.max(s, axis=(0, 1), initial=-np.inf) for s in samples])
    half = high / 2 - low / 2  # The range itself can overflow.
    constant = half <= _ROUNDING / 2 * np.maximum(np.abs(low), np.abs(high))
    return Units(low + half, power_of_two(half), constant)


def in_rows(values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, "param all"]:
    """Make the draws of each parameter contiguous, so that their sums do not depend on other parameters."""
    size = values.shape[0] * values.shape[1]
    return np.ascontiguousarray(np.moveaxis(values, -1, 0)).reshape(values.shape[2], size)


def is_constant(values: Float[np.ndarray, "chain draw param"]) -> Bool[np.ndarray, " param"]:
    """Mark parameters that vary only by rounding error."""
    return units_of(values).constant


def power_of_two(sizes: Float[np.ndarray, "*any"]) -> Float[np.ndarray, "*any"]:
    """Return the largest powers of two that are not larger than `sizes`, or 1 for zero."""
    _, exponent = np.frexp(sizes)
    return np.where(sizes > 0, np.ldexp(1.0, exponent - 1), 1.0)


PLACES = ("mean", "median", "sd", "q5", "q95")
DIAGNOSTICS = ("mcse_mean", "mcse_sd", "rhat", "ess_bulk", "ess_tail")
COLUMNS = (*PLACES, *DIAGNOSTICS)
_TAILS = (0.05, 0.95)


def summary(draws: Draws) -> pd.DataFrame:
    """Summarise every scalar parameter, given at least 4 draws per chain, in a row with the columns `COLUMNS`.

    A parameter with a draw that is not finite has a row of NaN. R-hat is NaN for a single chain. R-hat, ESS and MCSEs
    are NaN for constants. If the draws of an angle lie on both sides of the cut of its circle, its mean and sd are
    circular, and its other numbers use draws moved to within half a circle of that mean.
    """
    return tabulate(draws)[0]


def tabulate(draws: Draws) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the table of `summary`, and the names of constant parameters."""
    blocks = [_rows(values) for values in draws.blocks()]
    rows = [np.empty((0, len(COLUMNS))), *(row for row, _ in blocks)]
    still = np.concatenate([np.empty(0, bool), *(constant for _, constant in blocks)])
    table = pd.DataFrame(
        np.concatenate(rows), pd.Index(draws.names, name="parameter"), list(COLUMNS)
    )
    for name, circle in draws.circles.items():
        table.loc[name, ["mean", "sd"]] = circle.mean, circle.sd
    return table, tuple(draws.names[place] for place in np.flatnonzero(still))


def _rows(
    values: Float[np.ndarray, "chain draw param"],
) -> tuple[Float[np.ndarray, "param column"], Bool[np.ndarray, " param"]]:
    """Return the rows of some parameters, and a mask of the constant ones."""
    out = np.full((values.shape[2], len(COLUMNS)), np.nan)
    finite = np.isfinite(values).all(axis=(0, 1))
    values = values if finite.all() else values[..., finite]
    units = units_of(values)
    rows = np.full((len(units.unit), len(COLUMNS)), np.nan)
    low, middle, high = np.quantile(in_rows(values), (_TAILS[0], 0.5, _TAILS[1]), axis=1)
    rows[:, 0], rows[:, 1], rows[:, 2] = units.mean_of(values), middle, units.sd_of(values)
    rows[:, 3], rows[:, 4] = low, high
    varying = values[..., ~units.constant]
    own = units_of(varying)
    shape = (varying.shape[2], *varying.shape[:2])
    as_came, in_units = (in_rows(v).reshape(shape) for v in (varying, own.into(varying)))
    errors = (own.unit * error(in_units) for error in (rhat_ess.mcse_mean, rhat_ess.mcse_sd))
    rows[~units.constant, len(PLACES) :] = np.stack(
        [*errors, *rhat_ess.diagnostics(as_came)], axis=-1
    )
    out[finite] = rows
    still = np.zeros(len(out), bool)
    still[finite] = units.constant
    return out, still


def rhats(values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, " param"]:
    """Return the rank-normalised split R-hat of quantities: NaN if constant, not finite, or for one chain."""
    return of_free(values, rhat_ess.rhat)


def bulk_ess(values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, " param"]:
    """Return the bulk ESS of quantities: NaN if constant or not finite."""
    return of_free(values, rhat_ess.bulk_ess)


def of_free(
    values: Float[np.ndarray, "chain draw param"], statistic: Callable[[np.ndarray], np.ndarray]
) -> Float[np.ndarray, " param"]:
    """Compute a statistic of arrays (param, chain, draw) for the quantities that are finite and vary."""
    out = np.full(values.shape[2], np.nan)
    free = np.isfinite(values).all(axis=(0, 1))
    free[free] = ~is_constant(values[..., free])
    if free.any():
        out[free] = statistic(
            in_rows(values[..., free]).reshape(int(free.sum()), *values.shape[:2])
        )
    return out


WHOLE = 2**25
"""Maximum size in bytes of draws that are used without thinning."""
BUDGET = 2**24
"""Approximate size in bytes of thinned draws."""
KEPT = 500
"""Minimum number of draws per chain after thinning."""
ENTRIES, FEW = 32, 10
"""Number of entries in which to look for integers, and number of distinct values up to which they need not recur."""


def deciding(
    view: View, chosen: Sequence[str] | None = None
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the variables that decide the verdict, in the posterior's order, and the others by reason.

    `chosen` variables always decide. Reasons are ``integer``, ``transformed`` and ``generated``.
    """
    names = tuple(view.variables if chosen is None else chosen)
    kinds = view.kinds.of
    whole = tuple(name for name in names if _is_whole(view, name))
    real = tuple(name for name in names if name not in whole)
    decide = tuple(name for name in real if kinds[name] == "parameter" or chosen is not None)
    decide = decide or real or names
    out = {
        "integer": tuple(name for name in whole if name not in decide),
        **{
            kind: tuple(n for n in real if kinds[n] == kind and n not in decide)
            for kind in ("transformed", "generated")
        },
    }
    return decide, out


def looked_at(
    view: View, names: Sequence[str], step: int = 0
) -> dict[str, Float[np.ndarray, "chain draw *event"]]:
    """Return draws of variables in double precision, thinned if they take more than `WHOLE` bytes.

    Angles on both sides of the cut of their circle are moved to within half a circle of their means.
    """
    step = step or every_few(view, names)
    thinned = {
        name: checked(view.arrays[name], view.argument).isel(draw=slice(None, None, step))
        for name in names
    }
    return {n: unwrapped(np.asarray(v.values, dtype=np.float64)) for n, v in thinned.items()}


def rhat_of_entries(values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, " param"]:
    """Return the R-hat of entries (between halves for a single chain), NaN if it is not defined."""
    if len(values) > 1:
        return rhats(values)
    half = values.shape[1] // 2
    return rhats(np.concatenate([values[:, :half], values[:, half : 2 * half]]))


def _is_whole(view: View, name: str) -> bool:
    """Check whether a variable contains integers, by its type or because whole numbers recur.

    Multiples of ten do not count, nor do numbers too large to have fractions, even in single precision.
    """
    variable = view.arrays[name]
    if variable.dtype.kind != "f":
        return variable.dtype.kind in "biu"
    some = variable.isel(draw=slice(0, 50), missing_dims="ignore").values
    some = some[np.isfinite(some)]
    if not some.size or (some != np.rint(some)).any():
        return False
    with np.errstate(over="ignore"):
        single = bool((some.astype(np.float32) == some).all())
    if np.spacing((np.float32 if single else np.float64)(np.abs(some).max())) >= 1:
        return False
    entries = Columns([checked(variable, view.argument)])
    few = np.nan_to_num(entries.read(0, min(ENTRIES, entries.shape[2])), posinf=0.0, neginf=0.0)
    distinct, moves = distinct_and_moves(few)
    steps = np.diff(np.unique(few)).astype(int)
    rounded = len(steps) >= FEW and np.gcd.reduce(steps) >= 10
    recur = distinct.sum() < RECUR * moves.sum() or distinct.max() <= FEW
    return bool(len(steps) and recur and not rounded)


def every_few(view: View, names: Sequence[str]) -> int:
    """Return the thinning step for draws of some variables."""
    size = sum(8 * view.arrays[name].size for name in names)
    return 1 if size <= WHOLE else min(-(-size // BUDGET), max(1, view.num_draws // KEPT))


MANY = 0.1
"""Share of draws that two chains have in common above which this is not due to chance."""
RECURS = 0.01
"""Share of draws recurring within a chain above which common draws are not evidence of copying."""
LEVELS = 5, 10
"""Minimum number of levels of rounded numbers, and maximum ratio of possible to used levels."""

Keys = UInt64[np.ndarray, " _"]  # Chains differ in length.


def draw_keys(drawn: Iterable[Float[np.ndarray, "chain draw *_"]]) -> Sequence[Keys]:
    """Hash each draw of every chain, skipping immediate repeats. Return [] if nothing varies."""
    flat = [np.asarray(v, np.float64).reshape(*v.shape[:2], -1) for v in drawn if v.size]
    if not any(np.ptp(v) > 0 for v in flat):
        return []
    rng = np.random.default_rng(0)
    keys = np.zeros(flat[0].shape[:2], np.uint64)
    for v in flat:
        odd = rng.integers(2**63, size=v.shape[2], dtype=np.uint64) * 2 + 1
        keys += (np.ascontiguousarray(v).view(np.uint64) * odd).sum(axis=2, dtype=np.uint64)
    return [chain[np.append(True, chain[1:] != chain[:-1])] for chain in keys]


def overlapping(keys: Sequence[Keys]) -> tuple[int, int, int] | None:
    """Find two chains with many draws in common, and count these draws. Return None if there are none."""
    if not keys:
        return None
    drawn, chains = np.unique(np.concatenate([np.unique(own) for own in keys]), return_counts=True)
    twice = drawn[chains > 1]
    some = [k for k, own in enumerate(keys) if len(twice) and np.isin(own, twice).any()]
    pairs = ((a, b, in_common(keys[a], keys[b])) for a, b in combinations(some, 2))
    return next((found for found in pairs if found[2]), None)


def in_common(one: Keys, other: Keys) -> int:
    """Count the draws that two chains have in common. Return 0 if they are few or not evidence of copying."""
    if np.array_equal(one, other):
        return len(one)
    recurring = max(1 - len(np.unique(each)) / len(each) for each in (one, other))
    common = len(np.intersect1d(one, other))
    many = common >= max(2, MANY * min(len(one), len(other)))
    return common if many and recurring < RECURS else 0


@dataclass(frozen=True)
class Recurring:
    """Draws that recur in any order: the number of distinct draws, and the equivalent number of independent draws."""

    distinct: int
    worth: float


def recurring(drawn: Sequence[Float[np.ndarray, "chain draw *_"]]) -> Recurring | None:
    """Count recurring draws, skipping immediate repeats. Return None if few recur or values are whole or rounded.

    A draw that occurs k times counts like a draw with weight proportional to k (Kish).
    """
    keys = draw_keys(drawn)
    columns = (column for values in drawn for column in values.reshape(-1, values[0, 0].size).T)
    within = any(len(np.unique(each)) < RECUR * len(each) for each in keys)
    if not within or all(map(_is_rounded, columns)):
        return None
    counts = np.unique(np.concatenate(keys), return_counts=True)[1]
    return Recurring(len(counts), float(counts.sum() ** 2 / (counts**2).sum()))


def _is_rounded(column: Float[np.ndarray, " draw"]) -> bool:
    """Check whether numbers are whole or have evenly spaced levels."""
    levels = np.unique(column)
    if (levels == np.rint(levels)).all():
        return True
    steps = np.diff(levels) / np.diff(levels).min()
    least, most = LEVELS
    filled = least <= len(levels) and steps.sum() <= most * len(levels)
    return bool(filled and (np.abs(steps - np.rint(steps)) < 0.01).all())
