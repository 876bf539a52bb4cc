"""The result of a calibration: ranks, how far off each test quantity is, and a verdict in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from . import quantities

if TYPE_CHECKING:
    import pandas as pd

ALPHA = 0.05
"""Probability of calling a method wrong that is right, over all quantities of a run together."""
FEWEST = 50  # Simulations without which nothing is said.
MOST_UNUSABLE = 0.1
"""Share of simulations that may fail or not converge before the others are no answer."""
LARGEST_RHAT, SMALLEST_ESS = 1.1, 30.0
"""Beyond these the chains of a simulation have not converged in a quantity."""
RESAMPLES = 2000

Interval = tuple[float, float]


@dataclass(frozen=True)
class Off:
    """The deviation of a test quantity.

    Attributes
    ----------
    name : str
        Of the quantity.
    p_value : float
        Probability of ranks as far from uniform, were the posterior right; of this quantity alone.
    shift : float
        Mean distance of truths from posterior means, in posterior sds: 0 if right, above 0 if the posterior is too low.
    shift_interval : tuple of float
        95 % bootstrap interval.
    ratio : float
        Spread of truths around posterior means over the posterior sd: 1 if right, above 1 if intervals are too narrow.
    ratio_interval : tuple of float
        95 % bootstrap interval.
    above : float
        Mean share of the draws that are below the truth: 0.5 if right.
    outside : bool
        Whether the ranks leave the band.
    """

    name: str
    p_value: float
    shift: float
    shift_interval: Interval
    ratio: float
    ratio_interval: Interval
    above: float
    outside: bool

    @property
    def sentence(self) -> str:
        """By how much, in words."""
        said = []
        low, high = self.ratio_interval
        if low > 1:
            most, least = _percent(1 - 1 / high), _percent(1 - 1 / low)
            narrow = _percent(1 - 1 / self.ratio)
            said.append(f"intervals too narrow by {narrow} % ({least} to {most})")
        elif high < 1:
            most, least, wide = (_percent(1 / r - 1) for r in (low, high, self.ratio))
            said.append(f"intervals too wide by {wide} % ({least} to {most})")
        low, high = sorted(map(abs, self.shift_interval))
        if self.shift_interval[0] > 0 or self.shift_interval[1] < 0:
            side = "low" if self.shift > 0 else "high"
            said.append(f"draws too {side} by {abs(self.shift):.2g} sd ({low:.2g} to {high:.2g})")
        below = f"truths lie above {_percent(self.above)} % of the draws on average, and not 50"
        return " and ".join(said) or below


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """The result of simulation-based calibration.

    Attributes
    ----------
    family, method, engine : str
        What was inferred, and by what.
    settings : mapping
        Of the method.
    seed : int
        Of the run.
    names : tuple of str
        The test quantities.
    share : array (simulation, quantity)
        Where each truth lies among the draws, from 0 to 1: uniform if the posterior is right.
    z : array (simulation, quantity)
        Distance of the truth from the draws' mean in their sds.
    ess, rhat, kept : array (simulation, quantity)
        Of the draws, and how many of them the truth was ranked among.
    divergences : array (simulation,)
        Divergent transitions.
    failures : tuple of str
        For each simulation why the method failed; empty where it did not.
    """

    family: str
    method: str
    engine: str
    settings: Mapping[str, Any]
    seed: int
    names: tuple[str, ...]
    share: Float[np.ndarray, "simulation quantity"]
    z: Float[np.ndarray, "simulation quantity"]
    ess: Float[np.ndarray, "simulation quantity"]
    rhat: Float[np.ndarray, "simulation quantity"]
    kept: Float[np.ndarray, "simulation quantity"]
    divergences: Int[np.ndarray, " simulation"]
    failures: tuple[str, ...]

    @property
    def simulations(self) -> int:
        """The number of simulations."""
        return len(self.share)

    @cached_property
    def failed(self) -> int:
        """Simulations on which the method failed."""
        return sum(bool(reason) for reason in self.failures)

    @cached_property
    def usable(self) -> np.ndarray:
        """Which simulations (simulation,) are judged, those that did not fail and whose chains converged."""
        ran = np.array([not reason for reason in self.failures])
        with np.errstate(invalid="ignore"):
            apart = (
                (self.rhat > LARGEST_RHAT) | (self.ess < SMALLEST_ESS) | ~np.isfinite(self.share)
            )
        return ran & ~apart.any(axis=1)

    @property
    def unconverged(self) -> int:
        """Simulations whose chains did not converge in one of the quantities."""
        return self.simulations - self.failed - int(self.usable.sum())

    @property
    def level(self) -> float:
        """Probability with which the ranks of one quantity leave its band, were the posterior right."""
        return ALPHA / max(len(self.names), 1)

    @cached_property
    def off(self) -> tuple[Off, ...]:
        """Every test quantity, the most improbable ranks first."""
        if self.usable.sum() < 2:
            return ()
        each = [self._off(column) for column in range(len(self.names))]
        return tuple(sorted(each, key=lambda one: one.p_value))

    @property
    def outside(self) -> tuple[Off, ...]:
        """Those whose ranks leave their bands."""
        return tuple(one for one in self.off if one.outside)

    @property
    def verdict(self) -> str:
        """One of "calibrated", "not calibrated" and "cannot be judged"."""
        used = int(self.usable.sum())
        if used >= FEWEST and self.outside:
            return "not calibrated"
        if used < FEWEST or used < (1 - MOST_UNUSABLE) * self.simulations:
            return "cannot be judged"
        return "calibrated"

    @property
    def seen(self) -> tuple[float, float]:
        """By what factor an sd, and by how many sds a mean, must be wrong to be seen 9 times in 10."""
        used = int(self.usable.sum())
        return quantities.seen_ratio(used, self.level), quantities.seen_shift(used, self.level)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in words, and what it rests on."""
        used = int(self.usable.sum())
        if self.verdict == "not calibrated":
            worst = self.outside[0]
            first = (
                f"NOT calibrated: {len(self.outside)} of {len(self.names)} test quantities have ranks that are not "
                f"uniform; {worst.name}: {worst.sentence}."
            )
        elif self.verdict == "calibrated":
            ratio, shift = self.seen
            first = (
                f"Calibrated as far as {used} simulations can see: an sd wrong by more than "
                f"{_percent(ratio - 1)} %, or a mean by more than {shift:.2g} sd, would have been seen 9 times in 10."
            )
        elif self.failed + self.unconverged > MOST_UNUSABLE * self.simulations:
            first = f"Cannot be judged: {self._unusable} of {self.simulations} simulations."
        else:
            first = f"Cannot be judged: {used} simulations are too few; {FEWEST} are the least."
        rest = [first]
        if self.verdict != "cannot be judged" and self.failed + self.unconverged:
            rest.append(
                f"Left out: {self._unusable} of {self.simulations} simulations; what is said holds of the others."
            )
        diverged = int((self.divergences > 0).sum())
        if diverged:
            rest.append(f"{diverged} of {self.simulations} simulations had divergent transitions.")
        return tuple(rest)

    @property
    def _unusable(self) -> str:
        parts = [
            f"the method failed in {self.failed}" if self.failed else "",
            f"chains did not converge in {self.unconverged}" if self.unconverged else "",
        ]
        return " and ".join(part for part in parts if part)

    def to_frame(self) -> pd.DataFrame:
        """Every test quantity as a row, the most improbable ranks first.

        Returns
        -------
        DataFrame
            Indexed by quantity, with the fields of `Off`.
        """
        import pandas as pd

        rows = [self._row(one) for one in self.off]
        return pd.DataFrame(rows).set_index("quantity") if rows else pd.DataFrame()

    def to_dict(self) -> dict[str, Any]:
        """All that is found, in plain types.

        Returns
        -------
        dict
            Ready for JSON.
        """
        return {
            "verdict": self.verdict,
            "sentences": list(self.sentences),
            "family": self.family,
            "method": self.method,
            "engine": self.engine,
            "settings": dict(self.settings),
            "seed": self.seed,
            "simulations": self.simulations,
            "usable": int(self.usable.sum()),
            "failed": self.failed,
            "unconverged": self.unconverged,
            "divergent": int((self.divergences > 0).sum()),
            "false_alarm_rate": ALPHA,
            "quantities": [self._row(one) for one in self.off],
        }

    def shares(self, name: str) -> Float[np.ndarray, " simulation"]:
        """Take the shares of one test quantity in the simulations that are judged.

        Parameters
        ----------
        name : str
            Of the quantity.

        Returns
        -------
        array (simulation,)
            Between 0 and 1.
        """
        return self.share[self.usable, self.names.index(name)]

    def band(self) -> quantities.Band:
        """Return the band of the ECDFs of shares, which holds all in 95 of 100 runs if the posterior is right.

        Returns
        -------
        Band
            With its points and both sides.
        """
        return quantities.band(int(self.usable.sum()), self.level)

    def __repr__(self) -> str:
        return (
            f"<Calibration of {self.method} ({self.engine}) on {self.family}: {self.sentences[0]}>"
        )

    def _row(self, one: Off) -> dict[str, Any]:
        return {
            "quantity": one.name,
            "p_value": one.p_value,
            "outside": one.outside,
            "shift": one.shift,
            "shift_low": one.shift_interval[0],
            "shift_high": one.shift_interval[1],
            "ratio": one.ratio,
            "ratio_low": one.ratio_interval[0],
            "ratio_high": one.ratio_interval[1],
            "mean_share": one.above,
        }

    def _off(self, column: int) -> Off:
        p = quantities.p_value(self.share[self.usable, column])
        z = self.z[self.usable, column]
        z = z[np.isfinite(z)]
        rows = np.random.default_rng(0).integers(len(z), size=(RESAMPLES, len(z)))
        shifts, ratios = z[rows].mean(axis=1), z[rows].std(axis=1, ddof=1)
        return Off(
            self.names[column],
            p,
            float(z.mean()),
            _middle(shifts),
            float(z.std(ddof=1)),
            _middle(ratios),
            float(self.share[self.usable, column].mean()),
            p <= self.level,
        )


def _middle(values: np.ndarray) -> Interval:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"
