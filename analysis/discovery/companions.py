"""Quantities that follow a candidate's labels and that it does not move: to align by it would leave the posterior.

A component may have quantities that no candidate moves: scalars of their own (`mu1`, `mu2`), or a share on another
scale (`eta` for `w`). They show in the draws: chains (or draws) with one labelling agree on them, and others do not.
Where every chain has a labelling of its own, nobody can tell whether a quantity that differs between chains follows the
labels; it counts as one that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from onebasin.posteriors.view import View

from ..summaries.judged_draws import rhat_of_entries
from ..summaries.sampler import mean_errors
from .candidates import MOSTLY, Candidate
from .slots import Labels, Values, of_chains

AGREE = 1.05
"""R-hat up to which chains of one labelling agree."""
FEW = 50
"""Draws of a labelling below which its mean is not compared."""
RUNS = 5
"""Stretches of a labelling below which its mean is not compared."""
ERRORS = 8.0
"""Standard errors by which means of two labellings within chains have to differ."""
WIDER, SHIFT, UNLIKE_ERRORS = 1.15, 0.1, 6.0
"""Ratio of spreads of two labellings, distance of means in standard deviations, and standard errors between them, from
which on labellings are unlike."""
FARTHEST = 32
"""Entries whose means are compared at most: those that are farthest apart."""
OVERLAP = 0.02
"""Share of pairs of draws in which parts are in another order, from which on they overlap."""
UNCORRELATED = 0.5
"""Difference of two labellings' correlations with what was aligned, from which on they are compared."""
SHARE = 0.05
"""Share of a quantity's variance that lies between labellings from which on it follows them."""


def companions(candidates: Sequence[Candidate], values: Values) -> tuple[str, ...]:
    """Name the variables (chain, draw, *event) that follow the labels of candidates and that none of them moves."""
    moved = {name for candidate in candidates for name in candidate.values}
    labels = [candidate.labels for candidate in candidates]
    others = {n: v for n, v in values.items() if n not in moved}
    held = (name for each in candidates for name in tied(each.labels, each.values, others))
    return tuple(dict.fromkeys((*followers(labels, others), *held)))


def of_another(candidates: Sequence[Candidate], values: Values) -> tuple[str, ...]:
    """Name the variables of candidates without clear labels of their own that follow those of another candidate.

    Some of their components may move with it, as two places of a simplex of three do.
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
    """Tell whether variables that change as a whole still follow the labels: if any, another point mirrors it."""
    whole = {s.name: candidate.values[s.name] for s in candidate.slots if s.mirrors or not s.axes}
    return bool(followers([candidate.labels], whole))


def in_one_order(candidates: Sequence[Candidate], values: Values) -> tuple[str, ...]:
    """Name unmoved variables whose parts, as many, overlap and ascend at every draw: these cannot change places."""
    sizes = {candidate.size for candidate in candidates} - {1}
    moved = {name for candidate in candidates for name in candidate.values}
    others = ((n, v) for n, v in values.items() if n not in moved and v.ndim == 3)
    found = []
    for name, drawn in others:
        flat = drawn.reshape(-1, drawn.shape[2])
        if drawn.shape[2] in sizes and (np.diff(flat) > 0).all():
            # They would not ascend if one of them were another draw's.
            mixed = np.roll(flat[:, :-1], len(flat) // 2, axis=0) > flat[:, 1:]
            found += [name] if mixed.mean() > OVERLAP else []
    return tuple(found)


def ties_chains(candidates: Sequence[Candidate]) -> bool:
    """Tell whether only separate parameters move, and between chains alone, which may lie in different modes."""
    tied = all(slot.members or not slot.axes for each in candidates for slot in each.slots)
    return tied and all(of_chains(each.labels)[1] for each in candidates)


def unlike(drawn: Float[np.ndarray, "chain draw *event"], labels: Labels) -> bool:
    """Tell whether draws that were moved differ between labellings all the same, as no symmetry leaves them."""
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
    """Tell whether means of groups of chains differ by more than errors, and by more than a ratio."""
    means = np.array([drawn[group].mean() for group in groups])
    square = mean_errors(drawn) ** 2
    each = drawn.mean(axis=1)
    between = [each[g].var(ddof=1) / g.sum() if g.sum() > 1 else 0.0 for g in groups]
    within = [square[g].sum() / g.sum() ** 2 for g in groups]
    error = np.sqrt(np.maximum(within, between).sum())
    wide = np.ptp(means) > UNLIKE_ERRORS * error
    return bool(wide and (ratio < 0 or means.max() > ratio * means.min()))


def followers(labels: Sequence[Labels], others: Values, *, sure: bool = False) -> tuple[str, ...]:
    """Name the variables that follow labels of draws; where `sure`, chains that agree have to show it."""

    def follows(drawn: np.ndarray, own: Labels) -> bool:
        of_chain, alone = of_chains(own)
        return _between_chains(drawn, of_chain, sure) if alone else _within_chains(drawn, own)

    flat = {n: v.reshape(*v.shape[:2], -1) for n, v in others.items()}
    return tuple(n for n, v in flat.items() if any(follows(v, each) for each in labels))


def recurring(labels: Labels) -> list[np.ndarray]:
    """Mark the draws of every labelling that some draws share; none where fewer than two labellings do."""
    of_chain, alone = of_chains(labels)
    label = np.broadcast_to(of_chain[:, None], labels.shape) if alone else labels
    known = [own for own in (label == k for k in np.unique(label)) if own.sum() >= FEW]
    return known if len(known) > 1 else []


def tied(labels: Labels, aligned: Values, others: Values) -> tuple[str, ...]:
    """Name the variables whose correlation with aligned ones depends on the labelling, as no symmetry leaves it.

    It shows what belongs to a component where its values are much the same in all of them.
    """
    _, alone = of_chains(labels)
    # Between chains each is about its own mean, so that chains that are apart do not count.
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
    """Divide what is left of the mean of each group of draws by its standard deviation; 0 in a group of few."""
    flat = values.reshape(*values.shape[:2], -1).astype(np.float64)
    out = np.zeros_like(flat)
    for k in np.unique(groups):
        if len(own := flat[groups == k]) >= FEW:
            sd = own.std(axis=0)
            out[groups == k] = (own - own.mean(axis=0)) / np.where(sd > 0, sd, np.inf)
    return out


def recorded_companions(view: View, variables: Iterable[str]) -> tuple[str, ...]:
    """Name what moves with some variables as the file records it, where a search on the density found no word for all.

    A sentence part a symmetry, such as ``(mu1, mu2) and theta:0``; empty where nothing is recorded.
    """
    named = set(variables)
    recorded = (*_recorded(view, "incomplete"), *_recorded(view, "near"))
    every = [(moves, {*_moving(moves)}) for moves in recorded]
    return tuple(moves for moves, names in every if names & named and names - named)


def nearly_exchangeable(view: View) -> dict[str, tuple[int, ...]]:
    """Axes of components whose weights are broken off a stick, as the file records it or its numbers show.

    The lengths of a stick, of which weights are broken off, have no axis of components; weights in the file have one.
    Without a record these are weights that the lengths give, and every variable with one axis of as many entries.
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
    """Name the variables that are weights broken off a stick at these lengths, shares of what is left of it."""
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
    """Yield the moves of blocks of a status, as the search before the run recorded them."""
    blocks = view.found_symmetry.get("blocks", ())
    return (str(each.get("moves", "")) for each in blocks if each.get("status") == status)


def _moving(moves: str) -> dict[str, tuple[int, ...]]:
    """Names and axes in a text such as ``mu:0, +-load:1 and 1-theta``."""
    words = [word.strip("() ") for word in moves.replace(" and ", ", ").split(",")]
    parts = (word.removeprefix("+-").removeprefix("1-").split(":") for word in words)
    return {name: tuple(int(axis) for axis in axes if axis.isdigit()) for name, *axes in parts}


def _between_chains(
    drawn: Float[np.ndarray, "chain draw entry"], of_chain: Int[np.ndarray, " chain"], sure: bool
) -> bool:
    """Tell whether an entry differs between chains, and agrees among the chains of each labelling."""
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
    """Tell whether an entry's mean depends on the labelling of the draw.

    Draws between two changes of the labelling count as one: as slow as the labels change, any entry may drift.
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
    with np.errstate(over="ignore", invalid="ignore"):  # of 1e300, whose square no double holds
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
