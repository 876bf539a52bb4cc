"""Posteriors with a known truth: draws around well separated components, each draw in random labels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import xarray as xr

from onebasin.models.symmetry.blocks import (
    Complement,
    Exchangeable,
    Flip,
    Group,
    Symmetry,
    as_symmetry,
)
from onebasin.models.symmetry.elements import Element

from ..conftest import dataset


def chain(*widths: int, flips: bool = False) -> tuple[Symmetry, dict[str, tuple[int, ...]]]:
    """Return the symmetry and the shapes of a network with inputs, hidden layers and outputs of these sizes."""
    shapes: dict[str, tuple[int, ...]] = {}
    for layer, (before, after) in enumerate(pairwise(widths), 1):
        shapes |= {f"W{layer}": (before, after), f"b{layer}": (after,)}
    blocks = tuple(
        Exchangeable({f"W{n}": 1, f"b{n}": 0, f"W{n + 1}": 0}, flips=flips)
        for n in range(1, len(widths) - 1)
    )
    return blocks, shapes


PARTS = {"k": (3, 3, 2, 5), "c": (5,), "d": (20, 6)}
STREAM = {"s": (4, 6), "u": (6, 5), "v": (5, 6), "w": (6, 7), "x": (7, 3)}
SLICES, GATES = ("d:0[0:8],e", "d:0[8:20],+-f:1", "d:1"), {"r": (5, 15), "i": (2, 15), "b": (15,)}
HIDDEN_MARKOV = Exchangeable({"A": (0, 1), "mu": 0})
CASES: dict[str, tuple[Symmetry, dict[str, tuple[int, ...]]]] = {
    "mixture": ((Exchangeable({"mu": 0, "sigma": 0}),), {"mu": (5,), "sigma": (5,), "nu": (2,)}),
    "network": chain(4, 6, 2),
    "tanh network": chain(4, 6, 2, flips=True),
    "two hidden layers": chain(4, 6, 5, 2),
    "three hidden layers": chain(4, 5, 4, 6, 2, flips=True),
    "factors": ((Exchangeable({"L": 1, "s": 0}, flips=("L",)),), {"L": (7, 4), "s": (4,)}),
    "complements": ((Exchangeable({"mu": 0}, complements=("theta",)),), {"mu": (2,), "theta": ()}),
    "complement": ((Complement(("p", "q")),), {"p": (), "q": (3,)}),
    "signs of whole variables": ((Flip(("theta", "a", "b")),), {"theta": (6,), "a": (3,), "b": ()}),
    "hidden Markov": ((HIDDEN_MARKOV,), {"A": (5, 5), "mu": (5,)}),
    "transitions alone": ((Exchangeable({"A": (0, 1)}),), {"A": (4, 4)}),
    "large hidden Markov": ((HIDDEN_MARKOV,), {"A": (9, 9), "mu": (9,)}),
    "two mixtures": (as_symmetry(("mu", "+-nu")), {"mu": (4,), "nu": (3, 2)}),
    "flattened channels": (as_symmetry(("k:3,c,d:0[2,2,*5]", "+-d:1,o")), PARTS | {"o": (6,)}),
    "slices": (as_symmetry(SLICES), PARTS | {"e": (8,), "f": (2, 12)}),
    "a stream": (as_symmetry(("s:1,u,v:1,w", "u:1,v", "w:1,x", "x:1")), STREAM),
    "gates": (as_symmetry("r:0:1[3,*5],i:1[3,*5],b:0[3,*5]"), GATES),
}


@dataclass(frozen=True, eq=False)
class Planted:
    """Draws around a known truth, and the group elements that relabelled them."""

    group: Group
    clean: dict[str, np.ndarray]
    hidden: Element
    seen: xr.Dataset

    @property
    def scales(self) -> dict[str, float]:
        """Return a scale of one for every variable."""
        names = {name for block in self.group.symmetry for name in block.variables}
        return dict.fromkeys(names, 1.0)

    def left_over(self, found: Element) -> Element:
        """Return the product of the hidden and the found element, which is constant if alignment is correct."""
        return self.group.compose(self.hidden, found)


def plant(symmetry, shapes, rng, *, noise=0.05, lead=(2, 15), dtype=np.float64):
    """Draw a truth, noise around it, and a group element for every draw."""
    group = Group(symmetry, shapes)
    clean = {
        name: (rng.normal(size=shape) + noise * rng.normal(size=(*lead, *shape))).astype(dtype)
        for name, shape in shapes.items()
    }
    hidden = group.random(rng, lead)
    return Planted(group, clean, hidden, dataset(group.act(hidden, clean)))


def same_everywhere(element: Element) -> bool:
    """Return whether all draws have the same permutations, signs and complements."""
    arrays = (array for part in element for array in part if array is not None)
    return all(bool((array == array[0, 0]).all()) for array in arrays)


def equal(first: Element, second: Element) -> bool:
    """Return whether two elements are the same."""
    pairs = (zip(a, b, strict=True) for a, b in zip(first, second, strict=True))
    return all(np.array_equal(a, b) for pair in pairs for a, b in pair if a is not None)


def price(costs: np.ndarray, assigned: np.ndarray) -> np.ndarray:
    """Return the cost of one assignment per draw."""
    taken = np.take_along_axis(costs, assigned[:, :, None], axis=2)[:, :, 0]
    return taken.astype(np.float64).sum(axis=1)
