"""Write files completely or not at all, lock and seal them, and check outputs before the work begins.

A lock is a hidden file: next to an output (``.run.nc.lock``), or inside a folder (``.lock``). The kernel releases it
when its holder ends, even if that was killed.

A seal is the SHA-256 of a file, stored in the file itself. A binary file ends in a mark and the digest of all bytes
before it; readers of HDF5 and zip archives ignore them. A JSON object has a field for the digest. Files from other
programs and old versions have no seal.

Unfinished files and temporary folders are named after their target and the process that makes them:
``.run.nc.onebasin-MACHINE-PID-SERIAL``. `sweep` removes only those of processes that have ended on this machine.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shlex
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from ..errors import InUse, NameTaken, WriteError
from ..run_log import notice
from ..text import json_safe, json_text

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)


@contextmanager
def locked(path: Path, *, argument: str, alongside: bool = False) -> Iterator[None]:
    """Hold the lock of an output file whose folder exists, or of an existing folder.

    The lock of a folder lies inside it, or next to it if `alongside`. Raise `InUse` immediately if another process
    holds the lock; the message calls the file `argument` and names that process.
    """
    inside = path.is_dir() and not alongside
    place = path / ".lock" if inside else path.with_name(f".{path.name}.lock")
    lock = FileLock(place)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        by = ""
        with suppress(OSError):
            by = place.read_text(errors="replace")
        raise InUse(
            f"`{argument}` is {path}, which {by or 'another process'} is writing. Wait until that process has ended, "
            "or choose a different name."
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        notice(
            f"{place.parent} does not support file locks: make sure that no two commands write the same file"
        )
    with suppress(OSError):  # On a full disk, the lock works without a name.
        words = shlex.join([Path(sys.argv[0] or "python").name, *sys.argv[1:]])[:200]
        place.write_text(f"process {os.getpid()} (`{words}` on {socket.gethostname()})")
    try:
        yield
    finally:
        with suppress(OSError):  # Before the release, so that a waiting process makes a new file.
            place.unlink()
        lock.release()


_NAME = re.compile(
    r"\..*\.onebasin-(?P<machine>[0-9a-f]{8})-(?P<pid>[0-9]+)-[0-9a-f]{8}", re.DOTALL
)
_LONGEST_PART = 190
"""Maximum number of bytes of a file's name that the temporary name contains; file systems allow 255 in all."""
_LONGEST_NAME = 255 - len("..lock")
"""Maximum number of bytes in an output's name; the name of its lock is longer."""
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@contextmanager
def replacing(path: Path, *, new: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the same folder, and move the file or folder written there to `path` afterwards.

    A write that fails or is interrupted leaves the old file unchanged. The content is on the disk before the file is
    renamed, so that a power cut leaves the old file or the new one. With `new`, a file that has appeared at `path`
    meanwhile is not replaced: the new file gets a free name next to it, and `NameTaken` says which. Raise `WriteError`
    if the file cannot be written, such as on a full disk.
    """
    sweep(path.parent)
    part = unfinished(path)
    try:
        yield part
        for written in [part, *part.rglob("*")]:
            flush(written)
        place = _put(part, path, new=new)
    except BaseException as error:
        _remove(part)
        if isinstance(error, OSError) and not isinstance(error, WriteError):
            why = (
                f"cannot be written ({error.strerror or error}). An existing file is unchanged. Free some disk "
                "space, or name a file elsewhere."
                if path.parent.is_dir()
                else f"cannot be written: its folder {path.parent} was removed meanwhile. Choose another folder."
            )
            raise WriteError(path, f"{path} {why}") from error
        raise
    # Some file systems cannot flush a folder, but the file is complete anyway.
    with suppress(OSError):
        flush(path.parent)
    if place != path:
        raise NameTaken(path, place)


def flush(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    # Windows flushes only files that are open for writing.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _put(part: Path, path: Path, *, new: bool) -> Path:
    """Move a finished file to `path`, or to the first free name of run-1.nc, run-2.nc, ... if it must be `new`."""
    place, number = path, 0
    while new and os.path.lexists(place):
        number += 1
        place = path.with_name(f"{path.stem}-{number}{path.suffix}")
    if part.is_dir() and os.path.lexists(place):
        old = place.with_name(f"{place.name}.old")
        _remove(old)
        os.rename(place, old)
        os.rename(part, place)
        _remove(old)
    else:
        os.replace(part, place)
    return place


def _remove(path: Path) -> None:
    with suppress(OSError):  # The disk may fail again; the first error tells more.
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def unfinished(path: Path) -> Path:
    """Return a new temporary name, next to `path`, under which this process writes it."""
    name = os.fsencode(path.name)[:_LONGEST_PART].decode(errors="ignore")
    return path.with_name(f".{name}.onebasin-{_machine()}-{os.getpid()}-{secrets.token_hex(4)}")


def sweep(folder: Path) -> None:
    """Remove unfinished files and folders of processes that have ended on this machine, as far as possible."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            name = _NAME.fullmatch(path.name)
            if name and name["machine"] == _machine() and not is_running(int(name["pid"])):
                _remove(path)


def is_running(pid: int) -> bool:
    """Check whether a process with this ID is running on this machine; if in doubt, return true."""
    if os.name == "nt":  # There, `os.kill` would end the process.
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # It belongs to another user.
        pass
    return True


@cache
def _machine() -> str:
    """Return a hash of this machine and, on Linux, of its namespace of process IDs, which differs in a container."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return hashlib.sha256((socket.gethostname() + space).encode()).hexdigest()[:8]


def temporary_folder(name: str, parent: Path | None = None) -> Path:
    """Make a folder that only its owner can enter, in `parent` or in the folder of temporary files.

    The caller removes it; otherwise `sweep` does so after the process has ended.
    """
    parent = parent or Path(tempfile.gettempdir())
    sweep(parent)
    folder = unfinished(parent / name)
    folder.mkdir(mode=0o700)
    return folder


@contextmanager
def working_folder(name: str, parent: Path | None = None) -> Iterator[Path]:
    """Work in a `temporary_folder`, which is removed at the end."""
    folder = temporary_folder(name, parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def claim(
    path: Path, *, error: type[Exception], argument: str = "path", **how: Any
) -> Iterator[Path]:
    """Check and lock an output before the work begins; the keywords are those of `check_output`.

    Raise `InUse` if another process is writing it.
    """
    how |= {"error": error, "argument": argument, "inputs": tuple(how.get("inputs", ()))}
    check_output(path, **how)
    with ExitStack() as held:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(path, argument=argument, alongside=True))
        except OSError as reason:
            raise error(_unwritable(path, argument, reason)) from reason
        sweep(path.parent)
        # Check again: the last holder of the lock may have written it.
        check_output(path, **how)
        yield path


def check_output(
    path: Path,
    *,
    force: bool,
    error: type[Exception],
    argument: str = "path",
    inputs: Iterable[Path] = (),
    make_folder: bool = True,
    replaces: Callable[[Path], bool] | None = None,
) -> None:
    """Reject an output that cannot or must not be written, before any work is done and without changing any file.

    Raise `error`, whose message calls the file `argument`. With `force`, an existing file may be replaced, but never
    one of `inputs`. A missing folder is rejected unless `make_folder`. If the output is itself a folder of files,
    `replaces` tells which folders it may replace.
    """

    def refuse(why: str) -> Exception:
        return error(f"`{argument}` is {path}, {why}")

    if not make_folder and not path.parent.is_dir():
        raise refuse(f"but its folder does not exist: create the folder {path.parent} first.")
    try:
        try:
            kind = stat.S_IFMT(os.lstat(path).st_mode)
        except FileNotFoundError:
            kind = 0
        same = next((given for given in inputs if _is_same(path, given)), None)
        if replaces is not None and kind in (stat.S_IFREG, stat.S_IFDIR):
            if kind == stat.S_IFREG:
                raise refuse(
                    "which is a file, but a folder will be written: choose a different name."
                )
            if not replaces(path):
                raise refuse("which is a folder with other files: choose a different name.")
            kind = stat.S_IFREG
        if kind == 0 or (kind == stat.S_IFREG and force and same is None):
            # Try the file's folder, or the nearest parent that exists.
            above = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
            tempfile.TemporaryFile(dir=above).close()
    except OSError as reason:
        raise error(_unwritable(path, argument, reason)) from reason
    if same is not None:
        raise refuse(f"which is also the input {same}; choose a different name.")
    if kind in _KINDS:
        raise refuse(
            f"which is {_KINDS[kind]}, but a file will be written: choose a different name."
        )
    if kind and not force:
        raise refuse(
            "which already exists. Choose a different name, or use --force (force=True) to overwrite the output."
        )
    if len(os.fsencode(path.name)) > _LONGEST_NAME:
        raise refuse(f"but its name is too long: use at most {_LONGEST_NAME} bytes.")


def _is_same(path: Path, other: Path) -> bool:
    """Check whether two paths lead to the same file, possibly through links."""
    try:
        return path.samefile(other)
    except OSError:  # One of them does not exist.
        return os.path.realpath(path) == os.path.realpath(other)


def _unwritable(path: Path, argument: str, reason: OSError) -> str:
    return (
        f"`{argument}` is {path}, but its folder cannot be written to ({reason.strerror or reason}): "
        "name a file in a folder that you can write to."
    )


FIELD = "sha256"
"""The field of a JSON object that contains its seal."""

_MARK = b"\x89seal\r\n\x1a"


class Seal(Enum):
    """The state of a file's seal."""

    SEALED = "sealed"
    UNSEALED = "unsealed"
    DAMAGED = "damaged"


@contextmanager
def sealing(path: Path, *, new: bool = False) -> Iterator[Path]:
    """Write a file with a seal; see `replacing`."""
    with replacing(path, new=new) as part:
        yield part
        with part.open("r+b") as file:
            file.write(_MARK + _digest(file, part.stat().st_size))


def examine(path: Path) -> Seal:
    """Compare a file with its seal."""
    with path.open("rb") as file:
        end = max(0, path.stat().st_size - len(_MARK) - hashlib.sha256().digest_size)
        file.seek(end)
        trailer = file.read()
        if not trailer.startswith(_MARK):
            return Seal.UNSEALED
        file.seek(0)
        return Seal.SEALED if trailer == _MARK + _digest(file, end) else Seal.DAMAGED


def seal_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Add a seal, as the last field, to an object that will be written as JSON."""
    content = {name: entry for name, entry in value.items() if name != FIELD}
    text = json.dumps(content, sort_keys=True)
    return {**content, FIELD: hashlib.sha256(text.encode()).hexdigest()}


def examine_json(value: Any) -> Seal:
    """Compare an object that was read from JSON with its seal."""
    if not isinstance(value, Mapping) or FIELD not in value:
        return Seal.UNSEALED
    return Seal.SEALED if seal_json(value)[FIELD] == value[FIELD] else Seal.DAMAGED


def write_sealed(path: Path, value: Mapping[str, Any]) -> None:
    """Write an object as JSON with its seal; non-finite numbers become null."""
    with replacing(path) as part:
        part.write_text(f"{json_text(seal_json(json_safe(value)))}\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read an object; return an empty one if the file is damaged or missing."""
    with suppress(OSError, ValueError):
        value = json.loads(path.read_text(encoding="utf-8"))
        return value if isinstance(value, dict) else {}
    return {}


def _digest(file: BinaryIO, end: int) -> bytes:
    """Return the SHA-256 of the next bytes of a file, up to `end`."""
    digest = hashlib.sha256()
    while chunk := file.read(min(1 << 20, end - file.tell())):
        digest.update(chunk)
    return digest.digest()
