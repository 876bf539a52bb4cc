"""A file that HDF5 can be given to write: it survives a full disk, which HDF5 does not.

HDF5 that cannot write (no room, a quota, a broken disk) cannot close its file either: it complains in tracebacks of its
own and crashes the process at the end. A `Sink` takes every write, keeps the first error to itself and raises it when
it is closed, after HDF5 has closed its file in peace. Nothing is held in memory.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Sink(io.FileIO):
    """A new file, open for reading and writing."""

    _error: OSError | None = None

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+")

    def readinto(self, buffer: Any) -> int:
        """Read; what could not be written reads as zeros, for HDF5 to go on."""
        view = memoryview(buffer).cast("B")
        read = super().readinto(view)
        if self._error is not None:
            view[read:] = bytes(len(view) - read)
            read += len(view) - read
        return read

    def write(self, data: Any) -> int:
        """Write all of it, or remember why not."""
        view = memoryview(data).cast("B")
        end, done = self.tell() + len(view), 0
        while self._error is None and done < len(view):
            with self._remembering():
                done += super().write(view[done:])
        self.seek(end)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the size, or remember why not."""
        wanted = self.tell() if size is None else size
        with self._remembering():
            super().truncate(wanted)
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
        with self._remembering():
            super().close()
        if self._error is not None:
            raise self._error

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._error = self._error or error
