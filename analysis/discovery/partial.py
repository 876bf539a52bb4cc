"""Quantities that follow a candidate's labels and that it does not move: to align by it would leave the posterior.

A component may have quantities that no candidate moves: scalars of their own (`mu1`, `mu2`), or a share on another
scale (`eta` for `w`). They show in the draws: chains (or draws) with one labelling agree on them, and others do not.
Where every chain has a labelling of its own, nobody can tell whether a quantity that differs between chains follows the
labels; it counts as one that does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from onebasin.posteriors import schema
from onebasin.posteriors.view import View

from ..summaries.deciding import rhat_of_entries
from .candidate import Candidate
from .slots import Values

AGREE = 1.05
"""R-hat up to which chains of one labelling agree."""
FEW = 50
"""Draws of a labelling below which its mean is not compared."""
ERRORS = 8.0
"""Standard errors, for independent draws, by which means of two labellings within chains have to differ."""
SHARE = 0.05
"""Share of a quantity's variance that lies between labellings from which on it follows them."""


def companions(candidates: Sequence[Candidate], values: Values) -> tuple[str, ...]:
    """Name the variables that follow the labels of candidates and that none of them moves.

    Parameters
    ----------
    candidates : sequence of Candidate
        Those that draws would be aligned by.
    values : mapping of str to array (chain, draw, *event)
        The draws of all parameters as they came.
    """
    moved = {name for candidate in candidates for name in candidate.values}
    labels = [_labels(candidate, values) for candidate in candidates]
    others = {n: v.reshape(*v.shape[:2], -1) for n, v in values.items() if n not in moved}
    return tuple(n for n, v in others.items() if any(_follows(v, each) for each in labels))


def recorded_companions(view: View, variables: Sequence[str]) -> tuple[str, ...]:
    """Name what moves with some variables as the file records it, where a search on the density found no word for all.

    Returns
    -------
    tuple of str
        A sentence part a symmetry, such as ``(mu1, mu2) and theta:0``; empty where nothing is recorded.
    """
    try:
        blocks = json.loads(view.attribute(schema.SYMMETRY_FOUND) or "{}").get("blocks", [])
        return tuple(_incomplete(blocks, set(variables)))
    except (AttributeError, TypeError, ValueError):
        return ()


def _incomplete(blocks: list[dict[str, str]], variables: set[str]) -> Iterator[str]:
    for block in blocks:
        moves = str(block.get("moves", ""))
        words = {
            word.strip("() ").split(":")[0] for word in moves.replace(" and ", ", ").split(",")
        }
        if block.get("status") == "incomplete" and words & variables:
            yield moves


def _labels(candidate: Candidate, values: Values) -> Int[np.ndarray, "chain draw"]:
    """Number the labellings of all draws: which component stands at each place, or whether a sign is changed."""
    patterns = []
    for slot in candidate.slots:
        raw, aligned = values[slot.name], candidate.values[slot.name]
        lead = raw.shape[:2]
        if slot.axes and not slot.complement:
            axis = slot.axes[0] + 2
            parts, places = (
                np.moveaxis(v, axis, 2).reshape(*lead, v.shape[axis], -1) for v in (raw, aligned)
            )
            # Components keep their numbers but for signs, so that ranks of one entry tell which went where.
            entry = parts.std(axis=(0, 1, 2)).argmax()
            order, rank = (np.argsort(np.abs(v[..., entry]), axis=-1) for v in (parts, places))
            patterns.append(np.take_along_axis(order, np.argsort(rank, axis=-1), axis=-1))
            break
        patterns.append((raw != aligned).reshape(*lead, -1).any(axis=-1)[..., None].astype(int))
    flat = np.concatenate(patterns, axis=-1)
    labels = np.unique(flat.reshape(-1, flat.shape[-1]), axis=0, return_inverse=True)[1]
    return labels.reshape(flat.shape[:2])


def _follows(
    drawn: Float[np.ndarray, "chain draw entry"], labels: Int[np.ndarray, "chain draw"]
) -> bool:
    of_chain = np.array([np.bincount(row).argmax() for row in labels])
    steady = np.mean(labels == of_chain[:, None]) > 0.95
    return _between_chains(drawn, of_chain) if steady else _within_chains(drawn, labels.ravel())


def _between_chains(
    drawn: Float[np.ndarray, "chain draw entry"], of_chain: Int[np.ndarray, " chain"]
) -> bool:
    """Whether an entry differs between chains, and agrees among the chains of each labelling."""
    if len(set(of_chain.tolist())) < 2:
        return False
    bad = rhat_of_entries(drawn) > AGREE
    for label in set(of_chain.tolist()):
        chains = drawn[of_chain == label]
        if len(chains) > 1:
            bad &= ~(rhat_of_entries(chains) > AGREE)
    return bool(bad.any())


def _within_chains(
    drawn: Float[np.ndarray, "chain draw entry"], labels: Int[np.ndarray, " all"]
) -> bool:
    """Whether an entry's mean depends on the labelling of the draw."""
    flat = drawn.reshape(-1, drawn.shape[2])
    groups = [flat[labels == label] for label in np.unique(labels)]
    groups = [group for group in groups if len(group) >= FEW]
    if len(groups) < 2:
        return False
    means = np.stack([group.mean(axis=0) for group in groups])
    errors = np.stack([group.std(axis=0) / np.sqrt(len(group)) for group in groups])
    far = np.ptp(means, axis=0) > ERRORS * errors.max(axis=0)
    sizes = np.array([len(group) for group in groups], np.float64)[:, None]
    centre = (sizes * means).sum(axis=0) / sizes.sum()
    between = (sizes * (means - centre) ** 2).sum(axis=0) / sizes.sum()
    total = flat.var(axis=0)
    return bool((far & (between > SHARE * np.where(total > 0, total, np.inf))).any())
