"""Check the size that a file claims to have, before anything is allocated.

A few bytes can claim an array of any size: chunks that were never written, values that compress a thousandfold, a
header alone. Such a claim is refused where the machine's memory cannot hold it, or where no file of that size could
hold the values.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ArgumentError, OnebasinError

if TYPE_CHECKING:
    import h5py

_HARMLESS = 256 * 2**20
"""Bytes that any file may claim."""

_MOST_COMPRESSED = 1100
"""The compression of HDF5 and zip files, deflate, makes equal bytes 1032 times smaller and no more."""

_DEEPEST = 32
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"


class ClaimError(OnebasinError, ValueError):
    """A file whose claims cannot be; the message says what of it, to be put after its name."""


def check_claim(path: Path, claimed: int, *, size: int | None = None) -> None:
    """Refuse, with a `ClaimError`, a file that claims more bytes of values than it can hold, or than fit into memory.

    `size` is what it takes on the disk, to be given for a folder of files.
    """
    size = path.stat().st_size if size is None else size
    if claimed > _HARMLESS and claimed > _MOST_COMPRESSED * size:
        raise ClaimError(f"claims {in_words(claimed)} of values, but has {size} bytes")
    if claimed > (most := memory()):
        raise ClaimError(
            f"holds {in_words(claimed)} of values, more than the {in_words(most)} of memory that is free here"
        )


def check_hdf5(path: Path) -> None:
    """Refuse an HDF5 file that claims too much, goes round in circles or leads out of itself, with a `ClaimError`."""
    import h5py  # here: what reads no files does without

    with h5py.File(path) as file:
        claimed = 0
        for dataset in _datasets(file):
            if dataset.external or dataset.is_virtual:
                raise ClaimError("takes values from other files, which NetCDF files do not")
            name = dataset.attrs.get("NAME")
            # How NetCDF writes the length of an axis, which is never read as values.
            if not (isinstance(name, bytes) and name.startswith(_NO_VARIABLE)):
                claimed += math.prod(dataset.shape or ()) * dataset.dtype.itemsize
        check_claim(path, claimed)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of a ``.npz`` file; nothing is unpickled.

    Raises
    ------
    ClaimError
        If it claims too much.
    ArgumentError
        If it holds anything but plain arrays, or is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            check_claim(path, sum(_bytes_stated(archive, name) for name in archive.namelist()))
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError):
        raise
    except Exception as error:  # of bytes that anyone may have written, zipfile raises anything
        raise ArgumentError("not an archive of plain arrays") from error


def _datasets(file: h5py.File) -> Iterator[h5py.Dataset]:
    """All datasets of a file; its groups are gone through once, whatever they contain."""
    import h5py

    groups: list[tuple[h5py.Group, int]] = [(file, 0)]
    seen = set()
    while groups:
        group, depth = groups.pop()
        place = h5py.h5o.get_info(group.id).addr
        if place in seen or depth > _DEEPEST:
            raise ClaimError(f"has groups within themselves, or more than {_DEEPEST} deep")
        seen.add(place)
        for name in group:
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise ClaimError("has links to other places, which NetCDF files do not have")
            entry = group[name]
            if isinstance(entry, h5py.Group):
                groups.append((entry, depth + 1))
            elif isinstance(entry, h5py.Dataset):
                yield entry


def _bytes_stated(archive: zipfile.ZipFile, name: str) -> int:
    """Size of an array by its header."""
    with archive.open(name) as member:
        version = np.lib.format.read_magic(member)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        elif version == (2, 0):
            shape, _, dtype = np.lib.format.read_array_header_2_0(member)
        else:
            raise ArgumentError(f"{name} is of version {version}, which plain arrays do not have")
    if dtype.hasobject:
        raise ArgumentError(f"{name} holds Python objects")
    return math.prod(shape) * dtype.itemsize


def memory() -> int:
    """Memory in bytes that this process may still have: of the machine, of its container, by its own limit."""
    found = []
    try:  # what is available without swapping
        facts = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        names = ("MemAvailable", "SwapFree")
        found.append(1024 * sum(int(facts[name].split()[0]) for name in names))
    except (OSError, ValueError, KeyError):
        with suppress(ValueError, OSError, AttributeError):  # all memory
            found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):  # no container, or the word "max"
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    with suppress(ImportError):  # Windows
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            found.append(limit)
    return min(found, default=2**63)


def in_words(size: int) -> str:
    """A number of bytes, in the unit that suits it."""
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"
