"""From the cells' posteriors to findings and a page."""

from __future__ import annotations

from collections import Counter
from typing import Any

from onebasin.analysis.alignment.failure_rates import FailureRates, PlantedComponents, failure_rates
from onebasin.analysis.report import Note, Report, Section, cost_table, health_table
from onebasin.analysis.report.definitions import DIAGNOSTICS

from ..lab.claims import Statement
from ..lab.legacy import failed_section, failure_table, trial_table
from ..lab.study import Cell, Findings, Outcomes
from . import pictures, tables
from .design import Config
from .measures import Measured, Results, measure_all, worst
from .problems import PROBLEMS
from .statements import GOOD, statements, where

TITLE = "Label switching: diagnostics raw and aligned"
SEPARATIONS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0)
PLANTED = PlantedComponents()
_DEFINITIONS = (
    (
        "Raw, aligned, held out",
        "Raw: the draws as the sampler gave them. Aligned: every draw moved by the relabelling that brings it "
        "closest to a diagonal Gaussian fitted to the aligned draws, iterated. Held out: the reference is fitted on "
        "the first half of the chains, and the R-hat is that of the other half.",
    ),
    (
        "By the mean, by a Gaussian",
        "The distance to the reference. By the mean: squared, each variable divided by its spread over all raw "
        "draws. By a Gaussian: each entry divided by its spread over the aligned draws (Stephens 2000), so that "
        "entries that are known well decide.",
    ),
    (
        "Invariants",
        "Quantities that no relabelling changes: the log density, means and mean squares over the parts, and a "
        "network's outputs.",
    ),
)


def conclude(config: Config, outcomes: Outcomes) -> Findings:
    """Measure, judge, and lay out the page."""
    results = measure_all(config, outcomes)
    rates = failure_rates(SEPARATIONS, PLANTED)
    claims = statements(results)
    said = headline(results, claims)
    every = (
        tables.diagnostics_table(results),
        tables.claim_table(claims),
        tables.switching_table(results),
        tables.recovery_table(results),
        tables.rate_table(rates),
        trial_table(claims),
        failure_table(outcomes),
    )
    return Findings(
        headline=said,
        statements=claims,
        shown=(tables.diagnostics_table(results), tables.short_claim_table(claims)),
        tables=tuple(table for table in every if table.rows),
        report=_page(results, rates, outcomes, claims, said),
        data={**results.to_dict(), "failure_rates": _plain(rates)},
    )


def headline(results: Results, claims: tuple[Statement, ...]) -> tuple[str, ...]:
    """Say the result in a few sentences."""
    said = (
        _mended(results),
        _rules(results),
        _overlap(results),
        _modes(results),
        _claims(claims),
    )
    return tuple(sentence for sentence in said if sentence)


def _mended(results: Results) -> str:
    apart = results.of_kind("apart")
    if not apart:
        return ""
    raw = [worst(m.raw)["rhat"] for m in apart.values()]
    after = {where(c): worst(m.aligned) for c, m in apart.items()}
    good = [name for name, found in after.items() if found["rhat"] <= GOOD]
    sentence = (
        f"Where the parts are apart, the worst R-hat is {min(raw):.2f} to {max(raw):.2f} raw, and aligned at "
        f"most {GOOD:g} in {len(good)} of {len(after)} posteriors; their smallest bulk ESS goes from "
        f"{min(worst(m.raw)['ess_bulk'] for m in apart.values()):.0f} to "
        f"{min(found['ess_bulk'] for found in after.values()):.0f}."
    )
    left = [f"{name} ({found['rhat']:.3f})" for name, found in after.items() if name not in good]
    return sentence + (f" Not in {', '.join(left)}." if left else "")


def _rules(results: Results) -> str:
    """Say in how many posteriors whose parts are apart either rule lets labels change within a chain."""
    apart = results.of_kind("apart").values()
    if not apart:
        return ""
    mean = sum(max(m.mean_labellings) > 1 for m in apart)
    gaussian = sum(max(m.modulo.switching.labellings) > 1 for m in apart)
    wider = max(m.inflation for m in apart)
    return (
        f"Aligned with the mean, {mean} of these {len(apart)} seem to change labels within chains, which leaves "
        f"posteriors up to {wider:.1f} times as wide; aligned with a Gaussian, {gaussian}."
    )


def _overlap(results: Results) -> str:
    found = results.of_kind("overlap").values()
    if not found:
        return ""
    first = next(iter(found))
    warned = "warns" if first.modulo.warnings else "does not warn"
    return (
        f"Where they overlap, chains go through up to {max(first.modulo.switching.labellings)} labellings each, "
        f"raw R-hat is {worst(first.raw)['rhat']:.2f}, and the diagnosis {warned} that aligned means depend on "
        "the rule."
    )


def _modes(results: Results) -> str:
    found = results.of_kind("modes").values()
    if not found:
        return ""
    first = next(iter(found))
    return (
        f"Where modes differ in more than labels, R-hat is {worst(first.raw)['rhat']:.2f} raw and "
        f"{worst(first.aligned)['rhat']:.2f} aligned, and the chains are told apart as "
        f"{len(first.modulo.basins)} groups."
    )


def _claims(claims: tuple[Statement, ...]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    yes, no, unclear = (counts[v] for v in ("reproduces", "does not reproduce", "unclear"))
    return (
        f"Of {len(claims)} claims, {yes} {'holds' if yes == 1 else 'hold'}, "
        f"{no} {'does' if no == 1 else 'do'} not, {unclear} {'is' if unclear == 1 else 'are'} unclear."
    )


def _page(
    results: Results,
    rates: FailureRates,
    outcomes: Outcomes,
    claims: tuple[Statement, ...],
    said: tuple[str, ...],
) -> Report:
    diagnoses = {where(cell): m.modulo.raw for cell, m in results.measured.items()}
    overview = pictures.rhat_figure(results)
    truth = pictures.recovery_figure(results)
    sections = (
        Section(
            "The question",
            text="Where a model's parts are interchangeable, every mode has copies under other labels, and chains "
            "that found different copies look as if they had not converged. Can diagnostics tell this from chains "
            "that have really not converged, once the relabelling is divided out?\n\n"
            "The models below have such parts. Their data are synthetic, so that the truth is known, and NUTS is "
            "told nothing of labels: no order, no start near a mode. In one the parts overlap, and one has modes "
            "that differ in more than labels: alignment must not mend that.",
        ),
        Section(
            "Raw and aligned",
            tables=(tables.diagnostics_table(results),),
            figures=(overview,) if overview else (),
        ),
        Section("What is claimed, and what was measured", tables=(tables.claim_table(claims),)),
        Section(
            "Basins and labels",
            text="Two rules of alignment are compared. They differ where a part has entries that the data say "
            "little of: by the mean these count as much as the others, and may carry a draw to another label.",
            tables=(tables.switching_table(results),),
        ),
        Section(
            "Is it the truth?",
            text="Distances are in posterior standard deviations. A posterior that a rule of alignment leaves too wide "
            "looks close to the truth by them, so that the last column belongs beside them.",
            tables=(tables.recovery_table(results),),
            figures=(truth,) if truth else (),
        ),
        Section(
            "How far apart is apart?",
            text="Of real posteriors nobody knows which labels are right. So parts are drawn whose labels are known, "
            "hidden, and looked for again by every rule.",
            tables=(tables.rate_table(rates),),
            figures=(pictures.rates_figure(rates),),
        ),
        *(_model(cell, found) for cell, found in results.measured.items()),
        Section(
            "Can the draws be trusted?",
            text="The usual health of the chains, before alignment: R-hat and ESS condemn them all.",
            tables=(
                health_table(diagnoses, caption="Health of the chains, raw"),
                cost_table(diagnoses, caption="Cost, ESS raw"),
            ),
        ),
        Section("Every comparison", tables=(trial_table(claims),)),
        failed_section(outcomes),
    )
    return Report(
        title=TITLE,
        lede=" ".join(said),
        sections=tuple(section for section in sections if section is not None),
        provenance=tuple(m.made for m in results.measured.values()),
        definitions=_DEFINITIONS + DIAGNOSTICS,
    )


def _model(cell: Cell, found: Measured) -> Section:
    """Show one posterior: what it is, what the diagnosis says of it, and its worst parameter."""
    name = where(cell)
    remarks = (
        *(Note(sentence) for sentence in found.modulo.sentences[1:]),  # the first says the rule
        *(Note(warning, "warn") for warning in found.modulo.warnings),
    )
    return Section(
        name[0].upper() + name[1:],
        text=PROBLEMS[cell.problem].words,
        notes=remarks,
        figures=(pictures.trace_figure(name, found),),
    )


def _plain(rates: FailureRates) -> dict[str, Any]:
    """Give mean failure rates as plain types."""
    found = {"best possible": rates.optimal, **rates.rates}
    return {
        "separations": rates.separations.tolist(),
        **{name: values.mean(axis=0).tolist() for name, values in found.items()},
    }
