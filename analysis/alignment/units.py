"""The units that features are matched in, so that neither where their zero lies nor their size decides what is found.

Every feature is taken about a centre and divided by a power of two near its spread: sums of squares neither overflow
nor vanish, and differences of large products, by which costs are computed, lose no digits to an offset. A centre has to
be left alone by the symmetry: entries that a block exchanges have one in common, those that change sign have zero, and
what has complements stays as it is, between 0 and 1 about 1/2.

The spread is the root mean square about the mean of exchangeable entries, over all draws, which relabelling does not
change; about 0 where signs may flip, about 1/2 where a value may become its complement.

One representative of every orbit of positive scalings, before anything is matched.

A `Rescalable` block leaves a network's function alone when a unit's incoming weights (and bias) are
multiplied by a > 0 and its outgoing ones divided by it. Two gauges choose a:

- ``balanced``: |incoming| = |outgoing| for every unit, where the sum of squares is smallest on the orbit
  (of a normal prior with one scale, the most probable point);
- ``unit``: |incoming| = 1 (Pourzanjani, Jiang and Petzold 2017, section 3.2).

Neighbouring layers share a matrix, so deep networks are balanced layer by layer until nothing
changes. A unit with a norm of zero stays as it is. Scaling keeps the likelihood, not the prior.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Rescalable, Symmetry, axes_of, blocks_of
from onebasin.models.symmetry.elements import Scaled

from ..summaries.units import power_of_two

Arrays = dict[str, np.ndarray]
_STEPS = 64
"""So many of the numbers that there are within one spread are needed to tell parts apart, in double precision."""


@dataclass(frozen=True, eq=False)
class FeatureUnits:
    """A centre (*event) in its own precision and a unit, a power of two, for each feature.

    `spread` is the root mean square as the feature came; 0 where it never varies.
    """

    centre: Mapping[str, np.ndarray]
    unit: Mapping[str, float]
    spread: Mapping[str, float]

    def into(self, values: Mapping[str, np.ndarray]) -> Arrays:
        """Take features (draw, *event) into these units, in the precision that they have."""
        return {
            n: (v - self.centre[n] if self.centre[n].any() else v) / self.unit[n]
            for n, v in values.items()
            if n in self.unit
        }

    def back(self, values: Mapping[str, np.ndarray]) -> Arrays:
        """Take what `into` made, such as a mean, back."""
        return {n: np.asarray(self.centre[n] + self.unit[n] * v) for n, v in values.items()}

    def scales_into(self, scales: Mapping[str, float]) -> dict[str, float]:
        """Take scales into these units; refuse one so far from the draws' spread that its square is no double."""
        for name, scale in scales.items():
            if not 1e-150 <= scale / self.unit[name] <= 1e150:
                raise ArgumentError(
                    f"`scales[{name!r}]` is {scale:.3g}, but the draws spread by {self.unit[name]:.3g}, so that "
                    "squared distances are too large or too small for a double; give scales of about the draws' size."
                )
        return {name: scale / self.unit[name] for name, scale in scales.items()}


def find_units(
    chunks: Iterable[Arrays], names: tuple[str, ...], symmetry: Symmetry, argument: str
) -> FeatureUnits:
    """Find the units of features (draw, *event), a piece at a time; refuse a spread that is lost in rounding."""
    found: dict[str, _Spread] = {}
    for values in chunks:
        for name in names:
            if name not in found:
                blocks = [block for block in symmetry if name in block.variables]
                centre = 0.5 if any(name in block.complemented for block in blocks) else None
                centre = 0.0 if any(name in block.flipped for block in blocks) else centre
                # Along the axis of draws, and those along which blocks exchange entries.
                moved = [axes_of(block.axes[name]) for block in blocks if name in block.axes]
                axes = (0, *sorted({axis + 1 for own in moved for axis in own}))
                found[name] = _Spread.about(values[name], centre, axes)
            found[name].add(values[name])
    for name, spread in found.items():
        spread.refuse_lost(name, argument)
    kept = {name for block in symmetry for name in block.complemented}
    return FeatureUnits(
        centre={n: np.zeros_like(s.centre) if n in kept else s.centre for n, s in found.items()},
        unit={
            n: 1.0 if n in kept else float(power_of_two(np.asarray(s.size)))
            for n, s in found.items()
        },
        spread={n: s.size for n, s in found.items()},
    )


@dataclass(eq=False)
class _Spread:
    """Sums of one feature about a centre, in a unit in which squares are doubles, filled chunk by chunk."""

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
        """Begin with the first values (draw, *event), whose mean is the centre where none is given."""
        low, high = (float(f(values)) for f in (np.min, np.max))
        half = high / 2 - low / 2
        unit = float(power_of_two(np.asarray(half)))
        if centre is not None:
            largest = np.asarray(max(abs(low - centre), abs(high - centre)))
            return cls(
                np.full(values.shape[1:], centre, values.dtype),
                float(power_of_two(largest)),
                False,
                axes,
            )
        middle = low + half
        mean = ((values - values.dtype.type(middle)) / unit).mean(axes, np.float64, keepdims=True)
        whole = np.broadcast_to(middle + unit * mean, (1, *values.shape[1:]))[0]
        return cls(whole.astype(values.dtype), unit, True, axes)

    def add(self, values: np.ndarray) -> None:
        """Take in values."""
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
        """The spread; 0 where there is none."""
        each = self.count / np.size(self.first)
        if self.free and np.array_equal(self.low, self.high):
            return 0.0  # centres that differ from one group of entries to the next have rounding of their own
        shift = np.square(np.asarray(self.first) / each).mean() if self.free else 0.0
        return self.unit * float(np.sqrt(max(float(self.second) / self.count - shift, 0.0)))

    @property
    def largest(self) -> float:
        """The largest absolute value."""
        return float(max(np.max(np.abs(self.low)), np.max(np.abs(self.high))))

    def refuse_lost(self, name: str, argument: str) -> None:
        """Refuse a spread that is lost in rounding."""
        double = _STEPS * np.finfo(np.float64).eps
        least = max(double, float(np.finfo(self.centre.dtype).eps)) * self.largest
        if 0 < self.size < least:
            raise ArgumentError(
                f"`{argument}` holds {name} whose components and draws spread by {self.size:.3g} about values as "
                f"large as {self.largest:.3g}, and that is lost in rounding; take off what they have in common "
                "before they are stored."
            )


GAUGES = ("balanced", "unit", "keep")
_ROUNDS = 500
_TOLERANCE = 1e-14

Values = dict[str, np.ndarray]


def factors(values: Values, symmetry: Symmetry, gauge: str) -> list[Scaled]:
    """Find the factors (draw, component) that bring draws (draw, *event) into a gauge, for each `Rescalable` block."""
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
    """Multiply draws by their factors."""
    for block, part in zip(blocks_of(symmetry, Rescalable), scaled, strict=True):
        values = block.act(values, part.factors)
    return values


def _norms(values: Values, axes: Mapping[str, int]) -> np.ndarray:
    """Euclidean norm of each component over all variables (draw, component)."""
    rows = []
    for name, axis in axes.items():
        front = np.moveaxis(values[name], axis + 1, 1).astype(np.float64)
        rows.append(front.reshape(*front.shape[:2], -1))
    # In a unit of their own, so that squares are doubles whatever the size of the weights.
    largest = [np.abs(row).max(initial=0.0) for row in rows]
    unit = float(power_of_two(np.asarray(max(largest, default=0.0))))
    return unit * np.sqrt(sum(np.square(row / unit).sum(axis=2) for row in rows))
