"""The table of parameters: mean, median, sd, quantiles, Monte Carlo errors, R-hat and effective sample sizes.

Convention: R-hat is the rank-normalised split version, `ess_tail` the smaller one of the 5 % and
95 % quantiles' (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, Bayesian Analysis 16:2); all
computed in `rhat_ess`, of ranks, which no offset and no unit changes; moments and their Monte Carlo
errors in `units` of each parameter. ArviZ's own table has the tail ESS of other quantiles, those of its
default interval. A parameter that does not vary, up to rounding, has no R-hat and no ESS: they are NaN.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from onebasin.posteriors import rhat_ess
from onebasin.posteriors.draws import Draws

from .units import in_rows, is_constant, units_of

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
