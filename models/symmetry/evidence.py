"""The recorded check of a declared symmetry: what was compared, and what was not; kept with a posterior.

`inference.check_symmetry` finds it, a posterior's attribute `symmetry_evidence` keeps it as JSON.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from pydantic import TypeAdapter, ValidationError

from onebasin.base.card import in_brief

SHOWN = 4  # Names listed in a sentence.

DECLARED = "onebasin could not verify it, because no program or model is at hand"
"""The evidence for a symmetry that a file does not declare."""
UNRECORDED = (
    "declared, not checked: this file records no check of it against the log density and it cannot be checked here, "
    "as there is no program; `check_symmetry` and `onebasin sample --exchangeable` check"
)
"""The evidence for a symmetry that a file declares without a recorded check."""


@dataclass(frozen=True)
class Evidence:
    """The extent and the results of a check."""

    points: int = 0
    draws: int = 0
    """`points`, `draws`: Random points, and draws of the posterior, at which the log density was compared."""
    refuted: str = ""  # What a draw contradicts; empty where nothing does.
    unresolved: tuple[str, ...] = ()
    """Blocks of which no point or draw tells: rounding hides a change, or no log density is finite."""
    derived: tuple[str, ...] = ()  # Derived quantities that were found to move along as declared.
    random: tuple[str, ...] = ()
    """Derived quantities that hold random numbers of their own and cannot be compared."""
    left_behind: tuple[str, ...] = ()
    """Derived quantities that change when components change places, and that no block moves."""
    skipped: tuple[str, ...] = ()  # What could not be tried, and why.

    @property
    def holds(self) -> bool:
        """Tell whether nothing contradicts the symmetry."""
        return not self.refuted

    @property
    def size(self) -> str:
        """The size of the test, such as "at 5 random points and 8 draws"."""
        tried = [
            f"{count} {noun}{'s' * (count != 1)}"
            for count, noun in ((self.points, "random point"), (self.draws, "draw"))
            if count
        ]
        return f"at {' and '.join(tried)}" if tried else "at no point"

    @property
    def sentence(self) -> str:
        """The warning to read before relying on it; empty where all was checked and holds."""
        if self.refuted:
            return (
                f"The declared symmetry does not hold at this posterior's draws ({self.refuted}): the draws are valid, "
                "but nothing is aligned by it. Declare what moves together completely, with `--exchangeable`."
            )
        parts = []
        if self.unresolved:
            parts.append(
                f"the density was not checked for {in_brief(self.unresolved, SHOWN)}, since rounding hides what "
                "would change or it is nowhere finite (drop constants that are added to `target`)"
            )
        if not self.draws:
            parts.append("it was tried at random points, not at draws")
        if self.left_behind:
            parts.append(
                f"{in_brief(self.left_behind, SHOWN)} would change with the components and stays behind when they are "
                "aligned (declare it too, or do not average it)"
            )
        parts += self.skipped
        return f"Of the declared symmetry: {'; '.join(parts)}." if parts else ""

    def joined(self, other: Evidence) -> Evidence:
        """Return the results of both: a block that either resolves is resolved."""
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
        """Write it as a posterior keeps it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Evidence | None:
        """Read what `to_json` wrote; None where it is something else."""
        try:
            return TypeAdapter(cls).validate_json(text)
        except ValidationError:
            return None


def _union(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
