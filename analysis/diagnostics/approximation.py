"""The checks of a variational fit: whether the optimiser ended, and whether what it found is near the posterior."""

from __future__ import annotations

import math

from ..summaries.variational import MIN_DRAWS_FOR_KHAT, VariationalSummary
from .checks import Check, failed, not_judged, passed

_REMEDY = (
    "Compare its intervals with those of MCMC before using them, or try a richer family (full rank) or a better "
    "parametrisation"
)
_UNSAMPLED = (
    "Run it again without resampling (CmdStan: `psis_resample=0`; cmdstanpy: `psis_resample=False`), which gives the "
    "k-hat of all draws"
)


def fit_checks(fit: VariationalSummary) -> tuple[Check | None, ...]:
    """Judge the optimiser, the ELBO and k-hat, in this order; None for one that does not apply."""
    return _optimiser(fit), _elbo(fit), _khat(fit)


def _optimiser(fit: VariationalSummary) -> Check | None:
    name = "optimiser"
    if fit.converged is None:
        return None  # said nowhere today: nothing was optimised, or its criterion was not kept
    if fit.converged:
        return passed(name)
    return failed(
        name, "The optimiser stopped before its criterion was met", remedy="Allow more iterations"
    )


def _elbo(fit: VariationalSummary) -> Check | None:
    name = "ELBO"
    if not fit.elbo_evaluations:
        return None
    if math.isfinite(fit.elbo):
        return passed(name)
    return failed(
        name, f"The last ELBO is {fit.elbo}", "the fit has failed", "Use a smaller step size"
    )


def _khat(fit: VariationalSummary) -> Check:
    name = "k-hat"
    if fit.non_finite_ratios:
        ratios, verb = ("ratio", "is") if fit.non_finite_ratios == 1 else ("ratios", "are")
        return failed(
            name,
            f"{fit.non_finite_ratios} importance {ratios} `lp - log_q` of the draws {verb} not finite, so k-hat cannot "
            "be computed",
            "draws fall outside the posterior's support or overflow",
        )
    if math.isnan(fit.khat):
        return not_judged(
            name,
            "k-hat was not computed",
            f"it needs `lp` and `log_q` of at least {MIN_DRAWS_FOR_KHAT} draws, and largest ratios that are not all "
            "alike",
        )
    if fit.khat > fit.khat_limit:
        of = "" if fit.distinct_draws is None else f" of the {fit.distinct_draws} distinct draws"
        again = "" if fit.distinct_draws is None else ", where draws were resampled"
        return failed(
            name,
            f"Pareto k-hat{of} is {fit.khat:.2f}, above {fit.khat_limit:.2f}{again}",
            "the approximation misses part of the posterior",
            _REMEDY if fit.distinct_draws is None else _UNSAMPLED,
        )
    return passed(name)
