"""An alignment: every draw's group element, what it was matched with, and the aligned posterior.

Convention: arrays of elements are (chain, draw, component); entry j of a permutation is the component, as
numbered in the draw as it came, that has become component j. Draws are moved in memory where they are there, else a
piece at a time from their file to a scratch. `Alignment.to_dataset` is a group for the posterior's file, `element_of`
reads it back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from onebasin.base.card import Card, FactList, Part, Words
from onebasin.base.errors import ArgumentError
from onebasin.base.files.claims import ClaimError
from onebasin.base.files.pieces import PIECE, is_read_later
from onebasin.base.showing import Shown
from onebasin.base.table import Flag
from onebasin.models.symmetry.blocks import Rotation, Symmetry, blocks_of, to_json
from onebasin.models.symmetry.describe import in_words
from onebasin.models.symmetry.elements import Element, Rotated, labels_of, on_arrays
from onebasin.models.symmetry.group import Group
from onebasin.posteriors import schema
from onebasin.posteriors.draws import event_shapes
from onebasin.posteriors.scratch import Scratch, close_with
from onebasin.posteriors.view import View

from ..discovery.density import DensityCheck, compare_densities, spelt
from ..discovery.resolve import resolve
from .allocations import Allocation, allocations_in, renumbered
from .draws import workers
from .rule import AlignmentRule, AlignmentTarget

PerDraw = Float[np.ndarray, "chain draw"]


@dataclass(frozen=True, eq=False, repr=False)
class Alignment(Shown):
    """A posterior brought into one labelling.

    Attributes
    ----------
    source : View
        The posterior as it came.
    symmetry : Symmetry
        Modulo which it was aligned.
    rule : AlignmentRule
        How; `text` says it in plain words.
    found : tuple of str
        Words of the symmetry's blocks where nothing declared it and the draws themselves showed it; else empty.
    found_few : tuple of str
        The same for the components alone that change places in the draws, where others do not.
    element : Element
        One group element a draw, leading axes (chain, draw).
    target : AlignmentTarget
        What draws were matched with: centres, and how much each entry counts.
    cost : tuple of float
        Mean cost of a draw after each sweep, each against that sweep's reference.
    converged : bool
        Whether nothing was left to move after the last sweep.
    distance_before, distance_after : array (chain, draw)
        Squared distance to the reference, variables divided by their scales, scalings divided out;
        as labelled in the input, and aligned.
    """

    source: View
    symmetry: Symmetry
    rule: AlignmentRule
    element: Element
    target: AlignmentTarget
    cost: tuple[float, ...]
    converged: bool
    distance_before: PerDraw
    distance_after: PerDraw
    found: tuple[str, ...] = ()
    found_few: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The rule in plain words."""
        return self.rule.describe(self.symmetry)

    @cached_property
    def reference(self) -> Mapping[str, np.ndarray]:
        """Centre that draws were matched with, under the names of what was matched."""
        return self.target.centre

    @property
    def sweeps(self) -> int:
        """Number of sweeps."""
        return len(self.cost)

    @cached_property
    def caveat(self) -> str:
        """The part of the symmetry that is not checked, in a sentence; empty where all is checked."""
        checked = self.density is not None and self.density.compared
        if self.found:
            words = " and ".join(f"`{word}`" for word in self.found)
            told = (
                f"Labels switch in the draws, and nothing declares a symmetry: declare {words} before the next "
                "run, and it is checked on the log density."
            )
            if self.density:
                return told
            if self.found_few:
                few = " and ".join(f"`{word}`" for word in self.found_few)
                told += f" If only the components that change places here are alike, declare {few}."
            return f"{told} The alignment itself was not checked: no log density is at hand."
        if checked:
            return ""
        return resolve(self.source, self.symmetry).caveat

    @property
    def rotates(self) -> bool:
        """Tell whether components were rotated."""
        return bool(blocks_of(self.symmetry, Rotation))

    @property
    def group(self) -> Group:
        """The group of the symmetry on this posterior."""
        names = {name for block in self.symmetry for name in block.variables}
        return Group(self.symmetry, event_shapes(self.source.posterior, names))

    @cached_property
    def relabelled(self) -> Bool[np.ndarray, "chain draw"]:
        """Which draws' labels alignment changed."""
        lead = self.distance_after.shape
        changed = np.zeros(lead, bool)
        for part, none in zip(self.element, self.group.identity(lead), strict=True):
            own, still = (
                (part.matrix, none.matrix)
                if isinstance(part, Rotated) and isinstance(none, Rotated)
                else (labels_of(part), labels_of(none))
            )
            changed |= (own != still).any(axis=(-2, -1))
        return changed

    @cached_property
    def allocations(self) -> Mapping[str, Allocation]:
        """Integer variables that number components, and are given the numbers of the new places."""
        moved = {name for block in self.symmetry for name in block.variables}
        return allocations_in(self.source, self.element, moved)

    @cached_property
    def density(self) -> DensityCheck | None:
        """Comparison of the log density of moved draws with that of the draws as they came; None if there is none.

        Raises
        ------
        ValueError
            If alignment changes it.
        """
        if self.source.log_density is None or not all(b.keeps_density for b in self.symmetry):
            return None
        words = spelt(self.symmetry)
        return compare_densities(self.source, self._moved.variables, self.relabelled, words)

    @cached_property
    def posterior(self) -> xr.DataTree:
        """The aligned posterior with all its groups, the moved variables replaced; made when it is first asked for.

        Statistics of the draws (`lp`, `energy`, ...) are those of the draws as they came. Permutations,
        signs and complements leave them as they are; rescaling does not leave `lp`, which holds the prior.
        """
        tree = self.source.tree.copy()
        own = self.source.posterior
        also = renumbered(own, self.allocations, self.element)
        tree[schema.POSTERIOR] = xr.DataTree(own.assign({**self._moved.variables, **also}))
        if self._moved.filed is not None:
            close_with(tree, self._moved.filed)
        tree.attrs |= {
            schema.SYMMETRY: to_json(self.symmetry),
            schema.ALIGNMENT: self.rule.to_json(),
            schema.ALIGNMENT_RULE: self.text,
            schema.ALIGNMENT_SWEEPS: self.sweeps,
            schema.ALIGNMENT_CONVERGED: int(self.converged),
        }
        if not resolve(
            self.source, self.symmetry
        ).in_file:  # the source's evidence is of another one
            tree.attrs.pop(schema.SYMMETRY_EVIDENCE, None)
        return tree

    @cached_property
    def _moved(self) -> Moved:
        dataset = self.source.posterior
        names = [str(n) for n in dataset if any(n in block.variables for block in self.symmetry)]
        return moved(dataset[names], self.group, self.element, self.source.argument)

    def to_dataset(self) -> xr.Dataset:
        """Return elements, reference, distances and costs, as group `alignment` of a file."""
        variables: dict[str, Any] = {}
        for place, part in enumerate(self.element):
            for word, array in part._asdict().items():
                if array is not None:
                    own = (f"block{place}_part", f"block{place}_from")
                    dims = (*schema.SAMPLE_DIMS, *own)[: array.ndim]
                    variables[f"block{place}_{word}"] = (dims, _compact(word, array))
        for name, array in self.reference.items():
            dims = tuple(f"reference_{name}_dim_{axis}" for axis in range(array.ndim))
            variables[f"reference_{name}"] = (dims, array)
        variables["distance_before"] = (schema.SAMPLE_DIMS, self.distance_before)
        variables["distance_after"] = (schema.SAMPLE_DIMS, self.distance_after)
        variables["cost"] = (("sweep",), np.asarray(self.cost))
        attributes: dict[str, Any] = {
            "symmetry": to_json(self.symmetry),
            "rule": self.rule.to_json(),
        }
        attributes |= {"text": self.text, "converged": int(self.converged)}
        return xr.Dataset(variables, attrs=attributes)

    def _card(self) -> Card:
        return of_alignment(self)

    def to_tree(self) -> xr.DataTree:
        """Return the aligned posterior with the group `alignment` in it."""
        tree = self.posterior.copy()
        tree[schema.ALIGNMENT] = xr.DataTree(self.to_dataset())
        close_with(tree, self.posterior)
        return tree


def element_of(dataset: xr.Dataset, symmetry: Symmetry) -> Element:
    """Read the elements back from what `Alignment.to_dataset` made.

    Raises
    ------
    ValueError
        If the dataset lacks a block's array.
    """
    return tuple(
        block.read_part(partial(_array, dataset, place)) for place, block in enumerate(symmetry)
    )


def _array(dataset: xr.Dataset, place: int, word: str) -> np.ndarray:
    name = f"block{place}_{word}"
    if name not in dataset:
        raise ArgumentError(
            f"`dataset` lacks {name}; give the group `alignment` that was saved with this symmetry."
        )
    return dataset[name].values


def _compact(word: str, array: np.ndarray) -> np.ndarray:
    """The smallest type that holds the values exactly."""
    if word == "permutation":
        return array.astype(np.int32)
    return array.astype(np.int8) if word in ("signs", "swapped") else array


def of_alignment(alignment: Alignment) -> Card:
    """Show the variables that were moved, how much that brought, and the rule."""
    flag: Flag = "" if alignment.converged else "warn"
    return Card("Aligned draws", tuple(_of_alignment(alignment)), flag)


def _of_alignment(alignment: Alignment) -> Iterator[Part]:
    moved, draws = alignment.relabelled.mean(), alignment.distance_after.size
    before, after = alignment.distance_before.mean(), alignment.distance_after.mean()
    what = (
        "No draw had to be moved"
        if moved == 0
        else f"{100 * moved:.3g} % of {draws:,} draws were moved"
    )
    closer = (
        f": their squared distance to the reference is {after / before:.2g} of what it was"
        if moved
        else ""
    )
    yield Words(
        f"{what}{closer}. `.posterior` holds the aligned draws, and `ob.diagnose` judges them."
    )
    if not alignment.converged:
        yield Words(
            f"Parts still moved in the last of {alignment.sweeps} sweeps: give more with `max_sweeps`.",
            flag="warn",
        )
    yield FactList.of(
        ("modulo", in_words(alignment.symmetry)),
        ("found", ", ".join(f"`{word}`" for word in alignment.found)),
        ("renumbered", ", ".join(alignment.allocations)),
        ("sweeps", str(alignment.sweeps)),
    )
    if alignment.density is not None and alignment.density.sentence:
        yield Words(alignment.density.sentence, small=True)
    if alignment.caveat:
        yield Words(alignment.caveat, small=True)
    yield Words(alignment.text, small=True)


Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Moved:
    """Moved variables, and what holds them on disk, where they are there; it is removed when it is closed."""

    variables: Mapping[str, xr.DataArray]
    filed: xr.DataTree | None = None


def moved(dataset: xr.Dataset, group: Group, element: Element, argument: str) -> Moved:
    """Move every draw by its element.

    Parameters
    ----------
    dataset : Dataset
        The variables that move.
    group : Group
        Of the symmetry.
    element : Element
        Leading axes (chain, draw).
    argument : str
        What messages call the posterior.

    Raises
    ------
    ValueError
        If the disk has no room for them.
    """
    first = {str(n): v.transpose(*schema.SAMPLE_DIMS, ...) for n, v in dataset.data_vars.items()}
    filed = None
    if any(map(is_read_later, first.values())):
        try:
            with workers(1):
                filed = _filed(first, group, element)
        except ClaimError as error:
            raise ArgumentError(f"`{argument}` cannot be aligned: it {error}.") from error
        there = filed[schema.POSTERIOR].data_vars
        made = {n: _named(there[n], variable) for n, variable in first.items()}
    else:
        whole = group.act(element, {n: v.values for n, v in first.items()})
        made = {n: variable.copy(data=whole[n]) for n, variable in first.items()}
    return Moved({n: v.transpose(*dataset[n].dims) for n, v in made.items()}, filed)


def _filed(variables: Mapping[str, xr.DataArray], group: Group, element: Element) -> xr.DataTree:
    chains, draws = next(iter(variables.values())).shape[:2]
    bytes_a_draw = sum(prod(v.shape[2:]) * v.dtype.itemsize for v in variables.values())
    rows = max(1, PIECE // bytes_a_draw)
    pieces = _pieces(variables, group, element, rows)
    chain, first, values = next(pieces)
    kinds = {n: (v.shape[1:], v.dtype) for n, v in values.items()}
    scratch = Scratch(chains, draws, {schema.POSTERIOR: kinds}, rows=rows)
    try:
        while values:
            for name, array in values.items():
                scratch.put(schema.POSTERIOR, name, chain, first, array)
            chain, first, values = next(pieces, (0, 0, {}))
    except BaseException:
        scratch.remove()
        raise
    return scratch.tree({}, lazy=True)


def _pieces(
    variables: Mapping[str, xr.DataArray], group: Group, element: Element, rows: int
) -> Iterator[tuple[int, int, Arrays]]:
    """Moved draws (draw, ...), some of a chain at a time: its number, that of the first of them, arrays."""
    chains, draws = next(iter(variables.values())).shape[:2]
    for chain in range(chains):
        for first in range(0, draws, rows):
            place = (chain, slice(first, first + rows))
            own = tuple(on_arrays(part, itemgetter(place)) for part in element)
            yield (
                chain,
                first,
                dict(group.act(own, {n: v[place].values for n, v in variables.items()})),
            )


def _named(values: xr.DataArray, like: xr.DataArray) -> xr.DataArray:
    """Return a scratch's values with the axes, labels and attributes of the original variable."""
    axes = dict(zip(values.dims, like.dims, strict=True))
    bare = values.drop_vars(list(values.coords)).rename(axes)
    return bare.assign_coords(like.coords).assign_attrs(like.attrs)
