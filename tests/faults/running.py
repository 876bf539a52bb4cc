"""Run many faults in parallel, store the outcomes, and report them."""

from __future__ import annotations

import json
import queue
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from .catalogue import ROOT, Fault
from .planting import Copy, Outcome, failing_without, key_of, try_fault

KEPT = ROOT / "build" / "faults.json"
"""Outcomes of earlier runs, by `key_of`."""

Say = Callable[[str], None]


class FailsWithoutFault(Exception):
    """Raised if tests of faults fail without any fault; the message names these tests."""


def _kept(path: Path | None) -> dict[str, dict[str, object]]:
    """Read the outcomes of caught faults; all others are tried again."""
    if path is None or not path.exists():
        return {}
    found: dict[str, dict[str, object]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _keep(path: Path, fault: Fault, outcome: Outcome) -> None:
    """Add an outcome to the file, which another run may have changed in the meantime."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(_kept(path) | {key_of(fault): asdict(outcome)}, indent=1), "utf-8")
    part.replace(path)


def run(
    chosen: Sequence[Fault], *, workers: int, say: Say = print, kept: Path | None = KEPT
) -> list[Outcome]:
    """Try faults and report the outcomes.

    Parameters
    ----------
    chosen : sequence of Fault
        Faults to try.
    workers : int
        Number of faults to try at once, each in a separate copy.
    say : callable
        Function that receives every line of the report.
    kept : Path, optional
        File with the outcomes of faults to skip; None to try all.

    Returns
    -------
    list of Outcome
        One outcome per fault, in the order of the faults.

    Raises
    ------
    FailsWithoutFault
        If a test fails without any fault.
    """
    found, by_name = _kept(kept), {fault.name: fault for fault in chosen}
    keys = {name: key_of(fault) for name, fault in by_name.items()}
    done = {n: Outcome(**found[k]) for n, k in keys.items() if k in found}  # type: ignore[arg-type]
    for outcome in done.values():
        say(_line(outcome) + " (kept)")
    left = [fault for fault in chosen if fault.name not in done]
    if left:
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            for outcome in _tried(left, Path(folder), workers, say):
                done[outcome.name] = outcome
                if kept is not None and outcome.result == "caught":
                    _keep(kept, by_name[outcome.name], outcome)
                say(_line(outcome))
    outcomes = [done[fault.name] for fault in chosen]
    say(summary(outcomes))
    return outcomes


def _tried(faults: Sequence[Fault], folder: Path, workers: int, say: Say) -> Iterator[Outcome]:
    workers = max(1, min(workers, len(faults)))
    copies: queue.Queue[Copy] = queue.Queue()
    for number in range(workers):
        copies.put(Copy(folder / str(number)))

    def in_a_copy[T, R](work: Callable[[Copy, T], R]) -> Callable[[T], R]:
        def borrowed(given: T) -> R:
            copy = copies.get()
            try:
                return work(copy, given)
            finally:
                copies.put(copy)

        return borrowed

    with ThreadPoolExecutor(workers) as pool:
        shares = _shares(faults, workers)
        say(f"{sum(map(len, shares))} tests or files of tests run without a fault first")
        failing = [name for found in pool.map(in_a_copy(failing_without), shares) for name in found]
        if failing:
            # Otherwise a broken test would seem to catch every fault.
            raise FailsWithoutFault("these fail without a fault:\n" + "\n".join(failing))
        futures = [pool.submit(in_a_copy(try_fault), fault) for fault in faults]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _shares(faults: Sequence[Fault], workers: int) -> list[list[str]]:
    """Distribute the tests of faults to workers, one file at a time."""
    files: dict[str, set[str]] = {}
    for test in (test for fault in faults for test in fault.tests):
        files.setdefault(test.partition("::")[0], set()).add(test)
    shares: list[list[str]] = [[] for _ in range(workers)]
    for number, name in enumerate(sorted(files)):
        shares[number % workers] += files[name]
    return shares


def _line(outcome: Outcome) -> str:
    why = f"\n{outcome.said}" if outcome.result != "caught" else ""
    return f"{outcome.result:7s} {outcome.seconds:6.1f} s  {outcome.name}{why}"


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return a line with counts of the outcomes and the names of faults that were not caught."""
    counts = Counter(outcome.result for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    line = ", ".join(f"{number} {result}" for result, number in sorted(counts.items()))
    rest = [outcome.name for outcome in outcomes if outcome.result != "caught"]
    return f"{len(outcomes)} faults: {line}; {seconds:.0f} s" + (
        f". Not caught: {', '.join(rest)}" if rest else ""
    )


def record(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write the outcomes with the commit to a file, one per line; lines of other faults stay."""
    found: dict[str, str] = {}
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines()
        found = {line.split("\t")[0]: line for line in lines if line}
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for o in outcomes:
        found[o.name] = f"{o.name}\t{o.result}\t{o.seconds:.1f} s\t{commit.strip()}\t{now}"
    path.write_text("\n".join(found[name] for name in sorted(found)) + "\n", encoding="utf-8")
