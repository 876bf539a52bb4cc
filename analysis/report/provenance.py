"""The end of a page: how every posterior was made, and what the page's terms mean."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onebasin.base.table import format_number
from onebasin.posteriors import schema
from onebasin.posteriors.view import Posterior, as_view

from ..page.page import Code, Details, Provenance, Section
from ..summaries.sampler import restarts_in_words, restarts_of

if TYPE_CHECKING:
    from ..plots.posteriors import Subject

_TEXT = (
    (schema.CREATED_AT, "Made"),
    (schema.COMMAND, "Command"),
    (schema.TARGET, "Target"),
    (schema.ENGINE, "Engine"),
    (schema.METHOD, "Method"),
    (schema.SEED, "Seed"),
)
_JSON = ((schema.SETTINGS, "Settings"), (schema.VERSIONS, "Versions"), (schema.MODEL, "Model"))


def describe_run(name: str, posterior: Posterior) -> Provenance:
    """List the facts of one run that were recorded: settings, seed, versions, machine, times."""
    view = as_view(posterior)
    facts = [(label, _text(view.attribute(key))) for key, label in _TEXT]
    facts.append(("Draws", f"{view.num_chains} × {format_number(view.num_draws)}"))
    facts += [(label, _listed(view.parsed(key))) for key, label in _JSON]
    blocks, joined = view.parsed(schema.SYMMETRY), view.parsed(schema.JOINED) or ()
    if blocks is not None:
        facts.append(("Symmetry", "; ".join(map(_listed, blocks)) or "none declared"))
    program, title = (_text(view.attribute(k)) for k in (schema.PROGRAM, schema.PROGRAM_NAME))
    if program:
        title = f"{title} (SHA-256 {hashlib.sha256(program.encode()).hexdigest()})".strip()
    facts.append(("Program", title))
    facts.append(("SHA-256 of the data", _text(view.attribute(schema.DATA_SHA256))))
    facts.append(("Machine", _text(view.attribute(schema.MACHINE))))
    runs = (f"{run.get('file')} (seed {run.get('seed', 'unknown')})" for run in joined)
    facts.append(("Joined", "; ".join(runs)))
    if (wall_time := view.number(schema.WALL_TIME)) is not None:
        facts.append(("Wall time", f"{format_number(wall_time)} s"))
    for key, label in ((schema.WARMUP_SECONDS, "Warmup"), (schema.SAMPLING_SECONDS, "Sampling")):
        if seconds := view.parsed(key):
            facts.append((label, f"{', '.join(map(format_number, seconds))} s, chain by chain"))
    if (gradients := view.number(schema.GRADIENT_EVALUATIONS)) is not None:
        facts.append(("Gradient evaluations", format_number(int(gradients))))
    if (limit := view.number(schema.MAX_TREE_DEPTH)) is not None:
        facts.append(("Maximal tree depth", f"{limit:g}"))
    if (converged := view.number(schema.CONVERGED)) is not None:
        facts.append(("Converged", "yes" if converged else "no"))
    facts.append(("Start", _text(view.attribute(schema.FIT_START))))
    facts.append(("New random stream", restarts_in_words(restarts_of(view))))
    facts.append(("Tried before", "; ".join(map(_listed, view.parsed(schema.ATTEMPTS) or ()))))
    return Provenance(name, tuple((label, value) for label, value in facts if value))


def program_section(subjects: Sequence[Subject]) -> Section | None:
    """Show the programs that posteriors were made by, folded; None where none was kept."""
    by_text: dict[str, list[str]] = {}
    for subject in subjects:
        if text := _text(subject.view.attribute(schema.PROGRAM)):
            by_text.setdefault(text, []).append(subject.name)
    if not by_text:
        return None
    parts = []
    for text, names in by_text.items():
        title = f"Program of {', '.join(names)}" if len(subjects) > 1 else "The program"
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        lines = format_number(len(text.splitlines()))
        parts.append(Details(title, (Code(text),), note=f"{lines} lines, SHA-256 {digest}"))
    return Section("Model", parts=tuple(parts))


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _listed(value: Any) -> str:
    """Write parsed JSON in one line, a mapping as `name = value` pairs."""
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_plain(entry)}" for key, entry in value.items())
    return "" if value is None else _plain(value)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


DIAGNOSTICS: tuple[tuple[str, str], ...] = (
    (
        "Parameter",
        "One scalar entry of a variable. Indices count from 0, unless the file names them otherwise: `A[0,1]` "
        "stands in the first row and the second column of `A`.",
    ),
    (
        "R-hat",
        "Rank-normalised split R-hat: how much wider the draws of all chains lie together than "
        "each half chain alone. 1 when the chains agree; above 1.01 they do not. (Vehtari, Gelman, "
        "Simpson, Carpenter and Bürkner 2021.)",
    ),
    (
        "Bulk ESS, tail ESS",
        "Effective sample size: how many independent draws would estimate the centre (rank-"
        "normalised), or the 5 % and 95 % quantiles (the smaller of the two; ArviZ's own table takes the ends "
        "of its interval), as well. At least 100 a chain, or 400 in all. (As above.)",
    ),
    (
        "MCSE",
        "Monte Carlo standard error of the mean: the error that is due to having finitely many "
        "draws.",
    ),
    (
        "Divergences",
        "Draws at which the simulated trajectory's energy error exploded: the posterior is curved "
        "more sharply there than the step size can follow, and draws near it may be missing.",
    ),
    (
        "Tree depth, saturated",
        "A NUTS trajectory of depth k takes up to 2ᵏ − 1 leapfrog steps. Saturated draws were cut "
        "off at the limit.",
    ),
    (
        "E-BFMI",
        "How freely the energy moves from draw to draw, compared with its spread, for each chain; "
        "below 0.3 the tails are explored too slowly. (Betancourt 2016.)",
    ),
    (
        "ESS per second, per gradient",
        "The smallest bulk ESS over the seconds of sampling (without warmup, summed over chains), "
        "and over the gradient evaluations of the kept draws.",
    ),
    (
        "k-hat",
        "Shape of the tail of the importance ratios posterior / approximation, by Pareto "
        "smoothing. Above min(1 − 1/log₁₀ S, 0.7) for S draws the approximation is too far off to "
        "be corrected. (Yao, Vehtari, Simpson and Gelman 2018.)",
    ),
    (
        "ELBO",
        "Evidence lower bound in nats; larger is better, and comparable only between fits of the "
        "same model.",
    ),
)

PREDICTION: tuple[tuple[str, str], ...] = (
    ("RMSE", "Root mean squared error of the predictive mean, in the units of the target."),
    (
        "Log score",
        "Mean over points of the log predictive density, averaged over draws inside the logarithm, "
        "in nats; larger is better.",
    ),
    (
        "Coverage, outside 95 %",
        "Share of points inside the central 50 % or 95 % predictive interval, and outside the "
        "95 % one; the nearer to 0.5, 0.95 and 0.05 the better.",
    ),
    (
        "Interval width",
        "Mean width of the central predictive interval; narrower is better at equal coverage.",
    ),
)

ALIGNMENT: tuple[tuple[str, str], ...] = (
    (
        "Labelling, aligned",
        "Interchangeable components have no names of their own: draws that differ in the order of the components say "
        "the same. Aligned draws are all brought into one order.",
    ),
    (
        "Invariant",
        "A quantity that no change of labels changes, such as a mean over the components.",
    ),
)

CROSS_VALIDATION: tuple[tuple[str, str], ...] = (
    (
        "PSIS-LOO, elpd, Pareto k",
        "Log predictive density of each observation under the posterior of all others, estimated from the draws by "
        "Pareto smoothed importance sampling. Where an observation's k is above the limit, its estimate is not to be "
        "trusted. (Vehtari, Gelman and Gabry 2017.)",
    ),
)

_OF_ALL, _OF_FITS = ("Parameter", "MCSE"), ("k-hat", "ELBO")
"""Diagnostics of all posteriors, and of fits; the others are of chains."""


def definitions_of(subjects: Sequence[Subject]) -> tuple[tuple[str, str], ...]:
    """Choose the definitions of the words that stand on a page."""
    from onebasin.posteriors import schema

    chains = any(subject.diagnosis.has_chains for subject in subjects)
    fits = any(subject.view.is_variational for subject in subjects)
    chosen = tuple(
        (word, text)
        for word, text in DIAGNOSTICS
        if word in _OF_ALL or (fits if word in _OF_FITS else chains)
    )
    if any(subject.diagnosis.aligned for subject in subjects):
        chosen += ALIGNMENT
    if any(subject.view.group(schema.LOG_LIKELIHOOD) is not None for subject in subjects):
        chosen += CROSS_VALIDATION
    if len(subjects) > 1 and any(subject.view.network for subject in subjects):
        chosen += PREDICTION
    return chosen
