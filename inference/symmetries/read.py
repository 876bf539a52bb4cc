"""From what a program shows to blocks: each is compared at points, and judged as the ones that a search finds."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from onebasin.base.errors import InferenceError
from onebasin.models.reading.read import ReadClass, ReadSymmetry, block_of, place_of, signs_fit
from onebasin.models.symmetry.block import AxisPart
from onebasin.models.symmetry.group import Group

from .groups import copies, variables_compete
from .measuring import DOUBTFUL, Generator
from .result import FoundBlock, bounding, listed
from .search import VERIFIED_AT, Search
from .stages import judged

SECOND = "A word of `--exchangeable` has one set of signs of parts, and this is a second one"
PARTLY = (
    "A word of `--exchangeable` changes the sign of a variable along all that it moves, and these change along a part "
    "of it"
)


class ReadingError(InferenceError):
    """A reading that is contradicted by its values: a fault of the reader."""


def blocks_read(s: Search, found: ReadSymmetry) -> Iterator[FoundBlock]:
    """Yield the blocks of the classes that were read, with one set of signs each."""
    shapes = s.measured.density.shapes
    few = s.at(s.probes[:VERIFIED_AT])
    for each in found.classes:
        own = tuple(
            Generator(name, "swap", place_of(part, shapes[name]), (0, 1))
            for name, parts in each.places.items()
            for part in parts
        )
        moving = listed(own)
        signs, others = _signs(s, each, shapes)
        block = block_of(each, shapes, signs)
        names = block.flipped
        if signs:
            moving += f", with signs of {' and '.join(names)}"
        change = _verified(s, block)
        status, why = judged(few if s.large else s, s, own, copies(own, each.size))
        said = [
            f"Read from the program: every order of the {each.size} parts of {listed(own)} leaves the log density "
            f"unchanged. Compared at {len(few.probes)} points, it changes by up to {change:.2g} nats.",
            why,
        ]
        if signs:
            said.insert(1, f"Each part may change the sign of {' and '.join(names)}.")
        yield FoundBlock(block, moving, each.size, status, tuple(said), "read")
        for more in others:
            at = [g.name for g in more if g.name not in names] or [more[0].name]
            yield FoundBlock(
                None,
                f"signs of parts of {listed(more)}",
                each.size,
                "incomplete",
                (
                    f"Read from the program: each part may change the sign of {listed(more)}.",
                    bounding(SECOND if names else PARTLY, [f"each such part of {at[0]}"]),
                ),
                "read",
            )


def _signs(
    s: Search, each: ReadClass, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[tuple[tuple[str, AxisPart], ...], list[tuple[Generator, ...]]]:
    """The set of signs that goes into a block, the fewest variables first, and those that no block says."""
    chosen: tuple[tuple[str, AxisPart], ...] = ()
    others = []
    for own in sorted(each.signs, key=len):
        generators = tuple(
            Generator(name, "negate", place_of(part, shapes[name]), (0,)) for name, part in own
        )
        if variables_compete(generators, s.at(s.probes[:VERIFIED_AT]) if s.large else s) != "live":
            continue
        if not chosen and signs_fit(each, own):
            chosen = own
        else:
            others.append(generators)
    return chosen, others


def _verified(s: Search, block: Any) -> float:
    """Move points by random elements and return the largest change; a contradiction is a fault of the reader."""
    rng = np.random.default_rng(s.seed)
    group = Group((block,), s.measured.density.shapes)
    probes = s.probes[:VERIFIED_AT]
    moved = [group.act(group.random(rng), probe.point) for probe in probes]
    changes = [p.change(float(v)) for p, v in zip(probes, s.measured(moved), strict=True)]
    if max(change.ratio for change in changes) > DOUBTFUL:
        raise ReadingError(
            f"onebasin read the symmetry of {block.describe()} from the program, but the log density changes by "
            f"{max(change.change for change in changes):.3g} nats. This is a bug in onebasin: please report it with "
            "the model, and give symmetry=False, or declare the symmetry, until it is fixed."
        )
    return max(change.change for change in changes)


def reasons(s: Search) -> tuple[dict[str, str], tuple[str, ...]]:
    """Why axes stay that no block moves, by their words, and the operations that the reader does not know."""
    program = s.program
    assert program is not None
    moved = {place for found in s.found if found.block is not None for place in found.block.moved}
    said = {}
    for (name, axis), why in program.fixed.items():
        if (name, axis) in moved:
            continue
        what = f"{why.what}, in {why.site}" if why.site else why.what
        if why.site in s.measured.density.shapes:
            what = f"prior of {why.site}: {why.what}"
        said[f"{name}:{axis}"] = what
    return said, program.unknown
