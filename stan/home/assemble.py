"""Put a CmdStan home together from the httpstan wheel, in the user's cache.

The wheel ships Stan's C++ headers, the libraries they need and ``stanc``. To these come a makefile and a command-line
driver of our own (``stan/cmdstan``). The wheel's files are hard-linked into the home (copied where the cache is on
another file system), so that it outlives the environment the wheel was installed in. A home's folder is named after all
that it was made from (Stan, wheel, compiler, sources, flags); a change of any of these gives another folder.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from onebasin.base.cores import available_cores
from onebasin.base.errors import ArgumentError, CmdStanNotFound, HomeBuildError
from onebasin.base.files.cache import make_user_cache, user_cache
from onebasin.base.files.writing import is_running, sweep, unfinished, working_folder
from onebasin.base.processes.children import run_guarded

from .directory import (
    MARKER,
    Home,
    Origin,
    Progress,
    build_environment,
    building_lock,
    check_home_path,
    read_home,
)

_PACKAGES = (
    "`g++ make` (Debian, Ubuntu), `gcc-c++ make` (Fedora), `gxx make` (conda), or run "
    "`xcode-select --install` (macOS)"
)


@dataclass(frozen=True)
class Toolchain:
    """The compiler and make that a home is built with."""

    compiler: str
    kind: str
    version: str
    make: str


@dataclass(frozen=True)
class Wheel:
    """The installed httpstan wheel."""

    folder: Path
    version: str
    stan_version: str


def find_toolchain() -> Toolchain:
    """Find the C++ compiler (``CXX``, else g++, clang++, c++) and GNU make (``MAKE``, else make)."""
    if platform.system() == "Windows":
        raise HomeBuildError(
            "onebasin cannot assemble CmdStan on Windows: run `install_cmdstan --compiler`, or use WSL."
        )
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "clang++", "c++"]
    compiler = next((name for name in names if shutil.which(name.split()[0])), None)
    make = os.environ.get("MAKE") or "make"
    missing = [" or ".join(names)] if compiler is None else []
    if not shutil.which(make):
        missing.append(make)
    if missing or compiler is None:
        raise HomeBuildError(
            f"Not found: {' and '.join(missing)}. CmdStan needs a C++17 compiler and GNU make: install {_PACKAGES}."
        )
    words = compiler.split()
    kind = "clang" if "clang" in _first_words([*words, "--version"]).lower() else "gcc"
    flag = "-dumpversion" if kind == "clang" else "-dumpfullversion"
    return Toolchain(compiler, kind, _first_words([*words, flag]).strip(), make)


def find_wheel() -> Wheel:
    """Find the installed httpstan wheel, without importing it, and all in it that a home is made from."""
    spec = util.find_spec("httpstan")
    if spec is None or spec.origin is None:
        raise HomeBuildError(f"CmdStan is not installed: {how_to_install()}.")
    advice = "Install it again with `pip install --force-reinstall httpstan`."
    folder = Path(spec.origin).parent
    for needed in ("stanc", "lib", "include/stan/version.hpp", "include/stan/services"):
        if not (folder / needed).exists():
            raise HomeBuildError(f"The package httpstan in `{folder}` has no {needed}. {advice}")
    header = (folder / "include/stan/version.hpp").read_text()
    numbers = [
        next(line.split()[-1] for line in header.splitlines() if line.startswith(f"#define {word}"))
        for word in ("STAN_MAJOR", "STAN_MINOR", "STAN_PATCH")
    ]
    return Wheel(folder, metadata.version("httpstan"), ".".join(numbers))


def find_parts() -> tuple[Toolchain, Wheel]:
    """Find all that a home is assembled with and from; the message names all that is missing."""
    try:
        wheel = find_wheel()
    except HomeBuildError as error:
        if util.find_spec("httpstan") is not None or not _has_wheels() or compiler_and_make():
            raise
        raise HomeBuildError(
            f"CmdStan is not installed: {how_to_install()}, and install {_PACKAGES}."
        ) from error
    return find_toolchain(), wheel


def how_to_install() -> str:
    """Say how CmdStan is installed on this platform, as the end of a sentence."""
    if _has_wheels():
        return "run `pip install 'onebasin[cmdstan]'`"
    if platform.system() == "Windows":
        return "run `install_cmdstan --compiler`"
    return "run `install_cmdstan`, which needs a C++17 compiler and GNU make"


def compiler_and_make() -> bool:
    """Check whether a compiler and make are on the path."""
    try:
        find_toolchain()
    except HomeBuildError:
        return False
    return True


def _has_wheels() -> bool:
    """Check whether httpstan has wheels for this platform; pyproject.toml has the same rule."""
    return (platform.system(), platform.machine()) in (("Linux", "x86_64"), ("Darwin", "arm64"))


def _first_words(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise HomeBuildError(f"`{' '.join(command)}` does not run: {error}.") from error
    return done.stdout


PART = "cmdstan"
"""The folder of the user's cache in which they are."""


def default_cache() -> Path:
    """Return the folder of assembled homes: ``cmdstan`` in the user's cache for onebasin."""
    return user_cache(PART)


def assembled_path() -> Path | None:
    """Return the path of the home for this machine's compiler and wheel, existing or not; None if one is missing."""
    try:
        name = folder_name(find_toolchain(), find_wheel())
    except HomeBuildError:
        return None
    return default_cache() / name


def folder_name(toolchain: Toolchain, wheel: Wheel) -> str:
    """Name a home after the versions of what it is made from, and a hash of them and its sources."""
    digest = hashlib.sha256()
    for part in (*map(str, vars(toolchain).values()), wheel.version, platform.machine()):
        digest.update(part.encode() + b"\0")
    for path in sorted(sources().rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(sources()).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return (
        f"cmdstan-{wheel.stan_version}-httpstan-{wheel.version}"
        f"-{toolchain.kind}-{toolchain.version}-{digest.hexdigest()[:10]}"
    )


def sources() -> Path:
    """Return the folder of what is ours in a home: the makefile, the driver, the example."""
    return Path(__file__).parents[1] / "cmdstan"


def is_complete(path: Path) -> bool:
    """Check whether a folder is a home whose build came to its end."""
    return os.path.isfile(path / MARKER)  # unlike Path.is_file, false where it may not look


_FREE_BYTES = 1_500_000_000
_BYTES_PER_JOB = 2_500_000_000


@dataclass(frozen=True)
class _Order:
    """The sources and the tools of a home, the number of compilers, and the callback for progress."""

    toolchain: Toolchain
    wheel: Wheel
    jobs: int
    report: Progress


def assemble(
    *, jobs: int | None = None, force: bool = False, progress: Progress | None = None
) -> Home:
    """Build a CmdStan home in the user's cache for onebasin, or return the one that is there.

    As many compilers as `jobs` run at once, by default as cores and memory allow; with `force` all is built again. The
    driver for programs with ``STAN_THREADS`` is built when the first such program is compiled. `progress` is called
    with the name of each stage. It is a `HomeBuildError` if a tool is missing, the cache cannot be written, or a
    compilation failed.
    """
    report = progress or (lambda stage: None)
    if jobs is not None and jobs < 1:
        raise ArgumentError(f"`jobs` is {jobs}; it has to be 1 or more.")
    toolchain, wheel = find_parts()
    root = default_cache()
    target = root / folder_name(toolchain, wheel)
    check_home_path(target.absolute(), "assembled")
    if jobs is None:
        try:
            memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError):
            memory = _BYTES_PER_JOB
        jobs = max(1, min(available_cores(), memory // _BYTES_PER_JOB))
    order = _Order(toolchain, wheel, jobs, report)
    try:
        make_user_cache(PART)
        with building_lock(target, report):
            _sweep(target)
            if force or not is_complete(target):
                _replace(target, order)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise HomeBuildError(
                f"The disk of `{root}` is full: a CmdStan home takes 1.2 GB. Make room, or set "
                "XDG_CACHE_HOME to a folder on another disk."
            ) from error
        raise HomeBuildError(
            f"The CmdStan home cannot be written under `{root}`: {error.strerror or error}. Set "
            "XDG_CACHE_HOME to a folder that can be written."
        ) from error
    report("done")
    return read_home(target, "assembled")


def _replace(target: Path, order: _Order) -> None:
    """Build in a hidden folder, then move it to its place; call with the lock held."""
    partial, old = unfinished(target), unfinished(target)
    try:
        _build(partial, target, order)
        if target.exists():
            target.rename(old)  # not removed first: a moment later there is a whole home again
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _sweep(target: Path) -> None:
    """Remove what killed builds have left, next to a home and in it; call with the lock held."""
    # Whoever holds the lock owns every unfinished folder of this name: its builder was killed.
    for leftover in target.parent.glob(f".{target.name}.*"):
        shutil.rmtree(leftover, ignore_errors=True)
    sweep(target.parent)
    # The makefile names the parts of objects after the shell that writes them.
    for part in target.glob("build/**/*.part-*"):
        number = part.name.rpartition("-")[2]
        if number.isdecimal() and not is_running(int(number)):
            part.unlink(missing_ok=True)


def _build(partial: Path, target: Path, order: _Order) -> None:
    if shutil.disk_usage(target.parent).free < _FREE_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target.parent))
    order.report("linking Stan's headers")
    wheel = order.wheel
    for name in ("include", "lib"):
        shutil.copytree(
            wheel.folder / name,
            partial / name,
            copy_function=_link_or_copy,
            ignore=shutil.ignore_patterns("pybind11"),
        )
    (partial / "bin").mkdir()
    shutil.copy2(wheel.folder / "stanc", partial / "bin" / "stanc")
    (partial / "bin" / "stanc").chmod(0o755)
    for tool in ("stansummary", "diagnose"):
        (partial / "bin" / tool).write_text(launcher(tool))
        (partial / "bin" / tool).chmod(0o755)
    shutil.copytree(sources(), partial, dirs_exist_ok=True)
    makefile = partial / "makefile"
    text = makefile.read_text()
    for word, value in {
        "@VERSION@": wheel.stan_version,
        "@CXX@": order.toolchain.compiler,
        "@COMPILER_KIND@": order.toolchain.kind,
        "@JOBS@": str(order.jobs),
    }.items():
        text = text.replace(word, value)
    makefile.write_text(text)
    command = [order.toolchain.make, f"-j{order.jobs}", "build"]
    run_make(command, partial, target.with_name(f"{target.name}.log"), order.report)
    facts = {
        "toolchain": vars(order.toolchain),
        "httpstan": wheel.version,
        "stan": wheel.stan_version,
    }
    (partial / MARKER).write_text(json.dumps(facts, indent=2) + "\n")


def _link_or_copy(source: str | Path, destination: str | Path) -> None:
    try:
        os.link(source, destination)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, destination)


def launcher(tool: str) -> str:
    """Return the script that a home has as `bin/TOOL`: `summaries` in the Python that assembled it."""
    python = sys.executable.replace("'", "'\\''")
    return f"#!/bin/sh\nexec '{python}' -P -m onebasin.stan.home.summaries {tool} \"$@\"\n"


def run_make(command: list[str], folder: Path, log: Path, report: Progress) -> None:
    """Run `make` in a home, with what it says kept in a log."""

    def watch(lines: str) -> None:
        for line in lines.splitlines():
            if line.startswith(("compiling the ", "precompiling")):
                report(line.strip())

    with working_folder("cmdstan") as temporary:  # a compiler that is killed leaves its own there
        environment = build_environment() | {"TMPDIR": str(temporary)}
        done = run_guarded(command, folder=folder, environment=environment, watch=watch)
    log.write_text(done.printed)
    if done.code:
        if os.strerror(errno.ENOSPC) in done.printed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        raise HomeBuildError(
            "The CmdStan home could not be compiled; the compiler said:",
            console=done.printed,
            log=log,
        )


_FOLDER = re.compile(r"^cmdstan-(\d+)\.(\d+)\.(\d+)(?:-rc(\d+))?$")


def existing_cmdstan() -> Home | None:
    """Find a CmdStan directory without building one: the first of the search order; None if there is none."""
    if value := os.environ.get("CMDSTAN", ""):
        return read_home(Path(value).expanduser(), "CMDSTAN")
    try:
        entries = list((Path.home() / ".cmdstan").iterdir())
    except OSError:
        entries = []
    releases = []
    for entry in entries:
        if match := _FOLDER.match(entry.name):
            *numbers, candidate = match.groups()
            # A release candidate comes before its release.
            rank = float("inf") if candidate is None else float(candidate)
            releases.append(((*map(float, numbers), rank), entry))
    places: list[tuple[Path, Origin]] = [
        (entry, "cmdstanpy default") for _, entry in sorted(releases, reverse=True)
    ]
    if prefix := os.environ.get("CONDA_PREFIX", ""):
        places.append((Path(prefix) / "bin" / "cmdstan", "conda"))
    for path, origin in places:
        with suppress(CmdStanNotFound):
            return read_home(path, origin)
    path_of_ours = assembled_path()
    if path_of_ours is not None and is_complete(path_of_ours):
        with suppress(CmdStanNotFound):
            return read_home(path_of_ours, "assembled")
    return None


def find_cmdstan(*, build: bool = True, progress: Progress | None = None) -> Home:
    """Find a CmdStan directory, or assemble one (minutes, once a machine), unless not to `build`.

    `progress` is called with the name of each stage of the assembly. It is `CmdStanNotFound` if none is found and none
    is to be built, or ``CMDSTAN`` is wrong, and a `HomeBuildError` if the assembly failed.
    """
    found = existing_cmdstan()
    if found is not None:
        return found
    if not build:
        raise CmdStanNotFound(
            "No CmdStan directory was found (looked at CMDSTAN, ~/.cmdstan, the conda environment "
            "and onebasin's cache). Call `stan.find_cmdstan()` to assemble one, or set CMDSTAN."
        )
    return assemble(progress=progress)


def missing() -> str:
    """Say why there is no CmdStan and none can be assembled, with what to do; empty if one can be used."""
    if existing_cmdstan() is not None:
        return ""
    try:
        find_parts()
    except HomeBuildError as error:
        return str(error)
    return ""


_SOURCES = Path(__file__).parents[1] / "bridge"


def bridge_home(*, progress: Progress | None = None) -> Home:
    """Find the home whose headers libraries are compiled with, or assemble it: of ours, since only that says how."""
    return existing_bridge_home() or assemble(progress=progress)


def existing_bridge_home() -> Home | None:
    """Find the same home without assembling one; None if there is none."""
    found = existing_cmdstan()
    return found if found is not None and found.origin == "assembled" else None


def bridge_folder(home: Home) -> Path:
    """Return the folder that ``BRIDGESTAN`` accepts, put there if it is not.

    Its name changes with what is in it, so that a library of other sources is never taken for one of these.
    """
    digest = hashlib.sha256()
    sources = sorted(_SOURCES.iterdir())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    folder = home.path / f"bridge-{digest.hexdigest()[:10]}"
    if not (folder / "Makefile").is_file():
        with building_lock(folder):
            sweep(folder.parent)
            if not (folder / "Makefile").is_file():
                with working_folder(folder.name, folder.parent) as part:
                    whole = part / "whole"
                    whole.mkdir()
                    for source in sources:
                        shutil.copy(source, whole)
                    shutil.rmtree(folder, ignore_errors=True)
                    whole.rename(folder)
    return folder


def build_interface(folder: Path, variables: tuple[str, ...], report: Progress) -> None:
    """Compile what all libraries of one set of flags share, if it is not there."""
    with building_lock(folder, report):
        command = [find_toolchain().make, *variables, "interface"]
        run_make(command, folder, folder / "interface.log", report)
