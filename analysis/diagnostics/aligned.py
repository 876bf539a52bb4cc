"""Diagnostics modulo a symmetry: the same posterior raw, aligned, and by label-free quantities.

R-hat of aligned draws is optimistic: every chain helped to fit the reference that all are aligned with. So the
invariants stand next to it, chains that stay apart are counted, and a reference fitted on half of the chains
can be compared with the other half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Symmetry, equal_modes
from onebasin.models.symmetry.group import Group
from onebasin.posteriors.draws import Draws, event_shapes, variable_of
from onebasin.posteriors.view import Posterior, View, as_view

from ..alignment import align, switching
from ..alignment.switching import one_labelling
from ..discovery.resolve import resolve
from ..summaries.summary import rhats, summary
from .invariants import invariants
from .measure import Facts, measure
from .result import AlignedDiagnosis, Diagnosis
from .verdict import Extreme

MIXED = 1000
"""Draws of a chain, at most, whose labels are mixed again."""
APART = 1.2
"""R-hat above which chains are taken to disagree."""
NATS = 20.0
"""Difference of chains' mean log densities that makes the lower mode negligible."""
SHRINKS = 0.9
"""Aligned over raw standard deviation below which alignment is said to shrink the spread."""
TOLD_APART = 4.0
"""Standard deviations between components from which on hardly a draw is given to the wrong one."""
LIKE_NOISE = 0.95
"""Ratio of the gain on draws to the gain on shuffled draws above which the two are the same."""


def diagnose_aligned(
    posterior: Posterior,
    symmetry: Symmetry | None = None,
    *,
    held_out: bool = False,
    noise: bool = True,
    progress: Callable[[int, int], None] | None = None,
    raw: Diagnosis | None = None,
    **options: Any,
) -> AlignedDiagnosis:
    """Diagnose a posterior raw and modulo a symmetry, by default the one that it declares.

    Positive scalings are no symmetry of a posterior. `held_out` fits the reference on the first half of the chains too,
    of four at least, and reports the others' R-hat. `noise` compares with the alignment of shuffled draws, which takes
    as long again. `raw` is what `measure` found of the draws as they came, if that is known already; `options` are
    those of `align`.
    """
    view = as_view(posterior)
    declared = resolve(view, symmetry).blocks
    blocks = equal_modes(declared)
    alignment = align(view, blocks, progress=progress, **options)
    aligned_view = as_view(alignment.posterior)
    moved = list(dict.fromkeys(name for block in blocks for name in block.variables))
    if raw is None or not set(moved) <= set(raw.variables):
        raw = measure(view)
    aligned = measure(aligned_view, var_names=moved, limits=raw.limits)
    integers = [name for name in alignment.allocations if name in raw.variables]
    before = raw.parameters["sd"].reindex(aligned.parameters.index)
    diagnosis = AlignedDiagnosis(
        raw=raw,
        aligned=aligned,
        alignment=alignment,
        invariants=summary(invariants(view, declared)),
        switching=switching(
            alignment, noise=noise and alignment.rule.cost == "weights" and not alignment.rotates
        ),
        basins=_basins(aligned_view.draws(moved)),
        chain_lp=raw.sampler.lp_means if raw.sampler else (),
        shrinkage=float((aligned.parameters["sd"] / before).median()),
        held_out_rhat=_held_out(view, blocks, moved, options) if held_out else None,
        numbered=summary(aligned_view.draws(integers)) if integers else pd.DataFrame(),
        caveat=alignment.caveat,
    )
    return replace(
        diagnosis, sentences=tuple(_events(diagnosis)), warnings=tuple(_cautions(diagnosis))
    )


def _basins(draws: Draws) -> tuple[tuple[int, ...], ...]:
    """Join chains whose common R-hat is small in every parameter, and whatever they are joined with.

    A group grows by comparing those that have just joined it with those that are in no group yet: where all chains
    agree, the first one is compared with each of the others, and no other pair is.
    """
    left, groups = list(range(draws.num_chains)), []
    while left:
        group: list[int] = []
        joined = {left[0]}
        while joined:
            group += joined
            left = [chain for chain in left if chain not in joined]
            alike = set(product(joined, left))
            for values in draws.blocks() if alike else ():  # all of them need not fit into memory
                alike -= {pair for pair in alike if (rhats(values[list(pair)]) > APART).any()}
            joined = {chain for _, chain in alike}
        groups.append(tuple(sorted(group)))
    return tuple(sorted(groups))


def _held_out(view: View, symmetry: Symmetry, moved: list[str], options: dict[str, Any]) -> Extreme:
    chains = view.num_chains
    if chains < 4:
        raise ArgumentError(
            f"`held_out` needs four chains, two for the reference and two to judge; there are {chains}."
        )
    first, rest = (
        view.part("chain", which).tree
        for which in (slice(0, chains // 2), slice(chains // 2, None))
    )
    fitted = align(first, symmetry, **options)
    options = {name: value for name, value in options.items() if name != "reference"}
    judged = align(rest, symmetry, reference=fitted.posterior, **options)
    return measure(judged.posterior, var_names=moved).rhat


def _events(diagnosis: AlignedDiagnosis) -> Iterator[str]:
    yield diagnosis.alignment.text
    labellings = diagnosis.switching.labellings
    if diagnosis.alignment.rotates:
        yield "Every draw had a rotation of its own."
    elif max(labellings, default=1) == 1:
        yield "Labels never changed within a chain."
        if (one := one_labelling(diagnosis.alignment)) is not None and not one.improbable:
            yield one.sentence
    else:
        share = diagnosis.switching.reassigned
        lag = max((lag for lag, value in share.items() if math.isfinite(value)), default=None)
        later = (
            f"; {100 * share[lag]:.0f} % of the components have another place {lag} draws later"
            if lag
            else ""
        )
        counts = f"{min(labellings)} to {max(labellings)} labellings a chain"
        yield f"Labels changed within chains: {counts}{later}."
    density = diagnosis.alignment.density
    if density is not None and density.compared:
        yield density.sentence
    else:
        status = resolve(diagnosis.alignment.source, diagnosis.alignment.symmetry).status
        yield from filter(None, (status, density.sentence if density else ""))
    raw, aligned, fixed = diagnosis.raw.rhat, diagnosis.aligned.rhat, diagnosis.invariant_rhat
    if math.isnan(raw.value) or math.isnan(aligned.value):
        why = " ".join(diagnosis.raw.notes[:1]) or "nothing that moved varies."
        yield f"R-hat cannot be compared before and after: {why}"
        return
    held_out = f", {diagnosis.held_out_rhat.value:.3f} held out" if diagnosis.held_out_rhat else ""
    free = f", {fixed.value:.3f} of label-free quantities" if fixed.parameter else ""
    yield f"Worst R-hat: {raw.value:.3f} raw, {aligned.value:.3f} aligned{held_out}{free}."


def _cautions(diagnosis: AlignedDiagnosis) -> Iterator[str]:
    limit = diagnosis.raw.limits.rhat
    rotates = diagnosis.alignment.rotates
    if rotates:
        yield (
            "Varimax chose the rotation, not the data: loadings and scores are those of simple structure. Quantities "
            "that no rotation changes, such as L L' of loadings L, need no such choice."
        )
    if len(diagnosis.basins) > 1:
        groups = "; ".join(", ".join(map(str, group)) for group in diagnosis.basins)
        yield (
            f"{len(diagnosis.basins)} groups of chains stay apart after alignment ({groups}): modes that "
            "the symmetry does not join." + _heights(diagnosis)
        )
    elif _far(diagnosis):
        yield "The chains' log densities lie far apart." + _heights(diagnosis)
    one = one_labelling(diagnosis.alignment)
    if one is not None and one.improbable:
        yield one.sentence
    # Variables that no block moves, and whose chains disagree although those of the moved ones agree.
    rhat = diagnosis.raw.parameters["rhat"].drop(index=diagnosis.aligned.parameters.index)
    left: list[str] = []
    if diagnosis.aligned.rhat.value <= APART < diagnosis.raw.rhat.value:
        known, numbered = diagnosis.raw.kinds.of, diagnosis.alignment.allocations
        names = dict.fromkeys(variable_of(name, known) for name in rhat[rhat > APART].index)
        left = [name for name in names if name not in numbered]
    if left:
        differ, it = ("differs", "it") if len(left) == 1 else ("differ", "them")
        yield (
            f"{', '.join(left)} still {differ} between chains, and alignment did not move {it}: if indexed by "
            f"component, declare {it} with the components."
        )
    if not diagnosis.alignment.converged:
        yield (
            f"The alignment still moved components in its last of {diagnosis.alignment.sweeps} sweeps: give "
            "more with `max_sweeps`."
        )
    if diagnosis.raw.rhat.value <= limit and diagnosis.shrinkage < SHRINKS and not rotates:
        yield (
            f"R-hat is good without alignment ({diagnosis.raw.rhat.value:.3f}), which only shrinks the spread "
            f"(to {diagnosis.shrinkage:.2f} of the raw standard deviation): either every chain visits all "
            "labellings, or the components are equal without being modes. Use the raw draws for what does "
            "not depend on labels."
        )
    overlap = max(diagnosis.switching.labellings, default=1) > 1
    overlap &= not diagnosis.switching.distance > TOLD_APART
    noise = diagnosis.switching.noise_ratio
    if noise is not None and diagnosis.switching.ratio > LIKE_NOISE * noise:
        yield (
            f"Alignment brings the draws hardly closer than it brings {diagnosis.switching.yardstick} (to "
            f"{diagnosis.switching.ratio:.2f} and {noise:.2f} of their variance): one mode a labelling is not "
            "what this posterior looks like."
        )
    elif overlap:
        yield (
            "Components overlap, so that aligned means and standard deviations depend on the rule of the "
            "alignment, which is stored with them; compare invariants where that matters."
        )


def _far(diagnosis: AlignedDiagnosis) -> bool:
    """Tell whether the lower mode is negligible, and not for Monte Carlo errors alone."""
    heights = diagnosis.raw.heights
    return heights is not None and heights.unlike and heights.gap[0] > NATS


def _heights(diagnosis: AlignedDiagnosis) -> str:
    heights = diagnosis.raw.heights
    if heights is None:
        return ""
    means = ", ".join(f"{mean:.1f}" for mean in heights.means)
    if not heights.unlike:
        return f" Mean log density by chain: {means}, equal within Monte Carlo errors."
    negligible = " Chains far below the highest sit in negligible modes: start from an optimum."
    return f" Mean log density by chain: {means}." + negligible * _far(diagnosis)


def declared_blocks(facts: Facts, given: Symmetry | None) -> Symmetry:
    """Choose the blocks to divide out: those given, else those declared, as far as all of their variables are there."""
    view = facts.view
    if given is not None:
        return equal_modes(given)
    if view.is_aligned:
        return ()
    there = event_shapes(view.posterior)
    blocks = resolve(view).equal_modes
    for block in blocks:
        block.check(there)
    decide, measured = set(facts.values), set(facts.raw.variables)
    return tuple(
        block
        for block in blocks
        if decide & set(block.variables) and measured >= set(block.variables)
    )


def mixed_again(values: Mapping[str, np.ndarray], blocks: Symmetry) -> View:
    """Give random labels to the draws (chain, draw, ...) of what blocks move."""
    own = {n: values[n] for block in blocks for n in block.variables}
    own = {n: drawn[:, :: -(-drawn.shape[1] // MIXED)] for n, drawn in own.items()}
    group = Group(blocks, {name: drawn.shape[2:] for name, drawn in own.items()})
    random = group.random(np.random.default_rng(0), next(iter(own.values())).shape[:2])
    return as_view(group.act(random, own))
