"""Test points at which chains disagree, and their part in the paper's comparison, as far as a record tells."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import lab
from ..lab import Field, Frames, Row, RowTable
from ..shared.heldout import MAX_RHAT
from .claims import PAIRS

_SAMPLED = lab.select("cells", method="nuts")


def bounds(row: Row) -> tuple[float, float]:
    """Least and largest share of points outside the 95 % interval among those at which chains agree."""
    count = row["num_obs"]
    outside, apart = round(row["outside_95"] * count), round(row["rhat_above"] * count)
    rest = count - apart
    if not rest:
        return 0.0, 1.0
    return max(0, outside - apart) / rest, min(outside, rest) / rest


def _compared(frames: Frames) -> Iterator[Row]:
    for engine in _SAMPLED(frames).levels("engine"):
        cells = _SAMPLED(frames).where(engine=engine).known("rhat_above")
        for levels in PAIRS:
            free, givens = ({r["split"]: r for r in cells.where(problem=p)} for p in levels)
            splits = sorted(free.keys() & givens.keys())
            if not splits:
                continue
            agree = [s for s in splits if not free[s]["rhat_above"] + givens[s]["rhat_above"]]
            change = {s: givens[s]["mse"] - free[s]["mse"] for s in splits}
            row: dict[str, Any] = {
                "compared": f"{' to '.join(levels)}, {lab.ENGINE_WORDS[engine]}",
                "agree": len(agree),
                "apart": len(splits) - len(agree),
                "change": _mean(change[s] for s in agree),
                "change_apart": _mean(change[s] for s in splits if s not in agree),
            }
            means = {}
            for name, rows in (("free", free), ("givens", givens)):
                means[name] = np.mean([bounds(rows[s]) for s in splits], axis=0)
                row[name] = "{:.3f} to {:.3f}".format(*means[name])
                row[f"{name}_points"] = _points(rows[s] for s in splits)
            row["open"] = (
                means["free"][0] < means["givens"][1] and means["givens"][0] < means["free"][1]
            )
            yield row


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return float(np.mean(known)) if known else None


def _points(rows: Iterable[Row]) -> int:
    return sum(round(row["rhat_above"] * row["num_obs"]) for row in rows)


def _caption(frames: Frames) -> str:
    rows, engines = list(_compared(frames)), _SAMPLED(frames).levels("engine")
    open_ = sum(row["open"] for row in rows)
    said = (
        f"What the test points at which chains disagree (R-hat of f above {MAX_RHAT:g}) change in the paper's "
        "comparison. The record keeps no single predictions, so that their scores without these points are not known. "
        "The table has the change of the MSE from free to Givens weights on splits without and with such points, and "
        "bounds on the mean share outside the 95 % interval without them. The bounds of free and Givens weights "
        f"overlap in {open_} of {lab.counted(len(rows), 'comparison')}: there these points can decide which share is "
        "lower."
    )
    return " ".join([said, *filter(None, (_between(frames, p, engines) for p in PAIRS[0]))])


def _between(frames: Frames, problem: str, engines: Sequence[str]) -> str:
    """Say by how much the MSE differs between two engines' chains of the same posteriors; empty of one engine."""
    of = [
        {row["split"]: row for row in _SAMPLED(frames).where(engine=e, problem=problem)}
        for e in engines
    ]
    splits = sorted(set.intersection(*map(set, of))) if len(of) == 2 else []
    if not splits:
        return ""
    apart = {s: abs(of[0][s]["mse"] - of[1][s]["mse"]) for s in splits}
    worst = max(apart, key=lambda split: apart[split])
    points = " and ".join(str(_points(rows[s] for s in splits)) for rows in of)
    rms = math.sqrt(np.mean(np.square([*apart.values()])))
    return (
        f"Two engines' chains of the same `{problem}` posteriors, with {points} such points over {len(splits)} splits, "
        f"differ in a split's MSE by {rms:.3f} (root mean square; most in split {worst}, {apart[worst]:.3f})."
    )


DISAGREEING = RowTable(
    _caption,
    (
        Field("compared", "compared"),
        Field("splits", "agree", unit="chains agree"),
        Field("MSE", "change", decimals=3, unit="change there"),
        Field("splits", "apart", unit="with such points"),
        Field("MSE", "change_apart", decimals=3, unit="change there"),
        Field("such points", "free_points", unit="free"),
        Field("such points", "givens_points", unit="givens"),
        Field("outside", "free", unit="free, without them"),
        Field("outside", "givens", unit="givens, without them"),
    ),
    over=_compared,
)
