"""Switching of a posterior's labels: modulo what is declared or given, and what the draws themselves show.

What is declared is divided out first, and the search looks for the rest. A network's labels are known from its
architecture, so that nothing is searched for there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from onebasin.models.symmetry.blocks import (
    Block,
    Exchangeable,
    Rotation,
    Symmetry,
    axes_of,
    blocks_of,
)
from onebasin.models.symmetry.plain import plain_view
from onebasin.posteriors.view import as_view

from ..alignment.rotations import UnclearRotation
from ..alignment.switching import Separation, least_apart, one_labelling
from ..discovery.candidate import Candidate, of_few_places
from ..discovery.density import LeavesPosterior
from ..discovery.discover import discover
from ..discovery.partial import companions, nearly_exchangeable, ties_chains
from ..discovery.resolve import judged, with_quantities
from ..summaries.summary import summary
from .aligned import diagnose_aligned, mixed_again
from .invariants import invariants
from .measure import Facts, gather, measure
from .result import AlignedDiagnosis

ALIKE = 4.0
"""Monte Carlo errors by which means of components may differ where all have one and the same posterior."""
CLEAR, CLEAR_PAIR = 0.4, 0.33
"""Variance that alignment leaves, over what it leaves of noise, below which components are apart; of two of them."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Known facts about labels, whose `state` is one of five.

    ``none``: no switching is seen; ``stay``: a symmetry is declared, and all draws have one labelling; ``switch``:
    labels switch, and alignment sorts them; ``overlap``: they switch, and components overlap or turn into one another;
    ``partial``: they switch, together with quantities that cannot be moved along, so that nothing is aligned.
    """

    state: Literal["none", "stay", "switch", "overlap", "partial"]
    facts: Facts  # modulo the symmetry
    declared: Symmetry = ()  # or given, and divided out
    found: tuple[Candidate, ...] = ()  # what else the draws show, to align by or overlapping
    aligned: AlignedDiagnosis | None = None
    looked: bool = True
    reason: str = ""  # why alignment would leave the posterior, in a sentence
    turning: tuple[str, ...] = ()  # variables whose components turn, and are not aligned
    unclear: str = ""  # why varimax has no clear optimum for declared rotations, in a sentence
    doubtful: bool = False  # components only because the same chains differ in them
    near: tuple[str, ...] = ()  # variables of components whose weights are broken off a stick
    unclear_pair: Separation | None = (
        None  # components of one mode that aligned draws do not tell apart
    )

    @cached_property
    def invariants(self) -> pd.DataFrame:
        """Numbers of label-free quantities."""
        if self.aligned is not None:
            return self.aligned.invariants
        return summary(invariants(self.facts.view, self.symmetry))

    @property
    def words(self) -> tuple[str, ...]:
        """Texts to declare."""
        return () if self.reason else tuple(c.word for c in self.found)

    @property
    def few_places(self) -> tuple[Candidate, ...]:
        """Give what draws alone show by the components alone that change places, where others do not."""
        return () if self.facts.view.log_density else of_few_places(self.found)

    @property
    def symmetry(self) -> Symmetry:
        """Everything that moves."""
        return (*self.declared, *(candidate.block for candidate in self.found))

    @property
    def rotated(self) -> tuple[str, ...]:
        """Variables that alignment rotated to simple structure."""
        done = blocks_of(self.declared, Rotation) if self.aligned is not None else ()
        return tuple(name for block in done for name in block.variables)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of what moves, in the posterior's order."""
        moved = {name for block in self.symmetry for name in block.variables} | {*self.near}
        return tuple(name for name in self.facts.view.variables if name in moved)


def look_for_labels(facts: Facts, declared: Symmetry, **options: Any) -> Labels:
    """Divide out what is declared, and look for what else switches.

    `declared` are blocks that make equal modes, all of whose variables decide; `options` are those of
    `diagnose_aligned`.
    """
    if not declared:
        return _near(facts) or _told_apart(_search(facts, facts, (), None, options))
    try:
        aligned = diagnose_aligned(facts.view, declared, raw=facts.raw, **options)
    except UnclearRotation as refusal:
        others = tuple(block for block in declared if block.discrete is block)
        rest = look_for_labels(facts, others, **options)
        turning = tuple(n for block in blocks_of(declared, Rotation) for n in block.variables)
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
    names = {name for block in aligned.alignment.symmetry for name in block.variables}
    moved = {n: view.values(n)[:, :: facts.step] for n in facts.values if n in names}
    after = facts.moved(
        {n: np.asarray(np.where(np.isfinite(v), v, 0.0), np.float64) for n, v in moved.items()}
    )
    if facts.view.network is not None:
        return Labels(_state(facts, declared, ()), after, declared, aligned=aligned)
    return _told_apart(_search(facts, after, declared, aligned, options))


def _told_apart(labels: Labels) -> Labels:
    """Judge whether sorted components are apart, or more than the data tell apart: then no labels sort them."""
    if labels.state != "switch" or labels.aligned is None:
        return labels
    pair = least_apart(labels.aligned.alignment)
    if pair is None or pair.left < (CLEAR if pair.turned else CLEAR_PAIR):
        return labels
    return replace(labels, state="overlap", unclear_pair=pair)


def _near(facts: Facts) -> Labels | None:
    """Labels of weights that are broken off a stick, where chains disagree about them; no alignment undoes these."""
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
    # What is declared already, or was aligned by, is no news.
    was = facts.view.declared_symmetry if facts.view.is_aligned else ()
    old = {name for block in (*declared, *was) for name in block.variables}
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
    if certain and reason and alone:  # it only looks like labels
        certain = rest = ()
    if certain and reason:
        tied = ties_chains(certain)
        return Labels("partial", after, declared, certain, aligned, reason=reason, doubtful=tied)
    for candidate in certain:
        after = after.moved(candidate.values)
    # Of candidates that overlap the first is reported, and with certain ones those that turn: no label sorts these.
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
    moved = {name for block in declared for name in block.variables}
    seen = tuple(c for c in _discover(facts) if moved & c.values.keys())
    state, turning = _state(facts, declared, seen), _turning(seen)
    if state == "overlap" and not seen and aligned is not None:
        gain = aligned.switching  # the search looks at no single entry that becomes its complement
        state = "switch" if gain.ratio < CLEAR * (gain.noise_ratio or 0) else state
    if state == "switch" and not seen and aligned and one_labelling(aligned.alignment) is not None:
        state = "stay"  # what differs between chains is no label
    return Labels(state, after, declared, aligned=aligned, turning=turning)


def _sorted(facts: Facts) -> Labels:
    """Judge draws in which nothing switches: aligned ones by whether alignment would find their labels once mixed."""
    view, values = facts.view, facts.values
    was = tuple(b for b in view.declared_symmetry if b.keeps_density and b.discrete is b)
    was = tuple(b for b in was if values.keys() >= {*b.variables})
    if not was or not view.is_aligned or view.network is not None:
        return Labels("none", facts)
    mixed = mixed_again(values, was)
    state = look_for_labels(gather(mixed, measure(mixed)), was).state
    return Labels("overlap", facts, was) if state == "overlap" else Labels("none", facts)


def _turning(candidates: tuple[Candidate, ...]) -> tuple[str, ...]:
    """Variables of the first candidate that turns."""
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
    """Judge by the draws what a declared symmetry's labels do."""
    if seen:
        return "switch" if all(candidate.certain for candidate in seen) else "overlap"
    known = {name for block in declared for name in block.variables}
    moved = before.table["variable"].isin(known)
    if (before.table.loc[moved, "rhat"] > before.rhat_limit).any():
        return "switch"
    return "overlap" if all(_alike(block, before) for block in declared) else "stay"


def _alike(block: Block, facts: Facts) -> bool:
    """Tell whether components have equal means, up to Monte Carlo errors: all of them are one posterior's, or zero."""
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
