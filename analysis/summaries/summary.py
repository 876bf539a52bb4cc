"""The table of parameters: mean, median, sd, quantiles, Monte Carlo errors, R-hat and effective sample sizes.

Convention: R-hat is the rank-normalised split version, `ess_tail` the smaller one of the 5 % and
95 % quantiles' (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, Bayesian Analysis 16:2); all
computed in `chains`, of ranks, which no offset and no unit changes; moments and their Monte Carlo
errors in units of each parameter. ArviZ's own table has the tail ESS of other quantiles, those of its
default interval. A parameter that does not vary, up to rounding, has no R-hat and no ESS: they are NaN.

Units keep a verdict from depending on where the zero and the unit of draws lie: z = (x - centre) / unit. The centre is
the middle of the range, the unit a power of two near half of the range, so that dividing by it rounds nothing: sums of
squares neither overflow nor vanish for doubles of any size, and lose no digits to an offset. Ranks, and what is made
of them, need none of this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from onebasin.posteriors import rhat_ess
from onebasin.posteriors.draws import ROUNDING, Draws

# What is computed from a constant, such as a norm or a sum of shares, differs in its last digits; so does a parameter
# whose spread is lost in the rounding of its size.
_ROUNDING = ROUNDING * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Units:
    """A centre and a unit for each parameter."""

    centre: Float[np.ndarray, " param"]  # the middle of its range
    unit: Float[np.ndarray, " param"]  # a power of two, 1 where it does not vary at all
    constant: Bool[np.ndarray, " param"]  # whether it varies by no more than rounding

    def into(self, values: Float[np.ndarray, "*lead param"]) -> Float[np.ndarray, "*lead param"]:
        """Take draws into these units."""
        out = values - self.centre
        out /= self.unit
        return out

    def mean_of(self, values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, " param"]:
        """Means of draws, as sampled."""
        return self.centre + self.unit * in_rows(self.into(values)).mean(axis=1)

    def sd_of(self, values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, " param"]:
        """Standard deviations of draws (of unbiased variances), as sampled."""
        return self.unit * in_rows(self.into(values)).std(axis=1, ddof=1)


def units_of(*samples: Float[np.ndarray, "_ _ param"]) -> Units:
    """Find units that one sample, or several together, need."""
    low = np.minimum.reduce([np.min(s, axis=(0, 1), initial=np.inf) for s in samples])
    high = np.maximum.reduce([np.max(s, axis=(0, 1), initial=-np.inf) for s in samples])
    half = high / 2 - low / 2  # the range itself can be infinite
    constant = half <= _ROUNDING / 2 * np.maximum(np.abs(low), np.abs(high))
    return Units(low + half, power_of_two(half), constant)


def in_rows(values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, "param all"]:
    """Put each parameter's draws in one piece, so that their sums do not depend on the parameters next to them."""
    size = values.shape[0] * values.shape[1]
    return np.ascontiguousarray(np.moveaxis(values, -1, 0)).reshape(values.shape[2], size)


def is_constant(values: Float[np.ndarray, "chain draw param"]) -> Bool[np.ndarray, " param"]:
    """Tell which parameters never vary, up to rounding."""
    return units_of(values).constant


def power_of_two(sizes: Float[np.ndarray, "*any"]) -> Float[np.ndarray, "*any"]:
    """The largest power of two that is no larger; 1 for what is zero."""
    _, exponent = np.frexp(sizes)
    return np.where(sizes > 0, np.ldexp(1.0, exponent - 1), 1.0)


PLACES = ("mean", "median", "sd", "q5", "q95")
DIAGNOSTICS = ("mcse_mean", "mcse_sd", "rhat", "ess_bulk", "ess_tail")
COLUMNS = (*PLACES, *DIAGNOSTICS)
_TAILS = (0.05, 0.95)


def summary(draws: Draws) -> pd.DataFrame:
    """Summarise every scalar parameter of at least 4 draws a chain: a row each, with the columns of `COLUMNS`.

    A parameter with a draw that is not finite has a row of NaN. R-hat is NaN where there is one chain only; R-hat, ESS
    and MCSEs are NaN where the parameter is constant. Mean and sd of an angle whose draws lie across the cut of its
    circle are circular, and its other numbers those of the draws within half a circle of that mean.
    """
    return tabulate(draws)[0]


def tabulate(draws: Draws) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Give the table of `summary`, and the names of parameters that never vary, up to rounding."""
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
    """The rows of some parameters, and which of them never vary."""
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
    """Return the rank-normalised split R-hat of quantities; NaN where constant or not finite, or of one chain."""
    return of_free(values, rhat_ess.rhat)


def bulk_ess(values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, " param"]:
    """Return the bulk ESS of quantities; NaN where constant or not finite."""
    return of_free(values, rhat_ess.bulk_ess)


def of_free(
    values: Float[np.ndarray, "chain draw param"], statistic: Callable[[np.ndarray], np.ndarray]
) -> Float[np.ndarray, " param"]:
    """A statistic of arrays (param, chain, draw), of those quantities that are finite and vary."""
    out = np.full(values.shape[2], np.nan)
    free = np.isfinite(values).all(axis=(0, 1))
    free[free] = ~is_constant(values[..., free])
    if free.any():
        out[free] = statistic(
            in_rows(values[..., free]).reshape(int(free.sum()), *values.shape[:2])
        )
    return out
