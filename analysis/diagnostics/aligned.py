"""Diagnostics modulo a symmetry: the same posterior raw, aligned, and by what the symmetry leaves alone.

R-hat of aligned draws flatters: every chain had a part in the reference that all were aligned with. So the
invariants stand beside it, chains that stay apart are counted, and a reference fitted on half of the chains
can be held against the other half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Symmetry, equal_modes
from onebasin.posteriors.draws import Draws
from onebasin.posteriors.view import Posterior, View, as_view

from ..alignment import align, switching
from ..summaries.summary import rhats, summary
from .aligned_advice import APART, tell_aligned, warn_aligned
from .invariants import invariants
from .measure import measure
from .result import AlignedDiagnosis, Diagnosis, Extreme


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
    """Diagnose a posterior raw and modulo its symmetry.

    Parameters
    ----------
    posterior
        The posterior.
    symmetry
        Modulo what; by default what the posterior declares. Positive scalings are left out: they are
        no symmetry of the posterior.
    held_out
        Also fit the reference on the first half of the chains and report the others' R-hat.
    noise
        Compare with the alignment of shuffled draws, which takes as long again.
    progress
        Called with draws gone through and draws in all.
    raw
        What `measure` found of the draws as they came, if that is known already.
    **options
        Further arguments of `align`.

    Returns
    -------
    AlignedDiagnosis
        Both diagnoses, invariants, switching, basins, and what they mean in words.

    Raises
    ------
    ValueError
        As `diagnose` and `align`; or if `held_out` is asked for with fewer than four chains.
    """
    view = as_view(posterior)
    declared = symmetry if symmetry is not None else view.symmetry
    blocks = equal_modes(declared)
    alignment = align(view, blocks, progress=progress, **options)
    aligned_view = as_view(alignment.posterior)
    moved = list(dict.fromkeys(name for block in blocks for name in block.variables))
    if raw is None or not set(moved) <= set(raw.variables):
        raw = measure(view)
    aligned = measure(
        aligned_view,
        var_names=moved,
        rhat_max=raw.limits.rhat,
        ess_threshold=raw.limits.ess,
        bfmi_threshold=raw.limits.bfmi,
    )
    diagnosis = AlignedDiagnosis(
        raw=raw,
        aligned=aligned,
        alignment=alignment,
        invariants=summary(invariants(view, declared)),
        switching=switching(alignment, noise=noise and alignment.rule.cost == "weights"),
        basins=_basins(aligned_view.draws(moved)),
        chain_lp=raw.sampler.lp_means if raw.sampler else (),
        shrinkage=_shrinkage(raw, aligned),
        held_out_rhat=_held_out(view, blocks, moved, options) if held_out else None,
        caveat=alignment.caveat,
    )
    return replace(diagnosis, sentences=tell_aligned(diagnosis), warnings=warn_aligned(diagnosis))


def _shrinkage(raw: Diagnosis, aligned: Diagnosis) -> float:
    before = raw.parameters["sd"].reindex(aligned.parameters.index)
    return float((aligned.parameters["sd"] / before).median())


def _basins(draws: Draws) -> tuple[tuple[int, ...], ...]:
    """Join chains whose common R-hat is small in every parameter, and whatever they are joined with."""
    alike = set(combinations(range(draws.num_chains), 2))
    for values in draws.blocks():  # a block at a time: all of them need not fit into memory
        alike -= {pair for pair in alike if (rhats(values[list(pair)]) > APART).any()}
    groups = [{chain} for chain in range(draws.num_chains)]
    for pair in alike:
        joined = [group for group in groups if group & {*pair}]
        groups = [group for group in groups if group not in joined]
        groups.append(set().union(*joined))
    return tuple(sorted(tuple(sorted(group)) for group in groups))


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
