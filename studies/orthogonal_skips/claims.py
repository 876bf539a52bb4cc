"""The paper's statements, each an effect over data sets, by what the paper leaves open (prior, noise, function).

The paper draws its results and gives no number, so every limit below is ours. With fewer data sets than a Wilcoxon test
needs every statement is unclear.
"""

import math
from collections.abc import Iterator

from onebasin.truth.pairs import MIN_PAIRS

from ..lab import METHOD_WORDS, Claim, Frames, Row, Test, join, select
from ..lab.comparisons import Void
from ..lab.effects import Measure, Scale, Side, changes, exceeds
from ..shared.heldout import MAX_RHAT
from .design import INSIDE, OUTSIDE, TRUTH, VI
from .making import ALL

UNDERFITS, FITS = 0.5, 0.9
"""Shares of the true function's variance: a mean that explains less underfits severely, one that explains more fits."""
MOST = 0.5
"""More than this share of units counts as most."""
TIGHT = 0.9
"""The bounds count as almost equally tight where the gap leaves this share of its largest value unused."""
NOMINAL = 0.95
ALIKE = ("method", "condition")
SKIPS = (("plain", "orthogonal"), ("ordered", "both"))
"""Without and with skips, all else equal."""

_FIGURE = (
    "It can be seen that the baseline results in severe underfitting, while orthogonal skip connections fit the data "
    "well and provide better out of distribution uncertainty."
)
_COLLAPSE = (
    "[...] in contrast to MCMC methods, variational approximations often collapse most weights to the typically "
    "zero-centred prior, resulting in severe underfitting."
)
_GAP = (
    "[...] the Gaussian posterior approximation provides an almost equally tight bound compared to the symmetric-MoG "
    "if most weights collapse to the prior."
)
_ORDERED = "[...] if the biases take (near) zero values, the degeneracy remains (mostly) intact."


def disagrees(where: str) -> Void:
    """Tell whether chains disagree on f, so that the sampler is no truth for a row's model, data and condition."""

    def void(frames: Frames, row: Row) -> bool:
        alike = {name: row[name] for name in ("data", "problem")}
        truth = frames["cells"].find(**alike, method=TRUTH)
        return truth is None or truth[f"rhat_{where}"] is None or truth[f"rhat_{where}"] > MAX_RHAT

    return void


def unexplained(row: Row) -> float:
    """Share of the true function's variance that a predictive mean does not explain."""
    return float(1 - row[f"explained_{INSIDE}"])


def inactive(row: Row) -> float:
    """Share of units that are not active."""
    return float(1 - row["active"] / row["units"])


def off(where: str) -> Measure:
    """How far the share of points in the 95 % interval is from 95 %."""
    return lambda row: abs(row[f"coverage_95_{where}"] - NOMINAL)


def off_in_spread(where: str) -> Measure:
    """How far the sd of f is from the sampler's, as a factor on a logarithmic scale, of either sign."""
    return lambda row: abs(math.log(row[f"from_truth_sd_ratio_{where}"]))


def _unused(row: Row) -> float:
    """Share of its largest value, log |G|, that the gap leaves at the end, at the least."""
    return float(1 - row["upper"] / row["log_order"])


def _stages(frames: Frames) -> Iterator[Row]:
    """Give a fit's gap where it is largest by its lower bound, and at the end by its upper bound."""
    gaps = frames["gaps"].where(layer=ALL)
    for data in gaps.levels("data") if gaps else ():
        rows = gaps.where(data=data)
        largest, end = max(rows, key=lambda row: row["lower"]), rows.row(end=True)
        yield {**largest, "stage": "the largest", "nats": largest["lower"]}
        yield {**end, "stage": "the last", "nats": end["upper"]}


def _of(row: Row) -> str:
    return f"{METHOD_WORDS[row['method']]}, {row['condition']}"


def _alone(row: Row) -> str:
    return f"{row['problem']}, {_of(row)}"


def _pair(first: Row, second: Row) -> str:
    return f"{first['problem']} to {second['problem']}, {_of(first)}"


def _claim(label: str, quote: str, rule: str, test: Test) -> Claim:
    rest = f"; open where the interval holds both, not judged with fewer than {MIN_PAIRS} data sets"
    return Claim(label, quote, f"{rule}{rest}", test, mixed="depends")


def _skips(measure: Measure, side: Side) -> Test:
    """Compare fits without and with skips, data set by data set."""
    return changes(
        select("cells", method=VI), measure, "problem", SKIPS, side,
        scale="difference", by="dataset", same=ALIKE, where=_pair,
    )  # fmt: skip


def _nearer(where: str) -> Test:
    """Compare distances from the sampler, without and with skips, where it ran."""
    return changes(
        lambda frames: frames["cells"].where(method=VI).known(f"from_truth_sd_ratio_{where}"),
        off_in_spread(where), "problem", SKIPS, "below",
        scale="difference", by="dataset", same=ALIKE, void=disagrees(where),
        where=lambda a, b: f"{_pair(a, b)}, {where}",
    )  # fmt: skip


def _ordering(measure: Measure, side: Side, scale: Scale = "difference") -> Test:
    return changes(
        select("cells", method=VI), measure, "problem", (("orthogonal", "ordered"),), side,
        scale=scale, by="dataset", same=ALIKE, where=_pair,
    )  # fmt: skip


def _from_sampler(measure: Measure, side: Side, problem: str) -> Test:
    """Compare a sampler with the approximation of the same model, data set by data set."""
    return changes(
        select("cells", problem=problem), measure, "method", ((TRUTH, VI),), side,
        scale="difference", by="dataset", same=("problem", "condition"), void=disagrees(INSIDE),
        where=lambda a, b: f"{problem}, NUTS to mean-field ADVI, {a['condition']}",
    )  # fmt: skip


def _exceeds(problem: str, measure: Measure, limit: float) -> Test:
    over = select("cells", method=VI, problem=problem)
    return exceeds(over, measure, limit, same=ALIKE, where=_alone)


CLAIMS = (
    _claim(
        "the baseline underfits severely",
        _FIGURE,
        f"the share of the true function's variance that the plain fit's mean does not explain has its interval above "
        f"{UNDERFITS:g}",
        _exceeds("plain", unexplained, UNDERFITS),
    ),
    _claim(
        "in contrast to MCMC",
        _COLLAPSE,
        "the share explained, plain fit less sampler, has its interval below 0",
        _from_sampler(f"explained_{INSIDE}", "below", "plain"),
    ),
    _claim(
        "most units collapse",
        _COLLAPSE,
        f"the plain fit's share of units that are not active has its interval above {MOST:g}",
        _exceeds("plain", inactive, MOST),
    ),
    _claim(
        "skips fit the data well",
        _FIGURE,
        f"the share explained has its interval above {FITS:g}, with skips and free biases",
        _exceeds("orthogonal", f"explained_{INSIDE}", FITS),
    ),
    _claim(
        "skips fit better than the baseline",
        _FIGURE,
        "the share explained, with skips less without, has its interval above 0",
        _skips(f"explained_{INSIDE}", "above"),
    ),
    _claim(
        "skips keep more units active",
        _COLLAPSE,
        "the number of active units, with skips less without, has its interval above 0",
        _skips("active", "above"),
    ),
    _claim(
        "better outside the data, log score",
        _FIGURE,
        "the log score at 1 < |x| < 2, with skips less without, has its interval above 0",
        _skips(f"log_score_{OUTSIDE}", "above"),
    ),
    _claim(
        "better outside the data, coverage",
        _FIGURE,
        "the distance of the 95 % interval's coverage at 1 < |x| < 2 from 0.95, with skips less without, has its "
        "interval below 0",
        _skips(off(OUTSIDE), "below"),
    ),
    _claim(
        "nearer to the sampler's uncertainty",
        _FIGURE,
        "the absolute log ratio of the sd of f to the sampler's, inside and outside, with skips less without, has its "
        "interval below 0",
        join(_nearer(INSIDE), _nearer(OUTSIDE)),
    ),
    _claim(
        "ordered biases do not suffice",
        _ORDERED,
        "the share explained, ordered biases less orthogonal skips, has its interval below 0",
        _ordering(f"explained_{INSIDE}", "below"),
    ),
    _claim(
        "collapsed, the Gaussian is as tight as the mixture",
        _GAP,
        f"of log |G| the gap of equation 6 leaves a share unused that has its interval above {TIGHT:g}, at the end",
        exceeds(
            select("gaps", layer=ALL, end=True), _unused, TIGHT,
            same=("problem", "condition"), where=lambda row: f"{row['problem']}, {row['condition']}",
        ),
    ),
    _claim(
        "the gap falls as weights collapse",
        "[...] this gap is not a constant [...]",
        "the gap's upper bound at the end, less its largest lower bound during the training, has its interval below 0",
        changes(
            _stages, "nats", "stage", (("the largest", "the last"),), "below",
            scale="difference", by="dataset", same=("problem", "condition"),
            where=lambda a, b: f"{a['problem']}, {a['condition']}",
        ),
    ),
)  # fmt: skip
