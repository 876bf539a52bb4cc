"""Ask onebasin of inputs that people had, and compare the answers with the right ones.

    .venv/bin/python -m benchmarks.field [WORD ...] [--out table.md]

Only cases with one of the words in their names are asked. The exit code is 1 where an answer is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from importlib import import_module
from pathlib import Path

from .cases import Case

PARTS = ("fits", "data", "prediction", "symmetry")
"""Modules of cases, by subject."""


def cases() -> list[Case]:
    """All of them."""
    return [case for part in PARTS for case in import_module(f".{part}", __package__).CASES]


def line(case: Case) -> tuple[bool, str]:
    """Ask one, and give its row."""
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            right, got = case.ask()
    except ModuleNotFoundError as missing:
        right, got = True, f"not asked: {missing.name} is not installed"
    except Exception:
        right, got = False, traceback.format_exc(limit=-1).strip().splitlines()[-1]
    seconds, mark = time.perf_counter() - began, "yes" if right else "**no**"
    row = [case.name, case.right, got, mark, f"{seconds:.1f}"]
    return right, "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def main() -> int:
    """Ask all and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.field")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    chosen = [
        c for c in cases() if not arguments.words or any(w in c.name for w in arguments.words)
    ]
    rows, wrong = (
        ["| case | right | answer | right? | seconds |", "| --- | --- | --- | --- | --- |"],
        0,
    )
    print("\n".join(rows))
    for case in chosen:
        right, row = line(case)
        rows.append(row)
        wrong += not right
        print(row, flush=True)
    print(f"\n{len(chosen) - wrong} of {len(chosen)} right")
    if arguments.out:
        arguments.out.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
