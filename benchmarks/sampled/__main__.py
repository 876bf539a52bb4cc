"""Sample Stan programs, diagnose the draws, and compare verdicts and numbers with the truth.

    .venv/bin/python -m benchmarks.sampled [--first-seed 0] [--seeds 6] [--only WORD] [--out sampled.json]

The interpreter samples every kind with the data of each seed. `diagnose` judges the draws in three ways: from the draws
only, with the program's log density, and with the declared symmetry if there is one. If the verdict allows it, numbers
are compared. If the verdict reports label switching, the draws are aligned, and alignment must not change the log
density of any draw. The exit code is 1 if more than 2 % of the verdicts of one way or any number is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import onebasin as ob
from onebasin.base.errors import OnebasinError
from onebasin.inference.runs.posterior import commit, machine, versions

from ..verdicts.truth import wrong
from .kinds import KINDS, Kind
from .numbers import differ, leaves_the_density
from .questions import QUESTIONS
from .references import PROGRAMS, arrays, sampled

GOAL = 0.02
"""Largest accepted share of wrong verdicts."""


def ask(kind: Kind, seed: int) -> Iterator[dict[str, Any]]:
    """Sample one posterior and compare its diagnoses with the truth; yield one row per way of asking."""
    data = kind.data(seed)
    target = ob.stan_program(PROGRAMS / f"{kind.program}.stan", data)
    tree = sampled(target, kind.settings, seed)
    draws = arrays(tree)
    truth = kind.truth(data, draws)
    expected = kind.reference(data, draws, seed) if kind.reference else {}
    ways: dict[str, dict[str, Any]] = {
        "draws": {},
        "program": {"log_density": lambda moved: ob.log_density(target, moved)},
    }
    if kind.words:
        ways["declared"] = {"symmetry": kind.words}
    for way, how in ways.items():
        row = {"kind": kind.name, "seed": seed, "way": way, "true": truth.answers}
        row |= {"reference": bool(expected) or not kind.reference, "refused": ""}
        due = replace(truth, words=()) if way == "declared" and truth.words else truth
        began = time.perf_counter()
        try:
            said = ob.diagnose(tree, **how).to_dict()
            row["seconds"] = time.perf_counter() - began
            row |= {name: said[name] for name in ("verdict", "causes", "exchangeable", "sentence")}
            row["wrong"] = wrong(due, said)
            usable, row["numbers"], row["refused"] = _aligned(target, tree, how, said)
            if said["verdict"] in ("usable", "aligned") or (
                said["verdict"] == "invariant" and kind.without_labels
            ):
                row["numbers"] += differ(kind.identified(data, arrays(usable)), expected)
        except Exception:
            row |= {"verdict": "error", "causes": [], "exchangeable": [], "numbers": []}
            row |= {"sentence": traceback.format_exc(limit=-2), "wrong": ["verdict"], "seconds": 0}
        yield row


def _aligned(
    target: ob.Target, tree: Any, how: dict[str, Any], said: dict[str, Any]
) -> tuple[Any, list[str], str]:
    """Align switched labels; return the draws to use, the errors in them, and the reason for a rejected alignment."""
    if "labels" not in said["causes"]:
        return tree, [], ""
    try:
        aligned = ob.align(tree, **how).posterior
    except OnebasinError as error:
        wanted = said["verdict"] == "aligned"
        return tree, [f"aligned, but `align` failed: {error}"] if wanted else [], str(error)
    faults = leaves_the_density(target, tree, aligned)
    return aligned if said["verdict"] == "aligned" else tree, faults, ""


def table(rows: list[dict[str, Any]]) -> str:
    """Make a Markdown table with one row per kind."""
    lines = [
        "| kind | posteriors | asked | wrong verdict | cause | words | numbers | no reference | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in [*dict.fromkeys(row["kind"] for row in rows), "all"]:
        mine = [row for row in rows if name in (row["kind"], "all")]
        counts = [
            sum(fault in row["wrong"] for row in mine) for fault in ("verdict", "cause", "words")
        ]
        counts += [
            sum(bool(row["numbers"]) for row in mine),
            sum(not row["reference"] for row in mine),
        ]
        posteriors = len({(row["kind"], row["seed"]) for row in mine})
        seconds = max(row["seconds"] for row in mine)
        numbers = [posteriors, len(mine), *counts, f"{seconds:.2f}"]
        lines.append(f"| {name} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(lines)


def main() -> int:
    """Sample, diagnose, print the errors and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6, help="posteriors per kind")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--only", nargs="+", default=[""], help="run only kinds with such a text in the name"
    )
    parser.add_argument("--out", type=Path, help="JSON file for all diagnoses")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for kind in (*KINDS, *QUESTIONS):
        if not any(word in kind.name for word in options.only):
            continue
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            for row in ask(kind, seed):
                rows.append(row)
                if row["wrong"] or row["numbers"]:
                    faults = ", ".join(row["wrong"]) or "numbers"
                    print(f"{kind.name}, seed {seed}, by {row['way']}: wrong {faults}")
                    said = (row["verdict"], row["causes"], row["exchangeable"])
                    print(f"  diagnosed {said}, true {row['true']}")
                    print(f"  {row['sentence']}", *row["numbers"], sep="\n  ", flush=True)
        if options.out:
            kept = {"versions": versions(), "commit": commit(), "machine": machine(), "rows": rows}
            options.out.write_text(json.dumps(kept, indent=1, default=str))
    print(table(rows), "")
    shares = []
    for way in dict.fromkeys(row["way"] for row in rows):
        mine = [row for row in rows if row["way"] == way]
        faults = [sum(bool(row[name]) for row in mine) for name in ("wrong", "numbers")]
        shares.append(sum("verdict" in row["wrong"] for row in mine) / len(mine))
        print(
            f"By {way}: {100 * shares[-1]:.1f} % of {len(mine)} verdicts are wrong. {faults[0]} diagnoses have a wrong "
            f"verdict, cause or declaration, and {faults[1]} have wrong numbers."
        )
    numbers = any(row["numbers"] for row in rows)
    print(machine())
    return int(max(shares) > GOAL or numbers)


if __name__ == "__main__":
    sys.exit(main())
