"""Trained networks of any architecture as trees of arrays, such as checkpoints of Flax, Equinox or JAX.

Networks are treated as the draws of one chain. Every array is a variable, named by its path (`params.Dense_0.kernel`).
The symmetry comes from the function that applies a network. Weights are not scaled, so distances are Euclidean
(Ainsworth, Hayase and Srinivasa 2023, section 3.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from operator import itemgetter
from typing import Any

import numpy as np

from onebasin.base.card import Card, Words, number
from onebasin.base.errors import ArgumentError
from onebasin.base.table import Table
from onebasin.models.symmetry.blocks import Group, Symmetry, as_symmetry, variables_of
from onebasin.models.symmetry.elements import module_of, on_arrays, permuted_parts

from .alignment import Alignment
from .draws import count_transpositions

Tree = Any
Arrays = dict[str, np.ndarray]
Apply = Callable[[Tree, Any], Any]
DIFFER = 10.0
"""Largest change allowed in an output, in square roots of machine precision times the largest output."""


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """The structure of a network's tree and the names of its real-valued arrays."""

    structure: Any
    leaves: tuple[Any, ...]
    places: Mapping[str, int]

    @classmethod
    def of(cls, tree: Tree) -> TreeLayout:
        """Read the layout of one tree."""
        from jax import numpy, tree_util

        found, structure = tree_util.tree_flatten_with_path(tree)
        places: dict[str, int] = {}
        for place, (path, leaf) in enumerate(found):
            if hasattr(leaf, "shape") and numpy.issubdtype(leaf.dtype, numpy.floating):
                name = tree_util.keystr(path, simple=True, separator=".")
                name = name.replace("/", ".").removesuffix(".value")
                if name in places:
                    raise ArgumentError(
                        f"A network in `posterior` has two arrays named {name}. Rename one of them."
                    )
                places[name] = place
        return cls(structure, tuple(leaf for _, leaf in found), places)

    @property
    def values(self) -> Arrays:
        """The arrays of the tree. Half precision is converted to single precision."""
        arrays = {name: np.asarray(self.leaves[place]) for name, place in self.places.items()}
        return {n: v.astype(np.float32) if v.itemsize < 4 else v for n, v in arrays.items()}

    def tree(self, values: Mapping[str, np.ndarray]) -> Tree:
        """Return the tree with new arrays, in the original type and precision."""
        from jax import tree_util

        leaves = list(self.leaves)
        for name, value in values.items():
            like = leaves[self.places[name]]
            leaves[self.places[name]] = module_of(like).asarray(value, like.dtype)
        return tree_util.tree_unflatten(self.structure, leaves)


@dataclass(frozen=True, eq=False, repr=False)
class AlignedNetworks(Alignment):
    """Networks in one labelling: an `Alignment` whose draws are networks.

    Attributes
    ----------
    source : View
        The networks as given. All attributes except `layouts` are as in `Alignment`.
    symmetry : tuple of blocks
        Blocks of the symmetry of the networks' function.
    rule : AlignmentRule
        The rule of the alignment.
    element : tuple
        Group element of each network, one part per block.
    target : AlignmentTarget
        The reference with which networks were matched.
    cost : ndarray
        Costs after alignment, (1, network).
    converged : bool
        Whether the last sweep moved no component.
    distance_before, distance_after : ndarray
        Squared distances to the reference, (1, network).
    found : tuple of str
        Always empty for networks.
    layouts : dict of str to TreeLayout
        The given trees, by name.
    """

    layouts: Mapping[str, TreeLayout] = field(default_factory=dict)

    @cached_property
    def networks(self) -> dict[str, Tree]:
        """The aligned networks, as trees with the structure of the given ones."""
        return {
            name: layout.tree({n: v[place] for n, v in self.aligned.items()})
            for place, (name, layout) in enumerate(self.layouts.items())
        }

    @cached_property
    def permutations(self) -> dict[str, tuple[Any, ...]]:
        """The group element of each network, one part per block, such as a `permutation` and `signs`."""
        return {
            name: tuple(on_arrays(part, itemgetter((0, place))) for part in self.element)
            for place, name in enumerate(self.layouts)
        }

    @property
    def aligned(self) -> Arrays:
        """The moved arrays (network, ...)."""
        return {str(n): v.values[0] for n, v in self._moved.items()}

    @property
    def given(self) -> Arrays:
        """All arrays (network, ...) before alignment."""
        return _stacked(self.layouts)

    def _card(self) -> Card:
        each = [count_transpositions(part.permutation[0]) for part in permuted_parts(self.element)]
        counts = np.sum(each, axis=0) if each else np.zeros(len(self.layouts))
        distances = np.sqrt(self.distance_before[0]), np.sqrt(self.distance_after[0])
        rows = tuple(
            (name, number(before), number(after), str(int(count)))
            for name, before, after, count in zip(self.layouts, *distances, counts, strict=True)
        )
        columns = ("network", "distance before", "after", "transpositions")
        aim = "the mean of the aligned networks"
        if self.rule.reference == "draw":
            aim = list(self.layouts)[self.rule.reference_draw[1]]
        table = Table(columns, rows, f"Euclidean distance to {aim}")
        said = f"{len(self.layouts)} networks have the same labelling; get them from `.networks`."
        small = Words(
            f"Modulo {'; '.join(block.describe() for block in self.symmetry)}.", small=True
        )
        return Card(
            "Aligned networks", (Words(said), table, small), "" if self.converged else "warn"
        )


def read_network(apply: Apply, params: Tree, x: Any) -> Symmetry:
    """Read the symmetry of a network from the function that applies it.

    Raises
    ------
    ValueError
        If JAX cannot trace the function, or if the network has no interchangeable units.
    """
    from jax import tree_util

    from onebasin.models.reading.read import read, symmetry_of

    layout = TreeLayout.of(params)
    shapes = {name: value.shape for name, value in layout.values.items()}

    def named(values: Mapping[str, Any], inputs: Any) -> Any:
        leaves = list(layout.leaves)
        for name, value in values.items():
            place = layout.places[name]
            leaves[place] = value.astype(leaves[place].dtype)
        return apply(tree_util.tree_unflatten(layout.structure, leaves), inputs)

    try:
        found = read(named, shapes, (x,))
    except TypeError as error:
        said = str(error).partition("\n")[0]
        raise ArgumentError(
            f"JAX cannot trace `apply` ({said}). Write `apply` with JAX operations, or give `symmetry`."
        ) from error
    symmetry = symmetry_of(found, shapes)
    if not symmetry:
        reasons = "; ".join(f"{n}:{axis} ({why.what})" for (n, axis), why in found.fixed.items())
        raise ArgumentError(
            "`apply` has no interchangeable units, so the networks cannot be aligned. Axes that cannot be permuted: "
            f"{reasons}. If you know a symmetry, declare it with `symmetry`."
        )
    return symmetry


def align_trees(
    networks: Mapping[str, Tree],
    symmetry: Any,
    apply: Apply | None,
    x: Any,
    reference: Any,
    align: Callable[..., Alignment],
) -> AlignedNetworks:
    """Align networks with `align`, to which the other arguments are already bound."""
    if len(networks) < 2:
        raise ArgumentError(
            "`posterior` has only one network. Give at least two networks, as a mapping from names to networks."
        )
    layouts = {str(name): TreeLayout.of(tree) for name, tree in networks.items()}
    stacked = _stacked(layouts)
    first = next(iter(networks.values()))
    if symmetry is None:
        if apply is None:
            raise ArgumentError(
                "`posterior` is a set of networks, and onebasin does not know their symmetry. Declare the symmetry "
                "with `symmetry`, or give example inputs `x` and the function that evaluates a network, such as "
                "apply=model.apply."
            )
        symmetry = read_network(apply, first, x)
    blocks = as_symmetry(symmetry, {name: v.shape[1:] for name, v in stacked.items()})
    if apply is not None:
        check_function(blocks, next(iter(layouts.values())), apply, x)
    if reference in layouts:
        align = partial(align, reference_draw=(0, list(layouts).index(reference)))
        reference = "draw"
    elif reference == "gaussian":
        reference = "draw" if len(layouts) == 2 else "mean"
    found = align(
        {name: values[None] for name, values in stacked.items()},
        blocks,
        reference=reference,
        scales={name: 1.0 for name in variables_of(blocks)},
        gauge="keep",
    )
    own = {each.name: getattr(found, each.name) for each in fields(Alignment)}
    return AlignedNetworks(**own, layouts=layouts)


def check_function(blocks: Symmetry, layout: TreeLayout, apply: Apply, x: Any) -> None:
    """Reject a block that changes the network's outputs at example inputs by more than rounding error."""
    from jax import tree_util

    def outputs(values: Mapping[str, np.ndarray]) -> np.ndarray:
        leaves = tree_util.tree_leaves(apply(layout.tree(values), x))
        return np.concatenate([np.ravel(np.asarray(leaf, np.float64)) for leaf in leaves])

    values = layout.values
    group = Group(blocks, {name: value.shape for name, value in values.items()})
    before = outputs(values)
    rng = np.random.default_rng(0)
    eps = max(float(np.finfo(value.dtype).eps) for value in values.values())
    allowed = DIFFER * np.sqrt(eps) * float(np.abs(before).max(initial=0.0))
    for block, part in zip(blocks, group.random(rng), strict=True):
        after = outputs(block.act(dict(values), *part))
        change = float(np.abs(after - before).max(initial=0.0))
        if not change <= allowed:
            raise ArgumentError(
                f"The declared symmetry does not hold: an output of the network changes by {change:.3g} under "
                f"{block.describe()}. Declare all arrays that move together."
            )


def _stacked(layouts: Mapping[str, TreeLayout]) -> Arrays:
    """Stack the arrays of networks (network, ...). Reject a network whose architecture differs from the first."""
    (start, first), *others = ((name, layout.values) for name, layout in layouts.items())
    for name, values in others:
        for array in [*first, *values]:
            one, other = (None if array not in v else v[array].shape for v in (first, values))
            if one != other:
                raise ArgumentError(
                    f"The networks in `posterior` have different architectures: {array} has shape {one} in "
                    f"{start!r}, but {other} in {name!r}. Give networks of one architecture."
                )
    return {n: np.stack([first[n], *(values[n] for _, values in others)]) for n in first}
