"""The compiler, make and the httpstan wheel: what a CmdStan home is assembled with and from."""

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from .errors import HomeBuildError


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
    """Find the C++ compiler (``CXX``, else g++, clang++, c++) and GNU make (``MAKE``, else make).

    Raises
    ------
    HomeBuildError
        One is missing, or the platform is not supported.
    """
    if platform.system() == "Windows":
        raise HomeBuildError(
            "A CmdStan home cannot be assembled on Windows (the httpstan wheel has no Windows "
            "build). Install CmdStan with `cmdstanpy.install_cmdstan()`, or use WSL."
        )
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "clang++", "c++"]
    compiler = next((name for name in names if shutil.which(name.split()[0])), None)
    make = os.environ.get("MAKE") or "make"
    missing = [" or ".join(names)] if compiler is None else []
    if not shutil.which(make):
        missing.append(make)
    if missing or compiler is None:
        raise HomeBuildError(
            f"Not found: {' and '.join(missing)}. Stan programs need a C++17 compiler and GNU "
            "make: install `g++ make` (Debian, Ubuntu), `gcc-c++ make` (Fedora), `gxx make` "
            "(conda), or run `xcode-select --install` (macOS)."
        )
    words = compiler.split()
    kind = "clang" if "clang" in _first_words([*words, "--version"]).lower() else "gcc"
    flag = "-dumpversion" if kind == "clang" else "-dumpfullversion"
    return Toolchain(compiler, kind, _first_words([*words, flag]).strip(), make)


def find_wheel() -> Wheel:
    """Find the installed httpstan wheel, without importing it.

    Raises
    ------
    HomeBuildError
        It is not installed, or lacks what a home is made from.
    """
    advice = "Install it with `pip install 'httpstan>=4.17'`."
    spec = util.find_spec("httpstan")
    if spec is None or spec.origin is None:
        raise HomeBuildError(f"The package httpstan is not installed. {advice}")
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


def _first_words(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise HomeBuildError(f"`{' '.join(command)}` does not run: {error}.") from error
    return done.stdout
