"""Label switching, under the declared or given symmetry and as the draws themselves show it.

Declared symmetries are aligned first, then the draws are searched for others. Networks need no search, because their
symmetry follows from the architecture. R-hat of aligned draws is optimistic, because every chain helped to fit the
reference. So label-free quantities are judged too, and groups of chains that still disagree are reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import numpy as np
import pandas as pd

from onebasin.models.symmetry.blocks import (
    Block,
    Exchangeable,
    Group,
    Rotation,
    Symmetry,
    axes_of,
    blocks_of,
    equal_modes,
    in_shell,
    spell,
    spelt_options,
    variables_of,
)
from onebasin.models.symmetry.plain import plain_view
from onebasin.posteriors.draws import Draws, event_shapes
from onebasin.posteriors.view import Posterior, as_view

from ..alignment import align, switching
from ..alignment.features import UnclearRotation
from ..alignment.switching import Separation, least_apart, one_labelling
from ..discovery.candidates import Candidate, companions, nearly_exchangeable, ties_chains
from ..discovery.discover import discover
from ..discovery.resolve import LeavesPosterior, judged, resolve, with_quantities
from ..summaries.summary import rhats, summary
from .invariants import invariants
from .measure import Facts, Measured, gather, measure
from .result import APART, AlignedDiagnosis
from .verdict import Answer, ended, listed

MIXED = 1000
"""Maximum number of draws per chain that get random labels as a test."""
ALIKE = 4.0
"""Largest difference, in Monte Carlo errors, between means of components that count as equal."""
CLEAR, CLEAR_PAIR = 0.4, 0.33
"""Ratio of the variance after alignment to its value for noise, below which all components (`CLEAR`) or two of them
(`CLEAR_PAIR`) are distinct."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The state of labels and the evidence for it.

    ``none``: no switching was seen. ``stay``: a symmetry is declared, but all draws have one labelling. ``switch``:
    labels switch, and alignment sorts them. ``overlap``: labels switch, and components overlap or turn into one
    another. ``partial``: labels switch together with quantities that cannot be moved, so nothing is aligned.
    """

    state: Literal["none", "stay", "switch", "overlap", "partial"]
    facts: Facts  # After alignment.
    declared: Symmetry = ()  # Declared or given blocks.
    found: tuple[Candidate, ...] = ()  # Other blocks found in the draws.
    aligned: AlignedDiagnosis | None = None
    looked: bool = True
    reason: str = ""  # Why alignment would change the posterior, as a sentence.
    turning: tuple[str, ...] = ()  # Variables with rotating components that are not aligned.
    unclear: str = ""  # Why varimax has no clear optimum for declared rotations, as a sentence.
    doubtful: bool = False  # The only evidence is that the same chains differ.
    near: tuple[str, ...] = ()  # Variables of components with stick-breaking weights.
    unclear_pair: Separation | None = None  # Components that stay indistinct.

    @cached_property
    def invariants(self) -> pd.DataFrame:
        """A table of label-free quantities."""
        if self.aligned is not None:
            return self.aligned.invariants
        return summary(invariants(self.facts.view, self.symmetry))

    @property
    def words(self) -> tuple[str, ...]:
        """Declarations of the found blocks."""
        return () if self.reason else tuple(c.word for c in self.found)

    @property
    def symmetry(self) -> Symmetry:
        """All blocks, declared or found."""
        return (*self.declared, *(candidate.block for candidate in self.found))

    @property
    def rotated(self) -> tuple[str, ...]:
        """Variables that alignment rotated to simple structure."""
        done = blocks_of(self.declared, Rotation) if self.aligned is not None else ()
        return variables_of(done)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables that move, in the posterior's order."""
        moved = {*variables_of(self.symmetry)} | {*self.near}
        return tuple(name for name in self.facts.view.variables if name in moved)


def look_for_labels(facts: Facts, declared: Symmetry, **options: Any) -> Labels:
    """Align by the declared blocks, which create equal modes, and search for others.

    `options` are passed to `diagnose_aligned`.
    """
    if not declared:
        return _near(facts) or _told_apart(_search(facts, facts, (), None, options))
    try:
        aligned = diagnose_aligned(facts.view, declared, raw=facts.raw, **options)
    except UnclearRotation as refusal:
        others = tuple(block for block in declared if block.discrete is block)
        rest = look_for_labels(facts, others, **options)
        turning = variables_of(blocks_of(declared, Rotation))
        found = tuple(c for c in rest.found if not c.values.keys() & {*turning})
        return replace(
            rest,
            state="partial" if rest.state == "partial" and found else "overlap",
            declared=declared,
            found=found,
            aligned=None,
            turning=turning,
            unclear=refusal.reason,
        )
    view = as_view(aligned.alignment.posterior)
    names = {*variables_of(aligned.alignment.symmetry)}
    moved = {n: view.values(n)[:, :: facts.step] for n in facts.values if n in names}
    after = facts.moved(
        {n: np.asarray(np.where(np.isfinite(v), v, 0.0), np.float64) for n, v in moved.items()}
    )
    if facts.view.network is not None:
        return Labels(_state(facts, declared, ()), after, declared, aligned=aligned)
    return _told_apart(_search(facts, after, declared, aligned, options))


def _told_apart(labels: Labels) -> Labels:
    """Change the state to ``overlap`` if two sorted components are not distinct."""
    if labels.state != "switch" or labels.aligned is None:
        return labels
    pair = least_apart(labels.aligned.alignment)
    if pair is None or pair.left < (CLEAR if pair.turned else CLEAR_PAIR):
        return labels
    return replace(labels, state="overlap", unclear_pair=pair)


def _near(facts: Facts) -> Labels | None:
    """Return labels of stick-breaking weights if chains disagree on them. Alignment cannot fix such labels."""
    found = nearly_exchangeable(facts.view) if facts.raw.variational is None else {}
    own = facts.table["variable"].isin(found)
    if not (facts.table.loc[own, "rhat"] > facts.rhat_limit).any():
        return None
    block = Exchangeable({name: axes[0] for name, axes in found.items() if axes})
    return Labels("overlap", facts, (block,), near=tuple(found))


def _search(
    facts: Facts,
    after: Facts,
    declared: Symmetry,
    aligned: AlignedDiagnosis | None,
    options: dict[str, Any],
) -> Labels:
    # Ignore blocks that are declared or by which the draws were already aligned.
    was = facts.view.declared_symmetry if facts.view.is_aligned else ()
    old = {*variables_of((*declared, *was))}
    rest = tuple(c for c in _discover(after) if not old & c.values.keys())
    certain = tuple(candidate for candidate in rest if candidate.certain)
    reason, alone = "", False
    if rest:
        chosen, reason, alone = judged(facts.view, certain or rest[:1], after.values)
        certain = chosen if certain else ()
    if certain and not reason:
        known = tuple(facts.values)
        certain = tuple(with_quantities(facts.view, each, known) for each in certain)
        blocks = (*declared, *(candidate.block for candidate in certain))
        try:
            aligned = diagnose_aligned(facts.view, blocks, noise=False, raw=facts.raw, **options)
        except LeavesPosterior as refusal:
            reason = refusal.reason
            alone = not companions(certain, after.values)
    if certain and reason and alone:  # These are not labels after all.
        certain = rest = ()
    if certain and reason:
        tied = ties_chains(certain)
        return Labels("partial", after, declared, certain, aligned, reason=reason, doubtful=tied)
    for candidate in certain:
        after = after.moved(candidate.values)
    # Report the first overlapping candidate, but next to certain ones only if it rotates: no labelling sorts it then.
    open_ = tuple(each for each in rest if not each.certain and (each.turns or not certain))[:1]
    if open_:
        after = after.moved(open_[0].values)
        found, turning = (*certain, *open_), _turning(open_)
        return Labels("overlap", after, declared, found, aligned, reason=reason, turning=turning)
    if certain:
        return Labels("switch", after, declared, certain, aligned)
    if not declared:
        return _sorted(after)
    if blocks_of(declared, Rotation):
        return Labels("switch", after, declared, aligned=aligned)
    moved = {*variables_of(declared)}
    seen = tuple(c for c in _discover(facts) if moved & c.values.keys())
    state, turning = _state(facts, declared, seen), _turning(seen)
    if state == "overlap" and not seen and aligned is not None:
        gain = aligned.switching  # The search ignores single complements.
        state = "switch" if gain.ratio < CLEAR * (gain.noise_ratio or 0) else state
    if state == "switch" and not seen and aligned and one_labelling(aligned.alignment) is not None:
        state = "stay"  # The chains differ, but not in their labels.
    return Labels(state, after, declared, aligned=aligned, turning=turning)


def _sorted(facts: Facts) -> Labels:
    """Judge draws without switching. If they were aligned, test whether alignment recovers random labels."""
    view, values = facts.view, facts.values
    was = tuple(b for b in view.declared_symmetry if b.keeps_density and b.discrete is b)
    was = tuple(b for b in was if values.keys() >= {*b.variables})
    if not was or not view.is_aligned or view.network is not None:
        return Labels("none", facts)
    # Assign random labels to the moved variables.
    own = {n: values[n] for n in variables_of(was)}
    own = {n: drawn[:, :: -(-drawn.shape[1] // MIXED)] for n, drawn in own.items()}
    group = Group(was, {name: drawn.shape[2:] for name, drawn in own.items()})
    random = group.random(np.random.default_rng(0), next(iter(own.values())).shape[:2])
    mixed = as_view(group.act(random, own))
    state = look_for_labels(gather(mixed, measure(mixed)), was).state
    return Labels("overlap", facts, was) if state == "overlap" else Labels("none", facts)


def _turning(candidates: tuple[Candidate, ...]) -> tuple[str, ...]:
    """Return the variables of the first candidate whose components rotate."""
    turns = next((each for each in candidates if each.turns), None)
    return () if turns is None else tuple(slot.name for slot in turns.slots)


def _discover(facts: Facts) -> tuple[Candidate, ...]:
    known = {
        name: facts.table["rhat"].reindex(list(entries)).to_numpy()
        for name, entries in facts.names.items()
    }
    return discover(facts.values, known=known, independent=facts.view.is_independent)


def _state(
    before: Facts, declared: Symmetry, seen: tuple[Candidate, ...]
) -> Literal["stay", "switch", "overlap"]:
    """Decide from the draws whether the labels of a declared symmetry switch."""
    if seen:
        return "switch" if all(candidate.certain for candidate in seen) else "overlap"
    known = {*variables_of(declared)}
    moved = before.table["variable"].isin(known)
    if (before.table.loc[moved, "rhat"] > before.rhat_limit).any():
        return "switch"
    return "overlap" if all(_alike(block, before) for block in declared) else "stay"


def _alike(block: Block, facts: Facts) -> bool:
    """Check whether components have equal means (zero if signs flip) within Monte Carlo errors."""
    shapes = {n: v.shape[2:] for n, v in facts.values.items() if n in block.variables}
    measured = block.restricted(shapes)
    if measured is None:
        return True
    rows = {n: facts.raw.parameters.reindex(list(facts.names[n])) for n in shapes}
    view = plain_view((measured,), shapes)
    means, errors = (
        view.stack({n: rows[n][c].to_numpy().reshape(s) for n, s in shapes.items()}, 0)
        for c in ("mean", "mcse_mean")
    )
    (plain,) = view.blocks
    for name in plain.variables:
        mean, centre = means[name], np.array(0.5 if name in plain.complemented else 0.0)
        if name in plain.axes.keys() - {*plain.flipped, *plain.complemented}:
            centre = mean.mean(axis=axes_of(plain.axes[name]), keepdims=True)
        if (np.abs(mean - centre) > ALIKE * np.abs(errors[name])).any():
            return False
    return True


def diagnose_aligned(
    posterior: Posterior,
    symmetry: Symmetry | None = None,
    *,
    noise: bool = True,
    progress: Callable[[int, int], None] | None = None,
    raw: Measured | None = None,
    **options: Any,
) -> AlignedDiagnosis:
    """Diagnose a posterior before and after alignment by a symmetry, by default the declared one.

    Positive scalings are not symmetries of a posterior. `noise` adds a comparison with the alignment of shuffled draws,
    which doubles the time. Pass `raw`, the statistics of the draws as sampled, if you have already computed them.
    `options` are passed to `align`.
    """
    view = as_view(posterior)
    declared = resolve(view, symmetry).blocks
    blocks = equal_modes(declared)
    alignment = align(view, blocks, progress=progress, **options)
    aligned_view = as_view(alignment.posterior)
    moved = variables_of(blocks)
    if raw is None or not set(moved) <= set(raw.variables):
        raw = measure(view)
    aligned = measure(aligned_view, var_names=moved, limits=raw.limits)
    integers = [name for name in alignment.allocations if name in raw.variables]
    before = raw.parameters["sd"].reindex(aligned.parameters.index)
    return AlignedDiagnosis(
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
        numbered=summary(aligned_view.draws(integers)) if integers else pd.DataFrame(),
        caveat=alignment.caveat,
    )


def _basins(draws: Draws) -> tuple[tuple[int, ...], ...]:
    """Group chains that agree, directly or through other chains, by the R-hat of every parameter.

    A group grows by comparing its new members with chains that have no group yet. If all chains agree, only the first
    chain is compared with the others.
    """
    left, groups = list(range(draws.num_chains)), []
    while left:
        group: list[int] = []
        joined = {left[0]}
        while joined:
            group += joined
            left = [chain for chain in left if chain not in joined]
            alike = set(product(joined, left))
            for values in draws.blocks() if alike else ():  # Save memory.
                alike -= {pair for pair in alike if (rhats(values[list(pair)]) > APART).any()}
            joined = {chain for _, chain in alike}
        groups.append(tuple(sorted(group)))
    return tuple(sorted(groups))


def declared_blocks(facts: Facts, given: Symmetry | None) -> Symmetry:
    """Choose the blocks to align by: the given ones, or declared ones whose variables were all measured."""
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


UNSEEN, SORTED = "No label switching seen", "Labels switch; alignment sorts them"


def use_label_free(why: str) -> str:
    """Say that you may use only label-free quantities, and why."""
    return f"Use only label-free quantities: predictions, densities, sums over components. {why}"


def overlap(labels: Labels) -> str:
    """Explain why alignment cannot distinguish the components."""
    names, only = listed(labels.variables), "alignment can only sort them, not tell which is which."
    found = next((candidate for candidate in labels.found if not candidate.certain), None)
    if labels.turning:
        if labels.unclear:
            return ended(labels.unclear)
        return f"Components of {listed(labels.turning)} turn into one another: {only}"
    if found is not None and found.size > 1:
        first, second = found.closest
        apart = f" ({first} and {second} are {found.distance:.1f} sds apart)"
        return f"Components of {names} overlap{apart if first != second else ''}: {only}"
    if (pair := labels.unclear_pair) and pair.turned:
        return (
            f"Component {pair.first} of `{pair.turned}` looks like noise that alignment has sorted: there are more "
            "components than the data need. Fit one component fewer."
        )
    if pair:
        return (
            f"Aligned draws do not tell components {pair.first} and {pair.second} of {names} apart: they overlap, or "
            "there are more components than the data need."
        )
    if labels.near:
        return (
            f"Labels of {names} are at best nearly exchangeable: the likelihood has no order, but stick-breaking "
            "weights do. No alignment leaves the posterior unchanged. Identify the large components by your own rule, "
            "such as the order of their means."
        )
    if labels.state == "switch":
        agree = "while label-free quantities agree."
        return f"Alignment does not bring the chains' {names} together, {agree}"
    return f"Labels of {names} switch, and the components overlap: {only}"


def labels_remedy(
    labels: Labels, answer: Answer, *, heights: bool = True, sorts: bool = True
) -> str:
    """Advise what to do about labels, naming only remedies that were tried and work.

    `heights`: the log density agrees between chains. `sorts`: chains agree after alignment.
    """
    options = spelt_options(labels.words) if labels.words else ""
    align = f"aligned draws: `ob.align(posterior)`, or `{_command(labels)}`"
    loadings = (labels.turning or labels.variables or ("L",))[0]
    unturned = f"Use quantities that no rotation changes, such as `{loadings} {loadings}'`"
    if labels.turning:
        declare = f"or declare the rotation by {options} and align by it; "
        return (
            f"{unturned}; {declare if options and not labels.unclear else ''}or fix the rotation in the model: "
            "loadings with zeros above a positive diagonal."
        )
    if labels.rotated and answer == "aligned":
        return (
            f"{unturned}. For the components use {align}; varimax "
            "chooses their rotation, not the data."
        )
    if labels.state == "overlap" or answer in ("invariant", "partly"):
        look = f"To inspect the components anyway, align them by {options}. "
        return (
            f"{look if options else ''}Use label-free quantities, or distinguish the components in the model by an "
            "order or by different priors."
        )
    if answer != "aligned" and not heights:
        return "The chains' log densities differ, which labels do not explain: remove the other cause first."
    if answer != "aligned" and not sorts:
        return "Alignment does not bring the chains together: remove the other cause first."
    if not options:
        return f"Use {align}."
    return f"Use {align}. Declare them before the next run by {options}, and onebasin checks them on the log density."


def _command(labels: Labels) -> str:
    """Write the command that aligns a posterior, naming its file if there is one."""
    view = labels.facts.view
    if not view.folders or not Path(view.argument).exists():
        return "onebasin align"
    given = labels.declared
    given = () if not given or resolve(view, given).in_file else given
    options = "".join(f" --exchangeable {in_shell(spell(block))}" for block in given)
    return f"onebasin align {quote(view.argument)}{options} --out aligned.nc"


def labels_move(labels: Labels) -> str:
    """Describe how components move under the symmetry."""
    names, together = listed(labels.variables), len(labels.variables) > 1
    if turning := labels.turning or labels.rotated:
        return f"The components of {listed(turning)} turn into one another"
    whole = labels.symmetry and not any(block.axes for block in labels.symmetry)
    if whole and all(block.flipped for block in labels.symmetry):
        return f"{names} change sign together" if together else f"{names} changes sign"
    if whole and all(set(block.variables) == set(block.complemented) for block in labels.symmetry):
        return f"{names} or 1 minus {'them' if together else 'it'} cannot be told apart"
    return f"The components of {names} change places"


def stay(labels: Labels, caveat: str = "") -> str:
    """Say that no labels switch."""
    fact = f"All draws have one labelling of {listed(labels.variables)}."
    return f"{fact} {caveat}" if caveat else fact


def cannot_tell(labels: Labels) -> str:
    """Say that labels switch and that components cannot be distinguished."""
    names = listed(labels.variables)
    return f"Labels of {names} switch, and alignment cannot tell the components apart"
