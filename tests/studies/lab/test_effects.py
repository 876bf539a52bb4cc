"""Effects: what claims make of them."""

from onebasin.studies.lab import Claim, Frame
from onebasin.studies.lab.claims import tried
from onebasin.studies.lab.effects import EFFECTS, changes, exceeds

from ...each import each
from .test_pairs import FREE, LOWER


def frames_of(**sides: tuple[float, ...]) -> dict[str, Frame]:
    rows = (
        {"problem": problem, "split": k, "engine": "numpyro", "score": value, "rhat": 1.0}
        for problem, values in sides.items()
        for k, value in enumerate(values)
    )
    return {"cells": Frame.of(rows)}


def claim(holds="below", *, scale="difference", void=lambda frames, row: False) -> Claim:
    test = changes(
        "cells", "score", "problem", [("free", "givens")], holds,
        scale=scale, by="split", same=("engine",), where=lambda a, b: a["engine"], void=void,
    )  # fmt: skip
    return Claim("lower", "It is lower.", "it is", test, mixed="depends")


@each(
    ("free", "givens", "holds", "verdict"),
    [
        (FREE, LOWER, "below", "reproduces"),
        (LOWER, FREE, "below", "does not reproduce"),
        (FREE, LOWER, "above", "does not reproduce"),
        (FREE, FREE[1:] + FREE[:1], "below", "unclear"),
        (FREE[:5], LOWER[:5], "below", "unclear"),
        ((3,) * 6, (1,) * 6, "below", "reproduces"),  # counts that are the same in every pair
        ((3,) * 6, (3,) * 6, "below", "unclear"),
    ],
)
def test_claim_holds_where_the_whole_interval_is_on_its_side(free, givens, holds, verdict):
    assert claim(holds).on(frames_of(free=free, givens=givens)).verdict == verdict


def test_pairs_that_cannot_be_trusted_are_left_out_and_counted():
    frames = frames_of(free=FREE, givens=LOWER)
    (trial,) = claim(void=lambda frames, row: row["split"] == 2).on(frames).trials
    assert (trial.pairs, trial.left_out) == (6, 1)
    assert "1 left out" in trial.measured
    (trial,) = claim(void=lambda frames, row: True).on(frames).trials
    assert (trial.pairs, trial.left_out, trial.holds) == (0, 7, None)
    # Numbers that are not finite.
    frames = frames_of(free=(*FREE, float("nan")), givens=(*LOWER, 0.5))
    (trial,) = claim().on(frames).trials
    assert (trial.pairs, trial.left_out) == (7, 1)


def test_comparisons_that_contradict_each_other_depend_on_what_is_compared():
    rows = [
        {**row, "engine": engine, "score": row["score"] * (1 if engine == "stan" else -1)}
        for engine in ("stan", "numpyro")
        for row in frames_of(free=FREE, givens=LOWER)["cells"]
    ]
    assert claim().on({"cells": Frame.of(rows)}).verdict == "depends"


def test_measure_is_held_against_a_limit():
    test = exceeds("cells", "score", 0.5, same=("problem",), where=lambda row: row["problem"])
    frames = frames_of(free=FREE, givens=LOWER, other=tuple(value - 0.7 for value in FREE))
    holds = {trial.where: trial.holds for trial in test(frames)}
    assert holds == {"free": True, "givens": True, "other": "open"}
    _, judged = tried((claim(),), frames_of(free=FREE, givens=LOWER))
    (row,) = EFFECTS(judged).rows
    assert [cell.value for cell in row][:3] == ["lower", "numpyro", "difference"]
    assert row[-1].value == "yes"
