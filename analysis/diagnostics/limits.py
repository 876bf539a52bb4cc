"""The limits of a diagnosis, and the worst value of a table."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from onebasin.base.errors import ArgumentError

from ..summaries.sampler import NAN

PER_CHAIN = 100.0
"""Smallest ESS a chain, unless another one is asked for."""


@dataclass(frozen=True)
class Limits:
    """What counts as good enough.

    Attributes
    ----------
    rhat
        Largest R-hat.
    ess
        Smallest bulk and tail ESS, of all chains together; None for `PER_CHAIN` times the number of chains.
    bfmi
        Smallest E-BFMI.
    """

    rhat: float = 1.01
    ess: float | None = None
    bfmi: float = 0.3

    def __post_init__(self) -> None:
        """Refuse limits that no posterior, or every posterior, would meet."""
        if not self.rhat > 1:
            raise ArgumentError(f"`rhat_max` is {self.rhat}: it must be above 1, such as 1.01.")
        if self.ess is not None and not self.ess > 0:
            raise ArgumentError(f"`ess_threshold` is {self.ess}: it must be positive, such as 400.")
        if not self.bfmi > 0:
            raise ArgumentError(
                f"`bfmi_threshold` is {self.bfmi}: it must be positive, such as 0.3."
            )


@dataclass(frozen=True)
class Extreme:
    """The worst value of a diagnostic and the parameter that has it (None where there is none)."""

    value: float = NAN
    parameter: str | None = None

    @classmethod
    def of(cls, column: pd.Series, *, smallest: bool = False) -> Extreme:
        """Return the largest or smallest value of a table's column; NaN, as constants have it, does not count."""
        known = column.dropna()
        if known.empty:
            return cls()
        name = known.idxmin() if smallest else known.idxmax()
        return cls(float(known[name]), str(name))
