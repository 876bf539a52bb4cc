"""Compare the Stan interpreter `stanli` with CmdStan on many programs, and record the result.

    python -m benchmarks.interpreter [NAME ...] [--group public|wrong|own] [--table]

Each program runs in each engine in a separate process. The record of the installed stanli version is updated after
every program, so a later command with other names extends it. `--table` prints the record and runs nothing. CmdStan
compiles each program once, in about 15 seconds, and compiled programs stay in the user's cache.

The record has these numbers:

- the largest difference between log densities at 20 points, relative to CmdStan's value if that is above 1
- the largest difference between gradients, relative to the largest entry of a gradient
- differences between constrained values, transformed parameters and generated quantities, with a separate comparison of
  entries that depend on random numbers
- CPU time of a gradient in the C function, the fastest of nine repeats, as the ratio of stanli to CmdStan
- the time to open the program
- `compile_seconds`, the time to open and compile the program in CmdStan; null if no run had to compile it
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import stanli

from onebasin.inference.runs.posterior import commit, versions

from . import catalogue, engines, evaluate
from .cases import Case, cases
from .compare import agrees, densities, quantities, state_of
from .table import ACCEPTED, read_record, render, write_record

SECONDS = 600
"""Time limit of a process. Beyond it, the process is stopped and its program recorded as crashed."""

type Result = tuple[dict[str, Any], dict[str, np.ndarray]]


def run(case: Case, engine: str) -> Result:
    """Evaluate a program in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.npz"
        words = [sys.executable, "-m", "benchmarks.interpreter.evaluate", case.name, engine]
        try:
            done = subprocess.run(
                [*words, str(out)], capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return {"error": f"still running after {SECONDS} s", "crashed": True}, {}
        if not out.exists():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return {"error": f"exit code {done.returncode}: {last}", "crashed": True}, {}
        with np.load(out) as found:
            arrays = {name: found[name] for name in found.files}
    return json.loads(str(arrays.pop("facts"))), arrays


def row_of(case: Case, results: dict[str, Result], before: dict[str, Any]) -> dict[str, Any]:
    """Return the record of one program.

    Parameters
    ----------
    case : Case
        The program.
    results : dict
        Results of each engine.
    before : dict
        Earlier record of the program. Its compile time is kept if CmdStan found the program in the cache.
    """
    row: dict[str, Any] = {"group": case.group}
    for engine, (facts, _) in results.items():
        row[engine] = {
            "message": facts["error"] or facts.get("warning", ""),
            "ready_seconds": facts.get("ready_seconds"),
            "gradient_microseconds": facts.get("gradient_microseconds"),
        }
    ours, theirs = results["stanli"], results["cmdstan"]
    cold = row["cmdstan"]["ready_seconds"] if theirs[0].get("compiled") else None
    row["cmdstan"]["compile_seconds"] = cold or before.get("cmdstan", {}).get("compile_seconds")
    row["state"] = "crashed" if ours[0].get("crashed") else state_of(ours[0])
    if ours[1] and theirs[1] and "generated" in ours[0]:
        times = [row[engine]["gradient_microseconds"] for engine in ("stanli", "cmdstan")]
        row["dim"] = theirs[0]["dim"]
        row |= densities(ours[1], theirs[1])
        complete = "back" in ours[1] and "back" in theirs[1]
        row["quantities"] = quantities(ours, theirs) if complete else {"names": "not computed"}
        row["time_ratio"] = times[0] / times[1] if all(times) else None
    return rounded(row)


def rounded(value: Any) -> Any:
    """Round all numbers to four digits."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def settings() -> dict[str, Any]:
    """Return the settings that the numbers depend on."""
    return {
        "points": evaluate.POINTS,
        "radius": evaluate.RADIUS,
        "seed_of_points": evaluate.SEED,
        "seed_of_data": catalogue.SEED,
        "seed_of_transformed_data": engines.SEED,
        "seeds_of_random_numbers": evaluate.STREAMS,
        "repeats": evaluate.REPEATS,
        "propto": True,
        "jacobian": True,
    }


def stan_of_stanli() -> str:
    """Return the Stan version of stanli's compiler, read from its library."""
    library = (Path(stanli.__file__).parent / "_bin" / "libstanli.so").read_bytes()
    found = re.search(rb"stanc_version = stanc3 v([\d.]+)", library)
    return found[1].decode() if found else "unknown"


def found_versions() -> dict[str, str]:
    """Return the versions of Python, packages, CmdStan and stanli."""
    own = {"stanli": stanli.__version__, "build": stanli.build_id(), "stanc": stan_of_stanli()}
    return versions() | own


def main() -> int:
    """Compare, record and print; return 1 if an accepted program disagrees."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="programs, by default all")
    parser.add_argument("--group", choices=("public", "wrong", "own"))
    parser.add_argument("--table", action="store_true", help="print the record and run nothing")
    options = parser.parse_args()
    known = cases()
    if unknown := set(options.names) - set(known):
        parser.error(f"unknown programs: {', '.join(sorted(unknown))}")
    chosen = [c for c in known.values() if not options.names or c.name in options.names]
    chosen = [c for c in chosen if not options.group or c.group == options.group]
    record, sources = read_record(stanli.__version__), commit()
    for case in [] if options.table else chosen:
        results = {engine: run(case, engine) for engine in engines.ENGINES}
        programs = record.get("programs", {})
        row = row_of(case, results, programs.get(case.name, {}))
        programs |= {case.name: row}
        record = {
            "versions": found_versions(),
            "platform": f"{platform.system()} {platform.machine()}",
            "commit": sources,
            "settings": settings(),
            "programs": {name: programs[name] for name in known if name in programs},
        }
        write_record(record)
        note = row["state"]
        if row["state"] in ACCEPTED and "log_density" in row:
            note += ", agrees" if agrees(row) else ", DIFFERS"
        print(f"{case.name}: {note}", file=sys.stderr, flush=True)
    print(render(record))
    rows = record["programs"].values()
    return int(not all(agrees(r) for r in rows if r["state"] in ACCEPTED and "log_density" in r))


if __name__ == "__main__":
    sys.exit(main())
