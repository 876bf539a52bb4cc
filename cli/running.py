"""Running a study's cells into its folder, and writing what follows: shared by the commands that run studies."""

from __future__ import annotations

from collections.abc import Callable
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
    record: str | None = None,
    write: Callable[[Findings], None],
) -> None:
    """Make the cells that the folder does not hold yet, conclude, and write the findings once it holds them.

    `record` is the size under which the findings are also written to studies/results, empty for the study's own. After
    Ctrl-C the folder keeps what is finished.
    """
    from onebasin.base.run_log import logged_to, story, telling
    from onebasin.studies.lab.driver import finish, run_cells
    from onebasin.studies.lab.record import write_record

    def kept() -> str:
        if run.record.get("status") == "done":
            return f"the run is finished, and the report is {run.report_path}"
        return f"finished cells are kept in {run.path}: repeat the command to resume"

    say = telling(console.say)
    made = {"versions": run.record["versions"], "settings": run.record["config"]}
    with interruption_says(kept):
        try:
            with run, logged_to(run.log_path), story(command, **made):
                outcomes = run_cells(
                    study, config, run, progress=progress, say=say, schedule=schedule
                )
                findings = finish(study, config, run, outcomes)
        finally:
            run.settle()
        if record is not None:
            for path in write_record(run.record["study"], run, findings, size=record):
                console.say(f"wrote {path}")
        write(findings)


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
