"""The verdict on a run compared with its reference: whether it can be judged, and then whether anything differs.

R-hat and ESS come before any difference: a stuck chain blows up its own Monte Carlo error, until any difference passes
for chance. Label-free quantities lead: where these have not converged nothing is judged, and where it has, entries
that alignment does not bring together are left out and the rest is judged without them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from ...diagnostics.causes import times_as_many
from ...diagnostics.verdict import Limits
from .differences import Tested, tried

Verdict = Literal["agrees", "agrees in part", "differs", "cannot be judged"]
INVARIANT, PARAMETER = "invariant", "parameter"
APART = 1.1
"""R-hat above which chains stand apart rather than that they are short."""


@dataclass(frozen=True, eq=False)
class Judged:
    """A judged table of differences."""

    verdict: Verdict
    rows: pd.DataFrame  # Those that were judged.
    tests: Tested  # Of them.
    failed: pd.DataFrame  # Rows whose Monte Carlo errors cannot be trusted.


def judge(table: pd.DataFrame) -> Judged:
    """Judge differences, each row of which is an invariant or a parameter (column `kind`)."""
    failed = table[~table["passed"]]
    kinds = set(failed["kind"])
    leading = INVARIANT if (table["kind"] == INVARIANT).any() else PARAMETER
    rows = table.iloc[:0] if leading in kinds else table[~table["kind"].isin(kinds)]
    tests = tried(rows)
    if rows.empty:
        verdict: Verdict = "cannot be judged"
    elif tests.beyond:
        verdict = "differs"
    else:
        verdict = "agrees in part" if kinds else "agrees"
    return Judged(verdict, rows, tests, failed)


def why_not(failed: pd.DataFrame, chains: int) -> tuple[str, str]:
    """Say why quantities cannot be judged, and what to do."""
    if not chains:
        return (
            "Its draws have no Monte Carlo error that could be computed.",
            "Take more draws of it.",
        )
    worst, ess = failed["rhat"], failed[["ess_bulk", "ess_tail"]].min(axis=1)
    least, most = Limits().least_ess(chains), Limits.DECIDES
    what = failed["kind"].map({INVARIANT: "invariants", PARAMETER: "parameters"}).unique()
    shown = f"its {what[0]} has"
    if len(failed) > 1:
        shown = f"{len(failed)} of its {' and '.join(what)} have"
    if worst.max() > most:
        said = f"{shown} an R-hat above {most:g} (`{worst.idxmax()}`: {worst.max():.2f})"
    else:
        said = (
            f"{shown} fewer than {least:g} effective draws (`{ess.idxmin()}`: "
            f"{np.nan_to_num(ess.min()):.0f})"
        )
    said = f"{said[:1].upper()}{said[1:]}."
    if worst.max() > APART or math.isnan(ess.min()):
        return said, (
            "Its chains have not converged: see by `onebasin diagnose` what keeps them apart, and sample again; until "
            "then its Monte Carlo errors, and every comparison by them, say nothing."
        )
    times = times_as_many(float(ess.min()), least, float(worst.max()), most)
    return said, f"Draw about {times} times as many, with a longer warmup."
