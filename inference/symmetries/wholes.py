"""Stages of a search: whole variables that change sign or become complements, and what only priors break."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onebasin.models.symmetry.block import axes_of

from . import telling
from .broken_by_prior import breaks, middle_of, near_symmetries
from .context import Search
from .gf2 import echelon, reduce
from .groups import everything, grouped
from .moves import Generator, Moves, swaps
from .result import FoundBlock, Status
from .spaces import Space, search, trial
from .status import one_mode, variables_compete


def whole_variables(s: Search) -> Iterator[FoundBlock]:
    """Blocks of whole variables, beyond what signs of parts generate."""
    generators = [Generator(name, "negate") for name in s.signed] + s.shares
    if not generators:
        return
    space = search(generators, s.measured, s.probes)
    s.spaces[0] = space
    if not space.complete:
        s.open.append(f"sums of {len(generators)} signs and complements of whole variables")
    known = echelon(_by_parts(s, space.moves))
    for chosen in space.basis:
        if reduce(chosen, known):
            known = echelon((*known, chosen))
            yield _told(s, space, chosen)


def _by_parts(s: Search, moves: Moves) -> list[int]:
    """The changes of whole signs that signs of a block's parts come to."""
    found = []
    for block in (each.block for each in s.found):
        if block is not None and block.axes and block.flipped:
            odd = [n for n in block.flipped if len(axes_of(block.axes[n])) % 2]
            bits = [moves.of(name) for name in odd]
            if all(bits):
                found.append(sum(bits))
    return found


def _told(s: Search, space: Space, chosen: int) -> FoundBlock:
    own = space.moves.generators(chosen)
    moves = grouped(own)
    status: Status = variables_compete(moves, s.measured, s.probes)
    mode = status == "live" and one_mode([moves], s.measured, s.ends)
    status = "harmless" if mode else status
    near = s.near if status == "live" else []
    held = trial(moves, everything(moves), s.measured, [*s.probes, *near])
    listed = telling.listed(own)
    together = " together" if len(own) > 1 else ""
    said = [
        telling.unchanged(f"Changing {listed}{together}", held, s.probes, near),
        telling.alone(moves, s.measured, s.probes),
    ]
    if held.holds:
        said.append(telling.of_status(status, mode=mode))
    else:
        status = "undecided"
    return FoundBlock(telling.whole(own, s.order), listed, 1, status, tuple(filter(None, said)))


def mixed(s: Search) -> Iterator[FoundBlock]:
    """What needs a swap of two parts together with a change of sign, which no block says."""
    axes = s.lengths.get(2, [])
    if not axes or not s.signed:
        return
    generators = swaps(axes, 0, 1) + [Generator(n, "negate") for n in s.signed] + s.shares
    space = search(generators, s.measured, s.probes)
    for chosen in space.basis:
        own = space.moves.generators(chosen)
        kinds = {g.kind for g in own}
        if {"swap", "negate"} <= kinds and not _known(s, space, own):
            listed = telling.listed(own)
            held = trial(space.moves, chosen, s.measured, s.probes)
            said = (
                telling.unchanged(f"{listed} together: this", held, s.probes, []),
                telling.bounding(
                    "`--exchangeable` has no word for two parts that change places while others change sign",
                    (g.name for g in own if g.kind == "negate"),
                ),
            )
            yield FoundBlock(None, listed, 2, "incomplete", said)


def _known(s: Search, space: Space, own: tuple[Generator, ...]) -> bool:
    """Whether the swaps alone, and so the signs alone, are found already."""
    alone = [g for g in own if g.kind == "swap"]
    moves = grouped(alone)
    return trial(moves, everything(moves), s.measured, s.probes).holds


def nearly(s: Search, length: int) -> Iterator[FoundBlock]:
    """What all but a prior has, of one length; 0 for whole variables."""
    space = s.spaces.get(length)
    if space is None or len(space.moves.names()) < 2:
        return
    middle = middle_of(space.moves, s.probes[0].point, length)
    exact = [space.moves.names(chosen) for chosen in space.basis]
    for broken in near_symmetries(space, middle, s.measured, s.probes, lambda: s.near):
        own = tuple(g for move in broken.moves.each for g in move.generators)
        names = broken.moves.names()
        if any(set(names) <= set(each) for each in exact):
            continue
        by = broken.by
        if length > 2:
            by = max(by, breaks(broken.moves, length, s.measured, s.near))
        if not np.isfinite(by) or by >= broken.alone:
            continue
        block = telling.whole(own, s.order) if length == 0 else telling.exchangeable(own, s.order)
        said = (f"{telling.listed(own)}: {telling.weighing(by)}",)
        yield FoundBlock(block, telling.listed(own), max(1, length), "near", said, by)
