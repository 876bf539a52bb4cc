"""The report of one or more posteriors, as a page or as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onebasin.base.errors import ArgumentError
from onebasin.base.numbers import format_number
from onebasin.posteriors.view import Posterior, as_view

from ..page.page import Report, Section
from .definitions import definitions_of
from .provenance import describe_run, program_section
from .sections.alone import sections_of
from .sections.answer import answer_card
from .sections.several import one_of_several, several
from .subject import Subject
from .tables import cost_table

if TYPE_CHECKING:
    from onebasin.models.symmetry.blocks import Symmetry


def posterior_report(
    posteriors: Mapping[str, Posterior],
    *,
    title: str = "Posterior report",
    var_names: Sequence[str] | None = None,
    symmetry: Symmetry | None = None,
    truth: str | None = None,
) -> Report:
    """Build the report of one or more posteriors.

    Arguments and errors are those of `report`, with posteriors by the name that the page shall use.

    Returns
    -------
    Report
        Of one posterior: the answer, modes, labels, parameters, sampler, chains, predictions, cost; a network's
        predictions come first. Of several: an answer each, the comparison, checks and cost. And how they were made.
    """
    from ..diagnostics.diagnose import diagnose  # here: it loads JAX

    if not posteriors:
        raise ArgumentError("`posteriors` is empty: give at least one posterior to report on.")
    if truth is not None and truth not in posteriors:
        raise ArgumentError(
            f"`truth` is {truth!r}, which is none of the posteriors: choose one of {', '.join(posteriors)}."
        )
    options: dict[str, Any] = {"var_names": var_names, "symmetry": symmetry}
    options = {name: value for name, value in options.items() if value is not None}
    views = {name: as_view(each, f"posteriors[{name!r}]") for name, each in posteriors.items()}
    subjects = [Subject(name, view, diagnose(view, **options)) for name, view in views.items()]
    cards = [answer_card(subject, named=len(subjects) > 1) for subject in subjects]
    table = cost_table({subject.name: subject.diagnosis for subject in subjects})
    costs = Section("Cost", tables=(table,)) if len(table.columns) > 1 else None
    if len(subjects) == 1:
        (subject,) = subjects
        sections = (*sections_of(subject), costs)
        lede = f"{_made(subject)}."
    else:
        beside = several(
            subjects, truth=truth or subjects[0].name, symmetry=symmetry, var_names=var_names
        )
        sections = (*beside, costs, *map(one_of_several, subjects))
        made = " ".join(f"`{subject.name}`: {_made(subject)}." for subject in subjects)
        lede = f"{len(subjects)} posteriors. {made}"
    programs = program_section(subjects)
    return Report(
        title=title,
        lede=lede,
        sections=tuple(s for s in (*sections, programs) if s is not None),
        provenance=tuple(describe_run(subject.name, subject.view) for subject in subjects),
        definitions=definitions_of(subjects),
        answers=tuple(cards),
    )


_ENGINES = {"stan": "Stan", "numpyro": "NumPyro", "nutpie": "nutpie"}
_METHODS = {"nuts": "NUTS", "hmc": "HMC"}


def _made(subject: Subject) -> str:
    diagnosis = subject.diagnosis
    chains = "1 chain" if diagnosis.num_chains == 1 else f"{diagnosis.num_chains} chains"
    draws = format_number(diagnosis.num_draws)
    size = f"{chains} of {draws} draws" if subject.diagnosis.has_chains else f"{draws} draws"
    target = f" of `{diagnosis.target}`" if diagnosis.target else ""
    method = f" by {_METHODS.get(diagnosis.method, diagnosis.method)}" if diagnosis.method else ""
    engine = f" on {_ENGINES.get(diagnosis.engine, diagnosis.engine)}" if diagnosis.engine else ""
    return f"{size}{target}{method}{engine}"
