"""Running a study's cells into its folder, and writing what follows: what the commands that run studies share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from onebasin.base.errors import interruption_says

from . import console

if TYPE_CHECKING:
    from onebasin.studies.lab import Study
    from onebasin.studies.lab.driver import Schedule
    from onebasin.studies.lab.folder import Run
    from onebasin.studies.lab.study import Findings


def carry_out(
    study: Study,
    config: Any,
    run: Run,
    *,
    schedule: Schedule,
    progress: bool,
    command: str,
    then: Callable[[Findings], None],
) -> None:
    """Make the cells that the folder does not hold yet, conclude, and do what is to be done with the findings.

    Parameters
    ----------
    study : Study
        What to run.
    config : Any
        Its settings.
    run : Run
        The folder.
    schedule : Schedule
        Where cells are made.
    progress : bool
        Whether to show bars.
    command : str
        What was typed, for the log.
    then : callable
        Called with the findings, once the folder holds them.

    Raises
    ------
    Interrupted
        On Ctrl-C; what is finished stays in the folder.
    StudyError
        If cells were broken off by errors, or a file cannot be written.
    """
    from onebasin.base.run_log import logged_to, telling
    from onebasin.studies.lab.driver import finish, run_cells

    say = telling(console.say)
    with interruption_says(lambda: _what_is_kept(run)):
        try:
            with run, logged_to(run.log_path), _story(command, run):
                outcomes = run_cells(
                    study, config, run, progress=progress, say=say, schedule=schedule
                )
                findings = finish(study, config, run, outcomes)
        finally:
            run.settle()
        then(findings)


def keep_record(name: str, run: Run, findings: Findings, *, size: str) -> None:
    """Write the result to studies/results."""
    from onebasin.studies.lab.record import write_record

    for path in write_record(name, run, findings, size=size):
        console.say(f"wrote {path}")


def write_findings(run: Run, findings: Findings, *, json: bool) -> None:
    """Write tables and the result in words, or all of it as JSON."""
    from onebasin.studies.lab import Caution

    if json:
        console.write_json({"folder": str(run.path), **findings.to_dict()})
        return
    for table in findings.shown:
        console.write_table(table)
    for sentence in findings.headline:
        console.write_remark(sentence, "warn" if isinstance(sentence, Caution) else "good")
    console.write_remark(f"the report is {run.report_path}", "good")


def words_in(words: str | None) -> tuple[str, ...] | None:
    """Words with commas between them; None where none were typed."""
    return tuple(word.strip() for word in words.split(",")) if words is not None else None


def _story(command: str, run: Run) -> AbstractContextManager[None]:
    from onebasin.base.run_log import story

    return story(command, versions=run.record["versions"], settings=run.record["config"])


def _what_is_kept(run: Run) -> str:
    if run.record.get("status") == "done":
        return f"the run is finished, and the report is {run.report_path}"
    return f"what is finished is kept in {run.path}: the same command goes on from there"
