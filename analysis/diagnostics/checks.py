"""Every check of one posterior that applies, from its numbers: the draws, the chains, what the sampler or fit recorded.

Each function looks at one diagnostic and returns a `Reason`; the order is that in which problems should be fixed. A
number that is NaN, missing or infinite passes nowhere. Unadjusted dynamics leaves a bias of the step size in its draws,
which no comparison of chains can show; gradients of the log density at the draws can: they have to satisfy two
identities, whose misses bound how far means and variances are off (`inference/microcanonical/step_bias.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from onebasin.posteriors.draws import variable_of
from onebasin.posteriors.pareto import MIN_DRAWS_FOR_KHAT

from ..summaries.sampler import SamplerSummary, restarts_in_words
from ..summaries.variational import VariationalSummary
from .result import Diagnosis
from .verdict import Outcome, Reason, Verdict

BIAS = "step-size bias"
LOST = 1.0
"""Energy variance per parameter from which on the integrator does not follow the density at all."""
SHIFT = 0.1
"""Error allowed in a mean, in standard deviations given the others: the Monte Carlo error of 100 draws."""
SPREAD = 0.2
"""Error allowed in a variance, as a share: a tenth of the standard deviation."""
GROSS = 2.5
"""Factor on these errors from which the draws are of no use: a quarter of a standard deviation, half of a variance."""
NO_MEAN, NO_SD = 0.7, 1.0
"""k-hat of |x - m|, and of its square, from which on draws do not show the mean, and the standard deviation."""
COLUMNS = {"R-hat": "rhat", "bulk ESS": "ess_bulk", "tail ESS": "ess_tail"}
"""Checks of parameters, and the column of each."""


def check(diagnosis: Diagnosis) -> tuple[Reason, ...]:
    """Judge a posterior by every check that applies to it."""
    sampler, fit = diagnosis.sampler, diagnosis.variational
    # Entries that never vary (a unit, a triangle of zeros) are structure.
    checks = [Reason("varying parameters", "passed")]
    if len(diagnosis.constants) >= len(diagnosis.parameters):
        still = {"names": diagnosis.constants}
        checks = [Reason("varying parameters", "not judged", "nothing varies", still)]
    if broken := diagnosis.broken:  # finite in some draws, not in all or in none
        name = max(broken, key=lambda name: broken[name])
        numbers = {"name": name, "bad": broken[name], "draws": diagnosis.total_draws}
        outcome: Outcome = "failed" if any(map(diagnosis.decides, broken)) else "warned"
        own = numbers | _named(tuple(broken))
        checks.append(Reason("finite draws", outcome, "some not finite", own))
    checks += _heavy_tails(diagnosis)
    if sampler is not None and not sampler.sampled:
        checks += [Reason("sampling", "not judged", "nothing sampled"), _rhat(diagnosis)]
        checks += [_ess(diagnosis, word) for word in ("Bulk", "Tail")]
    elif sampler is not None:
        if stuck := sampler.stuck_chains:
            checks.append(Reason("moving chains", "failed", "never moved", {"chains": stuck}))
        else:
            checks.append(Reason("moving chains", "passed"))
        checks += [_rhat(diagnosis), _log_density(diagnosis, sampler)]
        checks += [_ess(diagnosis, word) for word in ("Bulk", "Tail")]
        if diagnosis.has_chains:
            checks.append(_divergences(diagnosis, sampler))
            if diagnosis.method not in ("hmc", "mclmc"):  # which have no trees
                checks.append(_tree_depth(diagnosis, sampler))
            # The momentum of MCLMC keeps its length: there is no energy to explore.
            is_mclmc = diagnosis.method == "mclmc"
            checks.append(_step_size_bias(sampler) if is_mclmc else _bfmi(diagnosis, sampler))
    if fit is not None:
        if fit.converged is not None:  # else nothing was optimised, or its criterion was not kept
            stopped = Reason("optimiser", "failed", "optimiser stopped")
            checks.append(Reason("optimiser", "passed") if fit.converged else stopped)
        if fit.elbo_evaluations:
            lost = Reason("ELBO", "failed", "elbo", {"elbo": fit.elbo})
            checks.append(Reason("ELBO", "passed") if math.isfinite(fit.elbo) else lost)
        checks.append(_khat(fit))
    return tuple(checks)


def notes(diagnosis: Diagnosis) -> Iterator[Reason]:
    """Say which diagnostics do not apply to a posterior, what could not be judged and why, and what is left out."""
    if (fit := diagnosis.variational) is not None:
        yield Reason("R-hat", "not judged", "no rhat of a fit")
        if fit.non_finite_ratios:
            yield Reason("k-hat", "not judged", "no khat of ratios")
    yield from (found for found in diagnosis.checks if found.outcome == "not judged")
    if diagnosis.symmetry_caveat:
        yield own_words("symmetry", diagnosis.symmetry_caveat)
    yield from besides(diagnosis)


_WHY = {
    "generated": "generated quantities",
    "transformed": "transformed parameters",
    "integer": "whole numbers, which change values and not places",
}


def besides(diagnosis: Diagnosis) -> Iterator[Reason]:
    """Name the quantities that are not used for the verdict, and say how the draws came about."""
    of, limit = diagnosis.kinds.of, diagnosis.limits.deciding_rhat
    causes = diagnosis.judgement.causes if diagnosis.judgement else ()
    decided = {n for c in causes if c.kind == "integers apart" for n in c.numbers["names"]}
    for reason, every in diagnosis.left_out.items():
        if not (names := tuple(name for name in every if name not in decided)):
            continue
        guessed = reason == "generated" and {*diagnosis.kinds.guessed} & {*names}
        guess = ", as their names say" if guessed else ""
        numbers: dict[str, Any] = {"names": names, "why": f"{_WHY[reason]}{guess}"}
        table = diagnosis.shown
        rhats = table["rhat"][[variable_of(entry, of) in names for entry in table.index]]
        if bad := int((rhats > limit).sum()):
            numbers |= {"limit": limit, "bad": bad, "count": len(rhats)}
        yield Reason(reason, "passed", "rests not on", numbers)
    constants = tuple(filter(diagnosis.decides, diagnosis.constants))
    broken = tuple(entry for entry in diagnosis.broken if not diagnosis.decides(entry))
    kinds = {
        "angles": diagnosis.angles,
        "the same": constants,
        "in no draw": diagnosis.undefined,
        "in some draws": broken,
    }
    yield from (Reason(kind, "passed", kind, {"names": n}) for kind, n in kinds.items() if n)
    if chains := restarts_in_words(diagnosis.sampler.restarts if diagnosis.sampler else ()):
        yield Reason("restarts", "passed", "restarts", {"chains": chains})


def remarks(diagnosis: Diagnosis, verdict: Verdict) -> Iterator[Reason]:
    """Name what was warned of and the verdict does not tell, and what could not be judged."""
    said = " ".join(
        reason.in_short + reason.sentence
        for reason in (*verdict.headline, *verdict.rows, *verdict.causes)
    )
    told = {"R-hat"} if diagnosis.has_chains else {"R-hat", "bulk ESS", "tail ESS"}
    told |= {"log density"} if any(row.kind.startswith("lp ") for row in verdict.rows) else set()
    told |= {"k-hat"} if any(cause.name == "approximation" for cause in verdict.causes) else set()
    for found in diagnosis.checks:
        wrong = found.outcome in ("warned", "failed")
        if wrong and found.name not in told and found.fact not in said:
            yield found
    if diagnosis.has_chains and diagnosis.num_chains == 1:
        yield Reason("chains", "not judged", "one chain only")
    elif diagnosis.has_chains and diagnosis.sampler and diagnosis.sampler.identical_starts:
        yield Reason("starts", "not judged", "one start", {"chains": diagnosis.num_chains})
    for found in diagnosis.checks:
        if found.outcome == "not judged" and found.name != "R-hat":
            yield found
    if diagnosis.symmetry_caveat:
        yield own_words("symmetry", diagnosis.symmetry_caveat)


def _heavy_tails(diagnosis: Diagnosis) -> Iterator[Reason]:
    heavy = {n: khats for n, khats in diagnosis.heavy_tails.items() if diagnosis.decides(n)}
    no_mean = tuple(name for name, (mean, _) in heavy.items() if mean > NO_MEAN)
    no_sd = tuple(name for name in heavy if name not in no_mean)
    for place, kind, names in ((0, "no mean", no_mean), (1, "no sd", no_sd)):
        if names:
            khat = max(heavy[name][place] for name in names)
            yield Reason("heavy tails", "warned", kind, {"names": names, "khat": khat})


def own_words(name: str, fact: str) -> Reason:
    """Give a sentence that somebody else made."""
    return Reason(name, "not judged", "own words", {"fact": fact})


def _named(names: tuple[str, ...]) -> dict[str, Any]:
    return {"names": names, "count": len(names)}


def _rhat(diagnosis: Diagnosis) -> Reason:
    name, limits = "R-hat", diagnosis.limits
    if not diagnosis.has_chains:
        return Reason(name, "not judged", "members")
    if diagnosis.num_chains < 2:
        return Reason(name, "not judged", "one chain")
    table, outcome = diagnosis.numbers.decisive, diagnosis.numbers.worst_outcome("rhat")
    bad = table[table["rhat"] > limits.rhat]
    kind = "rhat slightly"
    if bad.empty:
        table, kind = diagnosis.shown, "rhat besides"
        bad = table[table["rhat"] > limits.rhat]
    elif outcome == "failed":
        kind = "rhat of a symmetry" if diagnosis.symmetric else "rhat"
    if outcome in ("passed", "not judged"):
        return _defined(diagnosis, name)
    numbers = {
        "limit": limits.rhat,
        "limits": (limits.rhat, limits.deciding_rhat),
        "bad": len(bad),
        "count": len(table),
        "rhat": float(bad["rhat"].max()),
        "name": str(bad["rhat"].idxmax()),
    }
    return Reason(name, outcome, kind, numbers)


def _defined(diagnosis: Diagnosis, name: str) -> Reason:
    """Pass where all parameters that vary have a finite number in a column."""
    known = [*diagnosis.constants, *diagnosis.broken]
    numbers = diagnosis.shown[COLUMNS[name]].drop(index=known)
    missing = tuple(str(parameter) for parameter in numbers.index[~np.isfinite(numbers)])
    if missing:
        what = {"what": name[:1].upper() + name[1:]}
        return Reason(name, "not judged", "cannot be computed", what | _named(missing))
    return Reason(name, "passed" if len(numbers) else "not judged")


def _log_density(diagnosis: Diagnosis, sampler: SamplerSummary) -> Reason:
    name, limits = "log density", diagnosis.limits
    if bad := sampler.not_finite.get("lp"):
        return _not_finite(name, "failed", "log density `lp`", bad, diagnosis)
    if not sampler.lp_means:
        return Reason(name, "not judged", "not recorded", {"what": "Log densities were"})
    outcome = limits.outcome("rhat", sampler.lp_rhat)
    if outcome in ("warned", "failed") and (found := diagnosis.heights) is not None:
        numbers: dict[str, Any] = {
            "rhat": sampler.lp_rhat,
            "limits": (limits.rhat, limits.deciding_rhat),
            "means": ", ".join(f"{mean:.1f}" for mean in sampler.lp_means),
        } | found.apart
        kind = "lp close" if found.gap_is_seen else "lp explained"
        kind = kind if diagnosis.density_heights is None else "lp of bounds"
        return Reason(name, outcome, "lp unlike" if found.unlike else kind, numbers)
    if math.isnan(sampler.lp_rhat) and diagnosis.num_chains > 1 and not sampler.stuck_chains:
        return Reason(name, "not judged", "lp constant")
    slow = limits.outcome("ess_bulk", sampler.lp_ess, diagnosis.num_chains)
    if slow == "failed" and diagnosis.has_chains:
        numbers = {"ess": sampler.lp_ess, "draws": diagnosis.total_draws}
        least = diagnosis.min_ess
        return Reason(name, slow, "lp slow", numbers | {"limit": least, "limits": (least,)})
    return Reason(name, "passed")


def _ess(diagnosis: Diagnosis, word: str) -> Reason:
    bulk, limit = word == "Bulk", diagnosis.min_ess
    name, column = f"{word.lower()} ESS", "ess_bulk" if bulk else "ess_tail"
    outcome = diagnosis.numbers.worst_outcome(column)
    if outcome in ("passed", "not judged"):
        return _defined(diagnosis, name)
    values = diagnosis.numbers.decisive[column]
    values = values if values.min() < limit else diagnosis.shown[column]
    numbers = {
        "word": word,
        "limit": limit,
        "limits": (limit,),
        "ess": float(values.min()),
        "draws": diagnosis.total_draws,
        "name": str(values.idxmin()),
        "use": "means and medians" if bulk else "intervals and variances",
    }
    return Reason(name, outcome, "ess low", numbers)


def _divergences(diagnosis: Diagnosis, sampler: SamplerSummary) -> Reason:
    name = "divergences"
    if sampler.divergences is None:
        return Reason(name, "not judged", "not recorded", {"what": "Divergences were"})
    if not sampler.divergences:
        return _complete(diagnosis, sampler, name, "diverging")
    numbers = {
        "count": sampler.divergences,
        "draws": diagnosis.total_draws,
        "share": 100 * sampler.divergence_share,
        "per_chain": sampler.divergences_per_chain,
    }
    outcome = diagnosis.limits.outcome("diverging", sampler.divergence_share)
    return Reason(name, outcome, "diverged", numbers)


def _tree_depth(diagnosis: Diagnosis, sampler: SamplerSummary) -> Reason:
    name, cut = "tree depth", sampler.reached_max_treedepth
    if cut:
        limit = sampler.max_tree_depth
        numbers = {
            "count": cut,
            "draws": diagnosis.total_draws,
            "share": 100 * sampler.reached_max_treedepth_share,
        } | ({} if limit is None else {"depth": limit})
        return Reason(name, "warned", "trees cut", numbers)
    if cut is None:
        none = sampler.deepest_tree is None
        what = "Tree depths were" if none else "The maximal tree depth was"
        return Reason(name, "not judged", "not recorded", {"what": what})
    return _complete(diagnosis, sampler, name, "tree_depth")


def _bfmi(diagnosis: Diagnosis, sampler: SamplerSummary) -> Reason:
    name, limits = "E-BFMI", diagnosis.limits
    if bad := sampler.not_finite.get("energy"):
        return _not_finite(name, "failed", "`energy`", bad, diagnosis)
    if not sampler.bfmi:
        return Reason(name, "not judged", "not recorded", {"what": "Energies were"})
    outcomes = [limits.outcome("bfmi", value) for value in sampler.bfmi]
    low = tuple(chain for chain, outcome in enumerate(outcomes) if outcome == "warned")
    if low:
        values = ", ".join(f"{sampler.bfmi[chain]:.2f}" for chain in low)
        numbers = {"limit": limits.bfmi, "chains": low, "values": values}
        return Reason(name, "warned", "bfmi low", numbers)
    missing = tuple(chain for chain, value in enumerate(sampler.bfmi) if not math.isfinite(value))
    if missing and not set(missing) <= set(sampler.stuck_chains):
        return Reason(name, "not judged", "bfmi constant", {"chains": missing})
    return Reason(name, "not judged" if missing else "passed")


def _complete(diagnosis: Diagnosis, sampler: SamplerSummary, name: str, statistic: str) -> Reason:
    """Pass where a count has looked at all draws."""
    bad = sampler.not_finite.get(statistic)
    if not bad:
        return Reason(name, "passed")
    return _not_finite(name, "not judged", f"`{statistic}`", bad, diagnosis)


def _not_finite(
    name: str, outcome: Outcome, what: str, per_chain: tuple[int, ...], diagnosis: Diagnosis
) -> Reason:
    numbers = {"what": what, "bad": sum(per_chain), "per_chain": per_chain}
    return Reason(name, outcome, "statistic not finite", numbers | {"draws": diagnosis.total_draws})


def _step_size_bias(sampler: SamplerSummary) -> Reason:
    """Judge microcanonical dynamics by energy errors and gradients at the draws; passed where it was adjusted."""
    variance, found = sampler.energy_variance, sampler.identities
    if sampler.acceptance_per_chain:
        return Reason(BIAS, "passed")
    if math.isnan(variance):
        return Reason(BIAS, "not judged", "energy errors not recorded")
    gross: Outcome = "failed" if is_gross(sampler) else "warned"
    if variance > LOST:
        return Reason(BIAS, gross, "steps lost", {"variance": variance})
    if found is None:
        return Reason(BIAS, "not judged", "steps unknown", {"variance": variance})
    off: dict[str, Any] = {}
    if found.shift.least > SHIFT:
        off |= {"mean": found.shift.coordinate, "shift": found.shift.least}
    if found.spread.least > SPREAD:
        off |= {"variable": found.spread.coordinate, "spread": found.spread.least}
    if off:
        both = {"and_": " and "} if len(off) == 4 else {}
        return Reason(BIAS, gross, "steps biased", off | both)
    if found.shift.most <= SHIFT and found.spread.most <= SPREAD:
        return Reason(BIAS, "passed")
    return Reason(BIAS, "not judged", "steps open", {"variance": variance} | bounds(sampler))


def is_gross(sampler: SamplerSummary) -> bool:
    """Tell whether the bias is certain, and so large that the draws are of no use."""
    found = sampler.identities
    off = found is not None and (
        found.shift.least > GROSS * SHIFT or found.spread.least > GROSS * SPREAD
    )
    return off or sampler.energy_variance > LOST


def bounds(sampler: SamplerSummary) -> dict[str, float]:
    """Return bounds on the errors of means and variances; empty where nothing is known."""
    found = sampler.identities
    if found is None:
        return {}
    return {"most_shift": found.shift.most, "most_spread": found.spread.most}


def _khat(fit: VariationalSummary) -> Reason:
    name, bad = "k-hat", fit.non_finite_ratios
    if bad:
        verb = "is" if bad == 1 else "are"
        return Reason(name, "failed", "khat ratios", {"bad": bad, "verb": verb})
    if math.isnan(fit.khat):
        return Reason(name, "not judged", "khat not computed", {"least": MIN_DRAWS_FOR_KHAT})
    numbers = {"khat": fit.khat, "limit": fit.khat_limit, "limits": (fit.khat, fit.khat_limit)}
    if fit.khat <= fit.khat_limit:
        return Reason(name, "passed", "", numbers)
    if fit.distinct_draws is None:
        return Reason(name, "failed", "khat", numbers)
    return Reason(name, "failed", "khat of distinct", numbers | {"distinct": fit.distinct_draws})
