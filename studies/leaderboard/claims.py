"""What is claimed of the methods, and tried on every reference that they were run on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from onebasin.analysis.compare.reference.differences import FALSE_ALARM
from onebasin.base.card import number

from ..lab import Claim, Finding, Frames, Row, Test, Trial, each, read

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
    """Whether all runs of these methods agree, tested together: one beyond its own bound alone decides nothing."""
    rows = _of(*methods)

    def test(frames: Frames) -> Iterable[Trial]:
        judged = sum(row["verdict"] != "cannot be judged" for row in rows(frames))
        yield from each(rows, partial(_agrees, judged), where=_where)(frames)

    return test


def _agrees(judged: int, row: Row) -> Finding:
    if row["verdict"] == "cannot be judged":
        return "cannot be judged", None
    words = f"{row['verdict']}; |z| at most {number(row['largest_z'], 3)}, means within {number(row['worst'], 2)} sds"
    if row["verdict"] != "differs":
        return words, True
    joint = joint_bound(row["z_bound"], judged)
    if row["largest_z"] <= joint:
        return f"{words}; chance in {judged} runs reaches {number(joint, 3)}", "open"
    return words, False


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
