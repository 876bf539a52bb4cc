"""The result of checking a declared symmetry, and the change of a log density when points are moved.

`inference.check_symmetry` returns the result, and a posterior has it as JSON in its attribute `symmetry_evidence`.

Under a symmetry a log density changes only by rounding. The rounding error is estimated from the size of the log
density and from its change under the smallest possible changes of the point. A change within rounding does not count,
and a point with a rounding error above `BLIND` shows nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from pydantic import TypeAdapter, ValidationError

from onebasin.base.card import in_brief

SHOWN = 4  # Maximum number of names in a sentence.

DECLARED = "onebasin could not verify it, because no program or model is available"
"""The evidence for a symmetry that a file does not declare."""
UNRECORDED = (
    "declared but not checked: the file records no check on the log density, and onebasin cannot check it here, "
    "because there is no program; use `check_symmetry` or `onebasin sample --exchangeable`"
)
"""The evidence for a symmetry that a file declares without a recorded check."""


@dataclass(frozen=True)
class Evidence:
    """The extent and the results of a check."""

    points: int = 0  # Random points at which the log density was compared.
    draws: int = 0  # Draws of the posterior at which it was compared.
    refuted: str = ""  # The contradiction at a draw, if any.
    unresolved: tuple[str, ...] = ()  # Blocks that rounding or infinite densities leave unchecked.
    derived: tuple[str, ...] = ()  # Derived quantities that move as declared.
    random: tuple[str, ...] = ()  # Derived quantities that use random numbers.
    left_behind: tuple[str, ...] = ()  # Derived quantities that change, but that no block moves.
    skipped: tuple[str, ...] = ()  # Quantities that were not checked, and why.

    @property
    def holds(self) -> bool:
        """Check whether nothing contradicts the symmetry."""
        return not self.refuted

    @property
    def size(self) -> str:
        """The number of points, such as "at 5 random points and 8 draws"."""
        tried = [
            f"{count} {noun}{'s' * (count != 1)}"
            for count, noun in ((self.points, "random point"), (self.draws, "draw"))
            if count
        ]
        return f"at {' and '.join(tried)}" if tried else "at no point"

    @property
    def sentence(self) -> str:
        """A warning, empty if all was checked and holds."""
        if self.refuted:
            return (
                f"The declared symmetry does not hold at this posterior's draws ({self.refuted}): the draws are "
                "valid, but not aligned. Declare every variable that moves together, with `--exchangeable`."
            )
        parts = []
        if self.unresolved:
            parts.append(
                f"the density was not checked for {in_brief(self.unresolved, SHOWN)}, because rounding would hide a "
                "change or the density is not finite (drop constants that are added to `target`)"
            )
        if not self.draws:
            parts.append("it was tried at random points, not at draws")
        if self.left_behind:
            parts.append(
                f"alignment does not move {in_brief(self.left_behind, SHOWN)}, which would change with the components "
                "(declare such quantities too, or do not average them)"
            )
        parts += self.skipped
        return f"Of the declared symmetry: {'; '.join(parts)}." if parts else ""

    def joined(self, other: Evidence) -> Evidence:
        """Combine two checks; a block is resolved if either resolves it."""
        return Evidence(
            points=self.points + other.points,
            draws=self.draws + other.draws,
            refuted=self.refuted or other.refuted,
            unresolved=tuple(n for n in self.unresolved if n in other.unresolved),
            random=_union(self.random, other.random),
            derived=tuple(
                n
                for n in _union(self.derived, other.derived)
                if n not in (*self.random, *other.random)
            ),
            left_behind=_union(self.left_behind, other.left_behind),
            skipped=_union(self.skipped, other.skipped),
        )

    def to_json(self) -> str:
        """Return the JSON text that a posterior stores."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Evidence | None:
        """Read JSON text from `to_json`; None for any other text."""
        try:
            return TypeAdapter(cls).validate_json(text)
        except ValidationError:
            return None


def _union(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


ROUNDINGS = 16.0  # Ratio to the estimated rounding error above which a change is real.
BLIND = 0.1
"""Rounding in nats above which a point is uninformative; a forgotten part of a model changes the density by more."""
PERTURBATIONS = 3  # Number of smallest changes of a point that are tried, if they are needed.

Values = Mapping[str, Any]
Measure = Callable[[Values], Float[np.ndarray, " point"] | None]


@dataclass(frozen=True)
class Changes:
    """The effect of a move at each point."""

    size: Float[np.ndarray, " point"]
    """(point,): Change in nats; infinite if only one log density is finite, NaN if the point is uninformative."""
    real: Bool[np.ndarray, " point"]
    """(point,): Whether the change is beyond tolerance and rounding."""
    telling: Bool[np.ndarray, " point"]  # (point,): Whether the point is informative.

    @property
    def largest(self) -> float:
        """The largest change; NaN if no point is informative."""
        return float(self.size[self.telling].max()) if self.telling.any() else float("nan")


def changes(
    measure: Measure,
    values: Values,
    before: Float[np.ndarray, " point"],
    after: Float[np.ndarray, " point"],
    tolerance: float,
) -> Changes:
    """Compare log densities (point,) at points (point, ...) with those at the same points moved.

    `measure` is the log density, for estimates of rounding; `tolerance` is the change in nats that is always allowed.
    """
    kinds = [np.asarray(value).dtype for value in values.values()]
    eps = max((float(np.finfo(k).eps) for k in kinds if k.kind == "f"), default=2.2e-16)
    before, after = (np.asarray(side, dtype=np.float64) for side in (before, after))
    finite = np.isfinite(before) & np.isfinite(after)
    with np.errstate(invalid="ignore"):
        size = np.where(finite, np.abs(after - before), np.inf)
        magnitude = np.maximum(np.abs(before), np.abs(after))
    rounding = np.where(finite, ROUNDINGS * eps * magnitude, 0.0)
    doubtful = finite & (size > np.maximum(tolerance, rounding))
    if doubtful.any():
        rounding = np.maximum(rounding, ROUNDINGS * _noise(measure, values, before, eps))
    # If neither side is finite, or the density before the move is undefined, the point is uninformative.
    nothing = np.isnan(before) | (~np.isfinite(before) & ~np.isfinite(after)) | (before == np.inf)
    real = ~nothing & (size > np.maximum(tolerance, rounding))
    telling = real | (~nothing & (rounding <= BLIND))
    return Changes(np.where(telling, size, np.nan), real, telling)


def _noise(
    measure: Measure, values: Values, before: Float[np.ndarray, " point"], eps: float
) -> Float[np.ndarray, " point"]:
    """Return the largest change of the log density if the last digits of the points change."""
    rng = np.random.default_rng(0)
    noise = np.zeros(len(before))
    for _ in range(PERTURBATIONS):
        nudged = {}
        for name, value in values.items():
            array = np.asarray(value)
            steps = rng.choice([-1.0, 1.0], size=array.shape)
            nudged[name] = (array * (1 + eps * steps)).astype(array.dtype)
        if (there := measure(nudged)) is None:
            break
        with np.errstate(invalid="ignore"):
            change = np.abs(np.asarray(there, dtype=np.float64) - before)
        noise = np.maximum(noise, np.where(np.isfinite(change), change, 0.0))
    return noise
