"""From the cells' posteriors to findings and a page."""

from __future__ import annotations

from collections.abc import Iterable

from onebasin.analysis.report import Report, Section, cost_table, describe_run, health_table
from onebasin.analysis.report.definitions import DIAGNOSTICS, PREDICTION
from onebasin.models.data import own_split

from ..heldout import BOUND
from ..lab.claims import Statement
from ..lab.legacy import (
    count_verdicts,
    failed_section,
    failure_table,
    filled,
    present,
    statement_table,
    trial_table,
    verdict_table,
)
from ..lab.study import Findings, Outcomes
from . import pictures, tables
from .design import Config, dataset
from .measures import Results, measure_all
from .statements import MAX_RHAT, statements

TITLE = "Two ReLU units, free and constrained"
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


def conclude(config: Config, outcomes: Outcomes) -> Findings:
    """Measure, judge, and lay out the page."""
    results = measure_all(config, outcomes)
    judged = statements(results)
    said = headline(results, judged)
    every = (
        statement_table(judged),
        trial_table(judged),
        tables.agreement_table(results),
        tables.sampling_table(results),
        tables.chart_table(results),
        tables.variational_table(results),
        tables.prediction_table(results),
        failure_table(outcomes),
    )
    return Findings(
        headline=said,
        statements=judged,
        shown=filled(tables.agreement_table(results), verdict_table(judged)),
        tables=filled(*every),
        report=_page(config, results, outcomes, judged, said),
        data=results.to_dict(),
    )


def headline(results: Results, judged: tuple[Statement, ...]) -> tuple[str, ...]:
    """Say the result in three sentences."""
    said = (_engines_agree(results), count_verdicts(judged), _approximation(results))
    return tuple(sentence for sentence in said if sentence)


def _engines_agree(results: Results) -> str:
    if not results.agreements:
        return ""
    differ = [name for name, found in results.agreements.items() if found.beyond]
    largest = max(found.largest for found in results.agreements.values())
    if differ:
        return (
            f"NUTS in Stan and in NumPyro differ by more than {BOUND:g} Monte Carlo errors "
            f"with {', '.join(differ)} (at most {largest:.1f})."
        )
    return (
        f"NUTS in Stan and in NumPyro agree in every predictive mean of all "
        f"{len(results.agreements)} parametrisations, to within {largest:.1f} Monte Carlo errors."
    )


def _approximation(results: Results) -> str:
    parts = []
    for name in ("free", "givens"):
        found = [gap for cell, gap in results.gaps.items() if cell.problem == name]
        if found:
            shift = _range(gap.in_sds for gap in found)
            ratio = _range(gap.sd_ratio for gap in found)
            parts.append(
                f"{shift} posterior sds off with {name} weights (their sd of f is {ratio} times NUTS's)"
            )
    if not parts:
        return ""
    return f"Held against NUTS, ADVI's predictive means are {', and '.join(parts)}."


def _range(values: Iterable[float]) -> str:
    numbers = sorted(values)
    low, high = f"{numbers[0]:.2f}", f"{numbers[-1]:.2f}"
    return low if low == high else f"{low} to {high}"


def _page(
    config: Config,
    results: Results,
    outcomes: Outcomes,
    judged: tuple[Statement, ...],
    said: tuple[str, ...],
) -> Report:
    sections = (
        _question(config),
        Section(
            "What the paper says, and what was measured",
            text="Every statement is tried in several comparisons, which are listed at the end. A "
            "comparison is void where the chains of NUTS disagree on f (R-hat "
            f"above {MAX_RHAT:g} at a held-out point): then NUTS itself is not the truth.",
            tables=(statement_table(judged),),
        ),
        _engines(results),
        _sampling(results),
        _charts(results),
        _variational(config, results),
        Section("Held-out predictions", tables=(tables.prediction_table(results),)),
        Section("Every comparison", tables=(trial_table(judged),)),
        failed_section(outcomes, _FAILED_FITS),
    )
    runs = [describe_run(cell.label, m.tree) for cell, m in results.measured.items()]
    return Report(
        title=TITLE,
        lede=" ".join(said),
        sections=tuple(section for section in sections if section is not None),
        provenance=tuple(runs),
        definitions=_DEFINITIONS + DIAGNOSTICS + PREDICTION,
    )


def _question(config: Config) -> Section:
    data = dataset(config.seed)
    parts = own_split(data)
    return Section(
        "The question",
        text="A network's hidden units can be swapped, and with ReLU each can be scaled up and its "
        "output down, without any change to what the network computes. Pourzanjani, Jiang and "
        "Petzold (2017) take both freedoms away by constraints: biases in order, incoming weights "
        "of norm 1. Section 4.1 of their paper says what that does to sampling and to variational "
        "inference.\n\nHere the experiment is repeated on data from their teacher network "
        f"({data.source}; {parts.train.num_obs} training and {parts.test.num_obs} held-out points), "
        "with N(0, 1) priors and a half-normal one on the noise, in Stan and in NumPyro. Where the paper does "
        "not say how it was done, the choices are ours.",
    )


def _engines(results: Results) -> Section | None:
    if not results.agreements:
        return None
    return Section(
        "Do the engines agree?",
        text="The same model was written twice. If both are right and both samplers have found the "
        "posterior, their predictive means differ by Monte Carlo error alone.",
        tables=(tables.agreement_table(results),),
    )


def _sampling(results: Results) -> Section | None:
    sampled = {cell.label: m.diagnosis for cell, m in results.sampled().items()}
    if not sampled:
        return None
    worst = pictures.worst_trace(results)
    figures = (pictures.figure_one(results), worst[1] if worst else None)
    text = (
        "R-hat and ESS of single parameters condemn chains that number the units differently, "
        "although their predictions agree; so both are shown."
    )
    if worst:
        text += f" The traces at the end are those of the worst cell, {worst[0]}."
    return Section(
        "Is the constrained posterior easier to sample?",
        text=text,
        tables=(
            tables.sampling_table(results),
            health_table(sampled, caption="Health of the chains, parameters alone"),
            cost_table(sampled, caption="Cost"),
        ),
        figures=present(figures),
    )


def _charts(results: Results) -> Section | None:
    if len({cell.problem for cell in results.charts()}) < 2:
        return None
    return Section(
        "The seam of the Givens angle",
        text="In two dimensions the Givens transform writes a unit vector as an angle between −π "
        "and π. Vectors on either side of ±π are neighbours on the circle and infinitely far apart "
        "for the sampler, so a posterior that reaches the seam falls into two modes, and a chain "
        "that starts on the wrong side presses against it, or has to go all the way round. "
        "`givens_seamless` and `unit_vector` describe the same posterior without a seam: their "
        "chains step across it.",
        tables=(tables.chart_table(results),),
    )


def _variational(config: Config, results: Results) -> Section | None:
    table = tables.variational_table(results)
    if not table.rows:
        return None
    figures = (pictures.slice_bands(config, results), *pictures.elbo_traces(results))
    return Section(
        "Can ADVI stand in for NUTS?",
        text="Whether an approximation is biased shows against NUTS on the very same posterior.",
        tables=(table,),
        figures=present(figures),
    )
