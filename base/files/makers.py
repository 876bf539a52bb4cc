"""Which process made something, and whether it has ended.

A maker's mark is short enough for a file's name: the machine (its name and, on Linux, the namespace of process numbers,
which tells containers apart), the process's number, and when it started, so that a number that is given out again, or
after a restart, is not taken for the same process. Whether a process of another machine has ended cannot be known here.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_UNKNOWN = "0" * 8


@dataclass(frozen=True)
class Maker:
    """A process: of a machine and with a start that eight hexadecimal digits each stand for, zeros where unknown."""

    machine: str
    pid: int
    start: str

    PATTERN = r"[0-9a-f]{8}-[0-9]+-[0-9a-f]{8}"

    @classmethod
    def own(cls) -> Maker:
        """Give this process."""
        pid = os.getpid()
        return cls(_machine(), pid, _start(pid) or _UNKNOWN)

    @classmethod
    def read(cls, mark: object) -> Maker | None:
        """Read a mark; None where it is none."""
        if not isinstance(mark, str) or not re.fullmatch(cls.PATTERN, mark):
            return None
        machine, pid, start = mark.split("-")
        return cls(machine, int(pid), start)

    def __str__(self) -> str:
        return f"{self.machine}-{self.pid}-{self.start}"

    @property
    def is_at_work(self) -> bool:
        """Tell whether it is certain that the process runs, on this machine."""
        return self.machine == _machine() and not self.has_ended

    @property
    def has_ended(self) -> bool:
        """Tell whether it is certain that the process is no more."""
        if self.machine != _machine():
            return False
        if not is_running(self.pid):
            return True
        start = _start(self.pid)
        return start is not None and start != self.start


def is_running(pid: int) -> bool:
    """Tell whether a process of this number is at work on this machine, as far as can be known."""
    if os.name == "nt":  # where `os.kill` would end the process
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's
        pass
    # Killed, and nobody has asked for its exit code: only its number is left.
    return _stat(pid)[:1] not in (["Z"], ["X"])


def _start(pid: int) -> str | None:
    """When a process started, in digits that are equal for equal times; None where the system does not tell."""
    fields = _stat(pid)
    return _digits(_boot() + fields[19]) if len(fields) > 19 else None


def _stat(pid: int) -> list[str]:
    """Read Linux's facts about a process, from its state on; a name in brackets before it may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


@cache
def _machine() -> str:
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return _digits(socket.gethostname() + space)


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        return ""


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:8]
