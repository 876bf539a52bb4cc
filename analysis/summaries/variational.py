"""Quality of a variational approximation: PSIS k-hat, final ELBO with bounds, and convergence.

Numbers are in nats. A larger ELBO is better, because it is a lower bound of the log evidence (without the constants
that a program leaves out). `lp` and `log_q` are log densities of the same draw in the unconstrained space, up to
constants that do not affect k-hat (Yao, Vehtari, Simpson and Gelman 2018, "Yes, but did it work?"). Averaging q over a
symmetry adds the information that the symmetry gains to the ELBO of q (Gelberg et al. 2024, Theorem 4.1).

The final estimate for NumPyro's ADVI is the mean of `lp - log_q` over the fit's own draws. For symmetrised VI it is the
recorded value. Otherwise (Stan's ADVI does not normalise `log_q`) it is the last evaluation, with an error from the
spread of `lp`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from onebasin.base.card import Card, Part, Shown, Words, measured
from onebasin.base.errors import ArgumentError
from onebasin.base.table import Flag, frame_table
from onebasin.posteriors import schema
from onebasin.posteriors.pareto import khat_limit, pareto_khat
from onebasin.posteriors.view import Posterior, View, as_view

from .sampler import NAN

RESAMPLED = 0.99
"""Share of distinct draws below which the draws of an approximation count as resampled."""
KHAT_OF_DISTINCT = 0.5
"""Limit of k-hat for the distinct draws after resampling. Resampling loses draws with small ratios, so k-hat is too
small, by up to 0.2 in simulations. With this limit, 17 of 171 fits with a k-hat above 0.7 passed."""


@dataclass(frozen=True)
class VariationalSummary:
    """Statistics of a variational fit.

    Attributes
    ----------
    khat : float
        Pareto k-hat of the importance ratios; NaN if it cannot be computed.
    khat_limit : float
        Limit of k-hat for this number of draws: min(1 - 1 / log10(draws), 0.7), and at most 0.5 for resampled draws.
    distinct_draws : int or None
        Number of distinct draws after resampling, which are used for k-hat; None without resampling.
    non_finite_ratios : int
        Number of draws whose importance ratio is not finite. If there are any, k-hat is undefined.
    elbo : float
        Last recorded ELBO, in nats; the smallest of several fits, or NaN if some fit has none.
    elbo_evaluations : int
        Number of recorded ELBO values.
    converged : bool or None
        Whether the stopping criterion was met; None if not recorded.
    gradient_evaluations : int or None
        Number of gradients in the optimisation.
    weighted : bool
        Whether the draws were corrected by importance weights.
    """

    khat: float = NAN
    khat_limit: float = NAN
    distinct_draws: int | None = None
    non_finite_ratios: int = 0
    elbo: float = NAN
    elbo_evaluations: int = 0
    converged: bool | None = None
    gradient_evaluations: int | None = None
    weighted: bool = False


def variational_summary(view: View) -> VariationalSummary:
    """Summarise the recorded statistics of a variational method, and compute k-hat."""
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
        gradient_evaluations=None if gradients is None else int(gradients),
        weighted=view.group(schema.WEIGHTED) is not None,
    )


def log_ratios(view: View) -> Float[np.ndarray, " draw"] | None:
    """Return `lp - log_q` of all draws of an approximation, or None if either was not recorded.

    If the draws were resampled, return the recorded ratios of the draws before resampling. If these are missing, as in
    CmdStan's Pathfinder CSV, count each distinct draw once.
    """
    recorded = view.group(schema.VARIATIONAL)
    if recorded is not None and schema.LOG_RATIO in recorded:
        return np.asarray(recorded[schema.LOG_RATIO], np.float64).ravel()
    lp, log_q = view.stat(schema.LP), view.stat(schema.LOG_Q)
    if lp is None or log_q is None:
        return None
    pairs = np.stack([lp.ravel(), log_q.ravel()], axis=-1)
    distinct = np.unique(pairs, axis=0)
    # Draws of a continuous approximation recur only after resampling.
    pairs = distinct if len(distinct) < RESAMPLED * len(pairs) else pairs
    return pairs[:, 0] - pairs[:, 1]


def elbo_trace(
    view: View,
) -> tuple[Float[np.ndarray, " evaluation"], Float[np.ndarray, " evaluation"]] | None:
    """Return iterations and ELBO of a variational fit (the worst of several), or None if not recorded."""
    fit = view.group(schema.VARIATIONAL)
    if fit is None or schema.ELBO not in fit:
        return None
    steps, elbos = elbo_traces(fit)
    return steps, elbos[np.argmin(np.nan_to_num(elbos[:, -1:], nan=-np.inf).sum(axis=1))]


def elbo_traces(
    fit: xr.Dataset, name: str = schema.ELBO
) -> tuple[Float[np.ndarray, " evaluation"], Float[np.ndarray, "fit evaluation"]]:
    """Return the iterations and the trace of the maximised quantity for every fit."""
    traces = np.asarray(fit[name].transpose(..., "evaluation").values, np.float64)
    traces = traces.reshape(-1, traces.shape[-1]) if traces.size else np.empty((1, 0))
    recorded = schema.ITERATION in fit
    steps = fit[schema.ITERATION].values if recorded else np.arange(1, traces.shape[1] + 1)
    return np.asarray(steps, np.float64), traces


LAST = 10
"""Number of last evaluations, whose two halves are compared to detect a rise."""
STILL, ERRORS = 1.0, 3.0
"""Smallest difference between these halves, in nats and in standard errors, that counts as a rise."""
_BOUNDS = (
    *("information_lower", "information_upper"),
    *("symmetrised_elbo_lower", "symmetrised_elbo_upper"),
)
State = Literal["converged", "level", "rising", "unfinished", "failed"]
_SAID: dict[State, tuple[str, Flag, str]] = {
    "converged": ("converged", "good", "The stopping rule was met."),
    "level": (
        "levelled off",
        "good",
        f"The stopping rule was not met, but the ELBO has levelled off within the last {LAST} evaluations.",
    ),
    "rising": (
        "still rising",
        "warn",
        "The ELBO was still rising at the end: allow more steps, or a smaller tolerance.",
    ),
    "unfinished": (
        "not converged",
        "warn",
        "The stopping rule was not met: allow more steps, or look at the trace.",
    ),
    "failed": (
        "failed",
        "bad",
        "The fit has failed, because an ELBO is not finite: use a smaller step size or another start.",
    ),
}
"""Headings, flags and sentences of states."""


@dataclass(frozen=True, eq=False, repr=False)
class Elbo(Shown):
    """The ELBO of one or more variational fits.

    Attributes
    ----------
    table : DataFrame
        One row per fit: `elbo` and its Monte Carlo error `elbo_mcse` in nats (NaN if unknown); `converged`, whether the
        stopping rule was met; `rise` and `rise_mcse`, the difference between the halves of the last ten evaluations and
        its error. For symmetrised VI also `information_lower` and `information_upper`, `symmetrised_elbo_lower` and
        `symmetrised_elbo_upper`, and their errors (`..._mcse`).
    iteration : array (evaluation,)
        Number of steps taken at each evaluation.
    trace : array (fit, evaluation)
        Noisy estimates of the ELBO, or of the symmetrised ELBO, in nats.
    """

    table: pd.DataFrame
    iteration: Float[np.ndarray, " evaluation"]
    trace: Float[np.ndarray, "fit evaluation"]

    @property
    def is_symmetrised(self) -> bool:
        """Check whether the table has bounds of a symmetrised ELBO."""
        return "symmetrised_elbo_lower" in self.table

    @property
    def best(self) -> int:
        """Number of the best fit, counted from 0, which is also its chain in the posterior."""
        return int(np.argmax(np.nan_to_num(self._lower.to_numpy(), nan=-np.inf)))

    @property
    def value(self) -> float:
        """The best fit's lower bound of the log evidence in nats, symmetrised if available."""
        return float(self._lower.iloc[self.best])

    @property
    def mcse(self) -> float:
        """Upper bound of the Monte Carlo error of `value`. The errors of both terms are added."""
        row = self.table.iloc[self.best]
        more = row["information_lower_mcse"] if self.is_symmetrised else 0.0
        return float(row["elbo_mcse"] + more)

    @property
    def converged(self) -> bool:
        """Check whether every fit met its stopping rule."""
        return bool(self.table["converged"].all())

    @property
    def state(self) -> State:
        """State of all fits together (``converged``, ``level``, ``rising``, ``unfinished`` or ``failed``).

        ``level``: the stopping rule was not met, but the ELBO rises by less than one nat. ``rising``: the ELBO rises by
        more, even if the rule was met. ``unfinished``: the rule was not met, and the noise is too large to tell.
        """
        if not np.isfinite(self._lower).all():
            return "failed"
        rise, error = self.table["rise"], self.table["rise_mcse"]
        if bool(((rise > STILL) & (rise > ERRORS * error)).any()):
            return "rising"
        if self.converged:
            return "converged"
        # Stopping rules compare noisy evaluations by ratios, so an ELBO near zero may never meet them.
        return "level" if bool((rise + 2 * error < STILL).all()) else "unfinished"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences that explain the numbers."""
        state = _SAID[self.state][2]
        if self.state == "failed":
            return (state,)
        what = "symmetrised ELBO" if self.is_symmetrised else "ELBO"
        best = f" of the best of {len(self.table)} fits (fit {self.best})" * (len(self.table) > 1)
        value = measured(self.value, self.mcse)
        return (
            f"The {what}{best} is {value}, a lower bound of the log evidence.",
            state,
            "ELBOs rank fits of one model to one data set; they do not measure how far a fit is from the posterior; "
            "`ob.diagnose` does, by k-hat.",
        )

    @property
    def _lower(self) -> pd.Series:
        return self.table["symmetrised_elbo_lower" if self.is_symmetrised else "elbo"]

    def _card(self) -> Card:
        heading, flag, _ = _SAID[self.state]
        best_first = self.table.loc[self._lower.sort_values(ascending=False).index[:LAST]]
        more = f", {LAST} of {len(self.table)}" if len(self.table) > LAST else ""
        caption = f"fits by number, in nats at the end, best first{more}"
        parts: list[Part] = [*map(Words, self.sentences), frame_table(best_first, caption)]
        return Card(f"Variational fit: {heading}", tuple(parts), flag)


def elbo(posterior: Posterior) -> Elbo:
    """Read the final ELBO of a variational fit and its bounds, and check whether the fit has converged.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The result of `ob.advi` or `ob.symmetrised_vi`, its file, or any posterior with an `elbo` trace in the group
        `variational`.

    Returns
    -------
    Elbo
        `value` and `mcse` are the best lower bound of the log evidence and its error, in nats. `table` has one row per
        fit. `state` says whether the fits have converged.

    Raises
    ------
    TypeError
        If no posterior can be read from `posterior`.
    ValueError
        If no ELBO was recorded.

    References
    ----------
    Kucukelbir et al. 2017, Automatic differentiation variational inference, JMLR 18. Gelberg et al. 2024, Theorem 4.1
    (the symmetrised ELBO).

    Examples
    --------
    >>> import numpyro, numpyro.distributions as dist
    >>> import onebasin as ob
    >>> def model():
    ...     numpyro.sample("z", dist.Normal(0.0, 1.0))
    >>> fit = ob.approximations.elbo(ob.advi(ob.Target("normal", numpyro_model=model)))
    >>> abs(fit.value) < 0.1  # the log evidence is 0, and the family contains the posterior
    True
    """
    view = as_view(posterior)
    fit = view.group(schema.VARIATIONAL)
    if fit is None or schema.ELBO not in fit or not fit[schema.ELBO].size:
        raise ArgumentError(
            f"`{view.argument}` has no ELBO. Give the result of `ob.advi` or `ob.symmetrised_vi`. For other "
            "approximations, use `ob.diagnose`, which judges them by k-hat."
        )
    traced = "symmetrised_elbo" if "symmetrised_elbo" in fit else schema.ELBO
    iteration, trace = elbo_traces(fit, traced)
    value, error = _at_the_end(view, fit, trace)
    columns = {"elbo": value, "elbo_mcse": error}
    for name in _BOUNDS:
        for column in (name, f"{name}_mcse"):
            if column in fit:
                columns[column] = np.asarray(fit[column].values, np.float64).ravel()
    rule_met = np.full(len(trace), bool(view.number(schema.CONVERGED)))
    settled = fit["settled"].values.astype(bool) if "settled" in fit else rule_met
    rise, rise_mcse = _rise(trace)
    columns |= {"converged": settled.ravel(), "rise": rise, "rise_mcse": rise_mcse}
    return Elbo(pd.DataFrame(columns).rename_axis("fit"), iteration, trace)


def _at_the_end(view: View, fit: xr.Dataset, trace: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the final ELBO of each fit and its Monte Carlo error."""
    if "final_elbo" in fit:
        return fit["final_elbo"].values.ravel(), fit["final_elbo_mcse"].values.ravel()
    last, unknown = trace[:, -1], np.full(len(trace), np.nan)
    lp, log_q = view.stat(schema.LP), view.stat(schema.LOG_Q)
    if lp is None or log_q is None or len(lp) != len(trace):
        return last, unknown
    numpyro = view.attribute(schema.ENGINE) == "numpyro"
    if numpyro and str(view.attribute(schema.METHOD, "")).startswith("advi"):
        return (lp - log_q).mean(axis=1), (lp - log_q).std(axis=1, ddof=1) / math.sqrt(lp.shape[1])
    samples = (view.parsed(schema.SETTINGS) or {}).get("elbo_samples")
    return last, unknown if not samples else lp.std(axis=1, ddof=1) / math.sqrt(samples)


def _rise(trace: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the difference between the halves of the last evaluations and its standard error."""
    half = LAST // 2
    if trace.shape[1] < LAST:
        return np.full(len(trace), np.nan), np.full(len(trace), np.nan)
    halves = trace[:, -LAST:].reshape(len(trace), 2, half)
    earlier, later = np.moveaxis(halves.mean(axis=2), 1, 0)
    spread = halves.var(axis=2, ddof=1).sum(axis=1) / half
    return later - earlier, np.sqrt(spread)
