"""The origin of a result: versions of the libraries, the commit of the sources, and the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from onebasin.stan.home.errors import CmdStanNotFound
from onebasin.stan.home.search import existing_cmdstan

from ..contracts.engines import LIBRARIES, named

PACKAGES = ("onebasin", "jax", "numpyro", "stanli", "cmdstanpy", "arviz", "numpy")


def versions() -> dict[str, str]:
    """Versions of Python, of the packages that a number may depend on, and of CmdStan if there is one."""
    found = {"python": platform.python_version(), **package_versions(*PACKAGES)}
    try:
        home = existing_cmdstan()
    except CmdStanNotFound:
        home = None
    return found if home is None else found | {"stan": ".".join(map(str, home.version))}


def commit() -> str | None:
    """The commit of the sources, marked where they have been changed; None outside their own repository.

    An installed copy may lie in a repository of its user's, whose commit says nothing of the sources.
    """
    source = Path(__file__).resolve()
    top = _git(source.parent, "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != source.parents[2]:
        return None
    if _git(source.parent, "ls-files", "--error-unmatch", source.name) is None:
        return None
    return _git(source.parent, "describe", "--always", "--dirty", "--abbrev=12")


def machine(engine: str = "numpyro") -> str:
    """A line of text: processor, cores, and the device that the engine computes on."""
    device = "cpu"
    if named(engine) not in LIBRARIES:
        import jax

        device = jax.default_backend()
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, device {device}"


def _git(folder: Path, *words: str) -> str | None:
    """Return git's facts about the repository that a folder lies in; None without one."""
    elsewhere = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    environment = {name: value for name, value in os.environ.items() if name not in elsewhere}
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def package_versions(*names: str) -> dict[str, str]:
    """Versions of installed packages."""
    return {name: _version(name) for name in names}


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


@cache
def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
