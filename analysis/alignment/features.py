"""Features that are matched: a posterior's weights, or the activations of a network's hidden units.

Features are arrays (draw, *event) that the symmetry's blocks move, under a symmetry of their own: that
of the weights without its scalings and rotations, which are divided out first, with counterparts as one array; or of
activations, in which hidden layer l is one variable (obs, hidden) that its block permutes (and, with an odd
activation, flips). Activations do not depend on the labels of earlier layers, so every layer is an assignment
problem of its own (Ainsworth, Hayase and Srinivasa 2023, section 3.1). The squared distance of activations and
minus their inner product have the same optimal assignment, as the sums of squares do not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

import numpy as np
from jaxtyping import Float

from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import (
    Block,
    Exchangeable,
    Rescalable,
    Rotation,
    Symmetry,
    blocks_of,
    discrete,
    equal_modes,
)
from onebasin.models.symmetry.elements import (
    Element,
    Part,
    Permuted,
    Rotated,
    Scaled,
    in_order,
    on_arrays,
)
from onebasin.models.symmetry.group import Group
from onebasin.models.symmetry.plain import PlainView, plain_view
from onebasin.posteriors.view import View

from .draws import Arrays, DrawReader, Workers
from .parts import Parts
from .rotations import find_rotations
from .units import FeatureUnits, factors, find_units, rescale

if TYPE_CHECKING:
    from onebasin.models.networks.architecture import Network
    from onebasin.models.networks.bayesian import BayesianNetwork


Transform = Callable[[Arrays], Arrays]


@dataclass(frozen=True, eq=False)
class Features:
    """The features of a posterior's draws, chunk by chunk.

    `declared` is the symmetry of the draws, `plain` the view that features are in, of which no block rescales.
    `transform` takes variables to features (by default themselves), `rotated` holds the rotations that make loadings
    simple, of every `Rotation` block; features are read in `found_units`, or as they come.
    """

    reader: DrawReader
    declared: Symmetry
    plain: PlainView
    gauge: str
    transform: Transform | None = None
    found_units: FeatureUnits | None = None
    rotated: tuple[Rotated, ...] = ()

    @property
    def symmetry(self) -> Symmetry:
        """The blocks that move features."""
        return self.plain.blocks

    @property
    def units(self) -> FeatureUnits:
        """The units that features are read in."""
        if self.found_units is None:
            raise RuntimeError("features are read as they come: `in_units` finds units.")
        return self.found_units

    def in_units(self, units: FeatureUnits | None = None) -> Features:
        """Return the same features in units of their own, or in those of other ones."""
        if units is None:
            # Rotations keep sums of squares about zero, which is the centre of what they move.
            chunks = map(self.read_as_labelled if self.rotated else self._read, self.chunks)
            units = find_units(chunks, self.names, self.symmetry, self.reader.argument)
        return replace(self, found_units=units)

    @cached_property
    def scaled(self) -> list[Scaled]:
        """Factors (draw, component) of every `Rescalable` block, of all draws."""
        by_chunk = [
            factors(self.reader.read(chunk), self.declared, self.gauge)
            for chunk in self.reader.chunks
        ]
        return [
            Scaled(np.concatenate([p.factors for p in parts]))
            for parts in zip(*by_chunk, strict=True)
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """The features' names."""
        return tuple(dict.fromkeys(n for block in self.symmetry for n in block.variables))

    @property
    def chunks(self) -> tuple[slice, ...]:
        """The pieces that they are read in."""
        return self.reader.chunks

    @property
    def total(self) -> int:
        """Number of draws."""
        return self.reader.total

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each feature in one draw."""
        return {name: values.shape for name, values in self.read_one(0).items()}

    def read(self, chunk: slice) -> Arrays:
        """Return a chunk's features; kept where all draws are one chunk."""
        return self._whole if len(self.chunks) == 1 else self._read(chunk)

    def read_as_labelled(self, chunk: slice) -> Arrays:
        """Return a chunk's features without the rotations that make loadings simple."""
        if not self.rotated:
            return self.read(chunk)
        return self._in_units(self.reader.read(chunk), chunk)

    def read_one(self, row: int) -> Arrays:
        """Return one draw's features (*event)."""
        values = {n: v[None] for n, v in self.reader.read_one(row).items()}
        return {n: v[0, ...] for n, v in self._featurise(values, slice(row, row + 1)).items()}

    @cached_property
    def _whole(self) -> Arrays:
        return self._read(self.chunks[0])

    def _read(self, chunk: slice) -> Arrays:
        return self._featurise(self.reader.read(chunk), chunk)

    def _featurise(self, values: Arrays, rows: slice) -> Arrays:
        for block, part in zip(blocks_of(self.declared, Rotation), self.rotated, strict=True):
            values = block.act(values, part.matrix[rows])
        return self._in_units(values, rows)

    def _in_units(self, values: Arrays, rows: slice) -> Arrays:
        if blocks_of(self.declared, Rescalable):
            own = [Scaled(part.factors[rows]) for part in self.scaled]
            values = rescale(values, self.declared, own)
        values = self.plain.stack(self.transform(values) if self.transform else values, 1)
        return self.found_units.into(values) if self.found_units else values


def find_features(
    view: View,
    declared: Symmetry,
    gauge: str,
    team: Workers,
    max_bytes: int,
    activations: tuple[BayesianNetwork, Float[np.ndarray, "obs in"]] | None = None,
) -> Features:
    """Check a posterior, whose draws have to be finite and fit the symmetry, and make its features.

    These are the variables themselves, counterparts side by side, components that rotate made simple; or the
    `activations` of a network's hidden units on inputs, of which every block permutes one layer.
    """
    names = tuple(dict.fromkeys(n for block in declared for n in block.variables))
    extra = len(activations[1]) * sum(activations[0].network.hidden) if activations else 0
    reader = DrawReader(view.posterior, names, max_bytes, view.argument, extra)
    Group(declared, reader.shapes)  # refuses what does not fit
    reader.check_finite()
    if activations is None:
        rotations = blocks_of(declared, Rotation)
        rotated = tuple(find_rotations(reader, block, team) for block in rotations)
        plain = plain_view(discrete(declared), reader.shapes)
        return Features(reader, declared, plain, gauge, rotated=rotated)
    network = activations[0].network
    layers = tuple(_layer_block(block, network) for block in equal_modes(declared))
    transform = partial(_hidden_units, network, activations[1])
    return Features(reader, declared, plain_view(layers, {}), gauge, transform)


def whole_element(features: Features, parts: Parts) -> Element:
    """The element of the declared symmetry: scalings and rotations first, then what the features were moved by."""
    group = Group(tuple(block.discrete for block in features.declared), features.reader.shapes)
    scaled, rotated, moving = iter(features.scaled), iter(features.rotated), iter(parts)
    first: list[Part] = []
    then: list[Part] = []
    for block, still in zip(group.symmetry, group.identity((features.total,)), strict=True):
        first.append(still if block.keeps_density else next(scaled))
        then.append(next(moving) if block.keeps_density else still)
    moved = zip(features.declared, group.compose(tuple(first), tuple(then)), strict=True)
    lead, flat = features.reader.lead, list[Part]()
    for block, part in moved:
        rotates = block.discrete is not block
        flat.append(in_order(next(rotated), cast(Permuted, part)) if rotates else part)
    return tuple(on_arrays(part, lambda a: a.reshape(*lead, *a.shape[1:])) for part in flat)


def _hidden_units(network: Network, x: np.ndarray, values: Arrays) -> Arrays:
    """Activations (draw, obs, hidden) of every hidden layer: `Network.apply` without its last layer."""
    import jax.numpy as jnp

    hidden: Arrays = {}
    h = jnp.broadcast_to(jnp.asarray(x)[None], (len(next(iter(values.values()))), *x.shape))
    for number, layer in enumerate(network.layers[:-1], start=1):
        h = h @ jnp.asarray(values[str(layer.weight)])
        if layer.bias:
            h = h + jnp.asarray(values[layer.bias])[:, None, :]
        h = network.nonlinearity.function(h)
        hidden[f"hidden{number}"] = np.asarray(h)
    return hidden


def _layer_block(block: Block, network: Network) -> Exchangeable:
    for number, layer in enumerate(network.layers[:-1], start=1):
        if (layer.weight, 1) in block.moved:
            return Exchangeable({f"hidden{number}": 1}, flips=bool(block.flipped))
    raise ArgumentError(
        f"`cost` is 'activations', but {block!r} does not permute the units of one hidden layer; "
        "use cost='weights', or the network's own symmetry."
    )
