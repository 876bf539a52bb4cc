"""From the cells' posteriors to findings and a page."""

from __future__ import annotations

from collections import Counter

from analysis.report import Note, Report, Section, Table, cost_table, health_table
from analysis.report.definitions import DIAGNOSTICS

from ..statements import Statement, trial_table
from ..study import Cell, Findings, Outcomes, failure_table
from . import pictures, tables
from .design import Config
from .measures import Measured, Results, measure_all, worst
from .problems import PROBLEMS
from .statements import GOOD, statements, where

TITLE = "Label switching: diagnostics raw and aligned"
_DEFINITIONS = (
    (
        "Raw, aligned, held out",
        "Raw: the draws as the sampler gave them. Aligned: every draw moved by the relabelling that brings it "
        "closest to the mean of the aligned draws, iterated. Held out: the reference is fitted on the first "
        "half of the chains, and the R-hat is that of the other half.",
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
    claims = statements(results)
    said = headline(results, claims)
    every = (
        tables.diagnostics_table(results),
        tables.claim_table(claims),
        tables.switching_table(results),
        tables.recovery_table(results),
        trial_table(claims),
        failure_table(outcomes),
    )
    return Findings(
        headline=said,
        statements=claims,
        shown=(tables.diagnostics_table(results), tables.short_claim_table(claims)),
        tables=tuple(table for table in every if table.rows),
        report=_page(results, outcomes, claims, said),
        data=results.to_dict(),
    )


def headline(results: Results, claims: tuple[Statement, ...]) -> tuple[str, ...]:
    """Say the result in a few sentences."""
    said = (_mended(results), _rules(results), _overlap(results), _claims(claims))
    return tuple(sentence for sentence in said if sentence)


def _mended(results: Results) -> str:
    apart = {c: m for c, m in results.measured.items() if PROBLEMS[c.problem].separated}
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
    apart = [m for c, m in results.measured.items() if PROBLEMS[c.problem].separated]
    if not apart:
        return ""
    mean = sum(max(m.modulo.switching.labellings) > 1 for m in apart)
    gaussian = sum(max(m.gaussian_labellings) > 1 for m in apart)
    return (
        f"Aligned with the mean, {mean} of these {len(apart)} seem to change labels within chains; aligned with "
        f"a Gaussian, {gaussian}."
    )


def _overlap(results: Results) -> str:
    found = [m for c, m in results.measured.items() if not PROBLEMS[c.problem].separated]
    if not found:
        return ""
    ((_, first), *_) = [(worst(m.raw)["rhat"], m) for m in found]
    warned = "warns" if first.modulo.warnings else "does not warn"
    return (
        f"Where they overlap, chains go through up to {max(first.modulo.switching.labellings)} labellings each, "
        f"raw R-hat is {worst(first.raw)['rhat']:.2f}, and the diagnosis {warned} that aligned means depend on "
        "the rule."
    )


def _claims(claims: tuple[Statement, ...]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    yes, no, unclear = (counts[v] for v in ("reproduces", "does not reproduce", "unclear"))
    return (
        f"Of {len(claims)} claims of the handbook, {yes} {'holds' if yes == 1 else 'hold'}, "
        f"{no} {'does' if no == 1 else 'do'} not, {unclear} {'is' if unclear == 1 else 'are'} unclear."
    )


def _page(
    results: Results, outcomes: Outcomes, claims: tuple[Statement, ...], said: tuple[str, ...]
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
            "told nothing of labels: no order, no start near a mode.",
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
            tables=(tables.recovery_table(results),),
            figures=(truth,) if truth else (),
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
        *_failed(outcomes),
    )
    return Report(
        title=TITLE,
        lede=" ".join(said),
        sections=sections,
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


def _failed(outcomes: Outcomes) -> tuple[Section, ...]:
    if not outcomes.failures:
        return ()
    table: Table = failure_table(outcomes)
    return (Section("What failed", tables=(table,)),)
