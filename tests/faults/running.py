"""Run many faults in parallel, store the outcomes, and report them."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from .catalogue import ROOT, Fault, holders, sources

TIMEOUT = 1800.0
"""Time limit in seconds for the tests of a fault."""

_FIRST_STAMP = 1_000_000_000
_SHOWN = 3000


@dataclass(frozen=True)
class Outcome:
    """Outcome of the tests for one fault.

    Attributes
    ----------
    name : str
        Name of the fault.
    result : str
        ``caught``, ``MISSED``, ``stale`` (the line does not occur exactly once) or ``broken`` (the tests did not run).
    seconds : float
        Duration of its tests.
    said : str
        The end of pytest's output, or the reason why the fault is stale.
    """

    name: str
    result: str
    seconds: float
    said: str = ""


def listed() -> list[str]:
    """List the files of the repository, including uncommitted ones."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if os.path.lexists(ROOT / name)]


class Copy:
    """A copy of the repository that contains one fault at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Python identifies bytecode by the size and second of a file, so no two states of a file may share both.
        self._stamps = itertools.count(_FIRST_STAMP)
        for name in listed():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
        self._texts = sources(folder)

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """Insert a fault, and remove it at the end.

        Raises
        ------
        LookupError
            If the fault's line does not occur exactly once.
        """
        found = holders(fault, self._texts)
        if len(found) != 1:
            raise LookupError(f"its line occurs {len(found)} times in the sources")
        (path,) = found
        try:
            self._write(path, self._texts[path].replace(fault.line, fault.planted))
            yield
        finally:
            self._write(path, self._texts[path])

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        stamp = next(self._stamps)
        os.utime(path, (stamp, stamp))

    def run(self, tests: Iterable[str], *options: str) -> subprocess.CompletedProcess[str]:
        """Run pytest in the copy; return the code -1 if it exceeds its time limit."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        try:
            how = {"capture_output": True, "text": True, "timeout": TIMEOUT, "check": False}
            env = {**os.environ, "PYTHONPATH": str(self.folder)}
            return subprocess.run([*command, *options, *tests], cwd=self.folder, env=env, **how)
        except subprocess.TimeoutExpired:
            said = f"stopped after {TIMEOUT:g} seconds"
            return subprocess.CompletedProcess(command, -1, said, "")


def try_fault(copy: Copy, fault: Fault) -> Outcome:
    """Insert a fault, run its tests, and remove it."""
    started = time.perf_counter()
    try:
        with copy.planted(fault):
            done = copy.run(fault.tests, "-x")
    except LookupError as error:
        return Outcome(fault.name, "stale", 0.0, str(error))
    # Code 1 means that tests ran and one failed. With any other code, no test detected the fault.
    result = {0: "MISSED", 1: "caught"}.get(done.returncode, "broken")
    said = "" if result == "caught" else (done.stdout + done.stderr)[-_SHOWN:]
    return Outcome(fault.name, result, time.perf_counter() - started, said)


def failing_without(copy: Copy, tests: Iterable[str]) -> list[str]:
    """Run tests without a fault; return the ids of failing tests, or pytest's message if it cannot run them."""
    wanted = sorted(set(tests))
    if not wanted:
        return []
    done = copy.run(wanted, "-rfE")
    if done.returncode == 0:
        return []
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed or [(done.stdout + done.stderr)[-_SHOWN:]]


@cache
def _digest_of_sources() -> bytes:
    digest = hashlib.sha256()
    for path, text in sorted(sources().items()):
        digest.update(f"{path}\0{text}\0".encode())
    return digest.digest()


def key_of(fault: Fault) -> str:
    """Hash everything that an outcome depends on: the fault, all sources, and the files of its tests."""
    digest = hashlib.sha256(repr(fault).encode() + _digest_of_sources())
    for test in fault.tests:
        path = ROOT / test.partition("::")[0]
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


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
