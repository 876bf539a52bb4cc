"""The study in words: its headline, and the chapters of its page."""

from collections.abc import Iterator

from onebasin.analysis.report.definitions import DIAGNOSTICS, PREDICTION
from onebasin.truth.pairs import MIN_PAIRS

from .. import lab
from ..lab import Caution, Chapter, Frames, Row
from ..lab.averages import averages
from ..lab.effects import EFFECTS
from ..shared.heldout import MAX_RHAT
from . import views
from .design import GAP, INSIDE, NAME, OUTSIDE, TRUTH, VI, Config
from .making import ALL

FIGURE_ONE = "Figure 1, with numbers"
COLLAPSED = "What collapses"
EQUATION_SIX = "The gap of equation 6"
SAMPLED = "What the samplers say of the same models"

_DEFINITIONS = (
    (
        "plain, ordered, orthogonal, both",
        "The network as it is; with hidden biases in increasing order; with fixed semi-orthogonal skip matrices in "
        "every layer; with both.",
    ),
    (
        "Epistemic, aleatoric",
        "The two parts of a prediction's standard deviation, by the law of total variance: the spread over draws of "
        "the function, and the root mean square of the noise's standard deviation.",
    ),
    (
        "Active unit, KL of a unit",
        "A unit's KL is that of its incoming and outgoing weights under the fit from their prior, in nats; "
        "`ob.unit_activity` says which units count as active.",
    ),
    (
        "Gap, log |G|",
        "KL[q₀ ‖ q], by which the ELBO of the fit's symmetric mixture exceeds its own: between 0 and the logarithm of "
        "the number of permutations of the hidden units.",
    ),
)


def headline(frames: Frames) -> Iterator[str]:
    """Say the result in a few sentences."""
    cells = frames["cells"]
    yield _size(frames)
    yield _chains(frames)
    for condition in cells.levels("condition") if cells else ():
        yield _fits(frames, condition)
    yield from _gaps(frames)
    yield lab.count_verdicts(frames)


def _size(frames: Frames) -> str:
    cells = frames["cells"]
    sets = len(cells.levels("dataset")) if cells else 0
    if sets < MIN_PAIRS:
        return (
            f"With fewer than {MIN_PAIRS} data sets no statement can be decided, and this run has {sets}: give "
            f"--datasets {MIN_PAIRS} or more."
        )
    return f"Statements are tried on {sets} data sets, {len(cells)} posteriors in all."


def _chains(frames: Frames) -> str:
    """Say where chains disagree on the function."""
    sampled = frames["cells"].where(method=TRUTH).known(f"rhat_{INSIDE}") if frames["cells"] else ()
    bad = [row for row in sampled if max(_rhats(row)) > MAX_RHAT]
    if not bad:
        return ""
    worst = max(bad, key=lambda row: max(_rhats(row)))
    return Caution(
        f"Chains of NUTS do not agree on the predictions in {len(bad)} of {len(sampled)} posteriors (R-hat of f above "
        f"{MAX_RHAT:g} at some point, at most {max(_rhats(worst)):.2f}, {worst['label']}): there they are no truth, "
        "and comparisons with them are left out."
    )


def _upper(words: str) -> str:
    return words[:1].upper() + words[1:]


def _rhats(row: Row) -> list[float]:
    return [row[f"rhat_{where}"] for where in (INSIDE, OUTSIDE)]


def _fits(frames: Frames, condition: str) -> str:
    """Say what share of the true function each fit explains, and how many units are active."""
    names = (f"explained_{INSIDE}", "active", "units")
    found = averages(lab.select("cells", method=VI, condition=condition), ("problem",), mean=names)(
        frames
    )
    parts = [
        f"{100 * row[names[0]]:.0f} % ({row['problem']}, {row['active']:.0f} of {row['units']:.0f} units active)"
        for row in found
    ]
    sampled = averages(
        lab.select("cells", method=TRUTH, condition=condition), ("problem",), mean=names[:1]
    )(frames)
    shares = [100 * row[names[0]] for row in sampled if row[names[0]] is not None]
    beside = f"; the samplers' means explain {lab.span(shares, 0)} %" if shares else ""
    return (
        f"{_upper(condition)}: inside the data's range mean-field fits explain of the true function's variance "
        f"{', '.join(parts)}{beside}."
    ) * bool(parts)


def _gaps(frames: Frames) -> Iterator[str]:
    """Say what equation 6 comes to at the end."""
    names = ("lower", "upper", "log_order")
    over = averages(lab.select("gaps", layer=ALL, end=True), ("condition", "problem"), mean=names)
    for row in over(frames):
        yield (
            f"{_upper(row['condition'])}: between the {row['problem']} fit and its symmetric mixture the gap of "
            f"equation 6 ends between {row['lower']:.1f} and {row['upper']:.1f} nats, of at most "
            f"{row['log_order']:.1f} (log |G|)."
        )


def chapters(config: Config, frames: Frames) -> Iterator[Chapter | None]:
    """Lay out the page."""
    hidden = config.hidden
    yield Chapter(
        "The question",
        "Hidden units can be swapped without any change to what a network computes. Kurle, Januschowski, Gasthaus and "
        "Wang (2021) argue that a Gaussian fitted to the posterior is drawn to where all copies coincide, the prior, "
        "so that it underfits, and that fixed semi-orthogonal skip matrices, which leave nothing to swap, mend it. "
        "They show one picture. Here are the numbers, for their network of "
        f"{len(hidden)} layers of {hidden[0]} SELU units on 128 points of a sinc function with noise 0.2, with chains "
        "of the same posteriors beside the fits.\n\n"
        "The paper does not state its prior's scale, its noise model, its function's scale or its optimiser. The "
        "optimiser here is Adam; the others are varied, and what fits turns on them: "
        f"{'; '.join(f'{c} ({lab.counted(c.datasets, "data set")})' for c in config.conditions)}.",
    )
    yield Chapter(FIGURE_ONE, views=(views.PREDICTIONS, views.DIFFERENCES))
    yield Chapter(
        "What the paper says, and what was measured",
        "Comparisons with a sampler leave out data sets on which its chains disagree on f.",
        (lab.STATEMENTS,),
    )
    yield Chapter(
        COLLAPSED,
        "A unit whose weights have gone back to the prior, or whose output nobody listens to, takes no part in the "
        "function.",
        (views.COLLAPSE, views.BY_LAYER),
    )
    yield Chapter(
        EQUATION_SIX,
        "The ELBO of the fit's symmetric mixture is higher than the fit's by this gap, which rewards fits whose copies "
        "coincide. It is bounded on both sides, layer by layer. Networks with skips or ordered biases have no "
        "permutations, and no gap.",
        (views.GAP_BY_LAYER, views.TRAINING),
    )
    yield Chapter(
        SAMPLED,
        "What of this is the model's, and what the approximation's? NUTS and MCLMC know nothing of a mean field; they "
        f"run under the first condition: {config.conditions[0]}.",
        (views.CHAINS, views.FROM_TRUTH),
    )
    yield Chapter("Every comparison", views=(EFFECTS,))
    yield lab.failed(frames)


def _run_name(cell: lab.Cell) -> str | None:
    """Say how each posterior of the first data set was made."""
    return cell.label if cell.method != GAP and getattr(cell, "number", 1) == 1 else None


TEXT = lab.Text(
    f"Symmetry broken by {NAME.replace('-', ' ')}",
    headline,
    chapters,
    definitions=(*_DEFINITIONS, *DIAGNOSTICS, *PREDICTION),
    run_name=_run_name,
)
