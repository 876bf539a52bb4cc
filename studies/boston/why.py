"""Why the constrained network predicts better, or not: posteriors in which one thing differs at a time.

Incoming weights of norm 1 change two things at once. They take a freedom away, which is what the paper is about; and
under the same N(0, 1) priors they change what functions are likely. Thirteen free N(0, 1) weights have a norm of about
the root of 13, so a unit of the free network is 3.6 times as steep as one of norm 1 with the same last layer, and its
kink lies 3.6 times nearer to the middle of the data. Scaling the priors by that number gives either network the other's
functions, but for the spread of the norm; so what the constraint does can be told from what its prior does.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from onebasin.inference import Nuts
from onebasin.models import NormalPrior

from .. import lab
from ..lab import Field, Frames, Row, View, at_most
from ..lab.effects import change
from ..shared.heldout import MAX_RHAT

SHORT = 50
"""Iterations of warmup, and draws, of chains that are cut short."""
SHALLOW = 5
"""Levels at which trees are cut off."""
OVERLAP = 0.25
"""The test part over the training part: by so much do random splits share rows."""


@dataclass(frozen=True)
class Variation:
    """A posterior, or its sampler, with one thing changed."""

    base: str  # The parametrisation that it is held against.
    chart: str = ""  # The parametrisation that it has, where that is another one.
    norm: float = 0.0
    """The power of the norm of free incoming weights by which the priors' scales are changed."""
    short: bool = False  # Whether chains are cut short.
    shallow: bool = False  # Whether trees are.

    @property
    def cut(self) -> bool:
        """Whether its sampler is not given its time, so that its chains need not agree."""
        return self.short or self.shallow

    @property
    def parametrisation(self) -> str:
        """Label of its parametrisation."""
        return self.chart or self.base

    def prior(self, in_dim: int) -> NormalPrior:
        """Scale the priors: of the last layer up and of the hidden biases down, or of incoming weights down."""
        norm = math.sqrt(in_dim)
        if self.norm > 0:  # unit-norm weights: as steep as free ones, and kinks as near
            return NormalPrior((1.0, norm), (1 / norm, 1.0))
        return NormalPrior((1 / norm, 1.0)) if self.norm < 0 else NormalPrior()

    def settings(self, nuts: Nuts) -> Nuts:
        """Change the sampler's settings."""
        if self.short:
            nuts = replace(nuts, warmup=min(SHORT, nuts.warmup), draws=min(SHORT, nuts.draws))
        return replace(nuts, max_tree_depth=SHALLOW) if self.shallow else nuts


VARIATIONS: Mapping[str, Variation] = MappingProxyType(
    {
        "givens_seamless": Variation("givens", chart="givens_seamless"),
        "free-narrow": Variation("free", norm=-1),
        "givens-wide": Variation("givens", norm=1),
        "free-short": Variation("free", short=True),
        "givens-short": Variation("givens", short=True),
        "free-shallow": Variation("free", shallow=True),
        "givens-shallow": Variation("givens", shallow=True),
    }
)
COMPARISONS = (
    ("both, as in the paper", "free", "givens"),
    ("the constraint alone, functions as of free weights", "free", "givens-wide"),
    ("the constraint alone, functions as of unit norm", "free-narrow", "givens"),
    ("the prior alone, free weights", "free", "free-narrow"),
    ("the prior alone, unit norm", "givens-wide", "givens"),
    ("the seam of the angle taken away", "givens", "givens_seamless"),
    (f"{SHORT} draws after {SHORT} of warmup", "free", "free-short"),
    (f"{SHORT} draws after {SHORT} of warmup", "givens", "givens-short"),
    (f"trees cut off at depth {SHALLOW}", "free", "free-shallow"),
    (f"trees cut off at depth {SHALLOW}", "givens", "givens-shallow"),
    ("both, chains cut short", "free-short", "givens-short"),
    ("both, trees cut off", "free-shallow", "givens-shallow"),
)
"""What differs, and the two posteriors that are compared, on the splits that have both."""
_MEASURES = ("mse", "outside_95", "log_score")


def differences(frames: Frames) -> Iterable[Row]:
    """Compare posteriors that differ in one thing, on the splits of the variations; none where there are none."""
    cells = frames["cells"].where(method="nuts")
    varied = cells.where(problem=tuple(VARIATIONS))
    for engine in varied.levels("engine") if varied else ():
        sampled = cells.where(engine=engine, split=varied.levels("split"))
        for what, first, second in COMPARISONS:
            row = _difference(sampled, first, second)
            if row:
                yield {"what": what, "first": first, "second": second, "engine": engine, **row}


def _difference(cells: lab.Frame, first: str, second: str) -> Row:
    found: dict[str, object] = {}
    for measure in _MEASURES:
        pairs = lab.pair(cells, measure, "problem", first, second, by="split")
        if not pairs.num:
            return {}
        effect = change(pairs.first, pairs.second, "difference", overlap=OVERLAP)
        found |= {"splits": pairs.num, measure: effect.estimate}
        found |= {f"{measure}_low": effect.low, f"{measure}_high": effect.high}
    rhats = cells.where(problem=second).column("prediction_rhat")
    return found | {"rhat": max(rhats, default=None)}


def _interval(measure: str) -> Field:
    names = {"mse": "MSE", "outside_95": "outside", "log_score": "log score"}
    units = {"mse": "standardised", "outside_95": "95 % interval", "log_score": "nats"}

    def write(row: Row) -> str:
        numbers = [row[name] for name in (measure, f"{measure}_low", f"{measure}_high")]
        if None in numbers:
            return f"{numbers[0]:+.3f}"
        return "{:+.3f} ({:+.3f} to {:+.3f})".format(*numbers)

    return Field(names[measure], write, unit=f"change, {units[measure]}")


WHY = View(
    "One thing changed at a time: the mean change from the first posterior to the second over splits, with a 95 % "
    "interval that allows for the rows that splits share",
    (
        Field("what differs", "what"),
        Field("from", "first"),
        Field("to", "second"),
        Field("splits", "splits"),
        *(_interval(measure) for measure in _MEASURES),
        Field(
            "R-hat of f", "rhat", decimals=2, unit="largest, second",
            flag=at_most(MAX_RHAT, otherwise="warn"),
        ),
    ),
    over=differences,
)  # fmt: skip


def why(frames: Frames) -> str:
    """Say in a sentence what of the difference is the constraint's, and what its prior's; empty if neither ran."""
    rows = lab.Frame.of(differences(frames))
    parts = {(row["first"], row["second"]): row for row in rows}
    both, prior = parts.get(("free", "givens")), parts.get(("free", "free-narrow"))
    alone = parts.get(("free-narrow", "givens"))
    if both is None or prior is None or alone is None:
        return ""
    return (
        f"On {lab.counted(both['splits'], 'split')} the test MSE changes by {both['mse']:+.3f} from free to Givens "
        f"weights: {prior['mse']:+.3f} with free weights whose priors give functions as of norm 1, and "
        f"{alone['mse']:+.3f} more by the constraint itself."
    )


def chains_of_variations(frames: Frames) -> str:
    """Say in a sentence whose chains disagree among the variations; empty where none ran."""
    cells = frames["cells"].where(problem=tuple(VARIATIONS)).known("prediction_rhat")
    if not cells:
        return ""
    found = []
    for cut, words in ((True, "cut short on purpose"), (False, "given their time")):
        names = tuple(name for name, one in VARIATIONS.items() if one.cut is cut)
        rhats = cells.where(problem=names).column("prediction_rhat")
        if rhats:
            found.append(f"{sum(rhat > MAX_RHAT for rhat in rhats)} of {len(rhats)} {words}")
    return (
        f"Variations, of which no statement is made, are counted apart: R-hat of f is above {MAX_RHAT:g} in "
        f"{' and '.join(found)}."
    )
