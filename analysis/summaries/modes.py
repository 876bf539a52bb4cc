"""The modes that a posterior was put together from: their weights, and what is wrong with them, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from onebasin.posteriors import schema
from onebasin.posteriors.view import View

MATTERS = 0.01
"""Weight from which on a mode's chains have to agree: the upper end of its interval."""
APART = 1.05
"""R-hat within a mode above which its chains do not agree."""
LISTED = 4
"""Modes whose weights a sentence lists."""
NEGLIGIBLE = 0.01
"""Weight of all modes but the first below which that one holds everything."""


@dataclass(frozen=True, eq=False)
class ModesSummary:
    """The contents of the group `modes`; docs/reference/posterior.md describes its columns."""

    table: xr.Dataset  # one row per mode, the heaviest first
    known: bool  # whether the weights are
    starts: int  # at random
    unseen: float  # probability that a next start leads to another mode
    not_sampled: int  # modes that were met and not sampled
    nearest_not_sampled: float  # nats by which the highest of these lies below the highest of all

    @property
    def count(self) -> int:
        """Modes that were sampled."""
        return int(self.table.sizes["mode"])

    @property
    def sentence(self) -> str:
        """Modes and weights."""
        if self.count == 1:
            if not self.not_sampled:
                return f"All of {self.starts} starts led to one mode."
            return (
                f"One of {1 + self.not_sampled} modes that {self.starts} starts led to was sampled."
            )
        settled = f"Chains settled in {self.count} different modes"
        if not self.known:
            return f"{settled}, and their weights are not known."
        decided = 1 - self._column("weight_low")[0] < NEGLIGIBLE
        weights = [self._weight(k, interval=not decided) for k in range(min(self.count, LISTED))]
        more = f" and {self.count - LISTED} smaller ones" if self.count > LISTED else ""
        listed = f"{', '.join(weights[:-1])} and {weights[-1]}" if not more else ", ".join(weights)
        end = "the first holds everything" if decided else "the draws are weighed by them"
        return f"{settled}; their weights are {listed}{more}: {end}."

    @property
    def remark(self) -> str:
        """Remark on the probability that may have been missed; empty without signs of it."""
        if not self.unseen:
            return ""
        return (
            f"Some modes were met by one of {self.starts} starts alone: a next start leads to another one with "
            f"probability {self.unseen:.2g}."
        )

    @property
    def doubt(self) -> str:
        """Why the weights cannot be used, in a sentence; empty where they can."""
        if not self.known:
            return self._unknown()
        rhat, high = self._column("rhat"), self._column("weight_high")
        apart = [k for k in range(self.count) if high[k] >= MATTERS and rhat[k] > APART]
        if apart:
            worst = max(apart, key=lambda k: rhat[k])
            return (
                f"Chains of mode {worst} do not agree with one another (R-hat {rhat[worst]:.2f})."
            )
        return ""

    def _unknown(self) -> str:
        if self.nearest_not_sampled <= 10:
            return (
                f"The weights of modes are not known: {self.not_sampled} more were met than sampled, the highest "
                f"{self.nearest_not_sampled:.1f} nats below the highest of all."
            )
        value, error = self._column("log_evidence"), self._column("log_evidence_error")
        unsure = np.where(np.isfinite(error), error, np.inf)
        other = int(np.argmax(unsure[1:])) + 1 if self.count > 1 else 0
        gap, both = value[0] - value[other], float(np.hypot(error[0], error[other]))
        if not other or not math.isfinite(gap) or not math.isfinite(both):
            return "The weights of modes are not known: bridge sampling gives no estimate for one of them."
        return f"The weights of modes are not known: mode {other} lies {gap:.1f} ± {both:.1f} nats below mode 0."

    def _weight(self, mode: int, *, interval: bool) -> str:
        log_weight = float(self._column("log_weight")[mode])
        if not interval:
            return share(log_weight)
        low, high = (float(self._column(f"weight_{end}")[mode]) for end in ("low", "high"))
        return f"{math.exp(log_weight):.3g} ({low:.3g} to {high:.3g})"

    def _column(self, name: str) -> np.ndarray:
        return np.asarray(self.table[name].values, np.float64)


def modes_of(view: View) -> ModesSummary | None:
    """Read a posterior's modes; None where it was not put together from any."""
    table = view.group(schema.MODES)
    if table is None or "mode" not in table.sizes or "log_weight" not in table:
        return None
    said = table.attrs
    return ModesSummary(
        table,
        bool(said.get("known", 0)),
        int(said.get("starts", 0)),
        float(said.get("unseen", 0.0)),
        int(said.get("not_sampled", 0)),
        float(said.get("nearest_not_sampled", math.nan)),
    )


def share(log_weight: float) -> str:
    """A weight in two digits, however small."""
    if log_weight > math.log(0.995):
        return "1"
    if log_weight > -700:
        return f"{math.exp(log_weight):.2g}"
    return f"1e{log_weight / math.log(10):.0f}"
