"""Find a CmdStan directory (a "home"), or assemble one from the httpstan wheel in the user's cache.

The wheel ships Stan's C++ headers, the libraries they need and ``stanc``. The makefile and the command-line driver are
onebasin's (``stan/cmdstan``). The wheel's files are hard-linked into the home, or copied to another file system, so
that the home stays usable after the wheel is removed. The name of a home's folder depends on everything it is made
from: Stan, the wheel, the compiler, the sources and the flags.

`make`, `stanc` and the compiler inherit the environment, except the variables that an outer `make` has set for its own
children, and those that change how a program is translated (`MAKEFLAGS`, `MAKEFILES`, `STANCFLAGS`, `USER_HEADER`). The
compiler's variables (`CXX`, `CXXFLAGS`, ...), the home's `make/local` and the user's `~/.config/stan/make.local` do
affect the build. They determine how a compiled program behaves, so they are part of its key in the cache
(`build_flags`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import shutil
import string
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Literal

from onebasin.base.errors import ArgumentError, CmdStanNotFound, HomeBuildError
from onebasin.base.files.cache import make_user_cache, user_cache
from onebasin.base.files.writing import is_running, replacing, sweep, unfinished, working_folder
from onebasin.base.machine import available_cores
from onebasin.base.processes.children import run_guarded

Origin = Literal["CMDSTAN", "cmdstanpy default", "conda", "assembled"]
Progress = Callable[[str], None]

MARKER = "onebasin.json"
"""The last file written into an assembled home; it marks a completed build."""
_VERSION = re.compile(r"^CMDSTAN_VERSION := (\d+)\.(\d+)\.(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Home:
    """A CmdStan directory."""

    path: Path  # Absolute.
    version: tuple[int, int, int]
    origin: Origin

    @property
    def supports_jacobian_statement(self) -> bool:
        """Check whether ``jacobian += ...`` compiles (since Stan 2.36); the programs of networks use it."""
        return self.version >= (2, 36, 0)


def activate(home: Home) -> None:
    """Make cmdstanpy use this directory, for the whole process (it sets ``CMDSTAN``)."""
    import cmdstanpy

    cmdstanpy.set_cmdstan_path(str(home.path))


def read_home(path: Path, origin: Origin) -> Home:
    """Check that `path` is a CmdStan directory and that `make` accepts the path, and read its version."""
    advice = "Give the top directory of a CmdStan installation, which contains `makefile`."
    if not os.path.isdir(path):  # `Path.is_dir` raises without permission.
        raise CmdStanNotFound(f"`{path}` ({origin}) is not a directory. {advice}")
    try:
        makefile = (path / "makefile").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise CmdStanNotFound(
            f"`{path}` ({origin}) has no readable makefile: {error.strerror}. {advice}"
        ) from error
    check_home_path(path.absolute(), origin)
    match = _VERSION.search(makefile)
    if match is None:
        raise CmdStanNotFound(
            f"The makefile of `{path}` ({origin}) does not state a version. {advice}"
        )
    major, minor, patch = (int(part) for part in match.groups())
    if os.path.isfile(path / MARKER):
        origin = "assembled"  # `activate` has set CMDSTAN to this home.
    return Home(path.absolute(), (major, minor, patch), origin)


@contextmanager
def building_lock(made: Path, report: Progress | None = None) -> Iterator[None]:
    """Let only one process at a time build a home or a program; report before waiting for another process."""
    from filelock import FileLock, Timeout

    made.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{made}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if report is not None:
            report("waiting for another process that is building it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


_WITHHELD = (
    *("MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKELEVEL", "MAKEFILES", "MAKEOVERRIDES"),
    *("STANCFLAGS", "USER_HEADER"),
)
_DECIDING = (
    *("CXX", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "LDLIBS", "O", "PRECOMPILED_HEADERS"),
    *("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"),
    *("STAN_THREADS", "STAN_OPENCL", "STAN_MPI", "STAN_NO_RANGE_CHECKS", "STAN_CPP_OPTIMS"),
)
_ASCII = frozenset(string.ascii_letters + string.digits + "/._-+@")


def build_environment() -> dict[str, str]:
    """Return the environment variables of a build."""
    kept = {name: value for name, value in os.environ.items() if name not in _WITHHELD}
    # The makefiles include `$(HOME)/.config/stan/make.local`, unquoted.
    if unfit_character(kept.get("HOME", "")):
        del kept["HOME"]
    return kept


def build_flags(home: Path) -> str:
    """Return the variables and makefiles that determine how a program is compiled."""
    given = [f"{name}={os.environ[name]}" for name in _DECIDING if os.environ.get(name)]
    files = (home / "make" / "local", Path(os.path.expanduser("~/.config/stan/make.local")))
    texts = [path.read_text(errors="surrogateescape") for path in files if os.path.isfile(path)]
    return "\n".join([*given, *texts])


def unfit_character(path: str | Path) -> str:
    """Return the first character of a path that `make`, the shell or the linker rejects, or an empty string."""
    for character in str(path):
        shown = character.isprintable() and not character.isspace()
        if not (character in _ASCII if character.isascii() else shown):
            return character
    return ""


def check_home_path(path: Path, origin: str) -> None:
    """Reject a CmdStan directory if `make` does not accept its path, or the path that its links lead to."""
    odd = unfit_character(path) or unfit_character(path.resolve())
    if odd:
        raise CmdStanNotFound(
            f"make cannot compile programs in {str(path)!r} ({origin}), because this path or the target of a link in "
            f"it contains the character {odd!r}. Set CMDSTAN or XDG_CACHE_HOME to a path that contains only letters, "
            "digits and / . _ - + @."
        )


TIMEOUT = 60.0
"""Seconds within which a tool must print its version."""
_RELEASE = ("make/program", "stan/src/stan/model/model_header.hpp")
_ASSEMBLED = ("include/stan/model/model_header.hpp", "build/default/engines.o")


def fault(home: Home) -> str:
    """Return a sentence that says what is broken in a CmdStan directory, with a remedy; empty if nothing is broken."""
    ours = home.origin == "assembled"
    remedy = "run `make build` in it, install it again, or unset CMDSTAN"
    if ours:
        remedy = "assemble it again with `onebasin cmdstan build --force`"
    needed = ("bin/stanc", *(_ASSEMBLED if ours else _RELEASE))
    missing = [name for name in needed if not os.path.isfile(home.path / name)]
    if missing:
        return f"The CmdStan in `{home.path}` lacks {', '.join(missing)}: {remedy}."
    command, why = [str(home.path / "bin" / "stanc"), "--version"], ""
    try:
        done = subprocess.run(
            command, input="", capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        if done.returncode:
            words = (done.stderr or done.stdout).strip().splitlines()
            why = f"ends with code {done.returncode}" + (f" ({words[0][:120]})" if words else "")
    except subprocess.TimeoutExpired:
        why = f"does not answer within {TIMEOUT:.0f} s"
    except OSError as error:
        why = f"does not run ({error.strerror or error})"
    return f"The `stanc` of the CmdStan in `{home.path}` {why}: {remedy}." if why else ""


_PACKAGES = (
    "`g++ make` (Debian, Ubuntu), `gcc-c++ make` (Fedora), `gxx make` (conda), or run "
    "`xcode-select --install` (macOS)"
)


@dataclass(frozen=True)
class Toolchain:
    """The compiler and the `make` with which a home is built."""

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
    """Find the installed httpstan wheel, without importing it, and check that it is complete."""
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
    """Find the tools and the wheel from which a home is assembled."""
    wheel = find_wheel()
    return find_toolchain(), wheel


def how_to_install() -> str:
    """Return how to install CmdStan on this platform, as the end of a sentence."""
    # httpstan has wheels for these platforms; pyproject.toml has the same rule.
    if (platform.system(), platform.machine()) in (("Linux", "x86_64"), ("Darwin", "arm64")):
        return "run `pip install 'onebasin[cmdstan]'`"
    if platform.system() == "Windows":
        return "run `install_cmdstan --compiler`"
    return "run `install_cmdstan`, which needs a C++17 compiler and GNU make"


def _first_words(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise HomeBuildError(
            f"`{' '.join(command)}` cannot be run ({error}). Install this program, or correct its path."
        ) from error
    return done.stdout


PART = "cmdstan"
"""Folder of assembled homes in the user's cache."""


def assembled_path() -> Path | None:
    """Return the path of the home for this compiler and wheel, even if it does not exist; None without either."""
    try:
        name = folder_name(find_toolchain(), find_wheel())
    except HomeBuildError:
        return None
    return user_cache(PART) / name


def folder_name(toolchain: Toolchain, wheel: Wheel) -> str:
    """Name a home by the versions of its components and by a hash of them and the sources."""
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
    """Return the folder with onebasin's own files of a home: the makefile, the driver and the example."""
    return Path(__file__).parents[1] / "cmdstan"


def is_complete(path: Path) -> bool:
    """Check whether a folder is a home with a completed build."""
    return os.path.isfile(path / MARKER)  # `Path.is_file` raises without permission.


_FREE_BYTES = 1_500_000_000
_BYTES_PER_JOB = 2_500_000_000


def assemble(
    *, jobs: int | None = None, force: bool = False, progress: Progress | None = None
) -> Home:
    """Build CmdStan in the user's cache, or return the existing home; with `force`, build it again.

    `jobs` compilers run at once, by default as many as cores and memory allow. `progress` is called with the name of
    each stage. Raise `HomeBuildError` if a tool is missing, the cache cannot be written, or a compilation fails.
    """
    report = progress or (lambda stage: None)
    if jobs is not None and jobs < 1:
        raise ArgumentError(f"`jobs` must be at least 1; got {jobs}.")
    toolchain, wheel = find_parts()
    root = user_cache(PART)
    target = root / folder_name(toolchain, wheel)
    check_home_path(target.absolute(), "assembled")
    if jobs is None:
        try:
            memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError):
            memory = _BYTES_PER_JOB
        jobs = max(1, min(available_cores(), memory // _BYTES_PER_JOB))
    try:
        make_user_cache(PART)
        with building_lock(target, report):
            _sweep(target)
            if force or not is_complete(target):
                partial, old = unfinished(target), unfinished(target)
                try:
                    _build(partial, target, toolchain, wheel, jobs, report)
                    if target.exists():
                        target.rename(old)  # It is removed after the new home is in place.
                    partial.rename(target)
                finally:
                    shutil.rmtree(partial, ignore_errors=True)
                    shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise HomeBuildError(
                f"The disk that contains `{root}` is full, but CmdStan needs 1.2 GB. Free some space, or set "
                "XDG_CACHE_HOME to a folder on another disk."
            ) from error
        raise HomeBuildError(
            f"CmdStan cannot be written to `{root}`: {error.strerror or error}. Set "
            "XDG_CACHE_HOME to a folder that you can write to."
        ) from error
    report("done")
    return read_home(target, "assembled")


def _sweep(target: Path) -> None:
    """Remove leftovers of killed builds, next to a home and in it; the caller holds the lock."""
    # This process holds the lock, so the builder of any unfinished folder of this name was killed.
    for leftover in target.parent.glob(f".{target.name}.*"):
        shutil.rmtree(leftover, ignore_errors=True)
    sweep(target.parent)
    # The makefile names unfinished objects after the shell that writes them.
    for part in target.glob("build/**/*.part-*"):
        number = part.name.rpartition("-")[2]
        if number.isdecimal() and not is_running(int(number)):
            part.unlink(missing_ok=True)


def _build(
    partial: Path, target: Path, tools: Toolchain, wheel: Wheel, jobs: int, report: Progress
) -> None:
    if shutil.disk_usage(target.parent).free < _FREE_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target.parent))
    report("linking Stan's headers")
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
    text = text.replace("@VERSION@", wheel.stan_version).replace("@CXX@", tools.compiler)
    text = text.replace("@COMPILER_KIND@", tools.kind).replace("@JOBS@", str(jobs))
    makefile.write_text(text)
    command = [tools.make, f"-j{jobs}", "build"]
    run_make(command, partial, target.with_name(f"{target.name}.log"), report)
    facts = {"toolchain": vars(tools), "httpstan": wheel.version, "stan": wheel.stan_version}
    (partial / MARKER).write_text(json.dumps(facts, indent=2) + "\n")


def _link_or_copy(source: str | Path, destination: str | Path) -> None:
    try:
        os.link(source, destination)
    except OSError:  # Hard links are not possible here.
        shutil.copy2(source, destination)


def launcher(tool: str) -> str:
    """Return the script `bin/TOOL` of a home, which runs `summaries` in the Python that assembled the home."""
    python = sys.executable.replace("'", "'\\''")
    return f"#!/bin/sh\nexec '{python}' -P -m onebasin.stan.home.summaries {tool} \"$@\"\n"


def run_make(command: list[str], folder: Path, log: Path, report: Progress) -> None:
    """Run `make` in a home, and write its output to a log."""

    def watch(lines: str) -> None:
        for line in lines.splitlines():
            if line.startswith(("compiling the ", "precompiling")):
                report(line.strip())

    with working_folder("cmdstan") as temporary:  # A killed compiler leaves files there.
        environment = build_environment() | {"TMPDIR": str(temporary)}
        done = run_guarded(command, folder=folder, environment=environment, watch=watch)
    log.write_text(done.printed)
    if done.code:
        if os.strerror(errno.ENOSPC) in done.printed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        raise HomeBuildError(
            "CmdStan could not be compiled. The compiler's output ends with:",
            console=done.printed,
            log=log,
        )


_FOLDER = re.compile(r"^cmdstan-(\d+)\.(\d+)\.(\d+)(?:-rc(\d+))?$")


def existing_cmdstan() -> Home | None:
    """Find a CmdStan directory without building one; return None if there is none.

    The search order is ``CMDSTAN``, cmdstanpy's default, the conda environment, and the assembled home.
    """
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
    """Find a CmdStan directory, or assemble one if `build` (which takes minutes, once per machine).

    `progress` is called with the name of each stage of the assembly. Raise `CmdStanNotFound` if there is none and
    `build` is false, or if ``CMDSTAN`` is wrong, and `HomeBuildError` if the assembly fails.
    """
    found = existing_cmdstan()
    if found is not None:
        return found
    if not build:
        raise CmdStanNotFound(
            "No CmdStan directory was found (onebasin searched CMDSTAN, ~/.cmdstan, the conda environment "
            "and onebasin's cache). Call `ob.stan.find_cmdstan()` to assemble one, or set CMDSTAN."
        )
    return assemble(progress=progress)


def missing() -> str:
    """Return why CmdStan is missing and cannot be assembled, with a remedy; empty if it can be used."""
    if existing_cmdstan() is not None:
        return ""
    try:
        find_parts()
    except HomeBuildError as error:
        return str(error)
    return ""


_SOURCES = Path(__file__).parents[1] / "bridge"


def bridge_home(*, progress: Progress | None = None) -> Home:
    """Find an assembled home, whose makefile compiles libraries, or assemble it."""
    return existing_bridge_home() or assemble(progress=progress)


def existing_bridge_home() -> Home | None:
    """Find an assembled home; return None if there is none or another CmdStan is in use."""
    found = existing_cmdstan()
    return found if found is not None and found.origin == "assembled" else None


def bridge_folder(home: Home) -> Path:
    """Return the folder for ``BRIDGESTAN``, and create it if needed; its name depends on its content."""
    digest = hashlib.sha256()
    sources = sorted(_SOURCES.iterdir())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    folder = home.path / f"bridge-{digest.hexdigest()[:10]}"
    if not (folder / "Makefile").is_file():
        with building_lock(folder):
            if not (folder / "Makefile").is_file():
                with replacing(folder) as part:
                    part.mkdir()
                    for source in sources:
                        shutil.copy(source, part)
    return folder


def build_interface(folder: Path, variables: tuple[str, ...], report: Progress) -> None:
    """Compile the part that all libraries with the same flags share, unless it exists."""
    with building_lock(folder, report):
        command = [find_toolchain().make, *variables, "interface"]
        run_make(command, folder, folder / "interface.log", report)
