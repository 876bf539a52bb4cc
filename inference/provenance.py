"""What produced a result: versions of the libraries, and the machine."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from onebasin.stan.errors import CmdStanNotFound
from onebasin.stan.home.search import existing_cmdstan

PACKAGES = ("onebasin", "jax", "numpyro", "cmdstanpy", "arviz", "numpy")


def versions() -> dict[str, str]:
    """Versions of Python, of the packages that a number may depend on, and of CmdStan if there is one."""
    found = {"python": platform.python_version(), **_package_versions()}
    try:
        home = existing_cmdstan()
    except CmdStanNotFound:
        home = None
    return found if home is None else found | {"stan": ".".join(map(str, home.version))}


def machine(engine: str = "numpyro") -> str:
    """A line of text: processor, cores, and the device that the engine computes on."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, device {_device(engine)}"


@cache
def _package_versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _device(engine: str) -> str:
    if engine == "stan":
        return "cpu"
    import jax

    return jax.default_backend()


@cache
def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
