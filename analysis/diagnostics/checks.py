"""Checks of one posterior: of its draws, its chains, and the statistics of the sampler or fit.

Each function examines one diagnostic and returns a `Reason`, in the order in which problems should be fixed. A number
that is NaN, missing or infinite never passes. Without Metropolis adjustment, the step size biases the draws. Comparing
chains cannot reveal this bias, but gradients of the log density at the draws can. They satisfy two identities, and
deviations from these bound the errors of means and variances (`inference/microcanonical/dynamics.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from onebasin.posteriors.draws import variable_of
from onebasin.posteriors.pareto import MIN_DRAWS_FOR_KHAT

from ..summaries.sampler import SamplerSummary, restarts_in_words
from ..summaries.variational import VariationalSummary
from .measure import NO_MEAN, Measured
from .verdict import (
    NOT_RECORDED,
    PREDICTIONS,
    Outcome,
    Reason,
    Verdict,
    capital,
    chains_in_words,
    counted,
    digits,
    in_rhat,
    listed,
    percent,
)

BIAS = "step-size bias"
LOST = 1.0
"""Variance of the energy error per parameter above which the integrator no longer follows the density."""
SHIFT = 0.1
"""Error allowed in a mean, in conditional standard deviations: the Monte Carlo error of 100 draws."""
SPREAD = 0.2
"""Relative error allowed in a variance, which is about a tenth of the standard deviation."""
GROSS = 2.5
"""Multiple of these errors above which the draws are useless: a quarter of an sd, or half of a variance."""
COLUMNS = {"R-hat": "rhat", "bulk ESS": "ess_bulk", "tail ESS": "ess_tail"}
"""Table columns that the checks of parameters use."""
OTHERS = "Compare their predictions with those of MCMC by `compare`."
"""Advice on draws whose distance from the posterior cannot be measured."""
SAMPLER_CHECKS = ("moving chains", "divergences", "tree depth", "E-BFMI", BIAS)
BLAMES = {
    "funnel": ("divergences", "E-BFMI"),
    "divergences": ("divergences",),
    "step-size": (BIAS,),
    "stuck": ("moving chains",),
}
"""Sampler checks that belong to each cause. Their warnings become failures."""
_STEPS = "Lower `energy_variance`, warm up longer, or use `adjusted=True`."


def check(diagnosis: Measured) -> tuple[Reason, ...]:
    """Judge a posterior by every check that applies to it."""
    sampler, fit = diagnosis.sampler, diagnosis.variational
    checks = [_varying(diagnosis), *_broken(diagnosis), *_heavy_tails(diagnosis)]
    sizes = [_ess(diagnosis, word) for word in ("Bulk", "Tail")] if sampler is not None else []
    if sampler is not None and not sampler.sampled:
        why = (
            "the draws vary while the log density never does, and there are no energies, as in a program without "
            "parameters. Divergences, tree depths and energies do not apply to independent draws"
        )
        nothing = Reason("sampling", "not judged", "Nothing was sampled", why)
        checks += [nothing, _rhat(diagnosis), *sizes]
    elif sampler is not None:
        checks += [_moving(sampler), _rhat(diagnosis), _log_density(diagnosis, sampler), *sizes]
        if diagnosis.has_chains:
            checks.append(_divergences(diagnosis, sampler))
            if diagnosis.method not in ("hmc", "mclmc"):  # These have no trees.
                checks.append(_tree_depth(diagnosis, sampler))
            # The momentum of MCLMC has constant length, so there are no energy levels to explore.
            is_mclmc = diagnosis.method == "mclmc"
            checks.append(_step_size_bias(sampler) if is_mclmc else _bfmi(diagnosis, sampler))
    if fit is not None:
        if fit.converged is not None:  # None without a recorded criterion.
            fact = "The optimiser stopped before its criterion was met"
            stopped = Reason("optimiser", "failed", fact, remedy="Allow more iterations.")
            if fit.weighted:
                fact = f"{fact}; importance weights have corrected its draws"
                more = "More iterations may make the weights more even."
                stopped = Reason("optimiser", "warned", fact, remedy=more)
            checks.append(Reason("optimiser", "passed") if fit.converged else stopped)
        if fit.elbo_evaluations:
            found = f"The last ELBO is {fit.elbo}", "the fit has failed", "Use a smaller step size."
            lost = Reason("ELBO", "failed", *found)
            checks.append(Reason("ELBO", "passed") if math.isfinite(fit.elbo) else lost)
        checks.append(_khat(fit))
    return tuple(checks)


def blamed(checks: tuple[Reason, ...], causes: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """Turn the warnings of checks that belong to a cause into failures."""
    names = {name for cause in causes for name in BLAMES.get(cause.name, ())}
    return tuple(
        replace(c, outcome="failed") if c.name in names and c.outcome == "warned" else c
        for c in checks
    )


_WHY = {
    "generated": "generated quantities",
    "transformed": "transformed parameters",
    "integer": "discrete, so their values change instead of labels",
}
"""Reasons why variables are not used for the verdict."""


def besides(diagnosis: Measured) -> Iterator[Reason]:
    """Name the quantities that are not used for the verdict, and mention resumed runs."""
    of, limit, table = diagnosis.kinds.of, diagnosis.limits.deciding_rhat, diagnosis.shown
    for reason, names in diagnosis.left_out.items():
        if not names:
            continue
        guessed = reason == "generated" and {*diagnosis.kinds.guessed} & {*names}
        guess = ", as their names say" if guessed else ""
        rhats = table["rhat"][[variable_of(entry, of) in names for entry in table.index]]
        bad = int((rhats > limit).sum())
        of_all = f"{bad} of {counted(len(rhats), 'entry')}"
        high = f". R-hat is above {limit:g} for {of_all}" if bad else ""
        fact = f"Not used for the verdict: {listed(names)} ({_WHY[reason]}{guess}){high}"
        yield Reason(reason, "passed", fact)
    if angles := diagnosis.angles:
        fact = (
            f"{listed(angles)}: an angle whose draws lie on both sides of the cut of its circle. Its mean and sd are "
            "circular, and its other numbers are computed around that mean. Chains cannot cross the ends of a "
            "parameter with bounds; those of the angle of a unit vector can"
        )
        yield Reason("angles", "passed", fact)
    if constants := tuple(filter(diagnosis.decides, diagnosis.constants)):
        yield Reason("constants", "passed", f"{listed(constants)}: the same in every draw")
    if diagnosis.undefined:
        yield Reason("undefined", "passed", f"{listed(diagnosis.undefined)}: never finite")
    if broken := tuple(entry for entry in diagnosis.broken if not diagnosis.decides(entry)):
        yield Reason("broken", "passed", f"Finite in only some draws: {listed(broken)}")
    if chains := restarts_in_words(diagnosis.sampler.restarts if diagnosis.sampler else ()):
        fact = "Interrupted and resumed from the last draw, step size and metric, with a new random stream"
        yield Reason("restarts", "passed", f"{fact}: {chains}")


def remarks(diagnosis: Measured, checks: Sequence[Reason], verdict: Verdict) -> Iterator[Reason]:
    """Yield warnings that the verdict does not mention, and checks that could not be judged."""
    said = " ".join(
        reason.in_short + reason.sentence
        for reason in (*verdict.headline, *verdict.rows, *verdict.causes)
    )
    told = {"R-hat"} if diagnosis.has_chains else {"R-hat", "bulk ESS", "tail ESS"}
    rows = (row for row in verdict.rows if row.name == PREDICTIONS and row.outcome == "failed")
    told |= {"log density"} if any("og densit" in row.fact for row in rows) else set()
    told |= {"k-hat"} if any(cause.name == "approximation" for cause in verdict.causes) else set()
    for found in checks:
        wrong = found.outcome in ("warned", "failed")
        if wrong and found.name not in told and found.fact not in said:
            yield found
    if diagnosis.has_chains and diagnosis.num_chains == 1:
        alone = "There is only one chain, which cannot reveal other modes or labellings. Run four"
        yield Reason("chains", "not judged", alone)
    elif diagnosis.has_chains and diagnosis.sampler and diagnosis.sampler.identical_starts:
        same = (
            f"All {diagnosis.num_chains} chains began at the same point: R-hat cannot reveal a mode that all of them "
            "miss. Give each chain its own start (`init`) to find out"
        )
        yield Reason("starts", "not judged", same)
    yield from (c for c in checks if c.outcome == "not judged" and c.name != "R-hat")
    if diagnosis.symmetry_caveat:
        yield Reason("symmetry", "not judged", diagnosis.symmetry_caveat)


def _varying(diagnosis: Measured) -> Reason:
    """Pass if any entry varies. Constant entries can be structural, such as a triangle of zeros."""
    name = "varying parameters"
    if len(diagnosis.constants) < len(diagnosis.parameters):
        return Reason(name, "passed")
    why = (
        f"every draw of {listed(diagnosis.constants)} is the same, so R-hat and ESS are not defined"
    )
    remedy = "Choose variables that were inferred, or find out why the sampler never moved."
    return Reason(name, "not judged", "Nothing varies", why, remedy)


def _broken(diagnosis: Measured) -> Iterator[Reason]:
    """Name entries that are finite in only some draws."""
    if broken := diagnosis.broken:
        name = max(broken, key=lambda name: broken[name])
        outcome: Outcome = "failed" if any(map(diagnosis.decides, broken)) else "warned"
        fact = (
            f"{listed(tuple(broken))} ({counted(len(broken), 'parameter')}) is finite in some draws and not in others "
            f"(`{name}` is not in {broken[name]} of {diagnosis.total_draws})"
        )
        remedy = "Find out why the model produces such draws."
        yield Reason("finite draws", outcome, fact, "its summary is not defined", remedy)


def _heavy_tails(diagnosis: Measured) -> Iterator[Reason]:
    heavy = {n: khats for n, khats in diagnosis.heavy_tails.items() if diagnosis.decides(n)}
    no_mean = tuple(name for name, (mean, _) in heavy.items() if mean > NO_MEAN)
    no_sd = tuple(name for name in heavy if name not in no_mean)
    if no_mean:
        khat = max(heavy[name][0] for name in no_mean)
        fact = f"Tails of {listed(no_mean)} are too heavy for a mean or an sd (k-hat of the draws {khat:.2f})"
        why = "these may not exist, and they change from run to run"
        yield Reason("heavy tails", "warned", fact, why, "Use the median and intervals.")
    if no_sd:
        khat = max(heavy[name][1] for name in no_sd)
        fact = f"Tails of {listed(no_sd)} are too heavy for an sd (k-hat of the draws' squares {khat:.2f})"
        why = "it may not exist, and it changes from run to run"
        yield Reason("heavy tails", "warned", fact, why, "Use intervals.")


def _moving(sampler: SamplerSummary) -> Reason:
    if not sampler.stuck_chains:
        return Reason("moving chains", "passed")
    fact = f"{capital(chains_in_words(sampler.stuck_chains))} never moved"
    why = "the step size or the starting point does not work there"
    remedy = (
        "Run with other starting points, a longer warmup or a higher target acceptance rate, and do not use these "
        "draws."
    )
    return Reason("moving chains", "failed", fact, why, remedy)


def _rhat(diagnosis: Measured) -> Reason:
    name, limits = "R-hat", diagnosis.limits
    if not diagnosis.has_chains:
        why = (
            "members of an ensemble are trained one by one, and nothing here measures how far they are from the "
            "posterior"
        )
        return Reason(name, "not judged", "R-hat does not apply", why, OTHERS)
    if diagnosis.num_chains < 2:
        alone = "R-hat needs at least two chains, but there is only one"
        return Reason(name, "not judged", alone, remedy="Run more chains.")
    outcome = diagnosis.numbers.worst_outcome("rhat")
    if outcome in ("passed", "not judged"):
        return _defined(diagnosis, name)
    table, what = diagnosis.numbers.decisive, "parameters"
    if (bad := table[table["rhat"] > limits.rhat]).empty:
        table, what = diagnosis.shown, "quantities that are not used for the verdict"
        bad = table[table["rhat"] > limits.rhat]
    rhat = in_rhat(float(bad["rhat"].max()), (limits.rhat, limits.deciding_rhat))
    worst = f"worst {rhat}, `{bad['rhat'].idxmax()}`"
    many = f"{limits.rhat:g} for {len(bad)} of {len(table)} {what} ({worst})"
    if what != "parameters":
        return Reason(name, outcome, f"R-hat is above {many}")
    if outcome != "failed":
        return slightly_high(outcome, many)
    remedy = "Do not use the means; run a longer warmup and more draws, or reparametrise."
    if diagnosis.symmetric:
        remedy = (
            "The target declares a symmetry, so these may be copies of one mode with different labels: judge by "
            "label-free quantities (`lp`, predictions), or use a parametrisation without the symmetry (ordered "
            "biases, unit-norm weights)."
        )
    return Reason(name, outcome, f"R-hat is above {many}", "the chains disagree", remedy)


def slightly_high(outcome: Outcome, many: str) -> Reason:
    """Warn that R-hat is slightly above its limit; `many` says for which parameters."""
    fact = f"R-hat is slightly above {many}"
    return Reason("R-hat", outcome, fact, remedy="Draw more if you need them precisely.")


def _defined(diagnosis: Measured, name: str) -> Reason:
    """Pass if all parameters that vary have a finite value of a diagnostic."""
    known = {*diagnosis.constants, *diagnosis.broken}
    shown = diagnosis.shown[COLUMNS[name]]
    numbers = shown[[entry not in known and diagnosis.decides(entry) for entry in shown.index]]
    missing = tuple(str(parameter) for parameter in numbers.index[~np.isfinite(numbers)])
    if not missing:
        return Reason(name, "passed" if len(numbers) else "not judged")
    fact = f"{capital(name)} cannot be computed for {listed(missing)} ({counted(len(missing), 'parameter')})"
    remedy = "Look at these draws, run more of them, or rescale the parameter."
    return Reason(name, "not judged", fact, remedy=remedy)


def _log_density(diagnosis: Measured, sampler: SamplerSummary) -> Reason:
    name, limits = "log density", diagnosis.limits
    if bad := sampler.not_finite.get("lp"):
        return _not_finite(name, "failed", "log density `lp`", bad, diagnosis)
    if not sampler.lp_means:
        return _not_recorded(name, "Log densities were")
    outcome = limits.outcome("rhat", sampler.lp_rhat)
    if outcome in ("warned", "failed") and (found := diagnosis.heights) is not None:
        rhat = in_rhat(sampler.lp_rhat, (limits.rhat, limits.deciding_rhat))
        means = ", ".join(f"{mean:.1f}" for mean in sampler.lp_means)
        apart = f"The chains' log densities disagree (R-hat of `lp` {rhat}; means by chain {means})"
        if found.unlike:
            why = f"{found.apart()}, so it is in a different mode or has not converged"
            return Reason(name, outcome, apart, why, "Run longer, or start from other points.")
        if diagnosis.density_heights is not None:
            why = "because of the Jacobian of bounds in `lp`; the density of the parameters agrees"
            return Reason(name, outcome, f"{apart}, {why}")
        if found.gap_is_seen:
            return Reason(name, outcome, f"{apart}, but by less than one nat")
        why = "by no more than their Monte Carlo errors explain"
        return Reason(name, outcome, f"{apart}, {why}", remedy="Draw more.")
    if math.isnan(sampler.lp_rhat) and diagnosis.num_chains > 1 and not sampler.stuck_chains:
        fact = "The log density `lp` is the same in every draw, so it cannot show whether chains differ"
        remedy = "Record the log density that was sampled."
        return Reason(name, "not judged", fact, remedy=remedy)
    slow = limits.outcome("ess_bulk", sampler.lp_ess, diagnosis.num_chains)
    if slow == "failed" and diagnosis.has_chains:
        least = diagnosis.min_ess
        many = f"{digits(sampler.lp_ess, (least,))} effective draws of {diagnosis.total_draws}"
        fact = f"The log density `lp` has {many}, fewer than {least:.0f}"
        return Reason(name, slow, fact, remedy="Draw more.")
    return Reason(name, "passed")


def _ess(diagnosis: Measured, word: str) -> Reason:
    bulk, limit = word == "Bulk", diagnosis.min_ess
    name, column = f"{word.lower()} ESS", "ess_bulk" if bulk else "ess_tail"
    outcome = diagnosis.numbers.worst_outcome(column)
    if outcome in ("passed", "not judged"):
        return _defined(diagnosis, name)
    values = diagnosis.numbers.decisive[column]
    values = values if values.min() < limit else diagnosis.shown[column]
    smallest = f"{digits(float(values.min()), (limit,))} of {diagnosis.total_draws} draws"
    fact = f"{word} ESS is below {limit:.0f}; the smallest is {smallest} (`{values.idxmin()}`)"
    why = f"{'means and medians' if bulk else 'intervals and variances'} are not reliable yet"
    return Reason(name, outcome, fact, why, "Draw more, or reparametrise.")


def _divergences(diagnosis: Measured, sampler: SamplerSummary) -> Reason:
    name = "divergences"
    if sampler.divergences is None:
        return _not_recorded(name, "Divergences were")
    if not sampler.divergences:
        return _complete(diagnosis, sampler, name, "diverging")
    chains = _by_chain(sampler.divergences_per_chain)
    share = "; ".join(filter(None, (percent(sampler.divergence_share), chains)))
    outcome = diagnosis.limits.outcome("diverging", sampler.divergence_share)
    fact = f"{sampler.divergences} of {diagnosis.total_draws} draws diverged ({share})"
    why = "the integrator could not follow the posterior's curvature, so the draws may be biased"
    remedy = "Raise the target acceptance rate (0.95 or 0.99), or reparametrise."
    return Reason(name, outcome, fact, why, remedy)


def _tree_depth(diagnosis: Measured, sampler: SamplerSummary) -> Reason:
    name, cut = "tree depth", sampler.reached_max_treedepth
    if cut is None:
        none = sampler.deepest_tree is None
        return _not_recorded(name, "Tree depths were" if none else "The maximal tree depth was")
    if not cut:
        return _complete(diagnosis, sampler, name, "tree_depth")
    depth = "" if sampler.max_tree_depth is None else f" {sampler.max_tree_depth}"
    share = percent(sampler.reached_max_treedepth_share)
    fact = f"{cut} of {diagnosis.total_draws} draws reached the maximal tree depth{depth} ({share})"
    why = "trajectories were cut short, which costs time and ESS"
    return Reason(name, "warned", fact, why, "Raise `max_tree_depth`, or reparametrise.")


def _bfmi(diagnosis: Measured, sampler: SamplerSummary) -> Reason:
    name, limits = "E-BFMI", diagnosis.limits
    if bad := sampler.not_finite.get("energy"):
        return _not_finite(name, "failed", "`energy`", bad, diagnosis)
    if not sampler.bfmi:
        return _not_recorded(name, "Energies were")
    outcomes = [limits.outcome("bfmi", value) for value in sampler.bfmi]
    low = tuple(chain for chain, outcome in enumerate(outcomes) if outcome == "warned")
    if low:
        values = ", ".join(f"{sampler.bfmi[chain]:.2f}" for chain in low)
        fact = f"E-BFMI is below {limits.bfmi:g} in {chains_in_words(low)} ({values})"
        why = "the energy changes too slowly for the tails to be explored"
        return Reason(name, "warned", fact, why, "Run a longer warmup, or reparametrise.")
    missing = tuple(chain for chain, value in enumerate(sampler.bfmi) if not math.isfinite(value))
    if missing and not set(missing) <= set(sampler.stuck_chains):
        where = f"{chains_in_words(missing)}, whose energy never changes"
        fact = f"E-BFMI cannot be computed for {where}"
        return Reason(name, "not judged", fact, remedy="Record the energies of the sampler.")
    return Reason(name, "not judged" if missing else "passed")


def _complete(diagnosis: Measured, sampler: SamplerSummary, name: str, statistic: str) -> Reason:
    """Pass if a statistic is finite in all draws."""
    bad = sampler.not_finite.get(statistic)
    if not bad:
        return Reason(name, "passed")
    return _not_finite(name, "not judged", f"`{statistic}`", bad, diagnosis)


def _not_finite(
    name: str, outcome: Outcome, what: str, per_chain: tuple[int, ...], diagnosis: Measured
) -> Reason:
    chains = f" ({_by_chain(per_chain)})" if len(per_chain) > 1 else ""
    draws = f"{sum(per_chain)} of {diagnosis.total_draws} draws{chains}"
    remedy = "Find out why the model or the sampler produces it before using these draws."
    return Reason(name, outcome, f"The {what} is not finite in {draws}", remedy=remedy)


def _not_recorded(name: str, what: str) -> Reason:
    return Reason(name, "not judged", f"{what} not recorded", remedy=NOT_RECORDED)


def _by_chain(counts: Sequence[int]) -> str:
    """List the counts by chain, like ``26, 11, 12 and 9 in chains 0-3``. Return "" for one chain."""
    each = listed([*map(str, counts)], len(counts), code=False)
    return f"{each} in chains 0-{len(counts) - 1}" if len(counts) > 1 else ""


def _step_size_bias(sampler: SamplerSummary) -> Reason:
    """Judge microcanonical dynamics by energy errors and gradients at the draws. Adjusted dynamics always passes."""
    variance, found = sampler.energy_variance, sampler.identities
    if sampler.acceptance_per_chain:
        return Reason(BIAS, "passed")
    if math.isnan(variance):
        keep = "Keep `energy_variance` in `sample_stats`."
        return Reason(BIAS, "not judged", "Energy errors were not recorded", remedy=keep)
    gross: Outcome = "failed" if is_gross(sampler) else "warned"
    steps = f"Unadjusted steps with an energy variance of {variance:.2g} per parameter"
    if variance > LOST:
        why = "the integrator does not follow the density, so the draws do not follow the posterior"
        return Reason(BIAS, gross, steps, why, _STEPS)
    if found is None:
        why = "the step size biases the draws, which neither R-hat nor ESS shows"
        remedy = (
            "Compare the quantities that matter with a run that has a smaller `energy_variance`, `adjusted=True`, or "
            "`nuts`."
        )
        return Reason(BIAS, "not judged", steps, why, remedy)
    shift, spread = found.shift, found.spread
    off = []
    if shift.least > SHIFT:
        by = f"{shift.least:.2g} standard deviations"
        off.append(f"the mean of `{shift.coordinate}` is off by at least {by}")
    if spread.least > SPREAD:
        off.append(f"the variance of `{spread.coordinate}` is off by at least {spread.least:.0%}")
    if off:
        fact = f"According to the gradients of the log density at the draws, {' and '.join(off)}"
        why = "the step size is too large for the density, or the chains had not yet reached the posterior"
        return Reason(BIAS, gross, fact, why, _STEPS)
    if shift.most <= SHIFT and spread.most <= SPREAD:
        return Reason(BIAS, "passed")
    why = "a bias from the step size cannot be excluded; neither R-hat nor ESS would show it"
    remedy = "Take more draws to narrow these bounds, or compare important quantities with `adjusted=True` or `nuts`."
    return Reason(BIAS, "not judged", f"{steps}, and {bounds(sampler)}", why, remedy)


def is_gross(sampler: SamplerSummary) -> bool:
    """Check whether there is certainly a bias that makes the draws useless."""
    found = sampler.identities
    off = found is not None and (
        found.shift.least > GROSS * SHIFT or found.spread.least > GROSS * SPREAD
    )
    return off or sampler.energy_variance > LOST


def bounds(sampler: SamplerSummary | None) -> str:
    """State bounds on the errors of means and variances. Return "" if none are known."""
    if sampler is None or (found := sampler.identities) is None:
        return ""
    return (
        f"according to the gradients at the draws, no mean is off by more than {found.shift.most:.2g} standard "
        f"deviations, no variance by more than {found.spread.most:.0%}"
    )


def _khat(fit: VariationalSummary) -> Reason:
    name, bad = "k-hat", fit.non_finite_ratios
    if bad:
        many = f"{counted(bad, 'importance ratio')} `lp - log_q` of the draws {'is' if bad == 1 else 'are'}"
        fact = f"{many} not finite, so k-hat cannot be computed"
        why = "draws fall outside the posterior's support or overflow"
        return Reason(name, "failed", fact, why)
    if math.isnan(fit.khat):
        least = f"at least {MIN_DRAWS_FOR_KHAT} draws"
        why = f"it needs `lp` and `log_q` of {least}, and largest ratios that are not all equal"
        return Reason(name, "not judged", "k-hat was not computed", why)
    if fit.khat <= fit.khat_limit:
        return Reason(name, "passed")
    limits = fit.khat, fit.khat_limit
    above = f"is {digits(fit.khat, limits, 2)}, above {digits(fit.khat_limit, limits, 2)}"
    fact = f"Pareto k-hat {above}"
    remedy = "Compare its intervals with those of MCMC before using them."
    if fit.distinct_draws is not None:
        fact = f"Pareto k-hat of the {fit.distinct_draws} distinct draws {above}, because draws were resampled"
        remedy = (
            "Run it again without resampling (CmdStan: `psis_resample=0`; cmdstanpy: `psis_resample=False`), which "
            "gives the k-hat of all draws."
        )
    return Reason(name, "failed", fact, "the approximation misses part of the posterior", remedy)
