"""A file that HDF5 can be given to write: it survives a full disk, which HDF5 does not.

HDF5 that cannot write (no room, a quota, a broken disk) cannot close its file either: it complains in tracebacks of its
own and crashes the process at the end. A `Sink` takes every write, keeps the first error to itself and raises it when
it is closed, after HDF5 has closed its file in peace. Nothing is held in memory.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Sink(io.RawIOBase):
    """A new file, open for reading and writing."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(path, flags, 0o666)
        self._place = 0
        self._error: OSError | None = None

    def readable(self) -> bool:
        """Tell whether it can be read: yes."""
        return True

    def writable(self) -> bool:
        """Tell whether it can be written: yes."""
        return True

    def seekable(self) -> bool:
        """Tell whether it has places: yes."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place; returns it."""
        starts = {os.SEEK_SET: 0, os.SEEK_CUR: self._place}
        start = starts[whence] if whence in starts else os.fstat(self._descriptor).st_size
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        """The place."""
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Read; what could not be written reads as zeros, for HDF5 to go on."""
        view = memoryview(buffer).cast("B")
        if hasattr(os, "pread"):
            found = os.pread(self._descriptor, len(view), self._place)
        else:  # Windows
            os.lseek(self._descriptor, self._place, os.SEEK_SET)
            found = os.read(self._descriptor, len(view))
        view[: len(found)] = found
        if self._error is not None:
            view[len(found) :] = bytes(len(view) - len(found))
        read = len(found) if self._error is None else len(view)
        self._place += read
        return read

    def write(self, data: Any) -> int:
        """Write all of it, or remember why not."""
        view = memoryview(data).cast("B")

        def write_all() -> None:
            done = 0
            while self._error is None and done < len(view):
                rest, place = view[done:], self._place + done
                if hasattr(os, "pwrite"):
                    done += os.pwrite(self._descriptor, rest, place)
                else:  # Windows
                    os.lseek(self._descriptor, place, os.SEEK_SET)
                    done += os.write(self._descriptor, rest)

        self._attempt(write_all)
        self._place += len(view)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the size, or remember why not."""
        wanted = self._place if size is None else size
        self._attempt(lambda: os.ftruncate(self._descriptor, wanted))
        return wanted

    def close(self) -> None:
        """Close the file.

        Raises
        ------
        OSError
            The first error that a write met.
        """
        if self.closed:
            return
        super().close()
        self._attempt(lambda: os.close(self._descriptor))
        if self._error is not None:
            raise self._error

    def _attempt(self, act: Callable[[], None]) -> None:
        try:
            act()
        except OSError as error:
            self._error = self._error or error
