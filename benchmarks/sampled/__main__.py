"""Sample Stan programs, ask `onebasin.diagnose` of the draws, and hold verdicts and numbers against what is true.

    .venv/bin/python -m benchmarks.sampled [--first-seed 0] [--seeds 6] [--only WORD] [--out sampled.json]

Every kind is sampled by the interpreter with data of each seed, and judged in three ways: from the draws alone, with
the program's log density, and with the symmetry declared where there is one. Numbers are checked where the verdict lets
them be used; alignment is tried wherever labels are said to switch, and must leave the log density of every draw as it
was. The exit code is 1 where over 2 % of the verdicts of one way or any number is wrong.
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
"""Share of wrong verdicts that is too much."""


def ask(kind: Kind, seed: int) -> Iterator[dict[str, Any]]:
    """Sample one posterior and hold what is said of it against the truth: one row a way of asking."""
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
    """Align where labels are said to switch: the draws to use, what is wrong with them, and why it was refused."""
    if "labels" not in said["causes"]:
        return tree, [], ""
    try:
        aligned = ob.align(tree, **how).posterior
    except OnebasinError as error:
        wanted = said["verdict"] == "aligned"
        return tree, [f"aligned, but alignment is rejected: {error}"] if wanted else [], str(error)
    faults = leaves_the_density(target, tree, aligned)
    return aligned if said["verdict"] == "aligned" else tree, faults, ""


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
                    print(f"  said {said}, true {row['true']}")
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
            f"By {way}: {100 * shares[-1]:.1f} % of {len(mine)} verdicts are wrong, {faults[0]} have a wrong verdict, "
            f"cause or words, {faults[1]} wrong numbers."
        )
    numbers = any(row["numbers"] for row in rows)
    print(machine())
    return int(max(shares) > GOAL or numbers)


if __name__ == "__main__":
    sys.exit(main())
