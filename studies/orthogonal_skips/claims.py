"""The paper's statements, each an effect over data sets, by what the paper leaves open (prior, noise, function).

The paper draws its results and gives no number, so every limit below is ours. With fewer data sets than a Wilcoxon test
needs every statement is unclear.
"""

import math
from collections.abc import Iterable, Iterator

from .. import lab
from ..lab import Field, Frames, Row, Test, changes, select
from ..shared.heldout import MAX_RHAT
from ..shared.papers import effect_claim, with_interval
from .design import ALL, INSIDE, OUTSIDE, TRUTH, VARIANTS, VI

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


def disagrees(where: str) -> lab.Void:
    """Return a test of whether chains disagree on f, so that the sampler is no truth for a row's data and condition."""

    def void(frames: Frames, row: Row) -> bool:
        alike = {name: row[name] for name in ("data", "problem")}
        truth = frames["cells"].find(**alike, method=TRUTH)
        return truth is None or truth[f"rhat_{where}"] is None or truth[f"rhat_{where}"] > MAX_RHAT

    return void


def _stages(frames: Frames) -> Iterator[Row]:
    """Give a fit's gap where it is largest by its lower bound, and at the end by its upper bound."""
    gaps = frames["gaps"].where(layer=ALL)
    for data in gaps.levels("data") if gaps else ():
        rows = gaps.where(data=data)
        largest, end = max(rows, key=lambda row: row["lower"]), rows.row(end=True)
        yield {**largest, "stage": "the largest", "nats": largest["lower"]}
        yield {**end, "stage": "the last", "nats": end["upper"]}


def _alone(row: Row) -> str:
    return f"{row['problem']}, {lab.METHOD_WORDS[row['method']]}, {row['condition']}"


def _pair(first: Row, second: Row) -> str:
    return f"{first['problem']} to {_alone(second)}"


def _fits(measure: lab.Measure, side: lab.Side, pairs: Iterable[tuple[str, str]] = SKIPS) -> Test:
    """Compare fits of two variants, data set by data set: without and with skips where nothing else is said."""
    return changes(
        select("cells", method=VI), measure, "problem", pairs, side,
        scale="difference", by="dataset", same=ALIKE, where=_pair,
    )  # fmt: skip


def _nearer(where: str) -> Test:
    """Compare distances from the sampler, without and with skips, where it ran."""
    return changes(
        lambda frames: frames["cells"].where(method=VI).known(f"from_truth_sd_ratio_{where}"),
        lambda row: abs(math.log(row[f"from_truth_sd_ratio_{where}"])), "problem", SKIPS, "below",
        scale="difference", by="dataset", same=ALIKE, void=disagrees(where),
        where=lambda a, b: f"{_pair(a, b)}, {where}",
    )  # fmt: skip


def _exceeds(problem: str, measure: lab.Measure, limit: float) -> Test:
    over = select("cells", method=VI, problem=problem)
    return lab.exceeds(over, measure, limit, same=ALIKE, where=_alone)


CLAIMS = (
    effect_claim(
        "the baseline underfits severely",
        _FIGURE,
        f"the share of the true function's variance that the plain fit's mean does not explain has its interval above "
        f"{UNDERFITS:g}",
        _exceeds("plain", lambda row: 1 - row[f"explained_{INSIDE}"], UNDERFITS),
    ),
    effect_claim(
        "in contrast to MCMC",
        _COLLAPSE,
        "the share explained, plain fit less sampler, has its interval below 0",
        changes(
            select("cells", problem="plain"), f"explained_{INSIDE}", "method", ((TRUTH, VI),), "below",
            scale="difference", by="dataset", same=("problem", "condition"), void=disagrees(INSIDE),
            where=lambda a, b: f"plain, NUTS to mean-field ADVI, {a['condition']}",
        ),
    ),
    effect_claim(
        "most units collapse",
        _COLLAPSE,
        f"the plain fit's share of units that are not active has its interval above {MOST:g}",
        _exceeds("plain", lambda row: 1 - row["active"] / row["units"], MOST),
    ),
    effect_claim(
        "skips fit the data well",
        _FIGURE,
        f"the share explained has its interval above {FITS:g}, with skips and free biases",
        _exceeds("orthogonal", f"explained_{INSIDE}", FITS),
    ),
    effect_claim(
        "skips fit better than the baseline",
        _FIGURE,
        "the share explained, with skips less without, has its interval above 0",
        _fits(f"explained_{INSIDE}", "above"),
    ),
    effect_claim(
        "skips keep more units active",
        _COLLAPSE,
        "the number of active units, with skips less without, has its interval above 0",
        _fits("active", "above"),
    ),
    effect_claim(
        "better outside the data, log score",
        _FIGURE,
        "the log score at 1 < |x| < 2, with skips less without, has its interval above 0",
        _fits(f"log_score_{OUTSIDE}", "above"),
    ),
    effect_claim(
        "better outside the data, coverage",
        _FIGURE,
        "the distance of the 95 % interval's coverage at 1 < |x| < 2 from 0.95, with skips less without, has its "
        "interval below 0",
        _fits(lambda row: abs(row[f"coverage_95_{OUTSIDE}"] - NOMINAL), "below"),
    ),
    effect_claim(
        "nearer to the sampler's uncertainty",
        _FIGURE,
        "the absolute log ratio of the sd of f to the sampler's, inside and outside, with skips less without, has its "
        "interval below 0",
        lab.join(_nearer(INSIDE), _nearer(OUTSIDE)),
    ),
    effect_claim(
        "ordered biases do not suffice",
        _ORDERED,
        "the share explained, ordered biases less orthogonal skips, has its interval below 0",
        _fits(f"explained_{INSIDE}", "below", [("orthogonal", "ordered")]),
    ),
    effect_claim(
        "collapsed, the Gaussian is as tight as the mixture",
        _GAP,
        f"of log |G| the gap of equation 6 leaves a share unused that has its interval above {TIGHT:g}, at the end",
        lab.exceeds(
            select("gaps", layer=ALL, end=True), lambda row: 1 - row["upper"] / row["log_order"], TIGHT,
            same=("problem", "condition"), where=lambda row: f"{row['problem']}, {row['condition']}",
        ),
    ),
    effect_claim(
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

_COMPARED = {
    "active units": "active",
    "KL to the prior, nats": "kl",
    "explained, inside": f"explained_{INSIDE}",
    "RMSE, inside": f"rmse_{INSIDE}",
    "RMSE, outside": f"rmse_{OUTSIDE}",
    "log score, inside": f"log_score_{INSIDE}",
    "log score, outside": f"log_score_{OUTSIDE}",
    "coverage of 95 %, inside": f"coverage_95_{INSIDE}",
    "coverage of 95 %, outside": f"coverage_95_{OUTSIDE}",
    "ELBO, nats": "elbo",
}


def _differences(frames: Frames) -> Iterable[Row]:
    """Give each measure of a mean-field fit less the plain network's, data set by data set."""
    fits = frames["cells"].where(method=VI)
    for condition in fits.levels("condition") if fits else ():
        rows = fits.where(condition=condition)
        for heading, measure in _COMPARED.items():
            row = {"condition": condition, "measure": heading}
            plain = rows.where(problem="plain").column(measure)
            row["plain"] = sum(plain) / len(plain) if plain else None
            for variant in [name for name in VARIANTS if name != "plain"]:
                pairs = lab.pair(rows, measure, "problem", "plain", variant, by="dataset")
                row[variant] = None
                if pairs.num:
                    row[variant] = with_interval(pairs.change(), "+.3g")
            yield row


DIFFERENCES = lab.RowTable(
    "Mean-field fits less the plain network's, paired over data sets: mean and 95 % interval (Student). ELBOs of "
    f"different networks bound different evidences. Claims ask for {lab.MIN_PAIRS} data sets",
    (
        Field("condition", "condition"),
        Field("measure", "measure"),
        Field("plain", "plain", unit="mean"),
        *(Field(name, name, unit="less plain") for name in VARIANTS if name != "plain"),
    ),
    over=_differences,
)
