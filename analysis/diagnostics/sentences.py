"""Sentences on causes: what shows each of them, and what to do. `Backticks` set a name in code type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..summaries.modes import ModesSummary
from .causes.funnel import Funnel
from .causes.modes import Heights
from .causes.stuck import Run
from .checks import Check
from .facts import Facts
from .result import Diagnosis
from .verdict import Cause

FEW = 10
"""Draws of a chain below which R-hat and ESS say nothing."""
ENOUGH = 100
NAMED = 4
"""Names that a sentence lists at most."""


def not_finite(name: str, chain: int, draw: int, entries: int) -> Cause:
    """An entry that is finite in some draws only."""
    more = f", and {entries - 1} other entries likewise" if entries > 1 else ""
    return Cause(
        "not-finite",
        f"`{name}` is finite in some draws and not in others, first in draw {draw} of chain {chain}{more}.",
        "Find out why the model produces such draws (an overflow, a division by zero, a log of a negative "
        "number), and "
        "sample again.",
    )


def never_finite(names: Sequence[str]) -> Cause:
    """Parameters none of whose draws is finite."""
    return Cause(
        "not-finite",
        f"No draw of {listed(names)} is finite.",
        "Find out why the model produces no number: an overflow, a division by zero, or a start outside of the "
        "support.",
    )


def statistic_not_finite(name: str, chain: int, draw: int, count: int, total: int) -> Cause:
    """A log density or an energy that is no number in some draws."""
    what = "The log density `lp`" if name == "lp" else f"`{name}`"
    return Cause(
        "not-finite",
        f"{what} is not finite in {count} of {total} draws, first in draw {draw} of chain {chain}.",
        "Find out why: a sampler accepts no draw without a finite log density, so the file or the model is wrong "
        "there. Sample again, or write the file again.",
    )


def stuck_run(name: str, run: Run, draws: int) -> Cause:
    """A chain that repeats its draws."""
    still = (
        "never moves"
        if run.length >= 0.99 * draws
        else f"repeats {run.length} of its {draws} draws"
    )
    where = "" if run.length >= 0.99 * draws else f", from draw {run.first} on"
    return Cause("stuck", f"Chain {run.chain} {still}{where} (`{name}`).", _MOVE)


def stuck_narrow(narrow: Mapping[str, int]) -> Cause:
    """Chains in which a variable hardly varies."""
    chains = sorted(set(narrow.values()))
    who = (
        f"Chain {chains[0]} hardly moves"
        if len(chains) == 1
        else f"Chains {_and(chains)} hardly move"
    )
    return Cause(
        "stuck",
        f"{who}: the variance of {listed(tuple(narrow))} is less than a thousandth of other chains' there.",
        _MOVE,
    )


_MOVE = (
    "Sample again from other starting points, with a longer warmup or a higher target acceptance rate; do not "
    "just leave "
    "the chain out, for what stopped it may be a part of the posterior that the others never met."
)


def funnel(found: Funnel, raw: Diagnosis, facts: Facts) -> Cause:
    """A scale that goes with the spread of a vector."""
    small = "large" if found.large else "small"
    shown = [
        f"where `{found.scale}` is {small}, `{found.vector}` becomes narrow (rank correlation "
        f"{found.correlation:.2f})"
    ]
    if found.divergences:
        shown.append(
            f"{found.there} of {found.divergences} divergences lie in that quarter of the draws"
        )
    bfmi = raw.sampler.min_bfmi if raw.sampler else math.nan
    if bfmi < raw.limits.bfmi:
        shown.append(f"E-BFMI is {bfmi:.2f}")
    ess = facts.table["ess_bulk"].get(found.scale, math.inf)
    if ess < raw.min_ess:
        shown.append(f"`{found.scale}` has {ess:.0f} effective draws")
    return Cause(
        "funnel",
        _sentence("; ".join(shown)),
        f"Non-centre `{found.vector}`: sample {found.vector}_raw ~ normal(0, 1) and compute {found.vector} as its "
        "location "
        f"plus {found.scale} times {found.vector}_raw; a higher target acceptance rate (0.95 or 0.99) helps less.",
    )


def divergences(raw: Diagnosis) -> Cause:
    """Many divergences, with no pair of a scale and a vector that they go with."""
    sampler = raw.sampler
    count, share = (sampler.divergences or 0, sampler.divergence_share) if sampler else (0, 0.0)
    return Cause(
        "divergences",
        f"{count} of {raw.total_draws} draws diverged ({100 * share:.0f} %).",
        "Raise the target acceptance rate (0.95 or 0.99); where that does not help, reparametrise.",
    )


def biased_steps(check: Check) -> Cause:
    """Steps that were certainly too long."""
    return Cause("step-size", f"{check.fact}: {check.meaning}.", f"{check.remedy}.")


def modes(facts: Facts, found: Heights | None) -> Cause:
    """Chains that have settled in places of their own."""
    bad = facts.bad_rhat
    shown = [
        f"each chain agrees with itself and not with the others ({_worst(facts)}; {len(bad)} of "
        f"{len(facts.table)} entries)"
    ]
    if bad.empty:
        shown = ["chains have settled in places of their own"]
    if found is not None and found.unlike:
        gap, error = found.gap
        shown.append(
            f"chain {found.lowest} lies {gap:.3g} ± {error:.1g} nats lower than chain {found.highest}"
        )
    elif found is not None:
        shown.append("their heights are alike")
    return Cause(
        "modes",
        _sentence("; ".join(shown)),
        "Keep no average over these chains: they weigh modes by where they started. Sample mode by mode: "
        "`ob.sample_modes(target)`, or `onebasin sample --method modes`, finds modes from many starts and weighs them "
        "by bridge sampling.",
    )


def weights(found: ModesSummary) -> Cause:
    """Modes whose weights, or whose own chains, are not good enough."""
    return Cause(
        "weights",
        found.doubt,
        "Take more `draws` (and `chains`), which make the error of bridge sampling smaller, or sample more of the "
        "modes (`most`); until then use each mode by itself, by the statistic `mode`.",
    )


def short(facts: Facts, times: int, agree: bool) -> Cause:
    """Too few effective draws, or chains that disagree with their own halves."""
    ess, lp_ess = facts.least_ess, facts.lp_numbers[1]
    draws = facts.raw.num_draws
    if draws < FEW:
        return Cause(
            "short",
            f"Chains of {draws} draws are too short to judge.",
            f"Draw at least {ENOUGH} times a chain, after a warmup.",
        )
    shown = []
    if not agree:
        shown.append(
            f"chains disagree with their own halves as they do with one another ({_worst(facts)})"
        )
    if lp_ess < ess.value or math.isnan(ess.value):
        shown.append(f"`lp` has {lp_ess:.0f} effective draws of {facts.raw.total_draws}")
    else:
        shown.append(
            f"`{ess.parameter}` has {ess.value:.0f} effective draws of {facts.raw.total_draws}"
        )
    return Cause(
        "short",
        _sentence("; ".join(shown)),
        f"Draw about {times} times as many, with a longer warmup, or reparametrise what mixes slowly.",
    )


def rhat(value: float) -> str:
    """An R-hat in words of two or three decimals."""
    if math.isnan(value):
        return "not defined"
    if value > 100:
        return "over 100"
    return f"{value:.3f}" if value < 1.095 else f"{value:.2f}"


def listed(names: Sequence[str], shown: int = NAMED, code: bool = True) -> str:
    """Names, the first of them where there are many."""
    marked = [f"`{name}`" if code else name for name in names[:shown]]
    return (
        _and(marked)
        if len(names) <= shown
        else f"{', '.join(marked)} and {len(names) - shown} more"
    )


def _and(words: Sequence[object]) -> str:
    texts = [str(word) for word in words]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _worst(facts: Facts) -> str:
    worst, lp = facts.worst_rhat, facts.lp_numbers[0]
    if lp > worst.value or math.isnan(worst.value):
        return f"R-hat of `lp` {rhat(lp)}"
    return f"R-hat {rhat(worst.value)} of `{worst.parameter}`"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
