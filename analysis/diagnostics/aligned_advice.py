"""Sentences for a person: what alignment did to a posterior, and what to beware of in aligned draws."""

from __future__ import annotations

import math
from collections.abc import Iterator

from onebasin.posteriors.draws import variable_of

from ..alignment.switching import one_labelling
from ..discovery.resolve import resolve
from .causes.modes import Heights, compare_heights
from .result import AlignedDiagnosis

APART = 1.2
"""R-hat above which chains are taken to disagree."""
NATS = 20.0
"""Difference of chains' mean log densities that makes the lower mode negligible."""
SHRINKS = 0.9
"""Aligned over raw standard deviation below which alignment is said to shrink the spread."""
LIKE_NOISE = 0.95
"""Ratio of the gain on draws to the gain on shuffled draws above which the two are alike."""


def tell_aligned(diagnosis: AlignedDiagnosis) -> tuple[str, ...]:
    """Say what alignment did: labels within chains, R-hat before and after."""
    return tuple(_events(diagnosis))


def warn_aligned(diagnosis: AlignedDiagnosis) -> tuple[str, ...]:
    """Say what to beware of in aligned draws."""
    return tuple(_cautions(diagnosis))


def _events(diagnosis: AlignedDiagnosis) -> Iterator[str]:
    yield diagnosis.alignment.text
    labellings = diagnosis.switching.labellings
    if max(labellings, default=1) == 1:
        yield "Labels never changed within a chain."
        if (one := one_labelling(diagnosis.alignment)) is not None and not one.improbable:
            yield one.sentence
    else:
        share = diagnosis.switching.reassigned
        lag = max((lag for lag, value in share.items() if math.isfinite(value)), default=None)
        later = (
            f"; {100 * share[lag]:.0f} % of the parts have another place {lag} draws later"
            if lag
            else ""
        )
        counts = f"{min(labellings)} to {max(labellings)} labellings a chain"
        yield f"Labels changed within chains: {counts}{later}."
    yield resolve(diagnosis.alignment.source, diagnosis.alignment.symmetry).status
    yield _rhats(diagnosis)


def _rhats(diagnosis: AlignedDiagnosis) -> str:
    raw, aligned, fixed = diagnosis.raw.rhat, diagnosis.aligned.rhat, diagnosis.invariant_rhat
    if math.isnan(raw.value) or math.isnan(aligned.value):
        why = " ".join(diagnosis.raw.notes[:1]) or "nothing that moved varies."
        return f"R-hat cannot be compared before and after: {why}"
    return (
        f"Worst R-hat: {raw.value:.3f} raw, {aligned.value:.3f} aligned"
        + (f", {diagnosis.held_out_rhat.value:.3f} held out" if diagnosis.held_out_rhat else "")
        + (f", {fixed.value:.3f} of what the symmetry leaves alone." if fixed.parameter else ".")
    )


def _cautions(diagnosis: AlignedDiagnosis) -> Iterator[str]:
    limit = diagnosis.raw.limits.rhat
    if len(diagnosis.basins) > 1:
        groups = "; ".join(", ".join(map(str, group)) for group in diagnosis.basins)
        yield (
            f"{len(diagnosis.basins)} groups of chains stay apart after alignment ({groups}): modes that "
            "the symmetry does not join." + _heights(diagnosis)
        )
    elif (heights := _compared(diagnosis)) is not None and _far(heights):
        yield "The chains' log densities lie far apart." + _heights(diagnosis)
    one = one_labelling(diagnosis.alignment)
    if one is not None and one.improbable:
        yield one.sentence
    left = _left_out(diagnosis)
    if left:
        yield (
            f"{', '.join(left)} did not move along and still disagree between chains: declare them too, "
            "if they belong to the parts."
        )
    if not diagnosis.alignment.converged:
        yield (
            f"The alignment still moved parts in its last of {diagnosis.alignment.sweeps} sweeps: give "
            "more with `max_sweeps`."
        )
    if diagnosis.raw.rhat.value <= limit and diagnosis.shrinkage < SHRINKS:
        yield (
            f"R-hat is good without alignment ({diagnosis.raw.rhat.value:.3f}), which only shrinks the spread "
            f"(to {diagnosis.shrinkage:.2f} of the raw standard deviation): either every chain visits all "
            "labellings, or the parts are alike without being modes. Use the raw draws for what does "
            "not depend on labels."
        )
    overlap = max(diagnosis.switching.labellings, default=1) > 1
    noise = diagnosis.switching.noise_ratio
    if noise is not None and diagnosis.switching.ratio > LIKE_NOISE * noise:
        yield (
            f"Alignment brings the draws hardly closer than it brings {diagnosis.switching.yardstick} (to "
            f"{diagnosis.switching.ratio:.2f} and {noise:.2f} of their variance): one mode a labelling is not "
            "what this posterior looks like."
        )
    elif overlap:
        yield (
            "Parts overlap, so that aligned means and standard deviations depend on the rule of the "
            "alignment, which is stored with them; compare invariants where that matters."
        )


def _left_out(diagnosis: AlignedDiagnosis) -> list[str]:
    """Variables that no block moves, and whose chains disagree although those of the moved ones agree."""
    rhat = diagnosis.raw.parameters["rhat"].drop(index=diagnosis.aligned.parameters.index)
    if diagnosis.aligned.rhat.value > APART or diagnosis.raw.rhat.value <= APART:
        return []
    known = diagnosis.raw.kinds.of
    return list(dict.fromkeys(variable_of(name, known) for name in rhat[rhat > APART].index))


def _compared(diagnosis: AlignedDiagnosis) -> Heights | None:
    sampler = diagnosis.raw.sampler
    if sampler is None or len(sampler.lp_errors) < 2:
        return None
    return compare_heights(sampler.lp_means, sampler.lp_errors)


def _far(heights: Heights) -> bool:
    """Whether the lower mode is negligible, and not for Monte Carlo errors alone."""
    return heights.unlike and heights.gap[0] > NATS


def _heights(diagnosis: AlignedDiagnosis) -> str:
    heights = _compared(diagnosis)
    if not diagnosis.chain_lp or heights is None:
        return ""
    means = ", ".join(f"{mean:.1f}" for mean in diagnosis.chain_lp)
    if not heights.unlike:
        return f" Mean log density by chain: {means}, alike within Monte Carlo errors."
    negligible = " Chains far below the highest sit in negligible modes: start from an optimum."
    return f" Mean log density by chain: {means}." + negligible * _far(heights)
