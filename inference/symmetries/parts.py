"""Stages of a search: interchangeable parts and their signs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onebasin.models.symmetry.block import Block

from . import telling
from .context import Axes, Search
from .groups import Orbits, Reach, elsewhere, everything, grouped, moved, reach
from .measuring import Probe
from .moves import Generator, Moves, signs_of_part, swaps
from .result import FoundBlock, Status
from .spaces import Space, Trial, search, trial, worst
from .status import copies, one_mode, parts_compete, variables_compete

FEW_PARTS = 2
"""Parts beyond the first two that a set is tried on where it is harmless."""


@dataclass(frozen=True)
class Judged:
    """A set of swaps that is a symmetry, with what is known of it.

    Attributes
    ----------
    generators : tuple of Generator
        On the first two parts.
    status : Status
        Whether it is live.
    mode : bool
        Whether it was found harmless by the density's maximum.
    near : list of Probe
        Points near the posterior at which it was tried; none where it did not matter.
    extent : Reach
        The parts that it reaches.
    tried : Trial
        What came of it: what speaks most against a symmetry.
    """

    generators: tuple[Generator, ...]
    status: Status
    mode: bool
    near: list[Probe]
    extent: Reach
    tried: Trial

    @property
    def moves(self) -> Moves:
        """Its variables' moves."""
        return grouped(self.generators)


def interchangeable(s: Search, length: int, axes: Axes) -> Iterator[FoundBlock]:
    """Blocks of parts that change places along axes of one length."""
    shares = s.shares if length == 2 else []
    space = search(swaps(axes, 0, 1) + shares, s.measured, s.probes)
    s.spaces[length] = space
    if not space.complete:
        s.open.append(f"sums of the {len(axes)} axes of length {length}")
    taken: set[tuple[str, int | None]] = set()
    for chosen in space.basis:
        own = space.moves.generators(chosen)
        axes_moved = {(g.name, g.axis) for g in own if g.kind == "swap"}
        if axes_moved:
            yield _told(s, judged(s, own, length), free=not axes_moved & taken)
            taken |= axes_moved
    for chosen in space.doubtful:
        yield doubtful(s, space, chosen, length)


def judged(s: Search, own: tuple[Generator, ...], length: int) -> Judged:
    """Hold a set of swaps that is a symmetry of the first two parts against all else."""
    status: Status = parts_compete(own, s.measured, s.probes)
    mode = status == "live" and one_mode(copies(own, length), s.measured, s.ends)
    status = "harmless" if mode else status
    live = status == "live"
    near = s.near if live else []
    probes = [*s.probes, *near]
    moves = grouped(own)
    first = trial(moves, everything(moves), s.measured, probes)
    extent = reach(own, length, s.measured, probes, most=None if live else FEW_PARTS)
    if not first.holds:
        status = "undecided"
    elif live and not extent.everywhere:
        status = "incomplete"
    return Judged(own, status, mode, near, extent, worst([first, *extent.held]))


def _told(s: Search, found: Judged, *, free: bool) -> FoundBlock:
    listed, length = telling.listed(found.generators), found.extent.parts
    several = len(found.moves.each) > 1
    orders = f"every order of the {length} parts"
    which = orders if found.extent.everywhere else telling.of_parts([found.extent.orbit])
    what = f"{listed} move together: {which}" if several else f"{listed}: {which}"
    said = [
        telling.unchanged(what, found.tried, s.probes, found.near),
        telling.alone(found.moves, s.measured, s.probes),
    ]
    block, status = telling.exchangeable(found.generators, s.order), found.status
    if status == "incomplete":
        said.append(f"The other of the {length} parts are unlike them, so that nothing is aligned.")
    elif found.tried.holds:
        said.append(telling.of_status(status, mode=found.mode))
    if status == "live" and (block is None or not free):
        status, block = "incomplete", None
        said.append("No block says this beside those that are found, so that it is not used.")
    return FoundBlock(block, listed, length, status, tuple(filter(None, said)))


def doubtful(s: Search, space: Space, chosen: int, length: int) -> FoundBlock:
    """What changes the log density by more than rounding and by less than a difference."""
    own = space.moves.generators(chosen)
    found = trial(space.moves, chosen, s.measured, s.probes)
    said = (
        f"{telling.listed(own)}: the log density changes by up to {found.change:.2g} nats, "
        f"{found.ratio:.1g} times what rounding makes: too much for a symmetry, too little for none."
    )
    block = telling.exchangeable(own, s.order)
    return FoundBlock(block, telling.listed(own), length, "undecided", (said,))


def signs(s: Search, length: int, axes: Axes) -> Iterator[FoundBlock]:
    """Parts that each have a sign of their own: added to the block that permutes them."""
    signed = [(name, axis) for name, axis in axes if name in s.signed]
    space = search(signs_of_part(signed, 0), s.measured, s.probes) if signed else None
    if space is None:
        return
    for chosen in space.basis:
        own = space.moves.generators(chosen)
        moves = grouped(own)
        status = variables_compete(moves, s.measured, s.probes)
        extent = reach(own, length, s.measured, s.probes)
        tried = worst([trial(moves, everything(moves), s.measured, s.probes), *extent.held])
        names = space.moves.names(chosen)
        if status != "live":
            continue
        at = _permuting(s, own) if extent.everywhere else None
        block = None if at is None else s.found[at].block
        if at is None or block is None or block.flipped:
            yield _signs_alone(s, own, extent, tried, block)
        else:
            s.found[at] = _with_signs(s, s.found[at], names, tried)


def _permuting(s: Search, own: Sequence[Generator]) -> int | None:
    """Which live block permutes the parts that these change the sign of."""
    axes = {(g.name, g.axis) for g in own}
    for at, found in enumerate(s.found):
        if found.status == "live" and found.block is not None and axes <= found.block.moved:
            return at
    return None


def _with_signs(s: Search, found: FoundBlock, names: Sequence[str], tried: Trial) -> FoundBlock:
    block: Any = found.block
    flips = True if set(names) == set(block.axes) else tuple(n for n in s.order if n in names)
    said = telling.unchanged(
        f"Each part may change the sign of {' and '.join(names)}: that",
        tried,
        s.probes,
        [],
    )
    moves = f"{found.moves}, with signs of {' and '.join(names)}"
    return replace(
        found, block=replace(block, flips=flips), moves=moves, evidence=(*found.evidence, said)
    )


def _signs_alone(
    s: Search,
    own: Sequence[Generator],
    extent: Reach,
    tried: Trial,
    block: Block[Any] | None,
) -> FoundBlock:
    """Signs of parts that no word says, beside a block that has signs of its own if there is one."""
    listed = telling.listed(own)
    parts = "each part" if extent.everywhere else telling.of_parts([extent.orbit])
    names = [g.name for g in own]
    why = "`--exchangeable` has no word for signs of parts that do not change places"
    if block is not None:
        why = "A word of `--exchangeable` has one set of signs of parts, and this is a second one"
        names = [name for name in names if name not in block.flipped] or names
    said = (
        telling.unchanged(f"Signs of {parts} along {listed}: changing them", tried, s.probes, []),
        telling.bounding(why, [f"each such part of {names[0]}"]),
    )
    return FoundBlock(None, f"signs of parts of {listed}", extent.parts, "incomplete", said)


def partly(s: Search, length: int, axes: Axes) -> Iterator[FoundBlock]:
    """Parts that change places among themselves alone, where all of them do not."""
    covered = {
        (g.name, g.axis)
        for c in s.spaces[length].basis
        for g in s.spaces[length].moves.generators(c)
    }
    free = [place for place in axes if place not in covered]
    for orbits in elsewhere(swaps(free, 0, 1), length, s.measured, s.probes) if free else ():
        yield _of_orbits(s, orbits, length)


def _of_orbits(s: Search, orbits: Orbits, length: int) -> FoundBlock:
    listed = telling.listed(orbits.generators)
    pair = orbits.orbits[0][0], orbits.orbits[0][1]
    own = moved(orbits.generators, pair)
    status = parts_compete([g for m in own.each for g in m.generators], s.measured, s.probes)
    said = (
        f"{listed}: {telling.of_parts(orbits.orbits)} change places among themselves without changing the log "
        f"density, the others of the {length} parts do not, so that nothing is aligned."
    )
    harmless = status == "harmless"
    evidence = (said, telling.of_status("harmless")) if harmless else (said,)
    return FoundBlock(None, listed, length, "harmless" if harmless else "incomplete", evidence)


def by_group(s: Search) -> Iterator[FoundBlock]:
    """Blocks whose parts change places within each place of another axis on its own."""
    for found in list(s.found):
        if found.status != "live" or found.block is None or not found.block.axes:
            continue
        for size, own in _slices(s, found.block).items():
            moves = Moves(tuple(move for g in own for move in grouped([g]).each))
            held = trial(moves, everything(moves), s.measured, s.probes)
            if held.holds:
                listed = telling.listed(own)
                said = (
                    f"Within each of the {size} places along another axis the parts of {listed} change places on "
                    "their own. No block says this: the common order is undone, those of the single places are not."
                )
                yield FoundBlock(None, f"{listed} within each place", size, "incomplete", (said,))


def _slices(s: Search, block: Block[Any]) -> dict[int, list[Generator]]:
    """Swaps of the first two parts inside the first place of another axis that every variable of a block has."""
    shapes = s.measured.density.shapes
    if not all(isinstance(axis, int) for axis in block.axes.values()) or block.complemented:
        return {}
    found: dict[int, list[Generator]] = {}
    sizes = {
        name: {size: at for at, size in enumerate(shapes[name]) if at != axis and size > 1}
        for name, axis in block.axes.items()
    }
    common = set.intersection(*(set(own) for own in sizes.values()))
    for size in common:
        found[size] = [
            Generator(name, "swap", axis, (0, 1), (sizes[name][size], 0))
            for name, axis in block.axes.items()
            if isinstance(axis, int)
        ]
    return found
