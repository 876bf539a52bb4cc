"""What produced a result: versions of the libraries, and the machine."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("onebasin", "jax", "numpyro", "cmdstanpy", "arviz", "numpy")


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that a number may depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


@cache
def machine(device: str = "cpu") -> str:
    """A line of text: processor, cores, and the device that ran the computation."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, device {device}"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
