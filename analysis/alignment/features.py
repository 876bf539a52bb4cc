"""Features for matching: the weights of a posterior, or the activations of a network's hidden units.

Features are arrays (draw, *event) with their own symmetry. For weights, it has no scalings and rotations, which are
removed first. For activations, hidden layer l is one variable (obs, hidden) that its block permutes, independently of
the labels of earlier layers (Ainsworth, Hayase and Srinivasa 2023, section 3.1).

Units: results do not depend on the origin or size of a feature. Every feature is centred in a way that keeps the
symmetry and divided by a power of two near its spread. The spread is the root mean square about the mean of
exchangeable entries (about 0 if signs may flip, about 1/2 if a value may become its complement).

Gauges choose the factor by which a `Rescalable` block multiplies a unit's incoming weights and divides its outgoing
weights. ``balanced`` gives |incoming| = |outgoing|, which minimises the sum of squares on the orbit. ``unit`` gives
|incoming| = 1 (Pourzanjani, Jiang and Petzold 2017, section 3.2). Deep networks are balanced layer by layer until
nothing changes. A unit with a norm of zero does not change. Scaling preserves the likelihood but not the prior.

Rotations give the loadings of every draw a simple structure (varimax) before components are matched. Rotating every
draw to a common mean (Procrustes) would make standard deviations too small. Varimax uses each draw separately and does
not determine the order and signs of components (Papastamoulis and Ntzoufras 2022, Statistics and Computing 32). Its
optimum must be clear, which it is not for nearly spherical loadings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

import numpy as np
from jaxtyping import Float

from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import (
    Block,
    Exchangeable,
    Group,
    Rescalable,
    Rotation,
    Symmetry,
    axes_of,
    blocks_of,
    discrete,
    equal_modes,
    variables_of,
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
from onebasin.models.symmetry.plain import PlainView, plain_view
from onebasin.models.symmetry.rotation import (
    Loadings,
    Rotations,
    criterion,
    nearest_rotation,
    refine,
)
from onebasin.posteriors.view import View

from ..discovery.sorting import procrustes
from ..summaries.summary import power_of_two
from .draws import Arrays, DrawReader, Parts, Workers

if TYPE_CHECKING:
    from onebasin.models.networks.architecture import Network
    from onebasin.models.networks.bayesian import BayesianNetwork

CLEAR = 15.0
"""Largest rotation of draws about the mean, in degrees, in the plane of two components; 26 means no information."""
ELSEWHERE = 0.2
"""Largest share of draws whose best optimum is not the one near the mean."""
STARTS = 10
"""Number of random starts for the loadings of the mean."""
BETTER = 1e-6
"""Relative gain in the criterion above which an optimum counts as better."""
_LEAST, _MOST, _WORK = 16, 200, 5e7


class UnclearRotation(ArgumentError):
    """Error for loadings without a clear varimax optimum. `reason` is a sentence without the argument's name."""

    def __init__(self, argument: str, reason: str) -> None:
        super().__init__(
            f"`{argument}` cannot be aligned by a rotation. {reason} Use quantities that no rotation changes, such as "
            "L L' of loadings L. Or fix the rotation in the model: loadings with zeros above a positive diagonal."
        )
        self.reason = reason


def find_rotations(reader: DrawReader, block: Rotation, team: Workers) -> Rotated:
    """Find rotations, close to each other, that give the loadings of all draws a simple structure."""

    def one(row: int) -> Loadings:
        draw = reader.read_one(row)
        return _loadings({name: values[None] for name, values in draw.items()}, block)

    size, rows = one(0).shape[1:]
    count = int(np.clip(_WORK / (size**2 * rows), _LEAST, _MOST))
    chosen = np.unique(np.linspace(0, reader.total - 1, count).round().astype(int))
    some = np.concatenate([one(int(row)) for row in chosen])
    # Rotate the draws to each other, and their mean to the best optimum from some random starts. Order the components
    # of the mean by size, and make their sums of cubes positive.
    mean = procrustes(some)[0].mean(axis=0)
    starts = np.concatenate([np.eye(len(mean))[None], _random(STARTS, len(mean))])
    every = np.broadcast_to(mean, (len(starts), *mean.shape))
    turns = _shared(every, starts, team)
    best = refine(mean[None], turns[[criterion(turns @ mean).argmax()]])[0] @ mean
    best = best[np.argsort(-np.square(best).sum(axis=1), kind="stable")]
    mean = np.asarray(best * np.where((best**3).sum(axis=1, keepdims=True) < 0, -1, 1))

    def simple(draws: Loadings) -> Rotations:
        towards = mean.astype(draws.dtype) @ np.swapaxes(draws, 1, 2)
        return refine(draws, nearest_rotation(towards))

    if reason := why_unclear(some, simple(some), mean, block.loadings, team):
        raise UnclearRotation(reader.argument, reason)

    def piece(_: slice, values: Arrays) -> Rotations:
        draws = {block.loadings: _of_size_one(values[block.loadings])}
        return simple(_loadings(draws, block, np.float32))

    own = replace(reader, names=(block.loadings,))  # The scores are not needed.
    return Rotated(np.concatenate(list(team.through(own.read, reader.chunks, piece))))


def _loadings(draws: Arrays, block: Rotation, dtype: type = np.float64) -> Loadings:
    """Return the loadings (draw, component, row) of draws (draw, *event)."""
    (axis,) = axes_of(block.axes[block.loadings])
    front = np.moveaxis(draws[block.loadings], axis + 1, 1)
    return np.ascontiguousarray(front.reshape(*front.shape[:2], -1), dtype)


def why_unclear(
    draws: Loadings,
    turns: Rotations,
    mean: Float[np.ndarray, "component row"],
    loadings: str,
    team: Workers,
) -> str:
    """Explain why draws disagree on the rotation. Return "" if they agree.

    `draws` are loadings (draw, component, row) as sampled. `turns` are rotations that make them simple, near a mean.
    """
    simple = turns @ draws
    about = nearest_rotation(simple.mean(axis=0) @ np.swapaxes(simple, 1, 2))
    sines = (about - np.swapaxes(about, 1, 2)) / 2
    angles = np.degrees(np.arcsin(np.clip(np.abs(sines), 0, 1)))
    degrees = np.sqrt((angles**2).mean(axis=0))  # For each pair of components.
    if (worst := float(degrees.max(initial=0.0))) > CLEAR:
        open_ = int((degrees > CLEAR).any(axis=0).sum())
        return (
            f"Varimax has no clear optimum: in the plane of two components of {loadings}, draws are rotated by "
            f"{worst:.0f} degrees about their mean ({CLEAR:.0f} are allowed, 26 means no information). This affects "
            f"{open_} of {len(degrees)} components. Their loadings are nearly spherical, the data cannot distinguish "
            "this many components, or the variable named first does not contain loadings."
        )
    best = criterion(_shared(draws, _random(len(draws), draws.shape[1]), team) @ draws)
    elsewhere = float((best > criterion(simple) * (1 + BETTER)).mean())
    if elsewhere > ELSEWHERE:
        return (
            f"Varimax has no clear optimum: for {elsewhere:.0%} of the draws of {loadings}, the best optimum is not "
            f"near the mean ({ELSEWHERE:.0%} are allowed)."
        )
    return ""


def _of_size_one(draws: np.ndarray) -> np.ndarray:
    """Divide draws (draw, *event) by their largest entries, so that squares stay finite."""
    axes = tuple(range(1, draws.ndim))
    largest = np.maximum(draws.max(axes, keepdims=True), -draws.min(axes, keepdims=True))
    return np.asarray(draws / np.where(largest > 0, largest, 1))


def _shared(loadings: Loadings, starts: Rotations, team: Workers) -> Rotations:
    """Maximise the criterion from given starts, in parallel."""
    sized = _of_size_one(loadings)
    climbed = team.over(len(starts), lambda within: refine(sized[within], starts[within]))
    return np.concatenate(list(climbed))


def _random(count: int, size: int) -> Rotations:
    return Rotation({"any": 0}).random(np.random.default_rng(0), (count,), size).matrix


_STEPS = 64
"""Minimum number of distinct doubles within the spread of a feature."""


@dataclass(frozen=True, eq=False)
class FeatureUnits:
    """A centre (*event) and a unit, a power of two, for each feature.

    `spread` is the root mean square in the original units, or 0 if the feature never varies.
    """

    centre: Mapping[str, np.ndarray]
    unit: Mapping[str, float]
    spread: Mapping[str, float]

    def into(self, values: Mapping[str, np.ndarray]) -> Arrays:
        """Convert features (draw, *event) to these units."""
        return {
            n: (v - self.centre[n] if self.centre[n].any() else v) / self.unit[n]
            for n, v in values.items()
            if n in self.unit
        }

    def back(self, values: Mapping[str, np.ndarray]) -> Arrays:
        """Convert values, such as a mean, back to the original units."""
        return {n: np.asarray(self.centre[n] + self.unit[n] * v) for n, v in values.items()}

    def scales_into(self, scales: Mapping[str, float]) -> dict[str, float]:
        """Convert scales to these units. Reject a scale so far from the draws' spread that squares overflow."""
        for name, scale in scales.items():
            if not 1e-150 <= scale / self.unit[name] <= 1e150:
                raise ArgumentError(
                    f"`scales[{name!r}]` is {scale:.3g}, but the spread of the draws of {name} is about "
                    f"{self.unit[name]:.3g}. With this scale, squared distances overflow or underflow. Give a scale "
                    "close to the spread."
                )
        return {name: scale / self.unit[name] for name, scale in scales.items()}


def find_units(
    chunks: Iterable[Arrays], names: tuple[str, ...], symmetry: Symmetry, argument: str
) -> FeatureUnits:
    """Find the units of features (draw, *event), chunk by chunk. Reject a spread that is lost in rounding."""
    found: dict[str, _Spread] = {}
    for values in chunks:
        for name in names:
            if name not in found:
                blocks = [block for block in symmetry if name in block.variables]
                centre = 0.5 if any(name in block.complemented for block in blocks) else None
                centre = 0.0 if any(name in block.flipped for block in blocks) else centre
                # Average over draws, and over the axes along which blocks exchange entries.
                moved = [axes_of(block.axes[name]) for block in blocks if name in block.axes]
                axes = (0, *sorted({axis + 1 for own in moved for axis in own}))
                found[name] = _Spread.about(values[name], centre, axes)
            found[name].add(values[name])
    for name, spread in found.items():
        spread.refuse_lost(name, argument)
    kept = {name for block in symmetry for name in block.complemented}
    return FeatureUnits(
        centre={n: np.zeros_like(s.centre) if n in kept else s.centre for n, s in found.items()},
        unit={n: 1.0 if n in kept else power_of(s.size) for n, s in found.items()},
        spread={n: s.size for n, s in found.items()},
    )


@dataclass(eq=False)
class _Spread:
    """Sums of one feature about a centre, added up chunk by chunk, in a unit that keeps squares finite."""

    centre: np.ndarray
    unit: float
    free: bool
    axes: tuple[int, ...]
    count: int = 0
    first: np.ndarray | float = 0.0
    second: np.ndarray | float = 0.0
    low: np.ndarray | float = np.inf
    high: np.ndarray | float = -np.inf

    @classmethod
    def about(cls, values: np.ndarray, centre: float | None, axes: tuple[int, ...]) -> _Spread:
        """Start with the first values (draw, *event). By default their mean is the centre."""
        low, high = (float(f(values)) for f in (np.min, np.max))
        half = high / 2 - low / 2
        unit = power_of(half)
        if centre is not None:
            largest = power_of(max(abs(low - centre), abs(high - centre)))
            return cls(np.full(values.shape[1:], centre, values.dtype), largest, False, axes)
        middle = low + half
        mean = ((values - values.dtype.type(middle)) / unit).mean(axes, np.float64, keepdims=True)
        whole = np.broadcast_to(middle + unit * mean, (1, *values.shape[1:]))[0]
        return cls(whole.astype(values.dtype), unit, True, axes)

    def add(self, values: np.ndarray) -> None:
        """Add the values of another chunk."""
        gap = values.astype(np.float64, copy=False)
        gap = (gap - self.centre if self.centre.any() else gap) / self.unit
        self.count += gap.size
        self.second = self.second + float(np.vdot(gap, gap))
        axes = self.axes if self.free else None
        self.low = np.minimum(self.low, values.min(axis=axes))
        self.high = np.maximum(self.high, values.max(axis=axes))
        if self.free:
            self.first = self.first + gap.sum(axis=self.axes)

    @property
    def size(self) -> float:
        """The spread; 0 if nothing varies."""
        each = self.count / np.size(self.first)
        if self.free and np.array_equal(self.low, self.high):
            return 0.0  # Avoid rounding errors of the centres.
        shift = np.square(np.asarray(self.first) / each).mean() if self.free else 0.0
        return self.unit * float(np.sqrt(max(float(self.second) / self.count - shift, 0.0)))

    def refuse_lost(self, name: str, argument: str) -> None:
        """Reject a spread that is lost in rounding."""
        double = _STEPS * np.finfo(np.float64).eps
        largest = float(max(np.max(np.abs(self.low)), np.max(np.abs(self.high))))
        least = max(double, float(np.finfo(self.centre.dtype).eps)) * largest
        if 0 < self.size < least:
            raise ArgumentError(
                f"The values of {name} in `{argument}` are as large as {largest:.3g}, but the differences between "
                f"components and draws are only {self.size:.3g}. Differences of this size are lost in rounding. "
                "Subtract a common offset from the values before you store the draws."
            )


def power_of(size: float) -> float:
    """Return the largest power of two that is not larger than `size`, or 1 if `size` is zero."""
    return float(power_of_two(np.asarray(size)))


GAUGES = ("balanced", "unit", "keep")
_ROUNDS = 500
_TOLERANCE = 1e-14

Values = dict[str, np.ndarray]


def factors(values: Values, symmetry: Symmetry, gauge: str) -> list[Scaled]:
    """Find the factors (draw, component) of each `Rescalable` block that put draws (draw, *event) into a gauge."""
    blocks = blocks_of(symmetry, Rescalable)
    product = [np.ones(_norms(values, block.incoming).shape) for block in blocks]
    if gauge == "keep":
        return [Scaled(factor) for factor in product]
    for _ in range(_ROUNDS):
        largest = 0.0
        for place, block in enumerate(blocks):
            incoming = _norms(values, block.incoming)
            if gauge == "unit" or not block.outgoing:
                factor = np.where(incoming > 0, 1 / np.where(incoming > 0, incoming, 1), 1)
            else:
                outgoing = _norms(values, block.outgoing)
                alive = (incoming > 0) & (outgoing > 0)
                ratio = np.where(alive, outgoing, 1), np.where(alive, incoming, 1)
                factor = np.sqrt(ratio[0]) / np.sqrt(ratio[1])
            values = block.act(values, factor)
            product[place] = product[place] * factor
            largest = max(largest, float(np.abs(np.log(factor)).max(initial=0.0)))
        if largest < _TOLERANCE:
            break
    return [Scaled(factor) for factor in product]


def rescale(values: Values, symmetry: Symmetry, scaled: list[Scaled]) -> Values:
    """Multiply the weights in draws by the factors of their hidden units."""
    for block, part in zip(blocks_of(symmetry, Rescalable), scaled, strict=True):
        values = block.act(values, part.factors)
    return values


def _norms(values: Values, axes: Mapping[str, int]) -> np.ndarray:
    """Return the Euclidean norm (draw, component) of each component over all variables."""
    rows = []
    for name, axis in axes.items():
        front = np.moveaxis(values[name], axis + 1, 1).astype(np.float64)
        rows.append(front.reshape(*front.shape[:2], -1))
    # Choose a unit that keeps squares finite.
    unit = power_of(max((np.abs(row).max(initial=0.0) for row in rows), default=0.0))
    return unit * np.sqrt(sum(np.square(row / unit).sum(axis=2) for row in rows))


Transform = Callable[[Arrays], Arrays]


@dataclass(frozen=True, eq=False)
class Features:
    """The features of a posterior's draws, chunk by chunk.

    `declared` is the symmetry of the draws. `plain` is the view of features, in which no block rescales. `transform`
    maps variables to features (default: the identity). `rotated` contains the rotations of every `Rotation` block.
    Features are converted to `found_units` if these are set.
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
        """The units of the features."""
        if self.found_units is None:
            raise RuntimeError("The features have no units yet: call `in_units` first.")
        return self.found_units

    def in_units(self, units: FeatureUnits | None = None) -> Features:
        """Return the same features in given units, or in units found from the draws."""
        if units is None:
            # Rotated variables are centred at zero, and rotations do not change sums of squares about zero.
            chunks = map(self.read_as_labelled if self.rotated else self._read, self.reader.chunks)
            units = find_units(chunks, self.names, self.symmetry, self.reader.argument)
        return replace(self, found_units=units)

    @cached_property
    def scaled(self) -> list[Scaled]:
        """Factors (draw, component) of every `Rescalable` block."""
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
        """Names of the features."""
        return variables_of(self.symmetry)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each feature in one draw."""
        return {name: values.shape for name, values in self.read_one(0).items()}

    def read(self, chunk: slice) -> Arrays:
        """Return the features of a chunk. A single chunk stays in memory."""
        return self._whole if len(self.reader.chunks) == 1 else self._read(chunk)

    def read_as_labelled(self, chunk: slice) -> Arrays:
        """Return the features of a chunk without applying rotations."""
        if not self.rotated:
            return self.read(chunk)
        return self._in_units(self.reader.read(chunk), chunk)

    def read_one(self, row: int) -> Arrays:
        """Return the features (*event) of one draw."""
        values = {n: v[None] for n, v in self.reader.read_one(row).items()}
        return {n: v[0, ...] for n, v in self._featurise(values, slice(row, row + 1)).items()}

    @cached_property
    def _whole(self) -> Arrays:
        return self._read(self.reader.chunks[0])

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
    """Make the features of a posterior. Its draws must be finite and fit the symmetry.

    Features are the variables, with counterparts stacked and loadings rotated to simple structure. Given `activations`,
    they are the activations of a network's hidden units on inputs, with one block per layer.
    """
    names = variables_of(declared)
    extra = len(activations[1]) * sum(activations[0].network.hidden) if activations else 0
    reader = DrawReader(view.posterior, names, max_bytes, view.argument, extra)
    Group(declared, reader.shapes)  # This raises an error if the shapes do not fit.
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
    """Return the element of the declared symmetry: first scalings and rotations, then the moves of the features."""
    group = Group(tuple(block.discrete for block in features.declared), features.reader.shapes)
    scaled, rotated, moving = iter(features.scaled), iter(features.rotated), iter(parts)
    first: list[Part] = []
    then: list[Part] = []
    for block, still in zip(group.symmetry, group.identity((features.reader.total,)), strict=True):
        first.append(still if block.keeps_density else next(scaled))
        then.append(next(moving) if block.keeps_density else still)
    moved = zip(features.declared, group.compose(tuple(first), tuple(then)), strict=True)
    lead, flat = features.reader.lead, list[Part]()
    for block, part in moved:
        rotates = block.discrete is not block
        flat.append(in_order(next(rotated), cast(Permuted, part)) if rotates else part)
    return tuple(on_arrays(part, lambda a: a.reshape(*lead, *a.shape[1:])) for part in flat)


def _hidden_units(network: Network, x: np.ndarray, values: Arrays) -> Arrays:
    """Compute the activations (draw, obs, hidden) of every hidden layer."""
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
        f"`cost` is 'activations', but {block!r} does not permute the units of one hidden layer. Use cost='weights', "
        "or the network's own symmetry."
    )
