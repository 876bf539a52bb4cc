"""Moments and quantiles of quantities, each with its Monte Carlo error, by which posteriors are compared.

Convention: rows are quantities, columns those of `DESCRIBED`. Of a Markov chain the errors come from effective sample
sizes: of the mean, of the sd, and of each quantile by itself (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021,
section 4.4). Of independent draws, as of a variational fit, every draw is an effective one; R-hat is then not defined.
R-hat of a single chain is that of its halves. What does not vary, up to rounding, has errors of 0, and no R-hat or ESS.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from jaxtyping import Float

from onebasin.posteriors import chains
from onebasin.posteriors.draws import Draws

from .deciding import rhat_of_entries
from .summary import bulk_ess, of_free
from .units import in_rows, units_of

QUANTILES = {"q5": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
PLACES = ("mean", "sd", *QUANTILES)
ERRORS = tuple(f"mcse_{name}" for name in PLACES)
DESCRIBED = (*PLACES, *ERRORS, "ess_bulk", "ess_tail", "rhat")
_ONE_SD = (0.1586553, 0.8413447)
"""Between which of its quantiles the normal distribution has one standard deviation to either side."""

Rows = Float[np.ndarray, "param all"]


def describe(draws: Draws, *, independent: bool = False) -> pd.DataFrame:
    """Describe every scalar quantity, at least 4 finite draws a chain: a row each, with the columns of `DESCRIBED`.

    `independent` says that no draw depends on the one before. Source: Vehtari, Gelman, Simpson, Carpenter and Bürkner
    2021, Bayesian Analysis 16(2).
    """
    blocks = [np.empty((0, len(DESCRIBED)))]
    for values in draws.blocks():
        units = units_of(values)
        scaled = units.into(values)
        rows = in_rows(scaled)
        quantiles = np.quantile(rows, list(QUANTILES.values()), axis=1)
        places = np.concatenate([[rows.mean(axis=1)], [rows.std(axis=1, ddof=1)], quantiles])
        if independent:
            # Of the sd by the delta method from the fourth moment.
            size, (mean, sd) = rows.shape[1], places[:2]
            fourth = ((rows - mean[:, None]) ** 4).mean(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                of_sd = np.sqrt(np.maximum(fourth - sd**4, 0) / size) / (2 * sd)
            ordered, every = np.sort(rows, axis=1), np.full(len(rows), float(size))
            of_quantiles = [_quantile_error(ordered, q, every) for q in QUANTILES.values()]
            errors = np.stack([sd / np.sqrt(size), of_sd, *of_quantiles])
        else:
            ordered = np.sort(rows, axis=1)
            found = [of_free(scaled, error) for error in (chains.mcse_mean, chains.mcse_sd)]
            for probability in QUANTILES.values():
                count = partial(chains.quantile_ess, probability=probability)
                found.append(_quantile_error(ordered, probability, of_free(scaled, count)))
            errors = np.stack(found)
        errors[:, units.constant] = 0.0
        located = units.centre + units.unit * places
        located[1] = np.where(units.constant, 0.0, units.unit * places[1])
        if independent:
            ess = np.full(values.shape[2], float(values.shape[0] * values.shape[1]))
            quality = np.stack([ess, ess, np.full(len(ess), np.nan)])
        else:
            tail = of_free(values, chains.tail_ess)
            quality = np.stack([bulk_ess(values), tail, rhat_of_entries(values)])
        quality[:, units.constant] = np.nan
        blocks.append(np.concatenate([located, units.unit * errors, quality]).T)
    return pd.DataFrame(
        np.concatenate(blocks), pd.Index(draws.names, name="quantity"), list(DESCRIBED)
    )


def _quantile_error(
    ordered: Rows, probability: float, ess: Float[np.ndarray, " param"]
) -> Float[np.ndarray, " param"]:
    """Half the distance of the order statistics that stand one standard error to either side of a quantile's place."""
    from scipy.stats import beta

    count = ordered.shape[1]
    with np.errstate(invalid="ignore"):
        at = beta.ppf(
            np.array(_ONE_SD)[:, None], ess * probability + 1, ess * (1 - probability) + 1
        )
    at = np.clip(np.nan_to_num(at * count - 1), 0, count - 1)
    low, high = np.floor(at[0]).astype(np.intp), np.ceil(at[1]).astype(np.intp)
    every = np.arange(len(ordered))
    error = (ordered[every, high] - ordered[every, low]) / 2
    return np.where(np.isfinite(ess), error, np.nan)
