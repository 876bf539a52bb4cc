"""What a diagnosis modulo symmetry means: sentences for a reader, and warnings."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .result import AlignedDiagnosis

APART = 1.2
"""R-hat above which chains are taken to disagree."""
NATS = 20.0
"""Difference of chains' mean log densities that makes the lower mode negligible."""
SHRINKS = 0.9
"""Aligned over raw standard deviation below which alignment is said to shrink the spread."""
LIKE_NOISE = 0.95
"""Ratio of the gain on draws to the gain on shuffled draws above which the two are alike."""


def say(found: AlignedDiagnosis) -> tuple[str, ...]:
    """Tell what happened: labels within chains, basins, R-hat before and after."""
    return tuple(_sentences(found))


def warn(found: AlignedDiagnosis) -> tuple[str, ...]:
    """Tell what to beware of."""
    return tuple(_warnings(found))


def _sentences(found: AlignedDiagnosis) -> Iterator[str]:
    yield found.alignment.text
    labellings = found.switching.labellings
    if max(labellings, default=1) == 1:
        yield "Labels never changed within a chain."
    else:
        share = found.switching.reassigned
        lag = max((lag for lag, value in share.items() if math.isfinite(value)), default=None)
        later = (
            f"; {100 * share[lag]:.0f} % of the parts have another place {lag} draws later"
            if lag
            else ""
        )
        counts = f"{min(labellings)} to {max(labellings)} labellings a chain"
        yield f"Labels changed within chains: {counts}{later}."
    raw, aligned, fixed = found.raw.rhat, found.aligned.rhat, found.invariant_rhat
    yield (
        f"Worst R-hat: {raw.value:.3f} raw, {aligned.value:.3f} aligned"
        + (f", {found.held_out_rhat.value:.3f} held out" if found.held_out_rhat else "")
        + (f", {fixed.value:.3f} of what the symmetry leaves alone." if fixed.parameter else ".")
    )


def _warnings(found: AlignedDiagnosis) -> Iterator[str]:
    limit = found.raw.limits.rhat
    if len(found.basins) > 1:
        groups = "; ".join(", ".join(map(str, group)) for group in found.basins)
        yield (
            f"{len(found.basins)} groups of chains stay apart after alignment ({groups}): modes that "
            "the symmetry does not join." + _heights(found)
        )
    elif _spread(found) > NATS:
        yield "The chains' log densities lie far apart." + _heights(found)
    left = _left_out(found)
    if left:
        yield (
            f"{', '.join(left)} did not move along and still disagree between chains: declare them too, "
            "if they belong to the parts."
        )
    if not found.alignment.converged:
        yield (
            f"The alignment still moved parts in its last of {found.alignment.sweeps} sweeps: give "
            "more with `max_sweeps`."
        )
    if found.raw.rhat.value <= limit and found.shrinkage < SHRINKS:
        yield (
            f"R-hat is good without alignment ({found.raw.rhat.value:.3f}), which only shrinks the spread "
            f"(to {found.shrinkage:.2f} of the raw standard deviation): either every chain visits all "
            "labellings, or the parts are alike without being modes. Use the raw draws for what does "
            "not depend on labels."
        )
    overlap = max(found.switching.labellings, default=1) > 1
    noise = found.switching.noise_ratio
    if noise is not None and found.switching.ratio > LIKE_NOISE * noise:
        yield (
            f"Alignment brings the draws hardly closer than it brings shuffled ones (to "
            f"{found.switching.ratio:.2f} and {noise:.2f} of their variance): one mode a labelling is not "
            "what this posterior looks like."
        )
    elif overlap:
        yield (
            "Parts overlap, so that aligned means and standard deviations depend on the rule of the "
            "alignment, which is stored with them; compare invariants where that matters."
        )


def _left_out(found: AlignedDiagnosis) -> list[str]:
    """Variables that no block moves, and whose chains disagree although those of the moved ones agree."""
    rhat = found.raw.parameters["rhat"].drop(index=found.aligned.parameters.index)
    if found.aligned.rhat.value > APART or found.raw.rhat.value <= APART:
        return []
    return list(dict.fromkeys(str(name).partition("[")[0] for name in rhat[rhat > APART].index))


def _spread(found: AlignedDiagnosis) -> float:
    return max(found.chain_lp) - min(found.chain_lp) if found.chain_lp else 0.0


def _heights(found: AlignedDiagnosis) -> str:
    if not found.chain_lp:
        return ""
    means = ", ".join(f"{mean:.1f}" for mean in found.chain_lp)
    said = f" Mean log density by chain: {means}."
    if _spread(found) > NATS:
        said += " Chains far below the highest sit in negligible modes: start from an optimum."
    return said
