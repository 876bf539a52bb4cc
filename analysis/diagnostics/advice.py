"""The checks of one posterior, in words for a person: what is wrong or cannot be judged, and what to do next.

Each function looks at one diagnostic and returns a `Check`. The thresholds are the diagnosis's own `limits`; the order
is that in which the problems should be mended. A number that is NaN, missing or infinite passes nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from onebasin.base.card import in_brief

from ..summaries.sampler import SamplerSummary, restarted
from .causes import compare_heights
from .method_checks import fit_checks, step_size_bias
from .result import Diagnosis
from .verdict import Check, failed, not_judged, passed

NAMED = 6
"""Names that a sentence lists."""
NOT_RECORDED = (
    "What was not recorded cannot be judged: keep the sampler's statistics `diverging`, `tree_depth`, `energy` and "
    "`lp` in the group `sample_stats`, and `max_tree_depth` as an attribute."
)
"""What to do where a sampler's statistics are missing."""


def judge(diagnosis: Diagnosis) -> tuple[Check, ...]:
    """Judge a posterior by every check that applies to it."""
    sampler, fit = diagnosis.sampler, diagnosis.variational
    checks: list[Check | None] = [_varies(diagnosis), _finite(diagnosis)]
    if sampler is not None and not sampler.sampled:
        checks += [_sampling(diagnosis), _rhat(diagnosis, sampler)]
        checks += [_ess(diagnosis, word) for word in ("Bulk", "Tail")]
    elif sampler is not None:
        checks += [
            _moves(sampler),
            _rhat(diagnosis, sampler),
            _log_density(diagnosis, sampler),
            _ess(diagnosis, "Bulk"),
            _ess(diagnosis, "Tail"),
        ]
        if diagnosis.has_chains:
            checks.append(_divergences(diagnosis, sampler))
            if diagnosis.method not in ("hmc", "mclmc"):  # which have no trees
                checks.append(_tree_depth(diagnosis, sampler))
            if diagnosis.method == "mclmc":
                # Its momentum keeps its length: there is no energy to explore.
                checks.append(step_size_bias(sampler))
            else:
                checks.append(_bfmi(diagnosis, sampler))
    if fit is not None:
        checks += fit_checks(fit)
    return tuple(check for check in checks if check is not None)


def note(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Say which diagnostics do not apply to a posterior, what is left out, and what could not be judged and why."""
    unjudged = (
        s for check in diagnosis.checks if check.outcome == "not judged" for s in check.sentences
    )
    caveat = (diagnosis.symmetry_caveat,) if diagnosis.symmetry_caveat else ()
    sentences = (
        *_not_applicable(diagnosis),
        *_constants(diagnosis),
        *_undefined(diagnosis),
        *restarted(diagnosis.sampler),
        *unjudged,
        *caveat,
    )
    # What several checks say, such as a common remedy, is said once, after all of them.
    return tuple(reversed(dict.fromkeys(reversed(sentences))))


def _not_applicable(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.variational is not None:
        yield (
            "R-hat does not apply: the draws are independent ones from an approximation, and tell "
            "nothing of its distance from the posterior; k-hat does."
        )
        if diagnosis.variational.non_finite_ratios:
            yield "k-hat is not defined: importance ratios are not finite."


def _constants(diagnosis: Diagnosis) -> Iterator[str]:
    constants = diagnosis.constants
    if 0 < len(constants) < len(diagnosis.parameters):
        yield (
            f"Without R-hat and ESS, because every draw is the same: {in_brief(constants, NAMED)} "
            f"({_count(len(constants), 'parameter')})."
        )


def _undefined(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.undefined:
        yield (
            f"Left out, because it is finite in no draw: {in_brief(diagnosis.undefined, NAMED)} "
            f"({_count(len(diagnosis.undefined), 'entry').replace('entrys', 'entries')})."
        )


def _finite(diagnosis: Diagnosis) -> Check | None:
    """Draws of one entry are all finite or none of them is; what is finite in some draws is broken."""
    broken = diagnosis.broken
    if not broken:
        return None
    name = max(broken, key=lambda name: broken[name])
    return failed(
        "finite draws",
        f"{in_brief(tuple(broken), NAMED)} ({_count(len(broken), 'parameter')}) is finite in some draws and not "
        f"in others (`{name}` is not in {broken[name]} of {diagnosis.total_draws})",
        "no number is defined for it",
        "Find out why the model produces such draws",
    )


def _varies(diagnosis: Diagnosis) -> Check:
    """There is something to judge; entries that never vary (a unit, a triangle of zeros) are structure."""
    name = "varying parameters"
    if not len(diagnosis.parameters):
        return not_judged(
            name,
            "The posterior has no parameters, so that R-hat and ESS have nothing to judge",
            remedy="Look at other variables",
        )
    if len(diagnosis.constants) < len(diagnosis.parameters):
        return passed(name)
    return not_judged(
        name,
        "Nothing varies",
        f"every draw of {in_brief(diagnosis.constants, NAMED)} is the same, so that R-hat and ESS have "
        "nothing to judge",
        "Look at variables that were inferred, or find out why the sampler never moved",
    )


def _sampling(diagnosis: Diagnosis) -> Check:
    """Draws vary and no log density or energy does: of a program without parameters, whose draws are independent."""
    return not_judged(
        "sampling",
        "Nothing was sampled",
        "the draws vary while the log density never does, and there are no energies, as in a program without "
        "parameters. Divergences, trees and energies do not apply, and independent draws need none",
    )


def _moves(sampler: SamplerSummary) -> Check:
    name = "moving chains"
    if not sampler.stuck_chains:
        return passed(name)
    return failed(
        name,
        f"{_chains(sampler.stuck_chains)} never moved",
        "the step size or the starting point is hopeless there",
        "Run with other starting points, a longer warmup or a higher target acceptance rate, and do not use these "
        "draws",
    )


def _rhat(diagnosis: Diagnosis, sampler: SamplerSummary) -> Check:
    name, limit = "R-hat", diagnosis.limits.rhat
    if not diagnosis.has_chains:
        return not_judged(
            name,
            "R-hat does not apply",
            "members of an ensemble are trained one by one, and no number here tells how far they are from the "
            "posterior",
            "Hold their predictions against those of MCMC with `compare`",
        )
    if diagnosis.num_chains < 2:
        return not_judged(
            name, "R-hat needs at least two chains, and there is one", remedy="Run more"
        )
    bad = int((diagnosis.parameters["rhat"] > limit).sum())
    if bad:
        return failed(
            name,
            f"R-hat is above {limit:g} for {bad} of {len(diagnosis.parameters)} parameters (worst "
            f"{diagnosis.rhat.value:.3g}, `{diagnosis.rhat.parameter}`)",
            "the chains disagree",
            _remedy(diagnosis.symmetric, bool(sampler.lp_rhat <= limit)),
        )
    return _defined(diagnosis, name, "rhat")


def _defined(diagnosis: Diagnosis, name: str, column: str) -> Check:
    """Pass where all parameters that vary have a finite number in a column."""
    known = [*diagnosis.constants, *diagnosis.broken]
    numbers = diagnosis.parameters[column].drop(index=known)
    missing = tuple(str(parameter) for parameter in numbers.index[~np.isfinite(numbers)])
    if missing:
        return not_judged(
            name,
            f"{name[:1].upper() + name[1:]} cannot be computed for {in_brief(missing, NAMED)} "
            f"({_count(len(missing), 'parameter')})",
            remedy="Look at these draws, run more of them, or rescale the parameter",
        )
    return passed(name) if len(numbers) else not_judged(name)


def _log_density(diagnosis: Diagnosis, sampler: SamplerSummary) -> Check:
    name = "log density"
    if bad := sampler.not_finite.get("lp"):
        return failed(name, _not_finite("log density `lp`", bad, diagnosis), remedy=_LOST)
    if not sampler.lp_means:
        return not_judged(name, "Log densities were not recorded", common=NOT_RECORDED)
    if sampler.lp_rhat > diagnosis.limits.rhat:
        return _heights(name, sampler)
    if math.isnan(sampler.lp_rhat) and diagnosis.num_chains > 1 and not sampler.stuck_chains:
        return not_judged(
            name,
            "The log density `lp` is the same in every draw and tells nothing of the chains",
            remedy="Record the one that was sampled from",
        )
    return passed(name)


def _heights(name: str, sampler: SamplerSummary) -> Check:
    """What log densities that disagree mean: heights are unlike only where errors do not explain it."""
    found = compare_heights(sampler.lp_means, sampler.lp_errors)
    means = ", ".join(f"{mean:.1f}" for mean in sampler.lp_means)
    disagree = f"The chains' log densities disagree (R-hat of `lp` {sampler.lp_rhat:.3g}; means by chain {means})"
    if not found.unlike:
        explained = f"{disagree}, by no more than their Monte Carlo errors explain"
        return failed(name, explained, remedy="Draw more")
    gap, error = found.gap
    return failed(
        name,
        disagree,
        f"chain {found.lowest} lies {gap:.3g} ± {error:.1g} nats below chain {found.highest}, in a mode of unlike "
        "height, or has not arrived",
        "Run longer, or start from other points",
    )


def _remedy(symmetric: bool, lp_agrees: bool) -> str:
    if symmetric and lp_agrees:
        return (
            "Their log densities agree and the target declares a symmetry, so these may be equal "
            "modes under other names: judge by what the symmetry leaves alone (`lp`, predictions), "
            "or use a parametrisation without it (ordered biases, unit-norm weights)"
        )
    if symmetric:
        return (
            "The target declares a symmetry, so some of this may be equal modes under other names: "
            "look at `lp` and predictions first, then run longer or remove the symmetry by the "
            "parametrisation"
        )
    return "Do not use the means; run a longer warmup and more draws, or reparametrise"


def _ess(diagnosis: Diagnosis, word: str) -> Check:
    bulk, limit = word == "Bulk", diagnosis.min_ess
    name, column = f"{word.lower()} ESS", "ess_bulk" if bulk else "ess_tail"
    extreme = diagnosis.ess_bulk if bulk else diagnosis.ess_tail
    use = "means and medians" if bulk else "intervals and variances"
    if extreme.value < limit:
        return failed(
            name,
            f"{word} ESS is below {limit:.0f} ({limit / diagnosis.num_chains:g} a chain); "
            f"the smallest is {extreme.value:.0f} of {diagnosis.total_draws} draws "
            f"(`{extreme.parameter}`)",
            f"{use} are not reliable yet",
            "Draw more, or reparametrise",
        )
    return _defined(diagnosis, name, column)


def _divergences(diagnosis: Diagnosis, sampler: SamplerSummary) -> Check:
    name = "divergences"
    if sampler.divergences is None:
        return not_judged(name, "Divergences were not recorded", common=NOT_RECORDED)
    if sampler.divergences:
        per_chain = ", ".join(map(str, sampler.divergences_per_chain))
        return failed(
            name,
            f"{sampler.divergences} of {diagnosis.total_draws} draws diverged "
            f"({_percent(sampler.divergence_share)}; by chain {per_chain})",
            "the integrator could not follow the posterior's curvature, so the draws may be biased",
            "Raise the target acceptance rate (0.95 or 0.99), or reparametrise",
        )
    return _complete(diagnosis, sampler, name, "diverging")


def _tree_depth(diagnosis: Diagnosis, sampler: SamplerSummary) -> Check:
    name = "tree depth"
    if sampler.reached_max_treedepth:
        limit = "" if sampler.max_tree_depth is None else f" {sampler.max_tree_depth}"
        return failed(
            name,
            f"{sampler.reached_max_treedepth} of {diagnosis.total_draws} draws reached the maximal tree depth"
            f"{limit} ({_percent(sampler.reached_max_treedepth_share)})",
            "trajectories were cut short, which costs time and ESS",
            "Raise `max_tree_depth`, or reparametrise",
        )
    if sampler.reached_max_treedepth is None:
        none = sampler.deepest_tree is None
        which = "Tree depths were" if none else "The maximal tree depth was"
        return not_judged(name, f"{which} not recorded", common=NOT_RECORDED)
    return _complete(diagnosis, sampler, name, "tree_depth")


def _bfmi(diagnosis: Diagnosis, sampler: SamplerSummary) -> Check:
    name, limit = "E-BFMI", diagnosis.limits.bfmi
    if bad := sampler.not_finite.get("energy"):
        return failed(name, _not_finite("`energy`", bad, diagnosis), remedy=_LOST)
    if not sampler.bfmi:
        return not_judged(name, "Energies were not recorded", common=NOT_RECORDED)
    low = tuple(chain for chain, value in enumerate(sampler.bfmi) if value < limit)
    if low:
        values = ", ".join(f"{sampler.bfmi[chain]:.2f}" for chain in low)
        return failed(
            name,
            f"E-BFMI is below {limit:g} in {_chains(low).lower()} ({values})",
            "the energy changes too slowly for the tails to be explored",
            "Run a longer warmup, or reparametrise",
        )
    missing = tuple(chain for chain, value in enumerate(sampler.bfmi) if not math.isfinite(value))
    if missing and not set(missing) <= set(sampler.stuck_chains):
        return not_judged(
            name,
            f"E-BFMI cannot be computed in {_chains(missing).lower()}, whose energy never changes",
            remedy="Record the energies of the sampler",
        )
    return not_judged(name) if missing else passed(name)


def _complete(diagnosis: Diagnosis, sampler: SamplerSummary, name: str, statistic: str) -> Check:
    """Pass where a count has looked at all draws."""
    bad = sampler.not_finite.get(statistic)
    if not bad:
        return passed(name)
    return not_judged(name, _not_finite(f"`{statistic}`", bad, diagnosis), remedy=_LOST)


_LOST = "Find out where the model or the sampler loses it before using these draws"


def _not_finite(what: str, per_chain: tuple[int, ...], diagnosis: Diagnosis) -> str:
    return (
        f"The {what} is not finite in {sum(per_chain)} of {diagnosis.total_draws} draws (by chain "
        f"{', '.join(map(str, per_chain))})"
    )


def _chains(chains: tuple[int, ...]) -> str:
    word = "Chain" if len(chains) == 1 else "Chains"
    return f"{word} {', '.join(map(str, chains))}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
