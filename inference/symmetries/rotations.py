"""Components that rotate into one another, where orders and signs of components were found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from onebasin.models.symmetry.blocks import Rotation

from . import describe
from .result import FoundBlock
from .search import Search
from .spaces import change_at, worst


def rotating(s: Search) -> Iterator[FoundBlock]:
    """Replace blocks of components with signs by rotations, where random orthogonal matrices keep the log density."""
    rng, probes = np.random.default_rng(s.seed), [*s.probes, *s.near]
    for at, found in enumerate(s.found):
        rotation = Rotation.of(found.block, s.measured.density.shapes) if found.block else None
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
