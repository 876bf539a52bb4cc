"""Checks of what single methods leave behind: a variational fit, and the steps of unadjusted dynamics.

A fit's optimiser may not have ended, and what it found may be far from the posterior. Unadjusted dynamics leaves a bias
of the step size in its draws, which no comparison of chains can show; gradients of the log density at the draws can:
they have to satisfy two identities, whose misses bound how far means and variances are off
(`inference/microcanonical/step_bias.py`).
"""

from __future__ import annotations

import math

from ..summaries.sampler import Identities, SamplerSummary
from ..summaries.variational import MIN_DRAWS_FOR_KHAT, VariationalSummary
from .verdict import Check, failed, not_judged, passed

BIAS = "step-size bias"
LOST = 1.0
"""Energy variance per parameter from which on the integrator does not follow the density at all."""
SHIFT = 0.1
"""How far a mean may be off, in standard deviations given the others: the Monte Carlo error of 100 draws."""
SPREAD = 0.2
"""How far a variance may be off, as a share: a tenth of the standard deviation."""
GROSS = 2.5
"""How many times as far off the draws are of no use: a quarter of a standard deviation, half of a variance."""
REMEDY = "Lower `energy_variance`, warm up longer, or use `adjusted=True`"

_RICHER = (
    "Compare its intervals with those of MCMC before using them, or try a richer family (full rank) or a better "
    "parametrisation"
)
_UNSAMPLED = (
    "Run it again without resampling (CmdStan: `psis_resample=0`; cmdstanpy: `psis_resample=False`), which gives the "
    "k-hat of all draws"
)


def step_size_bias(sampler: SamplerSummary) -> Check | None:
    """Judge microcanonical dynamics by energy errors and gradients at the draws; passed where it was adjusted."""
    if sampler.acceptance_per_chain:
        return passed(BIAS)
    variance, found = sampler.energy_variance, sampler.identities
    if math.isnan(variance):
        return not_judged(
            BIAS,
            "Energy errors were not recorded",
            remedy="Keep `energy_variance` in `sample_stats`",
        )
    fact = f"Unadjusted steps with an energy variance of {variance:.2g} per parameter"
    if variance > LOST:
        return failed(
            BIAS,
            fact,
            "the integrator does not follow the density, and the draws are not those of the posterior",
            REMEDY,
        )
    if found is None:
        return not_judged(
            BIAS,
            fact,
            "the draws have a bias of the step size, which neither R-hat nor ESS shows",
            "Hold what matters against a run with a smaller `energy_variance`, `adjusted=True` or `nuts`",
        )
    if off := _off(found):
        return failed(
            BIAS,
            f"By the gradients of the log density at the draws {off}",
            "the steps are too long for the density, or the chains were still on their way to it",
            REMEDY,
        )
    if found.shift.most <= SHIFT and found.spread.most <= SPREAD:
        return passed(BIAS)
    return not_judged(
        BIAS,
        f"{fact}, and {bounds(found)}",
        "a bias of the step size is not excluded, which neither R-hat nor ESS shows",
        "Take more draws, which narrow these bounds, or hold what matters against `adjusted=True` or `nuts`",
    )


def is_gross(sampler: SamplerSummary) -> bool:
    """Tell whether the bias is certain, and so large that the draws are of no use."""
    found = sampler.identities
    off = found is not None and (
        found.shift.least > GROSS * SHIFT or found.spread.least > GROSS * SPREAD
    )
    return off or sampler.energy_variance > LOST


def bounds(found: Identities) -> str:
    """How far off means and variances may be at most."""
    return (
        f"by the gradients at the draws no mean is off by more than {found.shift.most:.2g} standard deviations, no "
        f"variance by more than {found.spread.most:.0%}"
    )


def _off(found: Identities) -> str:
    """What is certainly too far off; empty where nothing is."""
    parts = []
    if found.shift.least > SHIFT:
        parts.append(
            f"the mean of `{found.shift.coordinate}` is off by at least {found.shift.least:.2g} standard deviations"
        )
    if found.spread.least > SPREAD:
        parts.append(
            f"the variance of `{found.spread.coordinate}` is off by at least {found.spread.least:.0%}"
        )
    return " and ".join(parts)


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
            _RICHER if fit.distinct_draws is None else _UNSAMPLED,
        )
    return passed(name)
