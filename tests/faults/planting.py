"""Insert faults into a copy of the repository, and run the tests that must fail."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
            return subprocess.run(
                [*command, *options, *tests],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(self.folder)},
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
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
