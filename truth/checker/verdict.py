"""The verdict on a reference: criterion by criterion, and in words first.

Source of the criteria: posteriordb, `doc/REFERENCE_POSTERIOR_DEFINITION.md`: 10,000 draws, 4 chains or more, R-hat
below 1.01, bulk and tail ESS within 4 sqrt(7 x 10,000) of 10,000, lag-1 autocorrelations below 0.05, E-FMI above 0.2,
no divergent transition. One departure: the level of those four standard errors is asked of all estimates of a posterior
together, since of hundreds some leave the bound by chance. In addition, files are what was written, the summary
is that of the draws, and every draw is canonically labelled, or in the order that its model has them in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from . import estimators, labels
from .files import COLUMNS, ReferenceFiles, entries, read

DRAWS, CHAINS = 10_000, 4
RHAT, LAG1, EFMI = 1.01, 0.05, 0.2
ESS_ERROR, ESS_ERRORS = (7 * DRAWS) ** 0.5, 4.0
_PLACES = {"q5": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
_FAR = 5.0


@dataclass(frozen=True)
class Criterion:
    """One of them."""

    name: str  # In a few words.
    holds: bool | None  # None where it was not judged.
    found: str  # What was found.
    remedy: str = ""  # What to do where it does not hold.


@dataclass(frozen=True)
class ReferenceVerdict:
    """The result of checking a reference."""

    name: str  # Of the reference.
    criteria: tuple[Criterion, ...]  # All of them.
    from_draws: bool
    """True if all 10,000 draws were at hand; otherwise convergence is taken as recorded."""

    @property
    def failed(self) -> tuple[Criterion, ...]:
        """Those that do not hold."""
        return tuple(each for each in self.criteria if each.holds is False)

    @property
    def passes(self) -> bool:
        """Tell whether none fails."""
        return not self.failed

    @property
    def title(self) -> str:
        """The answer in a line."""
        if self.passes and self.from_draws:
            return f"{self.name} passes every criterion"
        if self.passes:
            return f"{self.name} is intact; its convergence is taken as recorded"
        return f"{self.name} does not pass: {', '.join(each.name for each in self.failed)}"

    @property
    def sentence(self) -> str:
        """The meaning of the verdict, and the next step."""
        if not self.passes:
            first = self.failed[0]
            return f"{first.found} {first.remedy}".strip()
        if self.from_draws:
            return "All 10,000 draws were judged, by code that shares no line with what made them."
        return (
            "The 10,000 draws are not here, so that its thousand were judged against its summary: make them with "
            f"`onebasin truth make {self.name}`, and check again."
        )

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain types."""
        return {
            "name": self.name,
            "passes": self.passes,
            "from_draws": self.from_draws,
            "title": self.title,
            "criteria": [
                {"name": c.name, "holds": c.holds, "found": c.found} for c in self.criteria
            ],
        }


def check(folder: Path, name: str, *, elsewhere: Path | None = None) -> ReferenceVerdict:
    """Check the reference `name` in a folder; its full draws may be `elsewhere`."""
    files = ReferenceFiles(folder, name, elsewhere)
    broken = files.broken()
    sound = Criterion(
        "files",
        not broken,
        "; ".join(broken) + "." if broken else "All files are what was written.",
        f"Make it again with `onebasin truth make {name}`, or take another copy.",
    )
    if broken:
        return ReferenceVerdict(name, (sound,), False)
    if files.full is None:
        return ReferenceVerdict(name, (sound, *_of_some(files)), False)
    return ReferenceVerdict(name, (sound, *_of_all(files, files.full)), True)


def _of_all(files: ReferenceFiles, path: Path) -> Iterator[Criterion]:
    draws = read(path, "posterior")
    chains, count = next(iter(draws.values())).shape[:2]
    yield Criterion(
        "10,000 draws",
        chains * count == DRAWS,
        f"There are {chains} chains of {count} draws.",
        "Make it with 10 chains and 1,000 kept draws each.",
    )
    yield Criterion(
        "four chains", chains >= CHAINS, f"There are {chains} chains.", "Run 10 chains."
    )
    values = entries(draws, list(files.summary["parameters"]))
    missing = [n for n in files.summary["parameters"] if n not in values]
    finite = all(np.isfinite(v).all() for v in values.values()) and not missing
    yield Criterion(
        "finite draws",
        finite,
        "All draws are finite." if finite else "Draws are missing or not finite.",
        "Look at the model where it is not finite.",
    )
    if finite:
        yield from _convergence({n: v for n, v in values.items() if np.ptp(v) > 0})
        wrong = set()
        for name, x in values.items():
            row, spread = files.row("parameters", name), float(x.std(ddof=1))
            all_draws = {word: np.quantile(x, place) for word, place in _PLACES.items()}
            all_draws |= {"mean": x.mean(), "sd": spread}
            size = 1e-6 * (spread + abs(x.mean())) + 1e-12
            if not all(abs(row[word] - all_draws[word]) <= size for word in COLUMNS):
                wrong.add(name)
        said = f"The summary of {', '.join(sorted(wrong)[:3])} is not that of the draws."
        right = "The summary is that of the draws."
        yield Criterion("summary", not wrong, said if wrong else right, "Make it again.")
    kept, all_of_them = read(path, "sample_stats"), read(path, "trajectory")
    least = min(estimators.efmi(kept["energy"]), estimators.efmi(all_of_them["energy"]))
    yield Criterion(
        "E-FMI",
        least > EFMI,
        f"The least E-FMI of a chain is {least:.2f}, of all iterations and of the kept ones; it must be above {EFMI}.",
        "The energy moves too slowly: state the model in other parameters.",
    )
    divergences = int(all_of_them["diverging"].sum())
    yield Criterion(
        "divergences",
        divergences == 0,
        f"{divergences} of {all_of_them['diverging'].size:,} iterations diverged.",
        "Raise --target-acceptance, or state the model in other parameters.",
    )
    yield from _labelled(files, draws, 1e-9)
    yield from _in_order(files, draws)


def _convergence(values: dict[str, np.ndarray]) -> Iterator[Criterion]:
    worst = _extreme({n: estimators.rhat(v) for n, v in values.items()}, max)
    yield Criterion(
        "R-hat",
        worst[1] < RHAT,
        f"The largest R-hat is {worst[1]:.4f}, of {worst[0]}; it must be below {RHAT}.",
        "Chains have not come to agree: run them longer, or look for modes that they do not share.",
    )
    half = ESS_ERROR * float(norm.isf(norm.sf(ESS_ERRORS) / max(2 * len(values), 1)))
    for word, estimate in (("bulk", estimators.bulk_ess), ("tail", estimators.tail_ess)):
        found = {n: estimate(v) for n, v in values.items()}
        low, high = _extreme(found, min), _extreme(found, max)
        yield Criterion(
            f"{word} ESS",
            DRAWS - half < low[1] and high[1] < DRAWS + half,
            f"The {word} ESS is from {low[1]:.0f} ({low[0]}) to {high[1]:.0f} ({high[0]}); it must lie from "
            f"{DRAWS - half:.0f} to {DRAWS + half:.0f}, as that of {len(values)} quantities of independent draws does.",
            "Thin more, of as many more draws: --max-thin.",
        )
    worst = _extreme({n: abs(estimators.lag1(v)) for n, v in values.items()}, max)
    yield Criterion(
        "lag-1 autocorrelation",
        worst[1] < LAG1,
        f"The largest is {worst[1]:.4f}, of {worst[0]}; it must be below {LAG1}.",
        "Thin more: --max-thin.",
    )


def _labelled(
    files: ReferenceFiles, draws: dict[str, np.ndarray], tolerance: float
) -> Iterator[Criterion]:
    if not files.info["symmetry"]:
        return
    flat = {n: v.reshape(-1, *v.shape[2:]) for n, v in draws.items()}
    share = labels.share_in_place(flat, files.info["symmetry"], files.info["labelling"], tolerance)
    if share is None:
        yield Criterion("labelling", None, "Copies are too many to be gone through: not judged.")
        return
    yield Criterion(
        "labelling",
        share == 1.0,
        f"{share:.2%} of the draws are the copy that is nearest to the labelling's centres.",
        "Its draws were moved after they were labelled, or the labelling is of another posterior: make it again.",
    )


def _in_order(files: ReferenceFiles, draws: dict[str, np.ndarray]) -> Iterator[Criterion]:
    """Hold draws that were another model's against the order that this one has them in."""
    if not (quotient := files.info.get("quotient")):
        return
    for name in quotient["increasing"]:
        steps = np.diff(draws[name], axis=-1)
        share = float((steps >= 0).all(axis=tuple(range(2, steps.ndim))).mean())
        yield Criterion(
            f"order of {name}",
            share == 1.0,
            f"{name} increases in {share:.2%} of the draws.",
            f"Its draws were moved after they were put in order: make it again, from draws of {quotient['of']}.",
        )


def _of_some(files: ReferenceFiles) -> Iterator[Criterion]:
    """Judge a thousand draws: recorded checks, their means, their labelling."""
    made = files.info["checks_made"]
    bad = [key for key, holds in made.items() if not holds]
    yield Criterion(
        "recorded checks",
        not bad,
        f"Recorded as not passed: {', '.join(bad)}." if bad else "All are recorded as passed.",
        "It is kept for what it shows; use its invariants where they pass.",
    )
    draws = read(files.path("draws.nc"), "posterior")
    values = entries(draws, list(files.summary["parameters"]))
    far = {}
    for name, x in values.items():
        row = files.row("parameters", name)
        error = np.hypot(row["sd"] / np.sqrt(max(estimators.ess(x), 1.0)), row["mcse_mean"])
        if np.ptp(x) > 0 and error > 0:
            far[name] = abs(x.mean() - row["mean"]) / error
    worst = _extreme(far, max)
    yield Criterion(
        "kept draws",
        worst[1] < _FAR and len(values) == len(files.summary["parameters"]),
        f"Their means lie within {worst[1]:.1f} Monte Carlo errors of the summary's ({worst[0]}).",
        "Make it again.",
    )
    yield from _labelled(files, draws, 1e-5)
    yield from _in_order(files, draws)


def _extreme(found: dict[str, float], of: Any) -> tuple[str, float]:
    """Name and value of the largest or smallest; what is no number counts as worst."""
    undefined = [name for name, value in found.items() if not np.isfinite(value)]
    if undefined:
        return undefined[0], float("inf") if of is max else float("-inf")
    if not found:
        return "nothing", 0.0
    name = of(found, key=lambda key: found[key])
    return name, found[name]
