"""The table of parameters: mean, sd, Monte Carlo error, R-hat and effective sample sizes.

Convention: R-hat is the rank-normalised split version, `ess_tail` the smaller one of the 5 % and
95 % quantiles' (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, Bayesian Analysis 16:2); all
computed by arviz_stats. A parameter that does not vary has no R-hat and no ESS: they are NaN.
"""

import warnings

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from .draws import Draws

COLUMNS = ("mean", "sd", "mcse_mean", "rhat", "ess_bulk", "ess_tail")
_TAILS = (0.05, 0.95)
# A norm computed as 1 +- one rounding error is a constant, and its R-hat would be that of noise.
_ROUNDING = 8 * np.finfo(np.float64).eps


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
    table = pd.DataFrame(index=pd.Index(draws.names, name="parameter"), columns=list(COLUMNS))
    table = table.astype(np.float64)
    table["mean"] = draws.values.mean(axis=(0, 1))
    table["sd"] = draws.values.std(axis=(0, 1), ddof=1)
    varying = ~is_constant(draws.values)
    by_parameter = np.moveaxis(draws.values[..., varying], -1, 0)
    table.loc[varying, list(COLUMNS[2:])] = _diagnostics(by_parameter)
    return table


def is_constant(values: Float[np.ndarray, "chain draw param"]) -> Bool[np.ndarray, " param"]:
    """Tell which parameters never vary, up to rounding."""
    spread = np.ptp(values, axis=(0, 1))
    return spread <= _ROUNDING * np.abs(values).max(axis=(0, 1), initial=0.0)


def rhat_of(values: Float[np.ndarray, "chain draw"]) -> float:
    """Return the rank-normalised split R-hat of one quantity; NaN if constant or of one chain."""
    if is_constant(values[..., None])[0]:
        return float("nan")
    return float(_diagnostics(values[None])[0, 1])


def _diagnostics(
    values: Float[np.ndarray, "param chain draw"],
) -> Float[np.ndarray, "param diagnostic"]:
    from arviz_stats.base import array_stats  # here: it takes two seconds to import

    if not len(values):
        return np.empty((0, 4))
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        # Chains that each stand still at a place of their own divide by no variance: R-hat is inf.
        warnings.simplefilter("ignore", RuntimeWarning)
        columns = (
            array_stats.mcse(values, method="mean"),
            array_stats.rhat(values, method="rank"),
            array_stats.ess(values, method="bulk"),
            array_stats.ess(values, method="tail", prob=_TAILS),
        )
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=-1)
