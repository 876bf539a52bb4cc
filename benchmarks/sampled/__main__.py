"""Sample Stan programs, ask `onebasin.diagnose` of the draws, and hold verdicts and numbers against what is true.

    .venv/bin/python -m benchmarks.sampled [--first-seed 0] [--seeds 6] [--only WORD] [--out sampled.json]

Every kind is sampled by the interpreter with data of each seed, and judged from the draws alone and, where it has
symmetric components, with the symmetry declared. Numbers are checked where the verdict lets them be used; alignment is
tried wherever labels are said to switch, and must leave the log density of every draw as it was. The exit code is 1
where over 2 % of the verdicts or any number is wrong.
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
from onebasin.inference.runs.provenance import commit, machine, versions

from ..verdicts.truth import wrong
from .fielded import FIELDED
from .kinds import KINDS, Kind
from .numbers import differ, leaves_the_density
from .references import PROGRAMS, arrays, sampled

GOAL = 0.02
"""Share of wrong verdicts that is too much."""


def ask(kind: Kind, seed: int) -> Iterator[dict[str, Any]]:
    """Sample one posterior and hold what is said of it against the truth: one row a way of asking."""
    data = kind.data(seed)
    target = ob.stan_program(PROGRAMS / f"{kind.program}.stan", data)
    tree = sampled(target, kind.settings, seed)
    draws = arrays(tree)
    truth = kind.truth(data, draws)
    expected = kind.reference(data, draws, seed) if kind.reference else {}
    for declared in (None, kind.words) if kind.words else (None,):
        row = {
            "kind": kind.name,
            "seed": seed,
            "declared": declared,
            "true": truth.answers,
            "reference": bool(expected) or not kind.reference,
        }
        began = time.perf_counter()
        try:
            said = ob.diagnose(tree, symmetry=declared).to_dict()
            row |= {name: said[name] for name in ("verdict", "causes", "exchangeable", "sentence")}
            row["seconds"] = time.perf_counter() - began
            due = truth if declared is None or truth.words is None else replace(truth, words=())
            row["wrong"] = wrong(due, said)
            row["numbers"] = _numbers(kind, target, tree, data, expected, row, declared)
        except Exception:
            row |= {"verdict": "error", "sentence": traceback.format_exc(limit=-2)}
            row |= {
                "causes": [],
                "exchangeable": [],
                "wrong": ["verdict"],
                "numbers": [],
                "seconds": 0,
            }
        yield row


def _numbers(
    kind: Kind, target: ob.Target, tree: Any, data: Any, expected: Any, row: Any, declared: Any
) -> list[str]:
    """Say what is wrong with the numbers that the verdict lets a user take, and with the alignment."""
    verdict, faults = row["verdict"], []
    if "labels" in row["causes"]:
        try:
            aligned = ob.align(tree, declared).posterior
        except OnebasinError as error:
            row["refused"] = str(error)
            if verdict == "aligned":
                faults.append(f"aligned, but alignment is refused: {error}")
        else:
            faults += leaves_the_density(target, tree, aligned)
            if verdict == "aligned":
                tree = aligned
    if verdict in ("usable", "aligned") or (verdict == "invariant" and kind.without_labels):
        faults += differ(kind.identified(data, arrays(tree)), expected)
    return faults


def table(rows: list[dict[str, Any]]) -> str:
    """One line a kind, in Markdown."""
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
    """Sample, ask and print; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6, help="posteriors of every kind")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--only", nargs="+", default=[""], help="kinds whose name has one of these in it"
    )
    parser.add_argument("--out", type=Path, help="JSON file of all that was said")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for kind in (
        kind for kind in (*KINDS, *FIELDED) if any(word in kind.name for word in options.only)
    ):
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            for row in ask(kind, seed):
                rows.append(row)
                if row["wrong"] or row["numbers"]:
                    how = f", declared {row['declared']}" if row["declared"] else ""
                    print(
                        f"{kind.name}, seed {seed}{how}: wrong {', '.join(row['wrong']) or 'numbers'}"
                    )
                    print(
                        f"  said {row['verdict']} {row['causes']} {row['exchangeable']}, true {row['true']}"
                    )
                    print(f"  {row['sentence']}", *row["numbers"], sep="\n  ", flush=True)
        if options.out:
            kept = {"versions": versions(), "commit": commit(), "machine": machine(), "rows": rows}
            options.out.write_text(json.dumps(kept, indent=1, default=str))
    print(table(rows))
    share = sum("verdict" in row["wrong"] for row in rows) / max(1, len(rows))
    numbers = sum(bool(row["numbers"]) for row in rows)
    print(
        f"\n{100 * share:.1f} % of {len(rows)} verdicts are wrong, and {numbers} have wrong numbers; {machine()}"
    )
    return int(share > GOAL or numbers > 0)


if __name__ == "__main__":
    sys.exit(main())
