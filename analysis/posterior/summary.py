"""The table of parameters: mean, sd, Monte Carlo error, R-hat and effective sample sizes.

Convention: R-hat is the rank-normalised split version, `ess_tail` the smaller one of the 5 % and
95 % quantiles' (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, Bayesian Analysis 16:2); all
computed by arviz_stats, of ranks, which no offset and no unit changes; mean, sd and Monte Carlo error in `units` of
each parameter. A parameter that does not vary, up to rounding, has no R-hat and no ESS: they are NaN.
"""

import warnings

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from .draws import Draws
from .units import in_rows, is_constant, units_of

COLUMNS = ("mean", "sd", "mcse_mean", "rhat", "ess_bulk", "ess_tail")
_TAILS = (0.05, 0.95)


def summary(draws: Draws) -> pd.DataFrame:
    """Summarise every scalar parameter.

    Parameters
    ----------
    draws
        The draws, at least 4 a chain, all finite.

    Returns
    -------
    pandas.DataFrame
        One row per parameter, indexed by name, with the columns of `COLUMNS`. R-hat is NaN where
        there is one chain only; R-hat, ESS and MCSE are NaN where the parameter is constant.
    """
    rows = [_rows(values) for values in draws.blocks()]
    index = pd.Index(draws.names, name="parameter")
    return pd.DataFrame(
        np.concatenate(rows) if rows else np.empty((0, len(COLUMNS))), index, list(COLUMNS)
    )


def constants(draws: Draws) -> Bool[np.ndarray, " param"]:
    """Tell which parameters never vary, up to rounding."""
    return np.concatenate([is_constant(v) for v in draws.blocks()] or [np.empty(0, bool)])


def _rows(values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, "param column"]:
    """The rows of some parameters."""
    units = units_of(values)
    out = np.full((len(units.unit), len(COLUMNS)), np.nan)
    out[:, 0], out[:, 1] = units.mean_of(values), units.sd_of(values)
    out[~units.constant, 2:] = _diagnostics(values[..., ~units.constant])
    return out


def rhat_of(values: Float[np.ndarray, "chain draw"]) -> float:
    """Return the rank-normalised split R-hat of one quantity; NaN if constant or of one chain."""
    values = values[..., None]
    return float("nan") if is_constant(values)[0] else float(_diagnostics(values)[0, 1])


def _diagnostics(
    values: Float[np.ndarray, "chain draw param"],
) -> Float[np.ndarray, "param diagnostic"]:
    """Monte Carlo error, R-hat and effective sample sizes of parameters that vary."""
    from arviz_stats.base import array_stats  # here: it takes two seconds to import

    if not values.shape[2]:
        return np.empty((0, 4))
    units = units_of(values)
    shape = (values.shape[2], *values.shape[:2])
    as_came, in_units = (in_rows(v).reshape(shape) for v in (values, units.into(values)))
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        # Chains that each stand still at a place of their own divide by no variance: R-hat is inf.
        warnings.simplefilter("ignore", RuntimeWarning)
        columns = (
            units.unit * array_stats.mcse(in_units, method="mean"),
            array_stats.rhat(as_came, method="rank"),
            array_stats.ess(as_came, method="bulk"),
            array_stats.ess(as_came, method="tail", prob=_TAILS),
        )
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=-1)
