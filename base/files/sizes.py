"""Check the size that a file claims to have, before anything is allocated.

A small file can claim an array of any size, with chunks that were never written, values that compress a thousandfold,
or only a header. A claim is rejected if it does not fit into memory, or if no file of that size could hold the values.
"""

from __future__ import annotations

import math
import os
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..errors import ArgumentError, OnebasinError

_HARMLESS = 256 * 2**20
"""Number of bytes that any file may claim."""
_MOST_COMPRESSED = 1100
"""Maximum compression: Deflate, used in HDF5 and zip files, shrinks data at most 1032-fold."""
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"


class ClaimError(OnebasinError, ValueError):
    """Raised when a file claims too much or is unsafe to read; the message completes a sentence after its name."""


def check_claim(path: Path, claimed: int, *, size: int | None = None) -> None:
    """Raise `ClaimError` if a file claims more bytes of values than it can hold, or than fit into memory.

    `size` is the size on disk, which must be given for a folder.
    """
    size = path.stat().st_size if size is None else size
    if claimed > _HARMLESS and claimed > _MOST_COMPRESSED * size:
        raise ClaimError(
            f"is damaged: it declares {in_words(claimed)} of values in only {size} bytes. Use another copy"
        )
    if claimed > (most := memory()):
        raise ClaimError(
            f"contains {in_words(claimed)} of values, more than the available memory of {in_words(most)}: free some "
            "memory"
        )


def check_hdf5(path: Path) -> None:
    """Raise `ClaimError` if an HDF5 file claims too much, has circular groups, or refers to other files."""
    import h5py

    with h5py.File(path) as file:
        claimed, seen = 0, {h5py.h5o.get_info(file.id).addr}

        def add(name: str, link: object) -> str | None:  # HDF5 calls it, so it must not raise.
            nonlocal claimed
            if not isinstance(link, h5py.HardLink):
                return "has links to other files, which NetCDF does not allow"
            found = file[name]
            if isinstance(found, h5py.Group):
                place = h5py.h5o.get_info(found.id).addr
                if place in seen:
                    return "has groups that contain themselves"
                seen.add(place)
            elif isinstance(found, h5py.Dataset):
                if found.external or found.is_virtual:
                    return "takes values from other files, which NetCDF does not allow"
                own = found.attrs.get("NAME")
                # NetCDF writes the length of an axis as a dataset, which is never read.
                if not (isinstance(own, bytes) and own.startswith(_NO_VARIABLE)):
                    claimed += math.prod(found.shape or ()) * found.dtype.itemsize

            return None

        if wrong := file.visititems_links(add):
            raise ClaimError(wrong)
    check_claim(path, claimed)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of a ``.npz`` file, without unpickling.

    Raise `ClaimError` if the file claims too much, and `ArgumentError` if it is damaged or contains other objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            check_claim(path, sum(member.file_size for member in archive.infolist()))
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError):
        raise
    except Exception as error:  # zipfile may raise any error for a damaged file.
        raise ArgumentError("is not an archive of plain arrays") from error


def memory() -> int:
    """Return how much memory, in bytes, the machine, the container and the process's own limit still allow."""
    found = []
    try:
        facts = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        names = ("MemAvailable", "SwapFree")
        found.append(1024 * sum(int(facts[name].split()[0]) for name in names))
    except (OSError, ValueError, KeyError):
        with suppress(ValueError, OSError, AttributeError):  # On macOS, count all memory.
            found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):  # There is no container, or no limit ("max").
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    with suppress(ImportError):  # Windows
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            found.append(limit)
    return min(found, default=2**63)


def in_words(size: int) -> str:
    """Write a number of bytes in a suitable unit."""
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"
