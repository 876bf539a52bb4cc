"""Components that rotate into one another, where orders and signs of components were found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.block import axes_of
from onebasin.models.symmetry.blocks import Block, Exchangeable, Rotation
from onebasin.models.symmetry.elements import Shapes

from . import describe
from .result import FoundBlock
from .search import Search
from .spaces import change_at, worst


def rotating(s: Search) -> Iterator[FoundBlock]:
    """Replace blocks of components with signs by rotations, where random orthogonal matrices keep the log density."""
    rng, probes = np.random.default_rng(s.seed), [*s.probes, *s.near]
    for at, found in enumerate(s.found):
        rotation = _rotation(found.block, s.measured.density.shapes)
        if found.status != "live" or rotation is None:
            continue
        parts = rotation.random(rng, (len(probes),), found.parts)
        points = [
            {**probe.point, **rotation.act(probe.point, matrix)}
            for probe, matrix in zip(probes, parts.matrix, strict=True)
        ]
        values = s.measured(points)
        tried = worst(
            [change_at(float(value), probe) for value, probe in zip(values, probes, strict=True)]
        )
        if tried.holds:
            what = f"Rotating {' and '.join(rotation.variables)} by random orthogonal matrices"
            said = describe.unchanged(what, tried, s.probes, s.near)
            moves = f"{found.moves}, with rotations"
            s.found[at] = replace(
                found, block=rotation, moves=moves, evidence=(*found.evidence, said)
            )
    yield from ()


def _rotation(block: Block | None, shapes: Shapes) -> Rotation | None:
    """Give rotations of what a block with all signs moves, first the variable with fewest entries: loadings, mostly."""
    if not isinstance(block, Exchangeable) or set(block.flipped) != set(block.variables):
        return None
    names = sorted(
        block.axes, key=lambda name: (len(axes_of(block.axes[name])), math.prod(shapes[name]))
    )
    try:
        rotation = Rotation({name: block.axes[name] for name in names})
        rotation.check(shapes)
    except ArgumentError:  # too few entries to tell rotations apart
        return None
    return rotation if rotation.size(shapes) > 1 else None
