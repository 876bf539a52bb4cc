"""The paper's statements on Boston Housing, each tried in every engine on the splits that have both networks.

With fewer splits than a Wilcoxon test needs, no comparison can be judged. Effects come with intervals that allow for
the rows that splits share (`lab.effects`); the paper's test, by which two of its statements are tried, does not.
"""

from collections.abc import Sequence

from onebasin.truth.pairs import MIN_PAIRS, Pairs

from ..lab import ENGINE_WORDS, Claim, Holds, Row, select
from ..lab.effects import Effect, Measure, Rule, Scale, Side, changes
from ..shared.heldout import MAX_RHAT
from . import paper
from .why import OVERLAP

LEVEL = 0.05
FAR_LESS = 0.8
"""The mean share outside counts as far lower below this times the free one's."""
PAIRS = (("free", "givens"), ("ordered", "givens+ordered"))
"""Without and with the unit-norm constraint, all else equal."""
STATED = select("cells", method="nuts", problem=tuple(name for pair in PAIRS for name in pair))
"""The posteriors that the statements are of; the others are variations, some of which are cut short on purpose."""


def _where(a: Row, b: Row) -> str:
    return f"{a['problem']} to {b['problem']}, NUTS, {ENGINE_WORDS[a['engine']]}"


def _disagree(rows: Sequence[Row]) -> str:
    """Say where chains of these rows disagree."""
    rhats = [row["prediction_rhat"] for row in rows if row["prediction_rhat"] is not None]
    bad = sum(rhat > MAX_RHAT for rhat in rhats)
    return f"R-hat of f up to {max(rhats):.2f}, above {MAX_RHAT:g} in {bad}" if bad else ""


def _claim(
    label: str, quote: str, rule: str, measure: Measure, holds: Side | Rule, scale: Scale
) -> Claim:
    test = changes(
        STATED, measure, "problem", PAIRS, holds,
        scale=scale, by="split", same=("engine",), where=_where, overlap=OVERLAP, note=_disagree,
    )  # fmt: skip
    rule = f"{rule}; not judged with fewer than {MIN_PAIRS} splits"
    return Claim(label, quote, rule, test, mixed="depends")


def _always(pairs: Pairs, effect: Effect) -> bool | None:
    return pairs.wins == pairs.num if pairs.num >= MIN_PAIRS else None


def _far_less(pairs: Pairs, effect: Effect) -> Holds:
    free, constrained = pairs.means
    if pairs.num < MIN_PAIRS:
        return None
    if constrained < FAR_LESS * free:
        return True
    return "open" if constrained < free else False


def _significant(pairs: Pairs, effect: Effect) -> bool | None:
    free, constrained = pairs.means
    if pairs.num < MIN_PAIRS:
        return None
    return pairs.p_value is not None and pairs.p_value < LEVEL and constrained < free


_TESTS = (
    "Paired Wilcoxon tests of the MSE and coverage using the unconstrained versus the constrained "
    "models results in p-values of 0.009 and 0.003"
)
_SIGNIFICANT = f"p < {LEVEL:g} in a paired two-sided test and the constrained mean is lower"
CLAIMS = (
    _claim(
        "lower MSE in every split",
        "In every case the constrained version using the Givens Transform outperformed the "
        "unconstrained version (Table 1).",
        "the MSE with Givens weights is lower in every split",
        "mse",
        _always,
        "difference",
    ),
    _claim(
        "far fewer points outside the interval",
        "The constrained distribution has test examples outside of the 95% credible interval far less often (Table 2).",
        f"the mean share outside the 95 % interval is below {FAR_LESS:g} times the free one's; not if it is no lower",
        "outside_95",
        _far_less,
        "difference",
    ),
    _claim(
        "MSE, Wilcoxon test", f"{_TESTS} (MSE: {paper.P_MSE}).", _SIGNIFICANT,
        "mse", _significant, "difference",
    ),
    _claim(
        "share outside the interval, Wilcoxon test", f"{_TESTS} (coverage: {paper.P_OUTSIDE}).", _SIGNIFICANT,
        "outside_95", _significant, "difference",
    ),
    _claim(
        "easier to explore",
        "[...] as the constrained posterior is much easier to explore (Table 2).",
        "median bulk ESS of f per gradient, constrained over free, has its interval above 1",
        "ess_per_1000_gradients",
        "above",
        "ratio",
    ),
)  # fmt: skip
