"""Diagnose simulated posteriors with known verdicts, and count the errors of `onebasin.diagnose`.

    .venv/bin/python -m benchmarks.verdicts [--seeds 5] [--first-seed 1000] [--only WORD] [--out verdicts.json]

Every family is drawn with every seed. With `--out`, results are saved after every posterior, with versions and machine.
The next run with the same file skips finished posteriors. The exit code is 1 if more than 2 % of the verdicts are
wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import onebasin as ob
from onebasin.inference.runs.posterior import commit, machine, versions

from .families import FAMILIES
from .truth import Family, wrong

GOAL = 0.02
"""Largest accepted share of wrong verdicts."""


def ask(family: Family, seed: int) -> dict[str, Any]:
    """Draw one posterior and compare its diagnosis with the truth."""
    tree, began = family.draw(seed).tree(), time.perf_counter()
    try:
        said = ob.diagnose(tree).to_dict()
        seconds = time.perf_counter() - began
        faults = wrong(family.truth, said)
    except Exception:
        said = {"verdict": "error", "sentence": traceback.format_exc(limit=-1)}
        faults, seconds = ["verdict"], time.perf_counter() - began
    kept = {name: said.get(name) for name in ("verdict", "causes", "exchangeable", "sentence")}
    return {
        "family": family.name,
        "group": family.group,
        "seed": seed,
        "wrong": faults,
        "seconds": seconds,
        **kept,
    }


def table(rows: Iterable[dict[str, Any]]) -> str:
    """Make a Markdown table with one row per family."""
    rows = list(rows)
    lines = [
        "| family | truth | posteriors | wrong verdict | wrong first cause | wrong words | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for family in FAMILIES:
        if mine := [row for row in rows if row["family"] == family.name]:
            lines.append(_line(family.name, _truth(family), mine))
    lines.append(_line("all", "", rows))
    return "\n".join(lines)


def _truth(family: Family) -> str:
    truth, block = family.truth, ""
    if truth.words:
        block = " `" + "` `".join(truth.words) + "`"
    elif truth.answers == ("unusable",):
        block = ": " + " or ".join(truth.causes)
    return " or ".join(truth.answers) + block


def _line(name: str, truth: str, rows: list[dict[str, Any]]) -> str:
    counts = [sum(fault in row["wrong"] for row in rows) for fault in ("verdict", "cause", "words")]
    seconds = sorted(row["seconds"] for row in rows)
    numbers = [len(rows), *counts, f"{seconds[len(seconds) // 2]:.2f} to {seconds[-1]:.2f}"]
    return f"| {name} | {truth} | " + " | ".join(str(n) for n in numbers) + " |"


def main() -> int:
    """Diagnose, save, print the errors and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="posteriors per family")
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--only", default="", help="run only families with this text, or a group")
    parser.add_argument("--out", type=Path, help="JSON file of results, to resume from")
    options = parser.parse_args()
    chosen = [f for f in FAMILIES if options.only in f.name or options.only == f.group]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    kept: dict[str, Any] = {"posteriors": []}
    if options.out and options.out.exists():
        kept = json.loads(options.out.read_text())
    kept |= {"versions": versions(), "commit": commit(), "machine": machine()}
    done = {(row["family"], row["seed"]) for row in kept["posteriors"]}
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:.60s}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("", total=len(chosen) * len(seeds))
        for family in chosen:
            for seed in seeds:
                progress.update(task, description=family.name)
                if (family.name, seed) not in done:
                    row = ask(family, seed)
                    kept["posteriors"].append(row)
                    if row["wrong"]:
                        progress.console.print(
                            f"{family.name}, seed {seed}: {', '.join(row['wrong'])}: {row['verdict']} "
                            f"{row['causes']} {row['exchangeable']}",
                            highlight=False,
                        )
                    _keep(options.out, kept)
                progress.advance(task)
    wanted = {family.name for family in chosen}
    rows = [r for r in kept["posteriors"] if r["seed"] in seeds and r["family"] in wanted]
    print(table(rows))
    share = sum("verdict" in row["wrong"] for row in rows) / max(1, len(rows))
    print(f"\n{100 * share:.1f} % of {len(rows)} verdicts are wrong; {machine()}")
    return int(share > GOAL)


def _keep(path: Path | None, kept: dict[str, Any]) -> None:
    if path:
        fresh = path.with_suffix(".part")
        fresh.write_text(json.dumps(kept, indent=1, default=str))
        os.replace(fresh, path)


if __name__ == "__main__":
    sys.exit(main())
