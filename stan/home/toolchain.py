"""The compiler, make and the httpstan wheel: what a CmdStan home is assembled with and from."""

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from .errors import HomeBuildError

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
    """Tell whether a compiler and make are on the path."""
    try:
        find_toolchain()
    except HomeBuildError:
        return False
    return True


def _has_wheels() -> bool:
    """Tell whether httpstan has wheels for this platform; pyproject.toml has the same rule."""
    return (platform.system(), platform.machine()) in (("Linux", "x86_64"), ("Darwin", "arm64"))


def _first_words(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise HomeBuildError(f"`{' '.join(command)}` does not run: {error}.") from error
    return done.stdout
