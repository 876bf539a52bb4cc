"""An alignment: every draw's group element, what it was matched with, and the aligned posterior.

Convention: arrays of elements are (chain, draw, component); entry j of a permutation is the component, as
numbered in the draw as it came, that has become component j. Draws are moved in memory if they exist, else a
piece at a time from their file to a scratch. `Alignment.to_dataset` is a group for the posterior's file.

Integers that are numbers of components, as allocations are, get the numbers of the new places. No block names them:
they take values, not places. Which variables they are is read from the draws: their values are numbers of components,
counted from 0 or 1, and relabelled draws agree with one another more than draws as sampled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int, Num

from onebasin.base.card import Card, FactList, Part, Shown, Words
from onebasin.base.errors import ArgumentError
from onebasin.base.files.netcdf import PIECE, is_read_later
from onebasin.base.files.sizes import ClaimError
from onebasin.models.symmetry.blocks import Rotation, Symmetry, blocks_of, to_json
from onebasin.models.symmetry.elements import Element, Permuted, Rotated, labels_of, on_arrays
from onebasin.models.symmetry.group import Group, in_words
from onebasin.posteriors import schema
from onebasin.posteriors.draws import event_shapes
from onebasin.posteriors.scratch import Scratch, close_with
from onebasin.posteriors.view import View

from ..discovery.resolve import DensityCheck, compare_densities, resolve, spelt
from .draws import workers
from .reference import AlignmentRule, AlignmentTarget

_SMALLEST = {"permutation": np.int32, "signs": np.int8, "swapped": np.int8}
"""Types that hold the arrays of an element exactly."""
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
        """The part of the symmetry that is not checked, as a sentence; empty if all is checked."""
        checked = self.density is not None and self.density.compared
        if self.found:
            words = " and ".join(f"`{word}`" for word in self.found)
            told = (
                f"Labels switch in the draws, and nothing declares a symmetry: declare {words} before the next "
                "run, and it is checked on the log density."
            )
            if self.density:
                return told
            return f"{told} The alignment itself was not checked: no log density is at hand."
        if self.density is not None and self.density.unchecked:
            return self.density.sentence
        return "" if checked else self.unchecked

    @cached_property
    def unchecked(self) -> str:
        """Open points of the symmetry as a sentence, without integers that get the numbers of new places."""
        resolved, evidence = resolve(self.source, self.symmetry), self.source.symmetry_evidence
        if evidence is None or not (resolved.in_file and self.allocations):
            return resolved.caveat
        left = tuple(name for name in evidence.left_behind if name not in self.allocations)
        return replace(evidence, left_behind=left).sentence

    @property
    def rotates(self) -> bool:
        """Check whether components were rotated."""
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
                p.matrix if isinstance(p, Rotated) else labels_of(p) for p in (part, none)
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
        """Comparison of the log density of moved draws with that of the draws as sampled; None if there is none.

        Raises
        ------
        ValueError
            If alignment changes it.
        """
        if self.source.log_density is None or not all(b.keeps_density for b in self.symmetry):
            return None
        words = spelt(self.symmetry)
        return compare_densities(self.source, self._moved[0], self.relabelled, words)

    @cached_property
    def posterior(self) -> xr.DataTree:
        """The aligned posterior with all its groups, the moved variables replaced; made when it is first asked for.

        Statistics of the draws (`lp`, `energy`, ...) are those of the draws as sampled. Permutations,
        signs and complements leave them as they are; rescaling does not leave `lp`, which holds the prior.
        """
        tree = self.source.tree.copy()
        own, (variables, filed) = self.source.posterior, self._moved
        also = renumbered(own, self.allocations, self.element)
        tree[schema.POSTERIOR] = xr.DataTree(own.assign({**variables, **also}))
        if filed is not None:
            close_with(tree, filed)
        tree.attrs |= {
            schema.SYMMETRY: to_json(self.symmetry),
            schema.ALIGNMENT: self.rule.to_json(),
            schema.ALIGNMENT_RULE: self.text,
            schema.ALIGNMENT_SWEEPS: self.sweeps,
            schema.ALIGNMENT_CONVERGED: int(self.converged),
        }
        if not resolve(self.source, self.symmetry).in_file:
            # The source's evidence belongs to another symmetry.
            tree.attrs.pop(schema.SYMMETRY_EVIDENCE, None)
        return tree

    @cached_property
    def _moved(self) -> tuple[dict[str, xr.DataArray], xr.DataTree | None]:
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
                    kept = array.astype(_SMALLEST.get(word, array.dtype))
                    variables[f"block{place}_{word}"] = (dims, kept)
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
        moved, draws = self.relabelled.mean(), self.distance_after.size
        before, after = self.distance_before.mean(), self.distance_after.mean()
        what = "No draw had to be moved"
        if moved:
            what = (
                f"{100 * moved:.3g} % of {draws:,} draws were moved: their squared distance to the reference fell to "
                f"{100 * after / before:.2g} %"
            )
        then = "`diagnose` judges the aligned draws."
        parts: list[Part] = [Words(f"{what}. {then}")]
        if not self.converged:
            more = f"Parts still moved in the last of {self.sweeps} sweeps: give more with `max_sweeps`."
            parts.append(Words(more, flag="warn"))
        facts = FactList.of(
            ("modulo", in_words(self.symmetry)),
            ("found", ", ".join(f"`{word}`" for word in self.found)),
            ("renumbered", ", ".join(self.allocations)),
            ("sweeps", str(self.sweeps)),
        )
        density = "" if self.density is None else self.density.sentence
        small = [Words(text, small=True) for text in (density, self.caveat, self.text) if text]
        return Card("Aligned draws", (*parts, facts, *small), "" if self.converged else "warn")

    def to_tree(self) -> xr.DataTree:
        """Return the aligned posterior with the group `alignment` in it."""
        tree = self.posterior.copy()
        tree[schema.ALIGNMENT] = xr.DataTree(self.to_dataset())
        close_with(tree, self.posterior)
        return tree


def moved(
    dataset: xr.Dataset, group: Group, element: Element, argument: str
) -> tuple[dict[str, xr.DataArray], xr.DataTree | None]:
    """Move every draw of the variables by its element (chain, draw); reject what the disk has no room for.

    Also returns what holds the moved variables on disk, if they exist; it is removed when it is closed.
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
        made = {}  # with the axes, labels and attributes of the original variables
        for name, like in first.items():
            bare = there[name].drop_vars(list(there[name].coords))
            bare = bare.rename(dict(zip(bare.dims, like.dims, strict=True)))
            made[name] = bare.assign_coords(like.coords).assign_attrs(like.attrs)
    else:
        whole = group.act(element, {n: v.values for n, v in first.items()})
        made = {n: variable.copy(data=whole[n]) for n, variable in first.items()}
    return {n: v.transpose(*dataset[n].dims) for n, v in made.items()}, filed


def _filed(variables: Mapping[str, xr.DataArray], group: Group, element: Element) -> xr.DataTree:
    """Move some draws of a chain at a time."""
    chains, draws = next(iter(variables.values())).shape[:2]
    rows = max(1, PIECE // sum(prod(v.shape[2:]) * v.dtype.itemsize for v in variables.values()))

    def piece(chain: int, first: int) -> dict[str, np.ndarray]:
        place = (chain, slice(first, first + rows))
        own = tuple(on_arrays(part, itemgetter(place)) for part in element)
        return group.act(own, {n: v[place].values for n, v in variables.items()})

    kinds = {n: (v.shape[1:], v.dtype) for n, v in piece(0, 0).items()}
    scratch = Scratch(chains, draws, {schema.POSTERIOR: kinds}, rows=rows)
    try:
        for chain, first in product(range(chains), range(0, draws, rows)):
            for name, array in piece(chain, first).items():
                scratch.put(schema.POSTERIOR, name, chain, first, array)
    except BaseException:
        scratch.remove()
        raise
    return scratch.tree({}, lazy=True)


LOOKED_AT = 200
"""Draws of each chain that are looked at."""
GAIN = 0.02
"""By how much the share of pairs of draws that agree has to rise."""


class Allocation(NamedTuple):
    """The place of the block whose components an integer numbers, and the number of the first."""

    block: int
    first: int


def allocations_in(view: View, element: Element, moved: set[str]) -> dict[str, Allocation]:
    """Find integer variables that number the components of a block, among those that no block moves."""
    rows = np.arange(0, view.num_draws, -(-view.num_draws // LOOKED_AT))
    found: dict[str, Allocation] = {}
    for name, variable in view.arrays.items():
        timed = set(schema.SAMPLE_DIMS) <= set(variable.dims)
        if name in moved or not timed or variable.dtype.kind not in "iuf":
            continue
        drawn = variable.isel(draw=rows).transpose(*schema.SAMPLE_DIMS, ...).values
        if not np.isfinite(drawn).all() or (drawn != np.rint(drawn)).any():
            continue
        permuted = [(n, p.permutation) for n, p in enumerate(element) if isinstance(p, Permuted)]
        for block, permutation in permuted:
            for first in (1, 0):
                beyond = first + permutation.shape[-1]
                if not drawn.size or drawn.min() < first or drawn.max() >= beyond:
                    continue
                agree = _agreement(_renumbered(drawn, permutation[:, rows], first))
                if agree > _agreement(drawn) + GAIN:
                    found.setdefault(str(name), Allocation(block, first))
    return found


def renumbered(
    dataset: xr.Dataset, allocations: Mapping[str, Allocation], element: Element
) -> dict[str, xr.DataArray]:
    """Give allocations the numbers that components have after alignment."""
    out = {}
    for name, (block, first) in allocations.items():
        drawn = dataset[name].transpose(*schema.SAMPLE_DIMS, ...)
        part = element[block]
        assert isinstance(part, Permuted)
        values = _renumbered(drawn.values, part.permutation, first)
        out[name] = drawn.copy(data=values).transpose(*dataset[name].dims)
    return out


def _renumbered(
    drawn: Num[np.ndarray, "chain draw *event"],
    permutation: Int[np.ndarray, "chain draw component"],
    first: int,
) -> Num[np.ndarray, "chain draw *event"]:
    """Component `permutation[i]` becomes component i."""
    flat = drawn.reshape(*drawn.shape[:2], -1).astype(np.intp) - first
    moved = np.take_along_axis(np.argsort(permutation, axis=-1), flat, axis=-1) + first
    return moved.reshape(drawn.shape).astype(drawn.dtype)


def _agreement(drawn: Num[np.ndarray, "chain draw *event"]) -> float:
    """Mean over entries of the share of pairs of draws that have the same number."""
    flat = drawn.reshape(drawn.shape[0] * drawn.shape[1], -1)
    numbers = range(int(flat.min()), int(flat.max()) + 1)
    return float(sum(((flat == k).mean(axis=0) ** 2).mean() for k in numbers))
