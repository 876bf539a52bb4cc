"""Checks of this machine: Python, JAX, the interpreter of Stan programs, CmdStan, the data sets, the cache."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from onebasin.base.card import in_brief
from onebasin.base.extras import EXTRAS, is_installed
from onebasin.base.files.cache import CacheError, user_cache
from onebasin.base.files.leftovers import leftovers

MIN_PYTHON = (3, 12)
DATA = "data: "
"""Prefix of the names of checks of data sets."""
_JAX_DEVICES = ("JAX_PLATFORMS", "JAX_PLATFORM_NAME", "CUDA_VISIBLE_DEVICES")
"""Variables by which somebody chooses JAX's device."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str  # What was found.
    remedy: str = ""  # What to do where it is not as it should be; empty where nothing needs doing.
    engine: str = ""  # The engine that cannot work without it, if any.
    asked: bool = (
        False  # Somebody has set it up on purpose: it matters although no engine needs it.
    )

    @property
    def matters(self) -> bool:
        """Tell whether a failure of this check means that the machine is not as it should be."""
        return bool(self.engine) or self.asked


_PROGRAM = "#include <vector>\nint main() {}\n"


def examine(*, build: bool, progress: Callable[[str], None]) -> list[Check]:
    """Look at everything, in the order in which it should be shown.

    With `build` a CmdStan is assembled where none is found; `progress` is called with a line before what takes long.
    """
    compiling = _optional(build, progress)
    engines = [_python(), _jax(), _numpyro(), _interpreter(), *compiling]
    cache = _cache(any(check.name == "CmdStan" and check.ok for check in compiling))
    return [*engines, _extras(), cache, *_unfinished(), *_data_folder(), *_data_sets()]


def working_engines(checks: list[Check]) -> dict[str, bool]:
    """Tell which engines work, CmdStan too where it can be assembled."""
    broken = {check.engine for check in checks if not check.ok}
    lacking = any(check.name == "CmdStan" and not check.ok for check in checks)
    return {engine: engine not in broken for engine in ("numpyro", "stanli")} | {
        "cmdstan": not lacking and "cmdstan" not in broken
    }


def first_remedy(checks: list[Check]) -> str | None:
    """Return what to do first so that NumPyro, the interpreter and all that was set up work; None if it is."""
    return next((c.remedy for c in checks if c.matters and not c.ok), None)


def _python() -> Check:
    good = sys.version_info >= MIN_PYTHON
    needed = ".".join(map(str, MIN_PYTHON))
    detail = f"{platform.python_version()} at {sys.executable}"
    remedy = "" if good else f"Install Python {needed} or newer."
    return Check("Python", good, detail, remedy, "numpyro")


def _jax() -> Check:
    import jax

    try:
        devices = ", ".join(str(device) for device in jax.devices())
        computed = jax.numpy.arange(3.0) * 2  # on the device that models will run on
        good, precision = computed.tolist() == [0.0, 2.0, 4.0], str(computed.dtype)
    except Exception as error:  # whatever a plugin of a device throws
        words = (str(error).strip().splitlines() or [type(error).__name__])[0]
        asked = {n: os.environ[n] for n in _JAX_DEVICES if os.environ.get(n)}
        said = ", ".join(f"{name} ({value})" for name, value in asked.items())
        remedy = f"Unset {said}." if said else "Reinstall jax."
        return Check("JAX", False, words, remedy, "numpyro")
    if precision != "float64":
        good, precision = False, f"{precision} where float64 is asked for"
    remedy = "" if good else "Choose another device with JAX_PLATFORMS=cpu, or reinstall jax."
    return Check("JAX", good, f"{jax.__version__}, {devices}, {precision}", remedy, "numpyro")


def _numpyro() -> Check:
    try:
        import numpyro
    except Exception as error:
        return Check("NumPyro", False, str(error), "Reinstall numpyro.", "numpyro")
    return Check("NumPyro", True, numpyro.__version__)


def _interpreter() -> Check:
    from onebasin.stan.interpreter.runtime import InterpreterMissing, installed_version, load

    try:
        load()
    except InterpreterMissing as error:
        return Check("stanli", False, "not usable", str(error), "stanli")
    detail = f"{installed_version()}, runs Stan programs; no compiler is needed"
    return Check("stanli", True, detail)


def _optional(build: bool, progress: Callable[[str], None]) -> list[Check]:
    """Look at CmdStan and its tools; say in one line that it is optional where nobody has set it up."""
    from onebasin import stan
    from onebasin.stan.home.errors import HomeBuildError
    from onebasin.stan.home.toolchain import find_wheel, how_to_install

    try:
        wanted = build or stan.existing_cmdstan() is not None
    except stan.StanError:  # a wrong CMDSTAN, which somebody has set
        wanted = True
    if not wanted:
        try:
            find_wheel()
        except HomeBuildError:
            detail = "not installed, and optional: `--engine cmdstan` and programs that stanli refuses need it"
            return [Check("CmdStan", False, detail, f"To have CmdStan, {how_to_install()}.")]
    return [*_toolchain(), _wheel(), _cmdstan(build, progress)]


def _toolchain() -> list[Check]:
    from onebasin.stan.home.errors import HomeBuildError
    from onebasin.stan.home.integrity import cannot_run
    from onebasin.stan.home.toolchain import find_toolchain

    try:
        found = find_toolchain()
    except HomeBuildError as error:
        return [Check("C++ compiler, make", False, "not found", str(error), "cmdstan")]
    compiling = [*found.compiler.split(), "-std=c++17", "-fsyntax-only", "-x", "c++", "-"]
    tried = (
        ("C++ compiler", f"{found.compiler} {found.version} ({found.kind})", compiling),
        ("make", found.make, [found.make, "--version"]),
    )
    checks = []
    for name, what, command in tried:
        why = cannot_run(command, stdin=_PROGRAM if command is compiling else "")
        remedy = f"`{what.split()[0]}` {why}: reinstall it." if why else ""
        checks.append(Check(name, not why, what, remedy, "cmdstan"))
    return checks


def _wheel() -> Check:
    from onebasin.stan.home.errors import HomeBuildError
    from onebasin.stan.home.toolchain import find_wheel

    try:
        wheel = find_wheel()
    except HomeBuildError as error:
        return Check("httpstan", False, "not usable", str(error))
    return Check("httpstan", True, f"{wheel.version}, with Stan {wheel.stan_version}")


def _cmdstan(build: bool, progress: Callable[[str], None]) -> Check:
    from onebasin import stan
    from onebasin.stan.home import integrity
    from onebasin.stan.home.cache import default_cache
    from onebasin.stan.home.environment import check_home_path
    from onebasin.stan.home.toolchain import find_toolchain, find_wheel

    try:
        found = stan.find_cmdstan(progress=progress) if build else stan.existing_cmdstan()
        if found is None:
            find_toolchain(), find_wheel()
            check_home_path(default_cache(), "where it would be assembled")
    except stan.StanError as error:
        return Check("CmdStan", False, "not found", str(error), "cmdstan")
    if found is None:
        detail = "none yet; it will be assembled on first use, or now with --build"
        return Check("CmdStan", True, detail, engine="cmdstan")
    number = ".".join(map(str, found.version))
    if not found.supports_jacobian_statement:
        remedy = f"CmdStan {number} is too old for the networks: 2.36 or newer is needed."
        return Check("CmdStan", False, f"{number} at {found.path}", remedy, "cmdstan")
    broken = integrity.fault(found)
    passed_over = found.origin != "CMDSTAN" and os.environ.get("CMDSTAN") == ""
    note = "; CMDSTAN is empty and counts as not set" if passed_over else ""
    where = f"{number} at {found.path} ({found.origin}{note})"
    return Check("CmdStan", not broken, where, broken, "cmdstan")


def _extras() -> Check:
    """Tell of the extras that have no check of their own."""
    there = [extra for extra, package in EXTRAS.items() if is_installed(package)]
    missing = [extra for extra in EXTRAS if extra not in there]
    words = [", ".join(there)] if there else []
    if missing:
        words.append(
            f"not installed: {', '.join(missing)}; `pip install 'onebasin[NAME]'` adds one"
        )
    return Check("extras", True, "; ".join(words))


def _cache(compiles: bool) -> Check:
    """Look at the folder of what is compiled; CmdStan needs it, the other engines take longer without."""
    try:
        folder = user_cache()
    except CacheError as error:
        return Check("cache", False, "not to be trusted", str(error), "stanli")
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    good = nearest.is_dir() and os.access(nearest, os.W_OK)
    remedy = f"Make {nearest} writable, or set XDG_CACHE_HOME." if not good else ""
    return Check("cache", good, str(folder), remedy, "cmdstan" if compiles else "")


def _unfinished() -> list[Check]:
    """Find files that ended commands have left here and among temporary files, and chains that wait to be resumed."""
    places = {Path.cwd(), Path(tempfile.gettempdir()).parent, Path(tempfile.gettempdir())}
    left = [str(path) for place in places for path in leftovers(place)]
    chains = [str(path.parent) for path in Path.cwd().glob("*.chains/chain-0")]
    checks = []
    if left:
        remedy = "Remove them, if nothing that runs on another machine has made them."
        checks.append(Check("unfinished files", True, in_brief(left, 4), remedy))
    if chains:
        remedy = "Repeat the command that began them to resume, or remove them."
        checks.append(Check("unfinished chains", True, in_brief(chains, 4), remedy))
    return checks


def _data_folder() -> list[Check]:
    """The folder of data sets, where somebody has named one."""
    from onebasin.models.data.folders import VARIABLE

    if not (chosen := os.environ.get(VARIABLE)):
        return []
    folder = Path(chosen).expanduser()
    good = os.path.isdir(folder) and os.access(folder, os.R_OK | os.X_OK)
    remedy = f"Set {VARIABLE} to a folder that can be read, or unset it; it is {chosen}."
    return [Check("data folder", good, str(folder), "" if good else remedy, asked=True)]


def _data_sets() -> list[Check]:
    from onebasin.models import data

    checks = []
    for name in data.names():
        reason = data.missing(name)
        detail = data.TABLE[name].summary if reason is None else "not available"
        checks.append(Check(f"{DATA}{name}", reason is None, detail, reason or ""))
    return checks
