"""The cores and the memory that a process may use, and the packages that only some features need.

The packages are the extras of `pip install 'onebasin[...]'`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

VARIABLE = "ONEBASIN_CORES"
"""Environment variable with the maximum number of cores per process, for shared machines."""
EXTRAS: Mapping[str, str] = {
    "cluster": "distributed",
    "mclmc": "blackjax",
    "notebook": "ipywidgets",
    "nutpie": "nutpie",
    "parquet": "pyarrow",
    "pymc": "pymc",
    "sklearn": "sklearn",
    "zarr": "zarr",
}
"""For each extra, the package whose presence shows that it is installed; `data` and `cmdstan` are checked elsewhere."""


def available_cores() -> int:
    """Return the number of cores that ``ONEBASIN_CORES``, a scheduler and `taskset` allow; at least 1."""
    given = os.environ.get(VARIABLE, "")
    most = int(given) if given.isdigit() else 0
    own = hasattr(os, "sched_getaffinity")  # macOS lacks this function.
    cores = len(os.sched_getaffinity(0)) if own else os.cpu_count() or 1
    return min(cores, most or cores)


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


def is_installed(package: str) -> bool:
    """Check whether a package can be imported, without importing it."""
    try:
        return find_spec(package) is not None
    except ValueError:  # `sys.modules` has another object of this name.
        return False


def lacks(what: str, extra: str) -> str:
    """Return the message that a feature needs an extra, with the command to install it."""
    package = EXTRAS[extra]
    return (
        f"{what} needs the package {package}, which is not installed: "
        f"run `pip install 'onebasin[{extra}]'`."
    )
