"""Read and write the record of a stanli version, and render its table."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from .compare import SAME, agrees

RECORDS = Path(__file__).parent / "record"
STATES = {
    "whole": "all",
    "slow": "all, parts slowly",
    "parameters": "log density only",
    "rejected": "rejected",
    "crashed": "crashed",
}
ACCEPTED = ("whole", "slow")


def record_path(version: str) -> Path:
    """Return the file of a stanli version's record."""
    return RECORDS / f"stanli-{version}.json"


def read_record(version: str) -> dict[str, Any]:
    """Read a record; return an empty one if the file is missing."""
    path = record_path(version)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_record(record: dict[str, Any]) -> None:
    """Write a record in place of the earlier one of the same stanli version."""
    path = record_path(record["versions"]["stanli"])
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    os.replace(part, path)


def render(record: dict[str, Any]) -> str:
    """Render a record as Markdown: the programs, then the messages about programs that an engine rejects.

    Parameters
    ----------
    record : dict
        Result of `read_record`.

    Returns
    -------
    str
        Two tables and a line of totals.
    """
    rows = record["programs"]
    lines = [
        "| program | dim | stanli | log density | gradient | fixed quantities | random numbers | "
        "gradient time | ready, s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_line(name, row) for name, row in rows.items() if row["group"] != "wrong"]
    lines += ["", "| program | stanli | CmdStan |", "| --- | --- | --- |"]
    for name, row in rows.items():
        if row["stanli"]["message"] or row["cmdstan"]["message"]:
            words = (
                _cell(row[engine]["message"]) or "accepted" for engine in ("stanli", "cmdstan")
            )
            lines.append(f"| {name} | " + " | ".join(words) + " |")
    return "\n".join([*lines, "", totals(record)])


def totals(record: dict[str, Any]) -> str:
    """Return a sentence with the counts of programs."""
    rows = [row for row in record["programs"].values() if row["group"] != "wrong"]
    accepted = [row for row in rows if row["state"] in ACCEPTED]
    agree = sum(agrees(row) for row in accepted)
    return (
        f"stanli {record['versions']['stanli']} accepts {len(accepted)} of {len(rows)} programs, "
        f"{agree} of them agree with CmdStan in all numbers."
    )


def agreed_but_for_constant(row: dict[str, Any]) -> bool:
    """Return whether log densities differ by the same number at every point."""
    return row["log_density"] > SAME >= row["beyond_constant"]


def _line(name: str, row: dict[str, Any]) -> str:
    state = STATES[row["state"]]
    if "log_density" not in row:
        return f"| {name} | | {state} | | | | | | |"
    found = row["quantities"]
    fixed = "not available"
    if "fixed" in found:
        worst = max(found["parameters"], found["transformed"], found["fixed"])
        fixed = ", ".join(found["fixed_differ"]) or f"{worst:.0e}"
        fixed += ", names differ" if found["names"] == "differ" else ""
    lone = f", {row['rejected_by_one']} points rejected by one" if row["rejected_by_one"] else ""
    if agreed_but_for_constant(row):
        lone += f", constant {row['constant']:+.4g}"
    ready = f"{row['stanli']['ready_seconds']:.2f}"
    cells = [
        name,
        str(row["dim"]),
        state,
        f"{max(row['log_density'], row['log_density_alone']):.0e}{lone}",
        f"{row['gradient']:.0e}",
        fixed,
        found.get("random", ""),
        f"{row['time_ratio']:.2f}" if row["time_ratio"] else "",
        ready,
    ]
    return "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    lines = [line.strip(" -^") for line in text.splitlines()]
    short = " ".join(line for line in lines if line).replace("|", "\\|")
    return short[:240] + ("..." if len(short) > 240 else "")
