"""Causes and remarks in words: what shows a cause and what to do, what could not be judged, what was left out.

`Backticks` set a name in code type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from onebasin.posteriors.draws import variable_of

from ..summaries.modes import ModesSummary
from .causes import Funnel, Heights, Run
from .measure import Facts
from .result import Diagnosis
from .verdict import Cause, Check

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


MEANS, SPREADS = 0.1, 1.1
"""Parts are alike whose means differ by less than this share of their sd, and whose sds by less than this factor."""
MOST_PARTS = 64
"""Variables with more parts are no labels' ones."""

_WHY = {
    "generated": "generated quantities",
    "transformed": "transformed parameters",
    "integer": "whole numbers, which change values and not places",
}


def unjudged(raw: Diagnosis) -> tuple[str, ...]:
    """What could not be judged, and why."""
    return tuple(_unjudged(raw))


def _unjudged(raw: Diagnosis) -> Iterator[str]:
    if raw.has_chains and raw.num_chains == 1:
        yield "One chain: other modes, and other labels, cannot be seen. Run four."
    said = (
        s
        for c in raw.checks
        if c.outcome == "not judged" and c.name != "R-hat"
        for s in c.sentences
    )
    yield from dict.fromkeys(said)
    if raw.symmetry_caveat:
        yield raw.symmetry_caveat


def left_out(facts: Facts) -> tuple[str, ...]:
    """What the answer does not rest on."""
    return tuple(_left_out(facts))


def _left_out(facts: Facts) -> Iterator[str]:
    raw, guessed = facts.raw, set(facts.view.kinds.guessed)
    for reason, names in facts.left_out.items():
        if not names:
            continue
        guess = ", as their names say" if reason == "generated" and guessed & set(names) else ""
        bad = _bad(facts, names)
        yield f"The answer does not rest on {listed(names)}: {_WHY[reason]}{guess}.{bad}"
    constants = _of(raw.constants, facts)
    if constants:
        yield f"{listed(constants)}: the same in every draw."
    if raw.undefined:
        yield f"{listed(raw.undefined)}: finite in no draw."
    broken = tuple(name for name in raw.broken if variable_of(name, facts.names) not in facts.names)
    if broken:
        yield f"Finite in some draws only: {listed(broken)}."


def _of(entries: tuple[str, ...], facts: Facts) -> tuple[str, ...]:
    """Entries of the variables that decide."""
    return tuple(entry for entry in entries if variable_of(entry, facts.names) in facts.names)


def _bad(facts: Facts, names: tuple[str, ...]) -> str:
    raw = facts.raw
    table = raw.parameters
    own = table[[variable_of(entry, raw.kinds.of) in names for entry in table.index]]
    bad = int((own["rhat"] > facts.rhat_limit).sum())
    return (
        f" R-hat is above {facts.rhat_limit:g} for {bad} of their {len(own)} entries."
        if bad
        else ""
    )


def alike_parts(facts: Facts) -> tuple[str, ...]:
    """Vectors whose entries have one and the same posterior."""
    return tuple(
        f"`{name}[0..{drawn.shape[2] - 1}]` have one and the same posterior: if they are labels of a mixture, "
        "their means "
        "say nothing about any one part."
        for name, drawn in facts.values.items()
        if drawn.ndim == 3 and 2 <= drawn.shape[2] <= MOST_PARTS and _alike(facts, name)
    )


def _alike(facts: Facts, name: str) -> bool:
    rows = facts.raw.parameters.reindex(list(facts.names[name]))
    mean, sd = rows["mean"].to_numpy(), rows["sd"].to_numpy()
    if not (np.isfinite(mean).all() and sd.min() > 0):
        return False
    return bool(np.ptp(mean) < MEANS * sd.min() and sd.max() < SPREADS * sd.min())
