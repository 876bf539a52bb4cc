"""What the study says in words."""

from __future__ import annotations

from collections.abc import Iterable

from onebasin.analysis.report.definitions import DIAGNOSTICS, PREDICTION
from onebasin.models.data import own_split

from ..heldout import BOUND
from ..lab import STATEMENTS, TRIALS, Chapter, Frames, Row, Text, count_verdicts, failed
from . import views
from .claims import MAX_RHAT
from .design import Config, dataset

SAMPLING = "Is the constrained posterior easier to sample?"
VARIATIONAL = "Can ADVI stand in for NUTS?"
_FAILED_FITS = "These variational fits failed in every attempt; they are missing above."
_DEFINITIONS = (
    (
        "Parametrisation",
        "`free`: weights and biases as they are. `givens`: every hidden unit's incoming weights "
        "have norm 1, as an angle. `ordered`: the hidden biases increase. `givens_seamless` and "
        "`unit_vector`: norm 1 in charts without the seam of the angle at ±π.",
    ),
    (
        "f, prediction",
        "f is the network's output without noise; a prediction adds noise of the draw's own "
        "`sigma`. Means and errors are those of f.",
    ),
    (
        "Shift of the mean, sd of f",
        "Difference of the posterior means of f between ADVI and NUTS at each held-out point, over "
        "NUTS's posterior sd there, root mean square over the points; and the geometric mean of "
        "the ratio of the sds. `By chance` is the shift that Monte Carlo error alone would give.",
    ),
)


def headline(frames: Frames) -> tuple[str, ...]:
    """Say the result in three sentences."""
    return _engines_agree(frames), count_verdicts(frames), _approximation(frames)


def worst_cell(frames: Frames) -> Row | None:
    """Find the cell of NUTS with the largest R-hat of a parameter."""
    known = frames["cells"].where(method="nuts").known("rhat_value") if frames["cells"] else ()
    return max(known, key=lambda row: row["rhat_value"], default=None)


def chapters(config: Config, frames: Frames) -> Iterable[Chapter | None]:
    """Write the chapters of the page."""
    yield _question(config)
    yield Chapter(
        "What the paper says, and what was measured",
        "Every statement is tried in several comparisons, which are listed at the end. A "
        "comparison is void where the chains of NUTS disagree on f (R-hat "
        f"above {MAX_RHAT:g} at a held-out point): then NUTS itself is not the truth.",
        (STATEMENTS,),
    )
    yield Chapter(
        "Do the engines agree?",
        "The same model was written twice. If both are right and both samplers have found the "
        "posterior, their predictive means differ by Monte Carlo error alone.",
        (views.AGREEMENT,),
    )
    yield _sampling(frames)
    if len({row["problem"] for row in views.charts(frames)}) > 1:
        yield Chapter(
            "The seam of the Givens angle",
            "In two dimensions the Givens transform writes a unit vector as an angle between −π "
            "and π. Vectors on either side of ±π are neighbours on the circle and infinitely far apart "
            "for the sampler, so a posterior that reaches the seam falls into two modes, and a chain "
            "that starts on the wrong side presses against it, or has to go all the way round. "
            "`givens_seamless` and `unit_vector` describe the same posterior without a seam: their "
            "chains step across it.",
            (views.ALONG_THE_SEAM,),
        )
    yield Chapter(
        VARIATIONAL,
        "Whether an approximation is biased shows against NUTS on the very same posterior.",
        (views.VARIATIONAL,),
    )
    yield Chapter("Held-out predictions", views=(views.PREDICTION,))
    yield Chapter("Every comparison", views=(TRIALS,))
    yield failed(frames, _FAILED_FITS)


TEXT = Text(
    title="Two ReLU units, free and constrained",
    headline=headline,
    chapters=chapters,
    definitions=_DEFINITIONS + DIAGNOSTICS + PREDICTION,
)


def _engines_agree(frames: Frames) -> str:
    engines = frames["engines"]
    if not engines:
        return ""
    differ = [row["problem"] for row in engines if row["beyond"]]
    largest = max(engines.column("largest"))
    if differ:
        return (
            f"NUTS in Stan and in NumPyro differ by more than {BOUND:g} Monte Carlo errors "
            f"with {', '.join(differ)} (at most {largest:.1f})."
        )
    return (
        f"NUTS in Stan and in NumPyro agree in every predictive mean of all "
        f"{len(engines)} parametrisations, to within {largest:.1f} Monte Carlo errors."
    )


def _approximation(frames: Frames) -> str:
    parts = []
    for name in ("free", "givens"):
        fits = frames["cells"].where(problem=name)
        if shifts := fits.column("from_nuts_in_sds"):
            parts.append(
                f"{_range(shifts)} posterior sds off with {name} weights (their sd of f is "
                f"{_range(fits.column('from_nuts_sd_ratio'))} times NUTS's)"
            )
    if not parts:
        return ""
    return f"Held against NUTS, ADVI's predictive means are {', and '.join(parts)}."


def _range(values: Iterable[float]) -> str:
    numbers = sorted(values)
    low, high = f"{numbers[0]:.2f}", f"{numbers[-1]:.2f}"
    return low if low == high else f"{low} to {high}"


def _question(config: Config) -> Chapter:
    data = dataset(config.seed)
    parts = own_split(data)
    return Chapter(
        "The question",
        "A network's hidden units can be swapped, and with ReLU each can be scaled up and its "
        "output down, without any change to what the network computes. Pourzanjani, Jiang and "
        "Petzold (2017) take both freedoms away by constraints: biases in order, incoming weights "
        "of norm 1. Section 4.1 of their paper says what that does to sampling and to variational "
        "inference.\n\nHere the experiment is repeated on data from their teacher network "
        f"({data.source}; {parts.train.num_obs} training and {parts.test.num_obs} held-out points), "
        "with N(0, 1) priors and a half-normal one on the noise, in Stan and in NumPyro. Where the paper does "
        "not say how it was done, the choices are ours.",
    )


def _sampling(frames: Frames) -> Chapter:
    text = (
        "R-hat and ESS of single parameters condemn chains that number the units differently, "
        "although their predictions agree; so both are shown."
    )
    if worst := worst_cell(frames):
        text += f" The traces at the end are those of the worst cell, {worst['label']}."
    return Chapter(SAMPLING, text, (views.SAMPLING,))
