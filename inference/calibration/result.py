"""The result of a calibration: ranks, the error of each test quantity, and a verdict in words.

Bands, p-values and power of the ECDF of uniform numbers are exact (Säilynoja, Bürkner and Vehtari 2022). The count of
numbers below a point is binomial. A band has the same tail probability gamma / 2 at every point on either side, and
gamma is chosen so that the whole ECDF stays inside with the requested probability. Counts in intervals are
multinomial, that is, independent Poisson counts given their sum, so the probability of staying inside is a chain of
convolutions. ArviZ simulates gamma instead. Its thousand simulations give no p-value, and cannot resolve the levels
far below 1 % that are needed for many quantities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import bdtr, gammaln, ndtr, ndtri

if TYPE_CHECKING:
    import pandas as pd

ALPHA = 0.05
"""Probability of rejecting a correct method, over all test quantities of a run together."""
FEWEST = 50  # Minimum number of usable simulations for a verdict.
MOST_UNUSABLE = 0.1  # Maximum share of simulations that fail or do not converge.
LARGEST_RHAT, SMALLEST_ESS = 1.1, 30.0  # Convergence limits for each quantity.
RESAMPLES = 2000

Interval = tuple[float, float]


@dataclass(frozen=True)
class Off:
    """The error of a test quantity.

    Attributes
    ----------
    name : str
        Name of the quantity.
    p_value : float
        Probability of ranks at least this far from uniform if the posterior is correct, for this quantity alone.
    shift : float
        Average true value minus posterior mean, in posterior sds: 0 if calibrated, positive if draws are too low.
    shift_interval : tuple of float
        95 % bootstrap interval.
    ratio : float
        Spread of true values around posterior means over the posterior sd: 1 if calibrated, above 1 if too narrow.
    ratio_interval : tuple of float
        95 % bootstrap interval.
    above : float
        Mean share of the draws below the true value: 0.5 if calibrated.
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
        """The error in words."""
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
        below = f"true values exceed {_percent(self.above)} % of the draws on average, not 50 %"
        return " and ".join(said) or below


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """The result of simulation-based calibration.

    Attributes
    ----------
    family, method, engine : str
        Names of the family, the method and the engine.
    settings : mapping
        Settings of the method.
    seed : int
        Seed of the run.
    names : tuple of str
        The test quantities.
    share : array (simulation, quantity)
        Share of the draws below each true value: uniform in (0, 1) if the posterior is correct.
    z : array (simulation, quantity)
        Distance of the true value from the mean of the draws, in their sds.
    ess, rhat, kept : array (simulation, quantity)
        Effective number of draws, R-hat, and the number of draws that the true value was ranked among.
    divergences : array (simulation,)
        Number of divergent transitions.
    failures : tuple of str
        For each simulation, the reason why the method failed; empty if it succeeded.
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
        """Number of simulations on which the method failed."""
        return sum(bool(reason) for reason in self.failures)

    @cached_property
    def usable(self) -> np.ndarray:
        """Mask of the simulations (simulation,) that did not fail and whose chains converged."""
        ran = np.array([not reason for reason in self.failures])
        with np.errstate(invalid="ignore"):
            apart = (
                (self.rhat > LARGEST_RHAT) | (self.ess < SMALLEST_ESS) | ~np.isfinite(self.share)
            )
        return ran & ~apart.any(axis=1)

    @property
    def unconverged(self) -> int:
        """Number of simulations whose chains did not converge for at least one quantity."""
        return self.simulations - self.failed - int(self.usable.sum())

    @property
    def level(self) -> float:
        """The probability that the ranks of one quantity leave its band if the posterior is correct."""
        return ALPHA / max(len(self.names), 1)

    @cached_property
    def off(self) -> tuple[Off, ...]:
        """All test quantities, sorted by p-value."""
        if self.usable.sum() < 2:
            return ()
        each = [self._off(column) for column in range(len(self.names))]
        return tuple(sorted(each, key=lambda one: one.p_value))

    @property
    def outside(self) -> tuple[Off, ...]:
        """The test quantities whose ranks leave their bands."""
        return tuple(one for one in self.off if one.outside)

    @property
    def verdict(self) -> str:
        """The verdict, which is "calibrated", "not calibrated" or "cannot be judged"."""
        used = int(self.usable.sum())
        if used >= FEWEST and self.outside:
            return "not calibrated"
        if used < FEWEST or used < (1 - MOST_UNUSABLE) * self.simulations:
            return "cannot be judged"
        return "calibrated"

    @property
    def seen(self) -> tuple[float, float]:
        """The error factor of an sd, and the shift of a mean in sds, that would be detected 9 times in 10."""
        used = int(self.usable.sum())
        return seen_ratio(used, self.level), seen_shift(used, self.level)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in words, with the number of simulations that were left out."""
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
                f"Calibrated as far as {used} simulations can tell: an sd wrong by more than {_percent(ratio - 1)} %, "
                f"or a mean wrong by more than {shift:.2g} sd, would have been detected 9 times in 10."
            )
        elif self.failed + self.unconverged > MOST_UNUSABLE * self.simulations:
            first = f"Cannot be judged: {self._unusable} of {self.simulations} simulations."
        else:
            first = f"Cannot be judged: {used} usable simulations are too few; at least {FEWEST} are needed."
        rest = [first]
        if self.verdict != "cannot be judged" and self.failed + self.unconverged:
            rest.append(
                f"Left out: {self._unusable} of {self.simulations} simulations. The verdict describes the others."
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
        """Return one row per test quantity with the fields of `Off`, sorted by p-value."""
        import pandas as pd

        rows = [self._row(one) for one in self.off]
        return pd.DataFrame(rows).set_index("quantity") if rows else pd.DataFrame()

    def to_dict(self) -> dict[str, Any]:
        """Return the result in plain types, ready for JSON."""
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
        """Return the shares of one test quantity in the usable simulations.

        Parameters
        ----------
        name : str
            Name of the quantity.

        Returns
        -------
        array (simulation,)
            Shares between 0 and 1.
        """
        return self.share[self.usable, self.names.index(name)]

    def band(self) -> Band:
        """Return the band that contains the ECDFs of all quantities in 95 % of runs if the posterior is correct."""
        return band(int(self.usable.sum()), self.level)

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
        p = p_value(self.share[self.usable, column])
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


MOST_POINTS = 200  # Maximum number of points at which the ECDF is evaluated.
SEEN = 0.9  # Probability of detection behind `Calibration.seen`.

Cdf = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Band:
    """A band for the ECDF of uniform numbers.

    Attributes
    ----------
    points : array (point,)
        Points between 0 and 1.
    lower, upper : array (point,)
        Smallest and largest share of the numbers that may lie below each point.
    """

    points: Float[np.ndarray, " point"]  # Between 0 and 1.
    lower: Float[np.ndarray, " point"]  # Smallest share of the numbers below each point.
    upper: Float[np.ndarray, " point"]  # Largest share of the numbers below each point.


def counts_below(numbers: Float[np.ndarray, " number"]) -> Int[np.ndarray, " point"]:
    """Count the numbers at or below each point of the ECDF."""
    return np.searchsorted(np.sort(numbers), _points(len(numbers)), side="right")


def band(count: int, alpha: float) -> Band:
    """Return the band that the ECDF of `count` uniform numbers leaves with probability at most `alpha`."""
    lower, upper = _bounds(count, _gamma(count, alpha))
    return Band(_points(count), lower / count, upper / count)


def p_value(numbers: Float[np.ndarray, " number"]) -> float:
    """Return the probability that the ECDF of uniform numbers is as extreme as that of the given numbers."""
    count = len(numbers)
    below = counts_below(numbers)
    at_most, at_least = _tails(count)
    rows = np.arange(len(below))
    gamma = 2 * min(at_most[rows, below].min(), at_least[rows, below].min())
    return _leaves(count, gamma)


def power(count: int, alpha: float, cdf: Cdf) -> float:
    """Return the probability that the ECDF of numbers with distribution `cdf` leaves the band of uniform numbers."""
    return _leaves(count, _gamma(count, alpha), cdf)


@lru_cache(maxsize=256)
def seen_ratio(count: int, alpha: float) -> float:
    """Return the smallest factor above 1 by which an sd can be too large or too small and be detected 9 times in 10."""

    def wrong_by(factor: float) -> float:
        # Shares are Phi(z) with z ~ N(0, f^2): true values spread by f posterior sds around the mean.
        inverse = 1 / factor
        wide = power(count, alpha, lambda u: ndtr(ndtri(u) / factor))
        return min(wide, power(count, alpha, lambda u: ndtr(ndtri(u) / inverse)))

    return _smallest(wrong_by, 1.0, 30.0)


@lru_cache(maxsize=256)
def seen_shift(count: int, alpha: float) -> float:
    """Return the smallest shift of a mean, in posterior sds, that is detected 9 times in 10."""
    return _smallest(lambda shift: power(count, alpha, lambda u: ndtr(ndtri(u) - shift)), 0.0, 10.0)


def _smallest(seen: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(14):
        middle = 0.5 * (low + high) if low == 0 else float(np.sqrt(low * high))
        low, high = (low, middle) if seen(middle) >= SEEN else (middle, high)
    return high


def _points(count: int) -> Float[np.ndarray, " point"]:
    number = min(count, MOST_POINTS)
    return np.arange(1, number) / number


@lru_cache(maxsize=64)
def _tails(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities (point, count) that at most and at least `count` numbers lie below each point."""
    below = np.arange(count + 1)
    at_most = bdtr(below[None].astype(float), count, _points(count)[:, None])
    at_least = np.concatenate([np.ones((len(at_most), 1)), 1 - at_most[:, :-1]], axis=1)
    return at_most, at_least


def _bounds(count: int, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest count at each point for which both tail probabilities exceed gamma / 2."""
    at_most, at_least = _tails(count)
    return np.argmax(at_most > gamma / 2, axis=1), (at_least > gamma / 2).sum(axis=1) - 1


@lru_cache(maxsize=256)
def _gamma(count: int, alpha: float) -> float:
    """Return the largest gamma for which an ECDF leaves the band with probability at most `alpha`."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _leaves(count, middle) <= alpha else (low, middle)
    return low


def _leaves(count: int, gamma: float, cdf: Cdf | None = None) -> float:
    """Return the probability that the ECDF of independent numbers leaves the band of this gamma at any point."""
    lower, upper = _bounds(count, gamma)
    if np.any(lower > upper):
        return 1.0
    points = _points(count)
    reached = np.concatenate([points if cdf is None else cdf(points), [1.0]])
    expected = np.maximum(count * np.diff(reached, prepend=0.0), 1e-300)
    steps = np.arange(int(np.max(np.append(upper, count) - np.insert(lower, 0, 0))) + 1)
    chances = np.exp(steps * np.log(expected)[:, None] - expected[:, None] - gammaln(steps + 1))
    chance, first = np.ones(1), 0  # Probabilities of counts from `first`, at the previous point.
    for of_steps, low, high in zip(chances, [*lower, count], [*upper, count], strict=True):
        grown = np.convolve(chance, of_steps[: high - first + 1])
        chance, first = grown[low - first : high - first + 1], low
    log_all = count * np.log(count) - count - gammaln(count + 1)
    return float(np.clip(1 - chance[0] / np.exp(log_all), 0.0, 1.0))
