"""What is claimed of label switching, beside what was measured; every verdict follows by a rule.

A claim is tried on every posterior that it is about. It holds if it does so on all of them, does not if on none, and
is unclear otherwise, or where a posterior has nothing to try it on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from onebasin.analysis.diagnostics.result import Limits

from ..lab.claims import Statement, Trial, judge
from ..lab.study import ENGINE_WORDS, Cell
from .measures import Measured, Results, worst

HOPELESS = 1.1
"""R-hat above which chains are said to disagree."""
GOOD = Limits().rhat
ESS_PER_CHAIN = Limits().ess_per_chain
HELD_OUT = 1.02
"""R-hat that chains held out may have: there are half as many, so that chance weighs more."""
RMS_SDS, LARGEST_SDS = 1.5, 4.0
"""How far from the truth aligned means may lie, in posterior standard deviations."""
MCSE = 5.0
"""Monte Carlo errors by which the means of two engines may differ."""


def statements(results: Results) -> tuple[Statement, ...]:
    """Hold the claims against the results."""
    apart, overlapping, other = (results.of_kind(k) for k in ("apart", "overlap", "modes"))
    one_mode = {c: m for c, m in results.measured.items() if c not in other}
    return (
        _statement(
            "raw draws look hopeless",
            "Each chain is fine; together they look hopeless, since each has found the same mode under "
            "labels of its own.",
            f"the largest R-hat of a moved parameter is above {HOPELESS:g}",
            _each(apart, _looks_hopeless),
        ),
        _statement(
            "aligned draws pass",
            "The same chains, every draw in one labelling, pass the limits that every posterior is held to.",
            f"after alignment the largest R-hat is at most {GOOD:g}, and bulk and tail ESS are at least "
            f"{ESS_PER_CHAIN:g} a chain",
            _each(apart, _passes),
        ),
        _statement(
            "chains held out agree",
            "R-hat after alignment flatters, since all chains had a part in the reference; but not much.",
            f"chains aligned with a reference that they had no part in have an R-hat of at most {HELD_OUT:g}",
            _each(apart, _held_out_agrees),
        ),
        _statement(
            "what nothing moves needs no alignment",
            "What does not change under any relabelling needs no alignment to be judged.",
            f"the largest R-hat of an invariant is at most {GOOD:g}",
            _each(one_mode, _invariants_pass),
        ),
        _statement(
            "what has not converged is told apart",
            "Alignment does not mend chains in modes that no relabelling joins, and the diagnosis says so.",
            f"where the R-hat of an invariant is above {HOPELESS:g}, so is that of aligned draws, and the diagnosis "
            "counts more than one group of chains",
            _each(other | _apart_in_earnest(one_mode), _tells_apart),
        ),
        _statement(
            "one mode, one labelling: by the mean",
            "Where every labelling is a mode of its own, labels do not change within a chain.",
            "aligned with the mean of the draws, every chain keeps one labelling",
            _each(apart, lambda m: _one_labelling(m.mean_labellings)),
        ),
        _statement(
            "one mode, one labelling: by a Gaussian",
            "Where every labelling is a mode of its own, labels do not change within a chain.",
            "aligned with a diagonal Gaussian, every chain keeps one labelling",
            _each(apart, lambda m: _one_labelling(m.modulo.switching.labellings)),
        ),
        _statement(
            "overlap is warned of",
            "Where parts overlap, aligned means depend on the rule of the alignment, and the diagnosis says so.",
            "labels change within chains by either rule, and the diagnosis warns",
            _each(overlapping, _warns_of_overlap),
        ),
        _statement(
            "the truth is recovered",
            "Aligned draws can be summarised: their means are those of the parts.",
            f"aligned means lie within {RMS_SDS:g} posterior sds of the truth (root mean square), none "
            f"beyond {LARGEST_SDS:g}",
            _each(apart, _recovers),
        ),
        _statement(
            "two runs can be compared",
            "Two runs that found other labellings have the same means once they are in one.",
            f"means of the two engines, in one labelling, differ by at most {MCSE:g} Monte Carlo errors",
            list(_agreements(results)),
        ),
    )


def _statement(label: str, quote: str, rule: str, trials: list[Trial]) -> Statement:
    return Statement(label, quote, rule, tuple(trials), judge([t.holds for t in trials]))


Tried = Callable[[Measured], tuple[str, bool | None]]


def _each(measured: Mapping[Cell, Measured], tried: Tried) -> list[Trial]:
    return [Trial(where(cell), *tried(found)) for cell, found in measured.items()]


def where(cell: Cell) -> str:
    """Name a cell in tables: the method is the same everywhere."""
    return f"{cell.problem}, {ENGINE_WORDS[cell.engine]}"


def _looks_hopeless(found: Measured) -> tuple[str, bool]:
    rhat = worst(found.raw)["rhat"]
    return f"R-hat {rhat:.2f}", rhat > HOPELESS


def _apart_in_earnest(measured: Mapping[Cell, Measured]) -> dict[Cell, Measured]:
    """Posteriors that should have one mode, but whose chains differ in what nothing moves."""
    return {c: m for c, m in measured.items() if m.modulo.invariant_rhat.value > HOPELESS}


def _tells_apart(found: Measured) -> tuple[str, bool | None]:
    fixed, after = found.modulo.invariant_rhat.value, worst(found.aligned)["rhat"]
    basins = len(found.modulo.basins)
    words = f"R-hat {fixed:.2f} of an invariant, {after:.2f} aligned; {basins} groups of chains"
    if fixed <= HOPELESS:
        return words + ": all found one mode", None
    warned = any("stay apart after alignment" in warning for warning in found.modulo.warnings)
    return words, after > HOPELESS and basins > 1 and warned


def _passes(found: Measured) -> tuple[str, bool]:
    after = worst(found.aligned)
    least = ESS_PER_CHAIN * found.modulo.raw.num_chains
    words = (
        f"R-hat {after['rhat']:.3f}, bulk ESS {after['ess_bulk']:.0f}, tail ESS "
        f"{after['ess_tail']:.0f} of {least:.0f}"
    )
    return words, after["rhat"] <= GOOD and min(after["ess_bulk"], after["ess_tail"]) >= least


def _held_out_agrees(found: Measured) -> tuple[str, bool | None]:
    rhat = found.held_out_rhat
    if math.isnan(rhat):
        return "too few chains", None
    if _disagree(found):
        return f"R-hat {rhat:.3f}, but chains with a part in the reference stay apart", None
    return f"R-hat {rhat:.3f}", rhat <= HELD_OUT


def _invariants_pass(found: Measured) -> tuple[str, bool]:
    rhat = found.modulo.invariant_rhat
    return f"R-hat {rhat.value:.3f}, of {rhat.parameter}", rhat.value <= GOOD


def _one_labelling(labellings: tuple[int, ...]) -> tuple[str, bool]:
    return f"{spread(labellings)} a chain", max(labellings) == 1


def spread(labellings: tuple[int, ...]) -> str:
    """Write the numbers of labellings in the chains."""
    low, high = min(labellings), max(labellings)
    return str(low) if low == high else f"{low} to {high}"


def _warns_of_overlap(found: Measured) -> tuple[str, bool]:
    mean, gaussian = found.mean_labellings, found.modulo.switching.labellings
    warned = any("arts overlap" in w or "shuffled" in w for w in found.modulo.warnings)
    words = f"{spread(mean)} labellings a chain by the mean, {spread(gaussian)} by a Gaussian, "
    words += "warned" if warned else "not warned"
    return words, min(max(mean), max(gaussian)) > 1 and warned


def _disagree(found: Measured) -> bool:
    """Tell whether chains are apart even when aligned, so that pooled means and sds say nothing."""
    return worst(found.aligned)["rhat"] > HOPELESS


def _recovers(found: Measured) -> tuple[str, bool | None]:
    gap = found.recovery
    if gap is None or _disagree(found):
        return "chains stay apart", None
    words = (
        f"{gap.rms:.2f} sds, at most {gap.largest:.2f} ({gap.where}); {100 * gap.inside:.0f} % of "
        f"{len(gap.names)} inside their 95 % intervals"
    )
    return words, gap.rms <= RMS_SDS and gap.largest <= LARGEST_SDS


def _agreements(results: Results) -> Iterator[Trial]:
    for label, found in results.comparisons.items():
        words = (
            f"{found.aligned:.1f} Monte Carlo errors ({found.aligned_sds:.2f} sds) aligned, "
            f"{found.raw_sds:.0f} sds raw"
        )
        holds = None if found.rhat > HOPELESS else found.aligned <= MCSE
        yield Trial(f"{label}, NumPyro and Stan", words, holds)
