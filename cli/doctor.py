"""`onebasin doctor`: check this machine's packages and engines."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from onebasin.base.files.cache import CacheError, user_cache
from onebasin.base.machine import EXTRAS, is_installed
from onebasin.base.processes.libraries import prepare_libraries
from onebasin.base.text import Flag

from .options import Json, option

_DATA = "data: "
"""Prefix of the names of checks on data sets."""
_JAX_DEVICES = ("JAX_PLATFORMS", "JAX_PLATFORM_NAME", "CUDA_VISIBLE_DEVICES")
"""Environment variables that choose JAX's device."""


@dataclass(frozen=True)
class Check:
    """The result of one check."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    engine: str = ""  # The engine that needs it.
    asked: bool = False  # Whether the user has set it up, so that a failure matters.

    @property
    def flag(self) -> Flag:
        """Return "bad" for a failure that matters, and "warn" for other failures."""
        return "good" if self.ok else "bad" if self.engine or self.asked else "warn"


def doctor(
    details: bool = option(
        False, "Show every data set and how to get the missing ones.", "--details"
    ),
    json: Json = False,
    build: bool = option(False, "Build CmdStan now if it is missing.", "--build/--no-build"),
) -> None:
    """Show which engines and packages work here; exit with 0 if models run and everything you set up works."""
    from . import console

    prepare_libraries()
    checks = examine(build=build, progress=console.say)
    engines = working_engines(checks)
    if json:
        console.write_json({"engines": engines, "checks": [asdict(check) for check in checks]})
    else:
        sets = [check for check in checks if check.name.startswith(_DATA)]
        rows = checks
        if not details:
            here = sum(check.ok for check in sets)
            detail = f"{here} of {len(sets)} are installed; `onebasin doctor --details` lists them"
            rows = [*(c for c in checks if c not in sets), Check("data sets", True, detail)]
        console.write_rows([(check.flag, check.name, check.detail) for check in rows])
        for check in rows:
            if check.remedy:
                console.write_remark(f"{check.name}: {check.remedy}", check.flag)
        for engine, works in engines.items():
            needed = any(check.engine == engine and not check.ok for check in checks)
            said = f"the engine {engine} {'works' if works else 'does not work'}"
            console.write_remark(said, "good" if works else "bad" if needed else "warn")
    for check in checks:
        if check.flag == "bad":  # Fix this first.
            console.say(f"onebasin: {check.remedy}")
            raise typer.Exit(1)


def examine(*, build: bool, progress: Callable[[str], None]) -> list[Check]:
    """Run all checks; with `build`, assemble CmdStan if none is found."""
    cmdstan = _cmdstan(build, progress)
    return [*_without_compiler(), cmdstan, *_files(cmdstan.ok)]


def working_engines(checks: list[Check]) -> dict[str, bool]:
    """Return which engines work; CmdStan works if it can be assembled."""
    broken = {check.engine for check in checks if not check.ok}
    lacking = any(check.name == "CmdStan" and not check.ok for check in checks)
    return {engine: engine not in broken for engine in ("numpyro", "stanli")} | {
        "cmdstan": not lacking and "cmdstan" not in broken
    }


def _without_compiler() -> Iterator[Check]:
    yield Check("Python", True, f"{platform.python_version()} at {sys.executable}")
    yield _jax()
    try:
        import numpyro
    except Exception as error:
        yield Check("NumPyro", False, str(error), "Reinstall numpyro.", "numpyro")
    else:
        yield Check("NumPyro", True, numpyro.__version__)
    from onebasin.stan.interpreter.runtime import InterpreterMissing, installed_version, load

    try:
        load()
    except InterpreterMissing as error:
        yield Check("stanli", False, "not usable", str(error), "stanli")
    else:
        detail = f"{installed_version()}, runs Stan programs; no compiler is needed"
        yield Check("stanli", True, detail)


def _jax() -> Check:
    import jax

    try:
        devices = ", ".join(str(device) for device in jax.devices())
        computed = jax.numpy.arange(3.0) * 2
        good, precision = computed.tolist() == [0.0, 2.0, 4.0], str(computed.dtype)
    except Exception as error:  # A device's plugin may raise any error.
        words = (str(error).strip().splitlines() or [type(error).__name__])[0]
        asked = {n: os.environ[n] for n in _JAX_DEVICES if os.environ.get(n)}
        said = ", ".join(f"{name} ({value})" for name, value in asked.items())
        remedy = f"Unset {said}." if said else "Reinstall jax."
        return Check("JAX", False, words, remedy, "numpyro")
    if precision != "float64":
        good, precision = False, f"{precision} instead of float64"
    remedy = "" if good else "Choose another device with JAX_PLATFORMS=cpu, or reinstall jax."
    return Check("JAX", good, f"{jax.__version__}, {devices}, {precision}", remedy, "numpyro")


def _cmdstan(build: bool, progress: Callable[[str], None]) -> Check:
    """Check CmdStan and its compiler; CmdStan is optional unless the user has set it up."""
    from onebasin import stan
    from onebasin.stan.home import assemble

    try:
        found = stan.find_cmdstan(progress=progress) if build else stan.existing_cmdstan()
        if found is None:
            assemble.find_parts()
            assemble.check_home_path(user_cache(assemble.PART), "where it would be assembled")
            detail = "none yet; it is built on first use, or now with --build"
            return Check("CmdStan", True, detail, engine="cmdstan")
        number = ".".join(map(str, found.version))
        tools = assemble.find_toolchain()
        broken = assemble.fault(found)
        if not found.supports_jacobian_statement:
            broken = f"CmdStan {number} is too old for the networks: 2.36 or newer is needed."
        where = f"{number} at {found.path} ({found.origin}), {tools.compiler} {tools.version}"
        return Check("CmdStan", not broken, where, broken, "cmdstan")
    except stan.StanError as error:
        if build or os.environ.get("CMDSTAN") or is_installed("httpstan"):
            return Check("CmdStan", False, "not usable", str(error), "cmdstan")
    detail = (
        "not installed, and optional: `--engine cmdstan` and programs that stanli rejects need it"
    )
    remedy = f"To get CmdStan, {assemble.how_to_install()}."
    return Check("CmdStan", False, detail, remedy)


def _files(compiles: bool) -> Iterator[Check]:
    """Check the extras, the cache and the data sets; only CmdStan needs a cache."""
    from onebasin.models import load_data as data

    there = [extra for extra, package in EXTRAS.items() if is_installed(package)]
    missing = [extra for extra in EXTRAS if extra not in there]
    words = [", ".join(there)] if there else []
    if missing:
        how = "`pip install 'onebasin[NAME]'` adds one"
        words.append(f"not installed: {', '.join(missing)}; {how}")
    yield Check("extras", True, "; ".join(words))
    try:
        folder = user_cache()
    except CacheError as error:
        yield Check("cache", False, "not to be trusted", str(error), "stanli")
    else:
        nearest = next(place for place in (folder, *folder.parents) if place.exists())
        good = nearest.is_dir() and os.access(nearest, os.W_OK)
        remedy = (
            "" if good else f"Make {nearest} writable, or set XDG_CACHE_HOME to another folder."
        )
        yield Check("cache", good, str(folder), remedy, "cmdstan" if compiles else "")
    if chosen := os.environ.get(data.VARIABLE):
        folder = Path(chosen).expanduser()
        good = os.path.isdir(folder) and os.access(folder, os.R_OK | os.X_OK)
        remedy = f"Set {data.VARIABLE} to a folder that can be read, or unset it; it is {chosen}."
        yield Check("data folder", good, str(folder), "" if good else remedy, asked=True)
    for name in data.TABLE:
        reason = data.missing(name)
        detail = data.TABLE[name].summary if reason is None else "not available"
        yield Check(f"{_DATA}{name}", reason is None, detail, reason or "")
