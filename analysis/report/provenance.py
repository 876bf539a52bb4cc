"""The origin of a posterior, read from its attributes, for the page's last section."""

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
    from .subject import Subject

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
