"""Run many faults, some at a time; keep what is done, and report."""

from __future__ import annotations

import json
import queue
import subprocess
import tempfile
import threading
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
    """Tests of faults that fail in sound sources too; the message names them."""


class Kept:
    """Outcomes by key, written to a file after each, so that a run that was stopped can be repeated."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._found = self._read()

    def _read(self) -> dict[str, dict[str, object]]:
        if self._path is None or not self._path.exists():
            return {}
        found: dict[str, dict[str, object]] = json.loads(self._path.read_text(encoding="utf-8"))
        return found

    def of(self, fault: Fault) -> Outcome | None:
        """Return the outcome that is kept, of a fault that was caught: others are tried again."""
        found = self._found.get(key_of(fault))
        return None if found is None else Outcome(**found)  # type: ignore[arg-type]

    def put(self, fault: Fault, outcome: Outcome) -> None:
        """Keep an outcome."""
        if self._path is None or outcome.result != "caught":
            return
        with self._lock:
            self._found |= self._read()  # another run may have written meanwhile
            self._found[key_of(fault)] = asdict(outcome)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            part = self._path.with_suffix(".part")
            part.write_text(json.dumps(self._found, indent=1), encoding="utf-8")
            part.replace(self._path)


def run(
    chosen: Sequence[Fault], *, workers: int, say: Say = print, kept: Path | None = KEPT
) -> list[Outcome]:
    """Try faults, and say what came out.

    Parameters
    ----------
    chosen : sequence of Fault
        The faults.
    workers : int
        How many are tried at once, each in a copy of its own.
    say : callable
        Takes every line of the report.
    kept : Path, optional
        The file of outcomes that are not tried again; None to try all.

    Returns
    -------
    list of Outcome
        One a fault, in their order.

    Raises
    ------
    FailsWithoutFault
        If a test fails without any fault.
    """
    store = Kept(kept)
    done = {f.name: outcome for f in chosen if (outcome := store.of(f)) is not None}
    for outcome in done.values():
        say(_line(outcome) + " (kept)")
    left = [fault for fault in chosen if fault.name not in done]
    if left:
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            for outcome in _tried(left, Path(folder), workers, store, say):
                done[outcome.name] = outcome
                say(_line(outcome))
    outcomes = [done[fault.name] for fault in chosen]
    say(summary(outcomes))
    return outcomes


def _tried(
    faults: Sequence[Fault], folder: Path, workers: int, store: Kept, say: Say
) -> Iterator[Outcome]:
    workers = max(1, min(workers, len(faults)))
    copies: queue.Queue[Copy] = queue.Queue()
    for number in range(workers):
        copies.put(Copy(folder / str(number)))
    _check_without(copies, faults, workers, say)

    def work(fault: Fault) -> Outcome:
        copy = copies.get()
        try:
            outcome = try_fault(copy, fault)
        finally:
            copies.put(copy)
        store.put(fault, outcome)
        return outcome

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, fault) for fault in faults]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _check_without(
    copies: queue.Queue[Copy], faults: Sequence[Fault], workers: int, say: Say
) -> None:
    """Make sure that the tests pass without a fault: else a broken test would catch everything."""
    files: dict[str, set[str]] = {}
    for test in (test for fault in faults for test in fault.tests):
        files.setdefault(test.partition("::")[0], set()).add(test)
    say(f"{sum(map(len, files.values()))} tests or files of tests run without a fault first")
    shares: list[list[str]] = [[] for _ in range(workers)]
    for number, name in enumerate(sorted(files)):
        shares[number % workers] += files[name]

    def check(share: list[str]) -> list[str]:
        copy = copies.get()
        try:
            return failing_without(copy, share)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(workers) as pool:
        failing = [name for found in pool.map(check, shares) for name in found]
    if failing:
        raise FailsWithoutFault("these fail without a fault:\n" + "\n".join(failing))


def _line(outcome: Outcome) -> str:
    why = f"\n{outcome.said}" if outcome.result != "caught" else ""
    return f"{outcome.result:7s} {outcome.seconds:6.1f} s  {outcome.name}{why}"


def summary(outcomes: Sequence[Outcome]) -> str:
    """Count the outcomes in a line, and name the faults that were not caught."""
    counts = Counter(outcome.result for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    line = ", ".join(f"{number} {result}" for result, number in sorted(counts.items()))
    rest = [outcome.name for outcome in outcomes if outcome.result != "caught"]
    return f"{len(outcomes)} faults: {line}; {seconds:.0f} s" + (
        f". Not caught: {', '.join(rest)}" if rest else ""
    )


def record(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write outcomes with the commit to a file, a line each; lines of other faults stay."""
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
