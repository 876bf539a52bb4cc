"""Measures and claims of every cell: how far it is from its reference, more than chance, the cost."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from onebasin.analysis.compare.reference.compare import compare_with_reference
from onebasin.analysis.compare.reference.judging import FALSE_ALARM, TESTED
from onebasin.analysis.compare.reference.known import Known
from onebasin.analysis.compare.reference.result import ReferenceComparison
from onebasin.base.card import number
from onebasin.posteriors import schema
from onebasin.posteriors.view import as_view
from onebasin.truth import open_reference

from ..lab import Cell, Claim, Finding, Frame, Frames, Outcomes, Row, Test, Trial, each, read
from ..lab.record import RESULTS
from .design import METHODS, NAME, LeaderboardConfig


def measure(config: LeaderboardConfig, outcomes: Outcomes) -> Frames:
    """Measure every cell; where methods are a user's own, those recorded of the same references stand next to them."""
    rows = [_row(cell, outcomes) for cell in outcomes]
    path = RESULTS / f"{NAME}.json"
    if config.added and path.is_file():
        kept = json.loads(path.read_text(encoding="utf-8"))["frames"]["cells"]
        measured = {(row["problem"], row["method"]) for row in rows}
        rows += [
            {**row, "recorded": True}
            for row in Frame.from_json(kept).where(problem=config.references)
            if (row["problem"], row["method"]) not in measured
        ]
    return {"cells": Frame.of(rows)}


@cache
def _known(reference: str) -> Known:
    return open_reference(reference).known


def _row(cell: Cell, outcomes: Outcomes) -> dict[str, Any]:
    tree = outcomes.tree(cell)
    label = METHODS[cell.method].label if cell.method in METHODS else cell.method  # of an added one
    factors = {**cell.factors, "label": label, "recorded": False, "seed": cell.seed}
    views = [as_view(one) for one in (tree, *map(outcomes.by_key, cell.inputs))]
    for name, word in _COSTS.items():  # what a posterior is made from is counted too
        known = [number for view in views if (number := view.number(word)) is not None]
        factors[name] = float(np.sum(known)) if known else None
    try:
        found = compare_with_reference(tree, _known(cell.problem), name=label)
        return {**factors, **columns(found)}
    except ValueError as error:
        return {**factors, "verdict": "cannot be judged", "said": str(error)}


def columns(found: ReferenceComparison) -> dict[str, Any]:
    """Return the results of a comparison as a row.

    `worst` and `median` are of the differences of means, in the reference's sds, over all quantities that vary; `tail`
    is the largest difference of a 5 or 95 % quantile; `sd_ratio` is the median over the parameters of the ratio of sds,
    `sd_low` and `sd_high` the smallest and the largest.
    """
    table = found.table[found.table["sd_known"] > 0]
    means, tails = table["d_mean"].abs(), table[["d_q5", "d_q95"]].abs()
    parameters = table[table["kind"] == "parameter"]["sd_ratio"]
    invariants = means[table["kind"] == "invariant"]
    z = table[[f"z_{name}" for name in TESTED]].abs()
    measure = "total_variation" if "total_variation" in found.predictions else "mean_distance"
    return {
        "verdict": found.verdict,
        "said": found.sentences[0],
        "worst": means.max(),
        "where": str(means.idxmax()),
        "median": means.median(),
        "worst_invariant": invariants.max() if len(invariants) else None,
        "tail": tails.to_numpy().max(),
        "sd_ratio": parameters.median(),
        "sd_low": parameters.min(),
        "sd_high": parameters.max(),
        "largest_z": z.to_numpy().max(),
        "z_bound": found.z_bound,
        "visible": found.visible,
        "quantities": len(table),
        "beyond": len(found.beyond),
        "rhat": table["rhat"].max(),
        "ess": table["ess_bulk"].min(),
        "prediction": found.predictions.get(measure),
        "prediction_floor": found.predictions.get(f"{measure}_floor"),
    }


_COSTS = {"seconds": schema.WALL_TIME, "gradients": schema.GRADIENT_EVALUATIONS}
NARROW = 0.9
"""Ratio of sds below which a parameter's spread is called too small."""


def _of(*methods: str):
    def rows(frames: Frames) -> list[Row]:
        found = read("cells", frames)
        return [row for row in found if row["method"] in methods and not row["recorded"]]

    return rows


def _where(row: Row) -> str:
    return f"{row['problem']}, {row['label']}"


def _agree(*methods: str) -> Test:
    """Return a test of whether all runs of these methods agree: one beyond its own bound alone decides nothing."""
    rows = _of(*methods)

    def test(frames: Frames) -> Iterable[Trial]:
        judged = sum(row["verdict"] != "cannot be judged" for row in rows(frames))

        def agrees(row: Row) -> Finding:
            if row["verdict"] == "cannot be judged":
                return "cannot be judged", None
            z, worst = number(row["largest_z"], 3), number(row["worst"], 2)
            words = f"{row['verdict']}; |z| at most {z}, means within {worst} sds"
            if row["verdict"] != "differs":
                return words, True
            joint = joint_bound(row["z_bound"], judged)
            if row["largest_z"] <= joint:
                return f"{words}; chance in {judged} runs reaches {number(joint, 3)}", "open"
            return words, False

        yield from each(rows, agrees, where=_where)(frames)

    return test


def joint_bound(bound: float, runs: int) -> float:
    """Bonferroni's bound on |z| of tests in several runs together, from `bound`, that of a run's own tests."""
    from scipy.stats import norm

    return float(norm.isf(norm.sf(bound) / runs))


def _differs(row: Row) -> Finding:
    if row["verdict"] == "cannot be judged":
        return "cannot be judged", None
    low, middle = number(row["sd_low"], 2), number(row["sd_ratio"], 2)
    words = f"{row['verdict']}; sds at least {low} of the reference's, median {middle}"
    return words, row["verdict"] == "differs" and row["sd_low"] < NARROW


_TOGETHER = (
    "the run agrees with its reference as far as Monte Carlo error can see; one that differs contradicts the claim if "
    f"it does by more than any of all runs would by chance with a probability of {FALSE_ALARM:g}, and is open else"
)

CLAIMS = (
    Claim(
        "NUTS samples the references",
        "NUTS of every engine agrees with the references, which were made from other seeds.",
        _TOGETHER,
        _agree("nuts", "nuts-stan", "nuts-nutpie"),
    ),
    Claim(
        "so does HMC",
        "HMC with trajectories of one length agrees with the references.",
        _TOGETHER,
        _agree("hmc"),
    ),
    Claim(
        "mean-field ADVI is too narrow",
        "Independent coordinates make some parameter's spread too small.",
        f"the fit differs from its reference, and some parameter's sd is below {NARROW:g} of the reference's",
        each(_of("meanfield"), _differs, where=_where),
    ),
)
