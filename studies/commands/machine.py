"""What this machine has: the interpreter, JAX, the compiler, CmdStan, the data sets, the cache."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

from onebasin.models.storage.cache import CacheError, user_cache

MIN_PYTHON = (3, 12)


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    name : str
        What it is.
    ok : bool
        Whether it is as it should be.
    detail : str
        What was found.
    remedy : str
        What to do where it is not; empty where nothing needs doing.
    engine : str
        The engine that cannot work without it, if any.
    """

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    engine: str = ""


def examine(*, build: bool, progress: Callable[[str], None]) -> list[Check]:
    """Look at everything.

    Parameters
    ----------
    build : bool
        Assemble a CmdStan now where none is found.
    progress : callable
        Called with a line of text before something that takes long.

    Returns
    -------
    list of Check
        In the order in which they should be shown.
    """
    return [
        _python(),
        _jax(),
        Check("NumPyro", True, version("numpyro")),
        *_toolchain(),
        _wheel(),
        _cmdstan(build, progress),
        _cache(),
        *_data_sets(),
    ]


def working_engines(checks: list[Check]) -> dict[str, bool]:
    """Tell which engines work, or will once CmdStan has been assembled."""
    broken = {check.engine for check in checks if not check.ok}
    return {engine: engine not in broken for engine in ("numpyro", "stan")}


def first_remedy(checks: list[Check]) -> str | None:
    """Return what to do first so that both engines work; None if they do."""
    return next((c.remedy for c in checks if c.engine and not c.ok), None)


def _python() -> Check:
    good = sys.version_info >= MIN_PYTHON
    needed = ".".join(map(str, MIN_PYTHON))
    return Check(
        "Python",
        good,
        f"{platform.python_version()} at {sys.executable}",
        "" if good else f"Install Python {needed} or newer.",
        engine="numpyro",
    )


def _jax() -> Check:
    import jax

    try:
        devices = ", ".join(str(device) for device in jax.devices())
    except RuntimeError as error:
        return Check("JAX", False, str(error), "Reinstall jax, or unset JAX_PLATFORMS.", "numpyro")
    precision = "float64" if jax.config.jax_enable_x64 else "float32"
    return Check("JAX", True, f"{jax.__version__}, {devices}, {precision}", engine="numpyro")


def _toolchain() -> list[Check]:
    from onebasin.stan.errors import HomeBuildError
    from onebasin.stan.home.toolchain import find_toolchain

    try:
        found = find_toolchain()
    except HomeBuildError as error:
        return [Check("C++ compiler, make", False, "not found", str(error), "stan")]
    return [
        Check("C++ compiler", True, f"{found.compiler} {found.version} ({found.kind})", "", "stan"),
        Check("make", True, found.make, "", "stan"),
    ]


def _wheel() -> Check:
    from onebasin.stan.errors import HomeBuildError
    from onebasin.stan.home.toolchain import find_wheel

    try:
        wheel = find_wheel()
    except HomeBuildError as error:
        return Check("httpstan", False, "not usable", str(error))
    return Check("httpstan", True, f"{wheel.version}, with Stan {wheel.stan_version}")


def _cmdstan(build: bool, progress: Callable[[str], None]) -> Check:
    from onebasin import stan
    from onebasin.stan.home.toolchain import find_toolchain, find_wheel

    try:
        found = stan.find_cmdstan(progress=progress) if build else stan.existing_cmdstan()
        if found is None:
            find_toolchain(), find_wheel()
    except stan.StanError as error:
        return Check("CmdStan", False, "not found", str(error), "stan")
    if found is None:
        return Check(
            "CmdStan",
            True,
            "none yet; it will be assembled on first use, or now with --build",
            engine="stan",
        )
    number = ".".join(map(str, found.version))
    if not found.supports_jacobian_statement:
        remedy = f"CmdStan {number} is too old for the networks: 2.36 or newer is needed."
        return Check("CmdStan", False, f"{number} at {found.path}", remedy, "stan")
    return Check("CmdStan", True, f"{number} at {found.path} ({found.origin})", "", "stan")


def _cache() -> Check:
    try:
        folder = user_cache()
    except CacheError as error:
        return Check("cache", False, "not to be trusted", str(error), "stan")
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    good = nearest.is_dir() and os.access(nearest, os.W_OK)
    remedy = f"Make {nearest} writable, or set XDG_CACHE_HOME." if not good else ""
    return Check("cache", good, str(folder), remedy, "stan")


def _data_sets() -> list[Check]:
    from onebasin.models import data

    checks = []
    for name in data.names():
        reason = data.missing(name)
        detail = data.TABLE[name].summary if reason is None else "not available"
        checks.append(Check(f"data: {name}", reason is None, detail, reason or ""))
    return checks
