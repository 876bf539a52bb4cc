"""Candidates for a block of a symmetry, and quantities that follow their labels.

Components may be separate parameters, such as `mu1` and `mu2`, or `a`, `b` with `c`, `d`. Parameters of one shape are
joined to a variable ``mu1~mu2`` with the components along its first axis; the search treats it like any other. Tuples
of three or more have names that differ only in a number, or exchange their means between chains. For two components,
every pair is tried that may follow the labels: if parameters disagree between chains, their sum agrees, or their
difference has two signs and is hardly ever near zero. Each of two probabilities may become the complement of the other,
``se~1-sp``.

A component may have quantities that no candidate moves: separate scalars (`mu1`, `mu2`), or a share on a different
scale (`eta` for `w`). Alignment without them would leave the posterior. The draws reveal such quantities: chains (or
draws) with one labelling agree on them, and others do not. If every chain has a different labelling, a quantity that
differs between chains may or may not follow the labels; it counts as one that does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int, Num
from scipy.sparse.csgraph import connected_components

from onebasin.models.symmetry.blocks import Block, Counterparts, Exchangeable, Flip, Rotation, spell
from onebasin.models.symmetry.exchangeable import Member
from onebasin.posteriors.view import View

from ..summaries.sampler import mean_errors
from ..summaries.summary import rhat_of_entries
from .sorting import Gain, Lens, Slot, Values, slots

Labels = Int[np.ndarray, "chain draw"]
"""Numbers of the draws' labellings."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Slots that move together, as a block of a symmetry; certain candidates can align draws."""

    slots: tuple[Slot, ...]  # In the order of the variables.
    gain: Gain
    certain: bool  # Otherwise its components overlap or turn into one another.
    turns: bool  # Continuous rotations, as of unidentified factors.
    values: Values  # The moved variables (chain, draw, *event), aligned.
    permutation: Int[np.ndarray, "chain draw component"]  # Constant if components turn.
    signs: Float[np.ndarray, "chain draw component"]
    closest: tuple[int, int] = (0, 1)  # The same component twice if its sign is least clear.
    distance: float = 0.0  # Between these two, in standard deviations.
    places: tuple[int, ...] = ()  # The components that change places, if others do not.

    @cached_property
    def labels(self) -> Labels:
        """The number of every draw's labelling."""
        return numbered(np.concatenate([self.permutation, self.signs], axis=2))

    @property
    def block(self) -> Block:
        """The candidate as a block of a symmetry."""
        if self.turns:  # Loadings usually have fewer entries than scores.
            slots = sorted(self.slots, key=lambda slot: self.values[slot.name].size)
            return Rotation({slot.name: slot.axes[0] for slot in slots})
        if self.places:
            rows = [
                tuple(f"{slot.name}[{':,' * slot.axes[0]}{place}]" for place in self.places)
                for slot in self.slots
            ]
            signed = zip(rows, (slot.signed for slot in self.slots), strict=True)
            own = tuple("~".join(row) for row, yes in signed if yes)
            return Counterparts(tuple(rows), flips=own or False)
        complements = tuple(slot.name for slot in self.slots if slot.complement)
        tuples = tuple(slot.members for slot in self.slots if slot.members)
        tuples += tuple((slot.name, f"-{slot.name}") for slot in self.slots if slot.reflected)
        moved = [slot for slot in self.slots if not (slot.mirrors or slot.members)]
        axes = {s.name: s.axes if len(s.axes) > 1 else s.axes[0] for s in moved if s.axes}
        flips = tuple(slot.name for slot in moved if slot.signed)
        if tuples:
            return Counterparts(tuples, axes, flips or False, complements)
        if not axes:
            return Flip(tuple(slot.name for slot in moved), complements)
        return Exchangeable(axes, len(flips) == len(moved) or flips or False, complements)

    @cached_property
    def few_places(self) -> Candidate | None:
        """The exchange of only those components that change places in the draws; None if all of them do."""
        flat = self.permutation.reshape(-1, self.size)
        rows, counts = np.unique(flat, axis=0, return_counts=True)
        changes = (self.permutation != rows[counts.argmax()]).mean(axis=(0, 1)) > 0.01
        plain = all(len(slot.axes) == 1 and not slot.members for slot in self.slots)
        if not plain or not 1 < changes.sum() < self.size:
            return None
        return replace(self, places=tuple(int(k) for k in np.flatnonzero(changes)))

    def among(
        self, places: Int[np.ndarray, " place"], whole: Values, size: int
    ) -> Candidate | None:
        """Extend an exchange of only some components to all components of the variables."""
        still = np.broadcast_to(np.arange(size), (*self.permutation.shape[:2], size))
        permutation, signs = still.copy(), np.ones(still.shape)
        permutation[..., places], signs[..., places] = places[self.permutation], self.signs
        values = {}
        for slot in self.slots:
            values[slot.name] = whole[slot.name].copy()
            front = np.moveaxis(values[slot.name], slot.axes[0] + 2, 0)
            front[places] = np.moveaxis(self.values[slot.name], slot.axes[0] + 2, 0)
        first, second = self.closest
        moved = replace(
            self,
            slots=tuple(replace(slot, size=size) for slot in self.slots),
            values=values,
            permutation=permutation,
            signs=signs,
            closest=(int(places[first]), int(places[second])),
        )
        return moved.few_places

    @property
    def word(self) -> str:
        """The text to declare with ``--exchangeable``."""
        return spell(self.block)

    @property
    def size(self) -> int:
        """Number of components; 1 if whole variables change sign."""
        return self.slots[0].size


def numbered(rows: Num[np.ndarray, "chain draw what"]) -> Labels:
    """Number the labellings that rows of whole numbers describe, by hashes of the rows."""
    weights = np.random.default_rng(0).integers(1, 2**62, size=rows.shape[-1])
    sums = (rows.astype(np.int64) * weights).sum(axis=-1)
    return np.unique(sums, return_inverse=True)[1].reshape(rows.shape[:2])


def of_chains(labels: Labels) -> tuple[Int[np.ndarray, " chain"], bool]:
    """Return the most frequent labelling of every chain, and whether nearly all draws have it."""
    of_chain = np.array([np.bincount(row).argmax() for row in labels])
    return of_chain, bool(np.mean(labels == of_chain[:, None]) > 0.95)


MOST = 40
"""Maximum number of parameters of one shape that are paired."""
NEAR = 0.5
"""Maximum distance of two parameters' means in different chains, in standard deviations within chains."""
ENTRIES = 64
"""Maximum number of entries of a parameter that belongs to one component."""
BOTH = 0.02
"""Share of a difference's rarer sign above which the sign may change with labels."""
APART = 0.25
"""A difference is bimodal if the variance of its absolute value, divided by its mean square, is below this value."""
RARE = 0.01
"""Share of draws up to which a labelling is ignored."""
TIED = 0.9
"""Minimum share of a labelling's draws with one corresponding labelling; it is below 1 because of overlap."""
MOSTLY = 0.7
"""Share of draws with their chain's labelling above which labels belong to chains; overlap hides it in some draws."""
_NUMBER = re.compile(r"\d+")
Tuples = tuple[tuple[str, ...], ...]


def tuples_of(values: Values, bad: Mapping[str, np.ndarray]) -> tuple[Tuples, Tuples]:
    """Choose tuples of parameters that may be components: those that seem to follow labels, and others.

    `bad` marks entries with a bad R-hat.
    """
    shapes: dict[tuple[int, ...], list[str]] = {}
    for name, drawn in values.items():
        if drawn[0, 0].size <= ENTRIES:
            shapes.setdefault(drawn.shape[2:], []).append(name)
    first: list[tuple[str, ...]] = []
    others: list[tuple[str, ...]] = []
    for names in shapes.values():
        names = sorted(names, key=lambda name: not bad[name].any())[:MOST]
        pairs = list(combinations(sorted(names, key=list(values).index), 2))
        for a, b in pairs:
            either = bool(bad[a].any() or bad[b].any())
            shown = _may_switch(values[a], values[b], either)
            (first if shown else others).append((a, b))
            shares = all(values[n].min() > 0 and values[n].max() < 1 for n in (a, b))
            if shares and not shown and _may_switch(values[a], 1 - values[b], either):
                first.append((a, f"1-{b}"))
        numbered = tuple(families(names))
        known = {name for own in numbered for name in own}
        first += numbered
        first += _trading({n: values[n] for n in names if bad[n].any() and n not in known})
    return tuple(first), tuple(others)


def _trading(values: Values) -> Iterator[tuple[str, ...]]:
    """Yield groups of at least three parameters whose means are exchanged between chains."""
    flat = {n: v.reshape(*v.shape[:2], -1) for n, v in values.items()}
    means = {n: v.mean(axis=1) for n, v in flat.items()}
    near = np.zeros((len(flat), len(flat)), bool)
    for (i, a), (j, b) in combinations(enumerate(flat), 2):
        spread = np.maximum(flat[a].std(axis=1).mean(axis=0), flat[b].std(axis=1).mean(axis=0))
        traded = (np.abs(means[a][:, None] - means[b]) <= NEAR * spread).all(axis=2)
        near[i, j] = (traded.any(axis=0) & ~traded.diagonal()).any()
    count, of = connected_components(near, directed=False)
    groups = (tuple(n for n, k in zip(flat, of, strict=True) if k == own) for own in range(count))
    yield from (group for group in groups if len(group) > 2)


def families(names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield groups of at least three names that differ only in their last number."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    for name in names:
        if (last := _last_number(name)) is not None:
            common = name[: last.start()], name[last.end() :]
            found.setdefault(common, {})[int(last.group())] = name
    yield from (tuple(each[k] for k in sorted(each)) for each in found.values() if len(each) > 2)


def numbers_in(names: Iterable[str]) -> tuple[str, ...]:
    """Return the last numbers of names, such as 1 and 2, if the names differ in nothing else; otherwise empty."""
    last = {name: found for name in names if (found := _last_number(name)) is not None}
    common = {(name[: found.start()], name[found.end() :]) for name, found in last.items()}
    return tuple(found.group() for found in last.values()) if len(common) == 1 else ()


def _last_number(name: str) -> re.Match[str] | None:
    *_, last = [None, *_NUMBER.finditer(name)]
    return last


def _may_switch(
    a: Float[np.ndarray, "chain draw *event"], b: Float[np.ndarray, "chain draw *event"], bad: bool
) -> bool:
    """Check whether two parameters may be the same quantity of two components whose labels change."""
    flat = [v.reshape(*v.shape[:2], -1) for v in (a, b)]
    difference, total = flat[0] - flat[1], flat[0] + flat[1]
    below = (difference < 0).mean(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.abs(difference).var(axis=(0, 1)) / (difference**2).mean(axis=(0, 1))
        within = [v.var(axis=1).mean(axis=0) for v in (difference, total)]
        between = [v.mean(axis=1).var(axis=0) for v in (difference, total)]
        spread = [b / w for b, w in zip(between, within, strict=True)]
    seen = np.minimum(below, 1 - below) > BOTH
    seen &= (spread[0] > 10 * spread[1]) if bad else (apart < APART)
    return bool(seen.any())


def with_tuples(values: Values, tuples: Iterable[tuple[str, ...]]) -> dict[str, np.ndarray]:
    """Add every tuple as a variable (chain, draw, component, *event)."""
    read = {"~".join(own): [Member.read(text) for text in own] for own in tuples}
    stacked = {n: np.stack([m.of(values, 2) for m in own], axis=2) for n, own in read.items()}
    return {**values, **stacked}


def apart(slots: Iterable[Slot], moved: Values) -> dict[str, np.ndarray]:
    """Return moved variables under the names of the parameters."""
    out: dict[str, np.ndarray] = {}
    for slot in slots:
        if slot.members:
            for place, text in enumerate(slot.members):
                member = Member.read(text)
                out[member.name] = member.turned(moved[slot.name][:, :, place])
        else:
            out[slot.name] = moved[slot.name]
    return out


def are_tied(first: Labels, second: Labels) -> bool:
    """Check whether two labellings determine each other in nearly all draws, or chain by chain."""
    (one, alone), (other, also) = of_chains(first), of_chains(second)
    shares = (np.mean(first == one[:, None]), np.mean(second == other[:, None]))
    if (alone or also) and min(shares) > MOSTLY:
        first, second = one[:, None], other[:, None]
    pairs, counts = np.unique(np.stack([first.ravel(), second.ravel()]), axis=1, return_counts=True)
    partners: list[dict[int, int]] = []
    for own, other in (pairs, pairs[::-1]):
        sizes = {int(k): counts[own == k] for k in np.unique(own)}
        common = {k: each for k, each in sizes.items() if each.sum() > RARE * first.size}
        if len(common) < 2 or any(each.max() < TIED * each.sum() for each in common.values()):
            return False
        partners.append({k: int(other[own == k][each.argmax()]) for k, each in common.items()})
    there, back = partners
    return there == {theirs: ours for ours, theirs in back.items()}


AGREE = 1.05
"""R-hat up to which chains of one labelling agree."""
FEW = 50
"""Minimum number of draws of a labelling for a comparison of its mean."""
RUNS = 5
"""Minimum number of runs of a labelling for a comparison of its mean."""
ERRORS = 8.0
"""Standard errors by which means of two labellings within chains must differ."""
WIDER, SHIFT, UNLIKE_ERRORS = 1.15, 0.1, 6.0
"""Ratio of spreads, distance of means in standard deviations, and standard errors, above which labellings differ."""
FARTHEST = 32
"""Maximum number of entries whose means are compared, beginning with the most different ones."""
OVERLAP = 0.02
"""Share of pairs of draws with a different order above which components overlap."""
UNCORRELATED = 0.5
"""Difference of two labellings' correlations with aligned variables above which they are compared."""
SHARE = 0.05
"""Share of a quantity's variance between labellings above which it follows them."""


def companions(candidates: Sequence[Candidate], values: Values) -> tuple[str, ...]:
    """Name the variables (chain, draw, *event) that follow the labels of candidates without being moved."""
    moved = {name for candidate in candidates for name in candidate.values}
    labels = [candidate.labels for candidate in candidates]
    others = {n: v for n, v in values.items() if n not in moved}
    held = (name for each in candidates for name in tied(each.labels, each.values, others))
    return tuple(dict.fromkeys((*followers(labels, others), *held)))


def of_another(candidates: Sequence[Candidate], values: Values) -> tuple[str, ...]:
    """Name the variables of candidates with unclear labels that follow the labels of another candidate.

    Some of their components may move with it, such as two places of a simplex of three.
    """
    unclear = []
    for each in candidates:
        of_chain, _ = of_chains(each.labels)
        if np.mean(each.labels == of_chain[:, None]) <= MOSTLY:
            unclear.append(each)
    return tuple(
        name
        for each in unclear
        for one in candidates
        if one is not each
        for name in followers([one.labels], {n: values[n] for n in each.values}, sure=True)
    )


def is_mirrored_elsewhere(candidate: Candidate) -> bool:
    """Check whether variables that change as a whole still follow the labels, so another point mirrors them."""
    whole = {s.name: candidate.values[s.name] for s in candidate.slots if s.mirrors or not s.axes}
    return bool(followers([candidate.labels], whole))


def in_one_order(candidates: Sequence[Candidate], values: Values) -> tuple[str, ...]:
    """Name unmoved variables whose components overlap but ascend at every draw, so that they cannot change places."""
    sizes = {candidate.size for candidate in candidates} - {1}
    moved = {name for candidate in candidates for name in candidate.values}
    others = ((n, v) for n, v in values.items() if n not in moved and v.ndim == 3)
    found = []
    for name, drawn in others:
        flat = drawn.reshape(-1, drawn.shape[2])
        if drawn.shape[2] in sizes and (np.diff(flat) > 0).all():
            # Overlapping components of different draws would not ascend.
            mixed = np.roll(flat[:, :-1], len(flat) // 2, axis=0) > flat[:, 1:]
            found += [name] if mixed.mean() > OVERLAP else []
    return tuple(found)


def ties_chains(candidates: Sequence[Candidate]) -> bool:
    """Check whether only separate parameters move, and only between chains, which may lie in different modes."""
    tied = all(slot.members or not slot.axes for each in candidates for slot in each.slots)
    return tied and all(of_chains(each.labels)[1] for each in candidates)


def unlike(drawn: Float[np.ndarray, "chain draw *event"], labels: Labels) -> bool:
    """Check whether moved draws still differ between labellings, so that there is no symmetry."""
    of_chain, alone = of_chains(labels)
    flat = drawn.reshape(*drawn.shape[:2], -1)
    if not alone:
        return _within_chains(flat, labels)
    groups = [of_chain == label for label in np.unique(of_chain)]
    away = np.abs(flat - np.median(flat, axis=(0, 1)))
    size = (away / np.maximum(away.mean(axis=(0, 1)), 1e-300)).mean(axis=2)
    means = np.array([flat[group].mean(axis=(0, 1)) for group in groups])
    shift = np.ptp(means, axis=0) / np.maximum(flat.std(axis=1).mean(axis=0), 1e-300)
    far = [entry for entry in shift.argsort()[-FARTHEST:] if shift[entry] > SHIFT]
    return _differ(size, groups, WIDER) or any(_differ(flat[..., k], groups) for k in far)


def _differ(
    drawn: Float[np.ndarray, "chain draw"], groups: Sequence[np.ndarray], ratio: float = -np.inf
) -> bool:
    """Check whether means of groups of chains differ by more than their errors and by more than a ratio."""
    means = np.array([drawn[group].mean() for group in groups])
    square = mean_errors(drawn) ** 2
    each = drawn.mean(axis=1)
    between = [each[g].var(ddof=1) / g.sum() if g.sum() > 1 else 0.0 for g in groups]
    within = [square[g].sum() / g.sum() ** 2 for g in groups]
    error = np.sqrt(np.maximum(within, between).sum())
    wide = np.ptp(means) > UNLIKE_ERRORS * error
    return bool(wide and (ratio < 0 or means.max() > ratio * means.min()))


def followers(labels: Sequence[Labels], others: Values, *, sure: bool = False) -> tuple[str, ...]:
    """Name the variables that follow labels of draws; `sure` requires chains that agree."""

    def follows(drawn: np.ndarray, own: Labels) -> bool:
        of_chain, alone = of_chains(own)
        return _between_chains(drawn, of_chain, sure) if alone else _within_chains(drawn, own)

    flat = {n: v.reshape(*v.shape[:2], -1) for n, v in others.items()}
    return tuple(n for n, v in flat.items() if any(follows(v, each) for each in labels))


def recurring(labels: Labels) -> list[np.ndarray]:
    """Mark the draws of every labelling with enough draws; empty if there are fewer than two."""
    of_chain, alone = of_chains(labels)
    label = np.broadcast_to(of_chain[:, None], labels.shape) if alone else labels
    known = [own for own in (label == k for k in np.unique(label)) if own.sum() >= FEW]
    return known if len(known) > 1 else []


def tied(labels: Labels, aligned: Values, others: Values) -> tuple[str, ...]:
    """Name the variables whose correlation with aligned variables depends on the labelling.

    This reveals quantities of components even if their values are nearly equal in all components.
    """
    _, alone = of_chains(labels)
    # If labels belong to chains, centre each chain, so that separate chains do not count.
    about = np.arange(labels.size).reshape(labels.shape) // labels.shape[1] if alone else labels
    if not (known := recurring(labels)):
        return ()
    ours = np.concatenate([_standardised(v, about) for v in aligned.values()], axis=2)

    def is_tied(values: np.ndarray) -> bool:
        theirs = _standardised(values, about)
        low, high = np.inf, -np.inf
        for own in known:
            correlation = theirs[own].T @ ours[own] / own.sum()
            low, high = np.minimum(low, correlation), np.maximum(high, correlation)
        far = np.argwhere(high - low > UNCORRELATED)[:FARTHEST]
        products = theirs[..., far[:, 0]] * ours[..., far[:, 1]]
        return len(far) > 0 and bool(followers([labels], {"": products}, sure=True))

    return tuple(name for name, values in others.items() if is_tied(values))


def _standardised(
    values: Float[np.ndarray, "chain draw ..."], groups: Labels
) -> Float[np.ndarray, "chain draw entry"]:
    """Standardise the draws of each group; small groups become 0."""
    flat = values.reshape(*values.shape[:2], -1).astype(np.float64)
    out = np.zeros_like(flat)
    for k in np.unique(groups):
        if len(own := flat[groups == k]) >= FEW:
            sd = own.std(axis=0)
            out[groups == k] = (own - own.mean(axis=0)) / np.where(sd > 0, sd, np.inf)
    return out


def recorded_companions(view: View, variables: Iterable[str]) -> tuple[str, ...]:
    """Return recorded moves of some variables with others for which the search found no declaration.

    Each text is such as ``mu:0 and theta:0``; empty if nothing is recorded.
    """
    named = set(variables)
    recorded = (*_recorded(view, "incomplete"), *_recorded(view, "near"))
    every = [(moves, {*_moving(moves)}) for moves in recorded]
    return tuple(moves for moves, names in every if names & named and names - named)


def nearly_exchangeable(view: View) -> dict[str, tuple[int, ...]]:
    """Return the axes of components with stick-breaking weights, from the file's record or its numbers.

    The stick's lengths have no axis of components, but weights in the file have one. Without a record, take the weights
    that follow from the lengths, and every variable with one axis of the same length.
    """
    for moves in _recorded(view, "near"):
        found = {n: axes for n, axes in _moving(moves).items() if n in view.arrays}
        whole = [n for n, axes in found.items() if not axes and view.arrays[n].ndim == 3]
        if len(whole) == 1:
            return found | {n: (0,) for n in _broken_off(view, whole[0]) if n not in found}
    if view.found_symmetry:
        return {}
    for name, drawn in view.arrays.items():
        if drawn.ndim == 3 and drawn.dtype.kind == "f" and (weights := _broken_off(view, name)):
            count = view.arrays[weights[0]].shape[2]
            shapes = {n: view.arrays[n].shape[2:] for n in view.kinds.of if n != name}
            found = {n: (s.index(count),) for n, s in shapes.items() if s.count(count) == 1}
            return {name: (), **found}
    return {}


def _broken_off(view: View, lengths: str) -> list[str]:
    """Name the stick-breaking weights of these lengths, which are shares of the rest of the stick."""
    *lead, pieces = view.arrays[lengths].shape
    others = [n for n in view.kinds.of if view.arrays[n].shape == (*lead, pieces + 1)]
    sticks = np.asarray(view.values(lengths)) if others else np.full(1, np.nan)
    if not ((sticks >= 0) & (sticks <= 1)).all():
        return []
    ones = np.ones((*sticks.shape[:2], 1))
    left = np.concatenate([ones, np.cumprod(1.0 - sticks, axis=2)], axis=2)
    weights = np.concatenate([sticks, ones], axis=2) * left
    return [n for n in others if np.allclose(view.values(n), weights)]


def _recorded(view: View, status: str) -> Iterator[str]:
    """Yield the moves of blocks with a status in the record of the search before the run."""
    blocks = view.found_symmetry.get("blocks", ())
    return (str(each.get("moves", "")) for each in blocks if each.get("status") == status)


def _moving(moves: str) -> dict[str, tuple[int, ...]]:
    """Parse names and axes in a text such as ``mu:0, +-load:1 and 1-theta``."""
    words = [word.strip("() ") for word in moves.replace(" and ", ", ").split(",")]
    parts = (word.removeprefix("+-").removeprefix("1-").split(":") for word in words)
    return {name: tuple(int(axis) for axis in axes if axis.isdigit()) for name, *axes in parts}


def _between_chains(
    drawn: Float[np.ndarray, "chain draw entry"], of_chain: Int[np.ndarray, " chain"], sure: bool
) -> bool:
    """Check whether an entry differs between chains but agrees among the chains of each labelling."""
    different = set(of_chain.tolist())
    if len(different) < 2 or (sure and len(different) == len(of_chain)):
        return False
    bad = rhat_of_entries(drawn) > AGREE
    for label in different:
        chains = drawn[of_chain == label]
        if len(chains) > 1:
            bad &= ~(rhat_of_entries(chains) > AGREE)
    return bool(bad.any())


def _within_chains(drawn: Float[np.ndarray, "chain draw entry"], labels: Labels) -> bool:
    """Check whether an entry's mean depends on the labelling of the draw.

    A run of draws with one labelling counts once, because a slow entry can follow slow label changes by chance.
    """
    flat, of_draw = drawn.reshape(-1, drawn.shape[2]), labels.ravel()
    new = of_draw[1:] != of_draw[:-1]
    new[labels.shape[1] - 1 :: labels.shape[1]] = True
    first = np.concatenate([[0], np.flatnonzero(new) + 1])
    runs = of_draw[first]
    known = [
        k for k in np.unique(of_draw) if (runs == k).sum() >= RUNS and (of_draw == k).sum() >= FEW
    ]
    if len(known) < 2:
        return False
    with np.errstate(over="ignore", invalid="ignore"):  # Squares near 1e300 overflow.
        sizes = np.array([(of_draw == label).sum() for label in known], np.float64)[:, None]
        means = np.stack([flat[of_draw == label].mean(axis=0) for label in known])
        sums = [
            np.add.reduceat(np.where((of_draw == k)[:, None], flat - mean, 0.0), first)
            for k, mean in zip(known, means, strict=True)
        ]
        errors = np.sqrt([(each**2).sum(axis=0) for each in sums]) / sizes
        far = np.ptp(means, axis=0) > ERRORS * errors.max(axis=0)
        centre = (sizes * means).sum(axis=0) / sizes.sum()
        between = (sizes * (means - centre) ** 2).sum(axis=0) / sizes.sum()
        total = flat.var(axis=0)
        return bool((far & (between > SHARE * np.where(total > 0, total, np.inf))).any())


FEW_PARTS, EVENLY, TWO_SIDED = 16, 0.2, 0.2
"""Maximum number of components for a search of exchanged pairs, and limits on the difference of such a pair, relative
to its mean square: on the squared mean, and on the variance of the absolute value (0.36 for a Gaussian)."""


def exchanging(
    values: Mapping[str, Float[np.ndarray, "draw ..."]],
) -> Iterator[tuple[int, Int[np.ndarray, " place"]]]:
    """Find numbers of components, and groups of components that change places while others do not.

    Two such components differ equally often in both directions, and hardly ever by little.
    """
    pairs: dict[int, np.ndarray] = {}
    for slot in slots(values):
        if slot.signed or len(slot.axes) != 1 or not 2 < slot.size <= FEW_PARTS:
            continue
        features = Lens.of(slot, values[slot.name])(values[slot.name])
        if not features.size:  # Squares overflow.
            continue
        found = pairs.setdefault(slot.size, np.eye(slot.size, dtype=bool))
        for first, second in combinations(range(slot.size), 2):
            apart = features[:, first] - features[:, second]
            along = apart @ np.linalg.svd(apart, full_matrices=False)[2][:1].T
            square = np.mean(along**2)
            two_sided = np.abs(along).var() < TWO_SIDED * square
            found[first, second] |= two_sided and along.mean() ** 2 < EVENLY * square
    for size, own in pairs.items():
        if own.sum() == size:
            continue
        number, group = connected_components(own, directed=False)
        for places in (np.flatnonzero(group == each) for each in range(number)):
            if 1 < len(places) < size:
                yield size, places
