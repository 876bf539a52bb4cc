"""Conclusions from a run's comparison with its reference, in sentences. `Backticks` set a name in code type."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import pandas as pd

from onebasin.base.card import number

from ..result import PREDICTIONS
from .judging import FALSE_ALARM, INVARIANT, PARAMETER, SEEN, Judged

STATISTICS = {"mean": "mean", "q5": "5 % quantile", "q50": "median", "q95": "95 % quantile"}
SMALL = 0.05
"""Share by which a 90 % interval has to be too narrow or too wide to be reported."""
_SLIGHT = 0.1
"""Sds below which a difference is called small."""


def agreement(reference: str, judged: Judged) -> Iterator[str]:
    """Say that nothing differs, and what would have been seen."""
    tests, of = judged.tests, judged.rows["kind"]
    counts = {kind: int((of == kind).sum()) for kind in (INVARIANT, PARAMETER)}
    kinds = " and ".join(f"{n} {kind}{'s' * (n != 1)}" for kind, n in counts.items() if n)
    part = " in label-free quantities" if judged.verdict == "agrees in part" else ""
    yield (
        f"Agrees with `{reference}`{part}, as far as its Monte Carlo error can see: none of {kinds} differs by more "
        "than chance."
    )
    yield (
        f"An error of {number(tests.visible, 2)} sds in a mean, or of {number(tests.visible_tail, 2)} sds in a 5 or "
        f"95 % quantile, would have been seen in any of them (with probability {SEEN:g})."
    )


def difference(reference: str, judged: Judged) -> Iterator[str]:
    """Say what differs, the largest difference first."""
    tests = judged.tests
    rows = judged.rows.loc[list(tests.beyond)]
    shares = [
        f"{len(own)} of {len(judged.rows[judged.rows['kind'] == kind])} {kind}s"
        for kind in (INVARIANT, PARAMETER)
        if len(own := rows[rows["kind"] == kind])
    ]
    yield (
        f"Differs from `{reference}` by more than Monte Carlo error, in {' and '.join(shares)}: "
        f"{'; '.join(_told(rows, judged))}."
    )
    largest = tests.largest
    if largest is not None and abs(largest.d) < _SLIGHT:
        yield f"That is small, below {_SLIGHT:g} sds, but more than chance."


def _told(rows: pd.DataFrame, judged: Judged) -> Iterator[str]:
    bound, largest = judged.tests.bound, judged.tests.largest
    means = rows.loc[rows["z_mean"].abs() > bound, "d_mean"]
    if len(means):
        name = means.abs().idxmax()
        yield f"the mean of `{name}` lies {_sds(means[name])}"
    tails = rows.loc[(rows[["z_q5", "z_q95"]].abs() > bound).any(axis=1), "width_ratio"].dropna()
    widths = [tails.idxmin(), tails.idxmax()] if len(tails) else []
    for name, sign in zip(widths, (-1, 1), strict=False):
        excess = tails[name] - 1
        if sign * excess > SMALL:
            how = "too narrow" if excess < 0 else "too wide"
            yield f"the 90 % interval of `{name}` is {100 * abs(excess):.0f} % {how}"
    told = len(means) or any(abs(tails[name] - 1) > SMALL for name in widths)
    if largest is not None and not told:
        yield f"the {STATISTICS[largest.statistic]} of `{largest.quantity}` lies {_sds(largest.d)}"


def _sds(d: float) -> str:
    if math.isinf(d):
        return "elsewhere, and neither varies"
    return f"{number(abs(d), 2)} sds too {'high' if d > 0 else 'low'}"


def prediction(predictions: Mapping[str, float]) -> str:
    """Say how far predictions are apart, and how far the reference's own halves are."""
    for measure, text in PREDICTIONS.items():
        if measure in predictions:
            apart, floor = (number(predictions[m], 2) for m in (measure, f"{measure}_floor"))
            said = text.format(apart)
            said = f"{said[:1].upper()}{said[1:]}"
            return f"{said}; two halves of the reference's kept draws are {floor} apart."
    return ""


def notes(judged: Judged, rule: str) -> Iterator[str]:
    """Say how it was judged."""
    tests = judged.tests
    if tests.number:
        yield (
            f"Mean, 5 % quantile, median and 95 % quantile are compared with the reference's: {tests.number} tests "
            f"share one bound, |z| above {tests.bound:.2f} (Bonferroni), so that a run which is right is said to "
            f"differ with a probability of at most {FALSE_ALARM:g}. z is the difference over the Monte Carlo errors "
            "of both sides, d the same over the reference's sd; sds are not tested, as quantiles see the same."
        )
    if rule:
        yield rule
