"""The verdict on a run compared with its reference: whether it can be judged, and then whether anything differs.

R-hat and ESS come before any difference: a stuck chain blows up its own Monte Carlo error, until any difference passes
for chance. Label-free quantities lead: where these have not converged nothing is judged, and where it has, entries
that alignment does not bring together are left out and the rest is judged without them.

Differences between quantities of a run and their references: in posterior sds, and in Monte Carlo errors.

Convention: for each of mean, 5 % quantile, median and 95 % quantile, `d` is the run's value less the known one over
the known sd, and `z` the same difference over sqrt(mcse_run^2 + mcse_known^2). The sd itself is compared by its ratio
and by that of the 90 % intervals' widths, and is not tested: its Monte Carlo error rests on fourth moments, which heavy
tails do not have, and the quantiles see the same error.

All tests of a run share one bound on |z|, Bonferroni's at `LEVEL`: that any of them is beyond it by chance, where the
run is right, has a probability of at most `FALSE_ALARM`, however the quantities depend on one another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from ...diagnostics.causes import times_as_many
from ...diagnostics.verdict import Limits

TESTED = ("mean", "q5", "q50", "q95")
"""Statistics that are tested of every quantity."""
FALSE_ALARM = 0.05
"""Probability, at most, that a run which is right is said to differ."""
LEVEL = FALSE_ALARM / 2
"""Level of all tests together: Monte Carlo errors are estimated too, so that `z` has somewhat longer tails than a
normal distribution; at 0.05, 19 of 250 right runs of four chains of 1000 draws were said to differ, not 12."""
SEEN = 0.95
"""Probability with which an error of the size that is called visible is seen."""


class Worst(NamedTuple):
    """The difference `d` in sds that is largest among those beyond the bound, of one of `TESTED`."""

    quantity: str
    statistic: str
    d: float


def differences(known: pd.DataFrame, run: pd.DataFrame, *, chains: int) -> pd.DataFrame:
    """Compare described quantities with their references.

    Parameters
    ----------
    known, run
        Tables of `posterior.quantiles.describe` with the same rows.
    chains
        Markov chains of the run; 0 where its draws are independent.

    Returns
    -------
    pandas.DataFrame
        A row a quantity: `mean_known`, `mean`, `sd_known`, `sd`; `d_mean`, `z_mean` and so on for each of `TESTED`;
        `error`, the Monte Carlo error of the difference of means in known sds, and `error_tail`, the larger one of the
        5 and 95 % quantiles' differences; `sd_ratio` and `width_ratio`, of the run to the known; `rhat`, `ess_bulk`,
        `ess_tail` of the run; and `passed`, whether its Monte Carlo errors can be trusted. What varies on neither side
        has a difference of 0, or an infinite one.
    """
    run = run.reindex(known.index)
    out = pd.DataFrame({"mean_known": known["mean"], "mean": run["mean"]})
    out["sd_known"], out["sd"] = known["sd"], run["sd"]
    still = ~(known["sd"] > 0)
    unit = known["sd"].where(~still, run["sd"])
    errors = {}
    for name in TESTED:
        difference = run[name] - known[name]
        # Of constants, up to rounding.
        alike = np.isclose(run[name], known[name], rtol=1e-10, atol=0.0)
        difference = difference.where(~alike | ~still, 0.0)
        errors[name] = np.hypot(run[f"mcse_{name}"], known[f"mcse_{name}"])
        out[f"d_{name}"] = _over(difference, unit)
        out[f"z_{name}"] = _over(difference, errors[name])
    out["error"] = errors["mean"] / unit.where(unit > 0)
    out["error_tail"] = np.maximum(errors["q5"], errors["q95"]) / unit.where(unit > 0)
    out["sd_ratio"] = run["sd"] / known["sd"].where(~still)
    width = known["q95"] - known["q5"]
    out["width_ratio"] = (run["q95"] - run["q5"]) / width.where(width > 0)
    for name in ("rhat", "ess_bulk", "ess_tail"):
        out[name] = run[name]
    if chains:
        ess, constant = run[["ess_bulk", "ess_tail"]], ~(run["sd"] > 0) & still
        enough = ess.min(axis=1, skipna=False) >= Limits().least_ess(chains)
        out["passed"] = (enough & (run["rhat"] <= Limits.DECIDES)) | constant
    else:
        out["passed"] = np.isfinite(run["mcse_mean"])
    return out


def _over(difference: pd.Series, unit: pd.Series) -> pd.Series:
    """Divide; where there is no unit, no difference is 0 and any other is infinite."""
    apart = pd.Series(np.where(difference == 0, 0.0, np.inf), index=difference.index)
    whole = (difference / unit.where(unit > 0)).where(unit != 0, apart * np.sign(difference))
    return whole.astype(float)


@dataclass(frozen=True)
class Tested:
    """Results of the tests of judged quantities."""

    number: int  # Of tests.
    bound: float  # On |z|.
    beyond: tuple[str, ...]  # Quantities with a test beyond it.
    largest: Worst | None  # The test with the largest |d| of those beyond; None where none is.
    visible: float
    """Smallest error of a mean, in known sds, that would have been seen in every quantity with probability `SEEN`."""
    visible_tail: float  # The same of 5 and 95 % quantiles.


def tried(table: pd.DataFrame) -> Tested:
    """Test the rows of `differences` all together."""
    from scipy.stats import norm

    z = table[[f"z_{name}" for name in TESTED]]
    number = int(z.notna().to_numpy().sum())
    bound = float(norm.isf(LEVEL / 2 / max(number, 1)))
    beyond = table[(z.abs() > bound).any(axis=1)]
    found = (
        Worst(str(quantity), name, float(d))
        for name in TESTED
        for quantity, d, z in beyond[[f"d_{name}", f"z_{name}"]].itertuples()
        if abs(z) > bound
    )
    worst = max(found, key=lambda one: abs(one.d), default=None)
    reach = bound + float(norm.ppf(SEEN))
    return Tested(
        number=number,
        bound=bound,
        beyond=tuple(map(str, beyond.index)),
        largest=worst,
        visible=reach * float(table["error"].max()),
        visible_tail=reach * float(table["error_tail"].max()),
    )


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
