"""`onebasin compare RUN.nc --truth NAME`: runs held against a kept reference posterior, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebasin.base.errors import StudyError

from . import console, reading

if TYPE_CHECKING:
    from onebasin.analysis.compare.reference.result import ReferenceComparison


def reference_named(files: Mapping[str, reading.Files], truth: Path | None) -> str | None:
    """Tell whether `--truth` names a kept reference; a file among the runs comes first.

    Raises
    ------
    StudyError
        If it names neither.
    """
    if truth is None:
        return None
    try:
        reading.truth(files, truth)
    except StudyError as error:
        from onebasin.truth import references

        known = references()
        if str(truth) in known:
            return str(truth)
        if truth.exists() or truth.suffix:
            raise
        there = ", ".join(str(group[0]) for group in files.values())
        raise StudyError(
            f"`--truth` is {truth}, which is none of the files to compare ({there}) and no reference; the references "
            f"are: {', '.join(known) or 'none'}."
        ) from error
    return None


def compare_with(name: str, files: Mapping[str, reading.Files], *, json: bool, **how: Any) -> None:
    """Write how far runs are from a reference: what the verdict is, what it rests on, the worst quantities."""
    from onebasin.analysis.compare.reference.compare import compare_with_reference
    from onebasin.truth import open_reference

    known = open_reference(name).known
    found = {}
    for run, group in files.items():
        with console.alignment_bar() as progress:
            found[run] = compare_with_reference(
                reading.read(group), known, name=run, progress=progress, **how
            )
        if not json:
            _write(found[run])
    if json:
        runs = [
            {"files": [str(file) for file in files[run]], **comparison.to_dict()}
            for run, comparison in found.items()
        ]
        console.write_json({"truth": name, "runs": runs})


def _write(comparison: ReferenceComparison) -> None:
    from onebasin.analysis.compare.reference.result import FLAGS
    from onebasin.analysis.report import reference_table

    first, *others = comparison.sentences
    console.write_headline(comparison.heading, first, FLAGS[comparison.verdict])
    for sentence in others:
        console.write_sentence(sentence)
    console.write_table(reference_table(comparison))
    for sentence in comparison.notes:
        console.write_sentence(sentence)
