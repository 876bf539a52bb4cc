"""Two references of one posterior, of other seeds or makers: whether they agree within Monte Carlo error.

R-hat of both is looked at first: where chains do not agree, errors are so large that any two posteriors would. Then
every mean, sd and quantile is compared, in z = difference over the root of the errors' squares, against a bound that
all comparisons together pass with probability 0.99 (Bonferroni), and also in posterior sds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from .files import COLUMNS, ReferenceFiles

LEVEL = 0.01
RHAT = 1.01
MOST_SDS = 0.1
"""Differences of means in posterior sds that no error excuses."""


@dataclass(frozen=True)
class Difference:
    """The difference of one number between two references."""

    quantity: str
    what: str
    z: float
    sds: float


@dataclass(frozen=True)
class Agreement:
    """The result of comparing two references."""

    names: tuple[str, str]  # Of the two.
    comparisons: int = 0  # Numbers that were compared.
    bound: float = 0.0  # Of z.
    worst: Difference | None = None  # The largest z; None where nothing could be compared.
    widest: Difference | None = None  # The largest difference of means in posterior sds.
    refused: str = ""  # Why nothing was compared; empty where it was.
    rms_z: float = float("nan")  # Root mean square of z: about 1 where errors are what they claim.
    tables: tuple[str, ...] = ()
    """The tables compared: `parameters`, `invariants`, as far as chains of both agree on them."""
    seeds: tuple[int, ...] = ()  # Of the chains of the two.

    @property
    def agrees(self) -> bool:
        """Tell whether all numbers do."""
        if self.worst is None or self.widest is None:
            return False
        return self.worst.z <= self.bound and self.widest.sds <= MOST_SDS

    @property
    def title(self) -> str:
        """The answer in a line."""
        if self.refused:
            return "They cannot be compared"
        if self.agrees:
            of = "" if "parameters" in self.tables else " of what no relabelling changes"
            return f"They agree in all {self.comparisons} means, sds and quantiles{of}"
        return "They do not agree"

    @property
    def sentence(self) -> str:
        """The result in a sentence."""
        if self.worst is None or self.widest is None:
            return self.refused
        worst, widest = self.worst, self.widest
        return (
            f"The largest z is {worst.z:.2f} ({worst.what} of {worst.quantity}), where {self.bound:.2f} is the bound "
            f"for {self.comparisons} comparisons at level {LEVEL}; means differ by at most "
            f"{widest.sds:.3f} posterior sds ({widest.quantity}); root mean square of z {self.rms_z:.2f}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain types."""
        return {
            "names": list(self.names),
            "seeds": list(self.seeds),
            "tables": list(self.tables),
            "agrees": self.agrees,
            "title": self.title,
            "sentence": self.sentence,
            "comparisons": self.comparisons,
            "bound": self.bound,
            "rms_z": self.rms_z,
        }


def agree(first: tuple[Path, str], second: tuple[Path, str]) -> Agreement:
    """Compare two references, each a folder and a name."""
    one, two = ReferenceFiles(*first), ReferenceFiles(*second)
    names = (one.name, two.name)
    tables, refused = _comparable(one, two)
    if not tables:
        return Agreement(names, refused=refused)
    found = [
        difference
        for table in tables
        for quantity in one.summary[table]
        for difference in _differences(quantity, one.row(table, quantity), two.row(table, quantity))
    ]
    z = np.array([difference.z for difference in found])
    bound = float(stats.norm.isf(LEVEL / (2 * len(found))))
    return Agreement(
        names,
        len(found),
        bound,
        max(found, key=lambda d: d.z),
        max((d for d in found if d.what == "mean"), key=lambda d: d.sds),
        rms_z=float(np.sqrt(np.mean(z**2))),
        tables=tables,
        seeds=tuple(f.info["inference"]["method_arguments"]["seed"] for f in (one, two)),
    )


def _comparable(one: ReferenceFiles, two: ReferenceFiles) -> tuple[tuple[str, ...], str]:
    """The tables of which both have chains that agree; and why there are none."""
    for files in (one, two):
        if broken := files.broken():
            return (), f"{files.folder}: {'; '.join(broken)}."
    for table in ("parameters", "invariants"):
        if set(one.summary[table]) != set(two.summary[table]):
            return (), f"They have other {table}: they are of other posteriors."
    if one.info["data_sha256"] != two.info["data_sha256"]:
        return (), "They are of other data: their checksums differ."
    if one.info["labelling"] != two.info["labelling"]:
        return (), (
            "Their canonical labellings differ, on which aligned means depend: make the second one with the "
            "labelling of the first, --labelling FOLDER."
        )
    kept, refused = [], ""
    for table in ("parameters", "invariants"):
        rows = [(files, row) for files in (one, two) for row in files.summary[table]]
        found = [(files.row(table, row)["rhat"], row, files.folder) for files, row in rows]
        worst, row, where = max(
            (each for each in found if np.isfinite(each[0])), default=(0.0, "", one.folder)
        )
        if found and worst < RHAT:
            kept.append(table)
        elif found:
            refused = (
                f"{where} has an R-hat of {worst:.3f} ({row}): its chains do not agree with one another, and errors "
                "of such chains excuse any difference."
            )
    return tuple(kept), refused


def _differences(quantity: str, one: dict[str, float], two: dict[str, float]) -> list[Difference]:
    sd = np.sqrt((one["sd"] ** 2 + two["sd"] ** 2) / 2)
    if sd == 0:
        return []
    found = []
    for what in COLUMNS:
        gap = abs(one[what] - two[what])
        error = np.hypot(one[f"mcse_{what}"], two[f"mcse_{what}"])
        found.append(Difference(quantity, what, float(gap / error), float(gap / sd)))
    return found
