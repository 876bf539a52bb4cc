"""From what a program shows to blocks: each is compared at points, and judged as the ones that a search finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onebasin.base.errors import InferenceError
from onebasin.base.precision import precision
from onebasin.models.symmetry.axis_part import AxisPart
from onebasin.models.symmetry.group import Group

from ..groups import copies, variables_compete
from ..measuring import DOUBTFUL, SearchedDensity
from ..moves import Generator, Place
from ..result import FoundBlock, bounding, exchangeable, listed
from ..search import Search
from ..stages import judged
from .read import ReadClass, ReadSymmetry, read

VERIFIED_AT = 2
"""Points at which what was read is compared."""


class ReadingError(InferenceError):
    """What was read from a program is contradicted by its values: a fault of the reader."""


def read_density(density: SearchedDensity) -> ReadSymmetry | None:
    """Read the program of a density; None where it has none, or JAX cannot trace it."""
    if density.program is None:
        return None
    with precision("float64"):
        return read(density.program, density.shapes)


def blocks_read(s: Search, found: ReadSymmetry) -> Iterator[FoundBlock]:
    """Yield the blocks of the classes that were read, with one set of signs each."""
    shapes = s.measured.density.shapes
    few = s.at(s.probes[:VERIFIED_AT])
    for each in found.classes:
        places = {n: tuple(_place(part, shapes[n]) for part in own) for n, own in each.places.items()}
        own = tuple(Generator(n, "swap", p, (0, 1)) for n, some in places.items() for p in some)
        block: Any = exchangeable(own, s.order)
        moving = listed(own)
        signs, others = _signs(s, each, shapes)
        if signs:
            names = tuple(n for n in s.order if any(g.name == n for g in signs))
            block = type(block)(block.axes, True if set(names) == set(block.axes) else names)
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
            at = [g.name for g in more if not signs or g.name not in names] or [more[0].name]
            yield FoundBlock(
                None,
                f"signs of parts of {listed(more)}",
                each.size,
                "incomplete",
                (
                    f"Read from the program: each part may change the sign of {listed(more)}.",
                    bounding(
                        "A word of `--exchangeable` has one set of signs of parts, and this is a second one",
                        [f"each such part of {at[0]}"],
                    ),
                ),
                "read",
            )


def _place(part: AxisPart, shape: Sequence[int]) -> Place:
    """The axis, where a part of it is all of it."""
    whole = part.start == 0 and part.stride == part.repeats == 1
    return part.axis if whole and part.count == shape[part.axis] else part


def _signs(
    s: Search, each: ReadClass, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[tuple[Generator, ...], list[tuple[Generator, ...]]]:
    """The set of signs that goes into a block, the fewest variables first, and those that no block says."""
    found: list[tuple[Generator, ...]] = []
    fits: list[bool] = []
    for own in sorted(each.signs, key=len):
        generators = tuple(
            Generator(name, "negate", _place(part, shapes[name]), (0,)) for name, part in own
        )
        if variables_compete(generators, s.at(s.probes[:VERIFIED_AT]) if s.large else s) != "live":
            continue
        found.append(generators)
        # A block changes the sign of a variable along all axes that it moves.
        fits.append(len(own) == sum(len(each.places[name]) for name in {name for name, _ in own}))
    at = next((at for at, good in enumerate(fits) if good), None)
    if at is None:
        return (), found
    return found[at], found[:at] + found[at + 1 :]


def _verified(s: Search, block: Any) -> float:
    """Move points by random elements and return the largest change; a contradiction is a fault of the reader."""
    rng = np.random.default_rng(s.seed)
    group = Group((block,), s.measured.density.shapes)
    probes = s.probes[:VERIFIED_AT]
    moved = [group.act(group.random(rng), probe.point) for probe in probes]
    changes = [p.change(float(v)) for p, v in zip(probes, s.measured(moved), strict=True)]
    if max(change.ratio for change in changes) > DOUBTFUL:
        raise ReadingError(
            f"The program was read to have the symmetry of {block.describe()}, but its log density changes by "
            f"{max(change.change for change in changes):.3g} nats. This is a fault of onebasin: please report it with "
            "the model, and give symmetry=False, or declare the symmetry, until it is mended."
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
