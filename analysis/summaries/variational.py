"""Quality of a variational approximation: PSIS k-hat and the ELBO.

Convention: the ELBO grows when better. `lp` and `log_q` are log densities of the same draw in the
unconstrained space, each up to a constant, which k-hat does not see. Source of k-hat as a verdict
on variational inference: Yao, Vehtari, Simpson and Gelman 2018, "Yes, but did it work?".
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.posteriors import schema
from onebasin.posteriors.pareto import khat_limit, pareto_khat
from onebasin.posteriors.view import View

from .sampler import NAN

RESAMPLED = 0.99
"""Share of distinct draws below which an approximation's draws are taken for resampled ones."""
KHAT_OF_DISTINCT = 0.5
"""Limit of k-hat for the distinct ones of resampled draws. Resampling loses draws with small ratios, and k-hat comes
out too small: in simulations by up to 0.2. With this limit 17 of 171 fits passed whose own k-hat was above 0.7."""


@dataclass(frozen=True)
class VariationalSummary:
    """Statistics of a variational fit.

    Attributes
    ----------
    khat : float
        Pareto k-hat of the importance ratios; NaN where it cannot be computed.
    khat_limit : float
        The value above which this number of draws is too few: min(1 - 1 / log10(draws), 0.7); at most 0.5 for resampled
        draws.
    distinct_draws : int or None
        The distinct ones among resampled draws, of which k-hat is computed; None where draws were not resampled.
    non_finite_ratios : int
        Draws whose importance ratio is not finite, which leave k-hat undefined.
    elbo : float
        Last recorded value, in nats; of several fits the smallest, or NaN where one of them has none.
    elbo_evaluations : int
        Number of recorded values.
    converged : bool or None
        Whether the stopping criterion was met; None where not recorded.
    failed_attempts : int
        Runs that were tried and given up before the one that is kept.
    gradient_evaluations : int or None
        Gradients that the optimiser took.
    """

    khat: float = NAN
    khat_limit: float = NAN
    distinct_draws: int | None = None
    non_finite_ratios: int = 0
    elbo: float = NAN
    elbo_evaluations: int = 0
    converged: bool | None = None
    failed_attempts: int = 0
    gradient_evaluations: int | None = None


def variational_summary(view: View) -> VariationalSummary:
    """Read what a variational method recorded and judge the approximation."""
    ratios = log_ratios(view)
    resampled = ratios is not None and ratios.size < view.num_chains * view.num_draws
    limit = NAN if ratios is None else khat_limit(ratios.size)
    limit = min(limit, KHAT_OF_DISTINCT) if resampled else limit
    elbo = elbo_trace(view)
    converged = view.number(schema.CONVERGED)
    gradients = view.number(schema.GRADIENT_EVALUATIONS)
    return VariationalSummary(
        khat=NAN if ratios is None else pareto_khat(ratios),
        khat_limit=limit,
        distinct_draws=ratios.size if resampled and ratios is not None else None,
        non_finite_ratios=0 if ratios is None else int((~np.isfinite(ratios)).sum()),
        elbo=float(elbo[1][-1]) if elbo is not None and elbo[1].size else NAN,
        elbo_evaluations=0 if elbo is None else elbo[1].size,
        converged=None if converged is None else bool(converged),
        failed_attempts=len(view.parsed(schema.ATTEMPTS) or ()),
        gradient_evaluations=None if gradients is None else int(gradients),
    )


def log_ratios(view: View) -> Float[np.ndarray, " draw"] | None:
    """Return `lp - log_q` of all draws of an approximation, or None where one of them was not recorded.

    Draws that were resampled by these ratios are none of the approximation's any more: there it recorded its own. Where
    it did not, as in CmdStan's Pathfinder CSV, each distinct draw counts once.
    """
    recorded = view.group(schema.VARIATIONAL)
    if recorded is not None and schema.LOG_RATIO in recorded:
        return np.asarray(recorded[schema.LOG_RATIO], np.float64).ravel()
    lp, log_q = view.stat(schema.LP), view.stat(schema.LOG_Q)
    if lp is None or log_q is None:
        return None
    pairs = np.stack([lp.ravel(), log_q.ravel()], axis=-1)
    distinct = np.unique(pairs, axis=0)
    # A continuous approximation hardly ever gives the same draw twice: these were resampled.
    pairs = distinct if len(distinct) < RESAMPLED * len(pairs) else pairs
    return pairs[:, 0] - pairs[:, 1]


def elbo_trace(
    view: View,
) -> tuple[Float[np.ndarray, " evaluation"], Float[np.ndarray, " evaluation"]] | None:
    """Return iterations and ELBO of a variational fit, or None where none was recorded.

    Of several fits it is the one whose last ELBO is the smallest, or no number.
    """
    fit = view.group(schema.VARIATIONAL)
    if fit is None or schema.ELBO not in fit:
        return None
    steps, elbos = elbo_traces(fit)
    return steps, elbos[np.argmin(np.nan_to_num(elbos[:, -1:], nan=-np.inf).sum(axis=1))]


def elbo_traces(
    fit: xr.Dataset, name: str = schema.ELBO
) -> tuple[Float[np.ndarray, " evaluation"], Float[np.ndarray, "fit evaluation"]]:
    """Return iterations and what was maximised, of every fit."""
    traces = np.asarray(fit[name].transpose(..., "evaluation").values, np.float64)
    traces = traces.reshape(-1, traces.shape[-1]) if traces.size else np.empty((1, 0))
    recorded = schema.ITERATION in fit
    steps = fit[schema.ITERATION].values if recorded else np.arange(1, traces.shape[1] + 1)
    return np.asarray(steps, np.float64), traces
