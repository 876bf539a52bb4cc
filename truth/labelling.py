"""The canonical labelling of a reference: centres and scales, fixed once, with which every draw is matched.

Convention: of all its equal copies, a draw is replaced by the one that minimises

    sum over the moved entries e of ((x[e] - centre[e]) / scale[e])^2.

Centres and scales are the moments of the diagonal Gaussian that `align` fits to the first half of the chains, rounded
to five digits and put into a canonical order, and are then part of the reference: the draws of another seed, another
machine or another method are matched with the same numbers. Whoever has them needs nothing else of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebasin.analysis.alignment import align
from onebasin.analysis.alignment.result import Alignment
from onebasin.analysis.alignment.rule import AlignmentTarget
from onebasin.models.symmetry.blocks import Block, Symmetry, axes_of
from onebasin.models.symmetry.elements import Permuted, Swapped
from onebasin.posteriors.view import View

DIGITS = 5
RULE = (
    "Every draw is replaced by the one of its equal copies that minimises the sum, over all entries that the symmetry "
    "moves, of ((value - centre) / scale)^2; centre and scale are fixed numbers, fitted to the first half of the "
    "chains of the first reference."
)
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Labelling:
    """The centres and scales that draws are matched with."""

    centre: Mapping[str, np.ndarray]
    scale: Mapping[str, np.ndarray]
    """`centre`, `scale`: (*event): Of every variable that the symmetry moves."""
    canonical: str  # How the places of the centres are ordered, in words.

    @property
    def target(self) -> AlignmentTarget:
        """The same for `align`."""
        return AlignmentTarget.of(self.centre, self.scale)

    def applied(self, view: View, symmetry: Symmetry) -> Alignment:
        """Match every draw."""
        return align(view, symmetry, reference=self.target, restarts=4)

    def to_json(self) -> dict[str, Any]:
        """Return the labelling as the file's information records it."""
        return {
            "rule": RULE,
            "canonical": self.canonical,
            "centre": {name: value.tolist() for name, value in self.centre.items()},
            "scale": {name: value.tolist() for name, value in self.scale.items()},
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Labelling:
        """Read it back."""
        centre, scale = (
            {name: np.asarray(value, np.float64) for name, value in said[word].items()}
            for word in ("centre", "scale")
        )
        return cls(centre, scale, str(said["canonical"]))


def fitted(view: View, symmetry: Symmetry) -> Labelling:
    """Fit centres and scales to the first half of the chains, and put them into canonical order."""
    half = view.part("chain", slice(0, max(1, view.num_chains // 2)))
    target = align(half, symmetry, restarts=2).target
    centre = {name: np.array(value, np.float64) for name, value in target.centre.items()}
    scale = {
        name: np.broadcast_to(
            target.units.unit[name] / np.sqrt(np.asarray(target.reference.weight[name])),
            centre[name].shape,
        ).copy()
        for name in centre
    }
    words = []
    for block in symmetry:
        centre, scale, said = _ordered(block.discrete.stacked, centre, scale)
        words.append(said)
    for arrays in (centre, scale):
        for name, values in arrays.items():
            texts = [f"{value:.{DIGITS - 1}e}" for value in values.ravel()]
            arrays[name] = np.array([float(text) for text in texts]).reshape(values.shape)
    return Labelling(centre, scale, "; ".join(words))


def _ordered(block: Block[Any], centre: Arrays, scale: Arrays) -> tuple[Arrays, Arrays, str]:
    """Move centres and scales by one element: signs first, then places."""
    if not block.axes:  # whole variables that change sign or become complements
        name = (*block.flipped, *block.complemented)[0]
        values = centre[name].ravel()
        if block.flipped:
            turn = values[np.abs(values).argmax()] < 0
            said = f"the sign of {', '.join(block.flipped)} by which the largest centre of {name} is positive"
        else:
            turn = values.mean() > 0.5
            said = f"{', '.join(block.complemented)} by which the mean of {name}'s centres is at most 1/2"
        return _moved(block, Swapped(np.array([turn])), centre), scale, said
    name = (*block.flipped, *block.axes)[0]
    axis = axes_of(block.axes[name])[0]
    rows = np.moveaxis(centre[name], axis, 0).reshape(centre[name].shape[axis], -1)
    signs = None
    said = f"places of {', '.join(block.axes)} in increasing order of the mean of {name}'s centres"
    if block.flipped:
        largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)[:, 0]
        signs = np.where(largest < 0, -1.0, 1.0)
        rows = rows * signs[:, None]
        said = f"signs by which the largest centre of each part of {name} is positive, then {said}"
    order = np.argsort(rows.mean(axis=1), kind="stable")
    part = Permuted(order[None], None if signs is None else signs[order][None])
    scaled = block.of_variances(part)
    return _moved(block, part, centre), _moved(*scaled, scale) if scaled else scale, said


def _moved(block: Block[Any], part: Any, values: Arrays) -> Arrays:
    """Move one point, its variables without axes of draws."""
    moved = block.act({name: value[None] for name, value in values.items()}, *part)
    return {name: np.asarray(value)[0] for name, value in moved.items()}
