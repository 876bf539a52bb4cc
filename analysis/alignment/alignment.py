"""An alignment: every draw's group element, the reference, and the aligned posterior.

Arrays of elements are (chain, draw, component). Entry j of a permutation is the component, as numbered in the draw as
sampled, that has become component j. `Alignment.to_dataset` is a group for the posterior's file.

Integers that number components, such as allocations, are renumbered. No block names them: their values change, not
their places. They are recognised by the draws: their values are numbers of components, counted from 0 or 1, and
relabelled draws agree more with each other than draws as sampled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int, Num

from onebasin.base.card import Card, FactList, Part, Shown, Words
from onebasin.models.symmetry.blocks import Rotation, Symmetry, blocks_of, to_json
from onebasin.models.symmetry.elements import Element, Permuted, Rotated, labels_of
from onebasin.models.symmetry.group import Group, in_words
from onebasin.posteriors import schema
from onebasin.posteriors.draws import event_shapes
from onebasin.posteriors.view import View

from ..discovery.resolve import DensityCheck, compare_densities, resolve, spelt
from .reference import AlignmentRule, AlignmentTarget

_SMALLEST = {"permutation": np.int32, "signs": np.int8, "swapped": np.int8}
"""Integer types of the arrays of an element in a file."""
PerDraw = Float[np.ndarray, "chain draw"]


@dataclass(frozen=True, eq=False, repr=False)
class Alignment(Shown):
    """A posterior brought into one labelling.

    Attributes
    ----------
    source : View
        The posterior as sampled.
    symmetry : Symmetry
        Blocks modulo which it was aligned.
    rule : AlignmentRule
        The rule; `text` says it in words.
    found : tuple of str
        The symmetry's blocks in words, if it was found in the draws rather than declared; else empty.
    element : Element
        One group element per draw, leading axes (chain, draw).
    target : AlignmentTarget
        The reference: centres, and the weight of each entry.
    cost : tuple of float
        Mean cost of a draw after each sweep, relative to that sweep's reference.
    converged : bool
        Whether the last sweep moved nothing.
    distance_before, distance_after : array (chain, draw)
        Squared distance to the reference, as sampled and aligned. Variables are divided by their scales, and positive
        scalings are divided out.
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
        """The rule in words."""
        return self.rule.describe(self.symmetry)

    @cached_property
    def reference(self) -> Mapping[str, np.ndarray]:
        """Centre of the reference, by variable."""
        return self.target.centre

    @property
    def sweeps(self) -> int:
        """Number of sweeps."""
        return len(self.cost)

    @cached_property
    def caveat(self) -> str:
        """The part of the symmetry that was not checked, as a sentence; empty if all of it was."""
        checked = self.density is not None and self.density.compared
        if self.found:
            words = " and ".join(f"`{word}`" for word in self.found)
            told = (
                f"Labels switch in the draws, but no symmetry is declared. Declare {words} before the next run, and "
                "onebasin checks it on the log density."
            )
            if self.density:
                return told
            return f"{told} The alignment itself was not checked, because there is no log density."
        if self.density is not None and self.density.unchecked:
            return self.density.sentence
        return "" if checked else self.unchecked

    @cached_property
    def unchecked(self) -> str:
        """The unchecked part of the symmetry as a sentence, without integers that are renumbered."""
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
        """True for draws whose labels alignment changed."""
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
        """Integer variables that number components, and are renumbered."""
        moved = {name for block in self.symmetry for name in block.variables}
        return allocations_in(self.source, self.element, moved)

    @cached_property
    def density(self) -> DensityCheck | None:
        """The log density of moved draws compared with that of the draws as sampled; None without a log density.

        Raises
        ------
        ValueError
            If alignment changes the log density.
        """
        if self.source.log_density is None or not all(b.keeps_density for b in self.symmetry):
            return None
        words = spelt(self.symmetry)
        return compare_densities(self.source, self._moved, self.relabelled, words)

    @cached_property
    def posterior(self) -> xr.DataTree:
        """The aligned posterior with all its groups; computed on first access.

        Statistics of the draws (`lp`, `energy`, ...) are those of the draws as sampled. Permutations, signs and
        complements do not change them; rescaling changes `lp`, which includes the prior.
        """
        tree = self.source.tree.copy()
        also = renumbered(self.source.posterior, self.allocations, self.element)
        moved = self.source.posterior.assign({**self._moved, **also})
        tree[schema.POSTERIOR] = xr.DataTree(moved)
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
    def _moved(self) -> dict[str, xr.DataArray]:
        """Every variable of the symmetry, moved by the elements."""
        every = self.source.posterior
        names = [str(n) for n in every if any(n in block.variables for block in self.symmetry)]
        first = {name: every[name].transpose(*schema.SAMPLE_DIMS, ...) for name in names}
        whole = self.group.act(self.element, {n: v.values for n, v in first.items()})
        return {n: v.copy(data=whole[n]).transpose(*every[n].dims) for n, v in first.items()}

    def to_dataset(self) -> xr.Dataset:
        """Return elements, reference, distances and costs: the group `alignment` of a file."""
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
        attributes = {"symmetry": to_json(self.symmetry), "rule": self.rule.to_json()}
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
        parts: list[Part] = [Words(f"{what}. `diagnose` judges the aligned draws.")]
        if not self.converged:
            more = (
                f"Components still moved in the last of {self.sweeps} sweeps: raise `max_sweeps`."
            )
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
        """Return the aligned posterior with the group `alignment`."""
        tree = self.posterior.copy()
        tree[schema.ALIGNMENT] = xr.DataTree(self.to_dataset())
        return tree


LOOKED_AT = 200
"""Most draws of a chain in which allocations are searched for."""
GAIN = 0.02
"""Smallest rise of the share of pairs of draws that agree."""


class Allocation(NamedTuple):
    """The block whose components an integer numbers, and the number of its first component."""

    block: int
    first: int


def allocations_in(view: View, element: Element, moved: set[str]) -> dict[str, Allocation]:
    """Find integer variables that number the components of a block and that no block moves."""
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
    """Renumber allocations by the components after alignment."""
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
    flat = drawn.reshape(*drawn.shape[:2], -1).astype(np.intp) - first
    moved = np.take_along_axis(np.argsort(permutation, axis=-1), flat, axis=-1) + first
    return moved.reshape(drawn.shape).astype(drawn.dtype)


def _agreement(drawn: Num[np.ndarray, "chain draw *event"]) -> float:
    """Return the share of pairs of draws with equal numbers, averaged over entries."""
    flat = drawn.reshape(drawn.shape[0] * drawn.shape[1], -1)
    numbers = range(int(flat.min()), int(flat.max()) + 1)
    return float(sum(((flat == k).mean(axis=0) ** 2).mean() for k in numbers))
