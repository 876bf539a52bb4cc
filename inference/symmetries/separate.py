"""Parameters declared one by one, such as mu1 and mu2: searched as the parts of the arrays that they might have been.

No block exchanges parameters of several names, and alignment does not undo it. But chains that sit in the copies look
as if they disagreed, so what is found is said, with the declaration that has it used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from .measuring import SearchedDensity
from .moves import Point, Shapes
from .result import FoundBlock
from .search import Search
from .stages import interchangeable

_COUNTED = re.compile(r"\d+|(?<=_)[A-Za-z](?=_|$)")
"""What names of one family differ in: a number, or a letter between underscores; the last one counts."""

Families = Mapping[str, tuple[str, ...]]
"""The parameters of a family by what it is called: ``(mu1, mu2)``."""


def families(shapes: Shapes) -> Families:
    """Gather the parameters of one shape whose names differ in what counts them, in the order of that."""
    found: dict[tuple[str, tuple[int, ...]], dict[str, str]] = {}
    for name, shape in shapes.items():
        *_, last = [None, *_COUNTED.finditer(name)]
        if last is not None:
            common = f"{name[: last.start()]}#{name[last.end() :]}"
            found.setdefault((common, tuple(shape)), {})[last.group()] = name
    members = [
        tuple(each[count] for count in sorted(each, key=lambda text: (len(text), text)))
        for each in found.values()
        if len(each) > 1
    ]
    return {f"({', '.join(names)})": names for names in members}


@dataclass(frozen=True)
class Stacked:
    """A log density whose families are arrays, the members along the first axis.

    Attributes
    ----------
    density : SearchedDensity
        Of the parameters as they are declared.
    families : mapping of str to tuple of str
        As of `families`.
    """

    density: SearchedDensity
    families: Families

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shapes of the families, then of all other parameters."""
        own, within = self.density.shapes, self._within
        stacked = {family: (len(n), *own[n[0]]) for family, n in self.families.items()}
        return stacked | {name: shape for name, shape in own.items() if name not in within}

    @property
    def dim(self) -> int:
        """Coordinates of the unconstrained space."""
        return self.density.dim

    def constrain(self, vectors: Float[np.ndarray, "point dim"]) -> dict[str, np.ndarray]:
        """See `SearchedDensity`."""
        return self.stack(self.density.constrain(vectors), axis=1)

    def log_density(self, values: Mapping[str, np.ndarray]) -> Float[np.ndarray, " point"]:
        """See `SearchedDensity`."""
        apart = {
            name: values[family][:, place]
            for family, names in self.families.items()
            for place, name in enumerate(names)
        }
        whole = {**values, **apart}
        return self.density.log_density({name: whole[name] for name in self.density.shapes})

    def gradient(
        self, vector: Float[np.ndarray, " dim"]
    ) -> tuple[float, Float[np.ndarray, " dim"]] | None:
        """See `SearchedDensity`; the unconstrained space is the same."""
        return self.density.gradient(vector)

    def stack(self, values: Point, *, axis: int = 0) -> dict[str, np.ndarray]:
        """Lay the members of each family side by side."""
        stacked = {
            family: np.stack([values[name] for name in names], axis)
            for family, names in self.families.items()
        }
        return stacked | {n: values[n] for n in values if n not in self._within}

    @property
    def _within(self) -> set[str]:
        return {name for names in self.families.values() for name in names}


def exchanged(s: Search) -> Iterator[FoundBlock]:
    """What exchanges parameters of several names, perhaps with other parts of the same number."""
    named = families(s.measured.density.shapes)
    if not named:
        return
    stacked = Stacked(s.measured.density, named)
    measured = s.measured.of(stacked, s.measured.count)
    probes, given = (
        [replace(probe, point=stacked.stack(probe.point)) for probe in some]
        for some in (s.probes, s.given)
    )
    inner = Search(measured, probes, given, s.seed)
    try:
        for length in dict.fromkeys(len(names) for names in named.values()):
            for block in interchangeable(inner, length, inner.lengths[length]):
                moved = [family for family in named if f"{family}:0" in block.moves]
                if moved:
                    yield _in_names_of_members(block, moved)
    finally:
        s.measured.count = measured.count
        s.open.extend(inner.open)


def _in_names_of_members(block: FoundBlock, moved: list[str]) -> FoundBlock:
    """What was found of the arrays, in the names of their members."""

    def named(text: str) -> str:
        for family in moved:
            text = text.replace(f"{family}:0", family)
        return text

    said = tuple(named(sentence) for sentence in block.evidence)
    status = block.status
    if status == "live":
        status = "incomplete"
        said += (
            "These are parameters of their own, and `--exchangeable` has no word for their exchange, so that it is not "
            "undone: copies of one mode may look like several. Declare each family as one array "
            f"({', '.join(moved)}), and it is found and used.",
        )
    return replace(block, block=None, moves=named(block.moves), status=status, evidence=said)
