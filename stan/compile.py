"""Compiling a Stan program once per content, in the user's cache.

A program's key in the cache is its translation to C++ with all that it includes, the CmdStan directory and its version,
and the flags that it is compiled with. So a changed line, a changed include or another CmdStan compiles again; a new
name, date or place does not. `make` sees a fixed name in a folder of ours, and nothing that a user has written but C++.

A compiled program lies next to its SHA-256, and is made again when the two do not agree. Most of the time goes into the
program's object. In a home of ours it is kept too, and the executable and the library are linked from the same one; a
CmdStan of the user's compiles its executables by its own makefile.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from onebasin.base.files.cache import make_user_cache, user_cache
from onebasin.base.files.writing import sweep, working_folder
from onebasin.base.processes.children import run_guarded
from onebasin.base.text import shown

from .home.bridge import bridge_folder, bridge_home, build_interface
from .home.directory import Home, Progress, activate, building_lock
from .home.environment import build_environment, build_flags, unfit_character
from .home.errors import StanProgramError
from .home.integrity import check_whole
from .home.search import find_cmdstan
from .translation import NAME, ProgramInfo, Translation, check_declares, in_own_names, translate

if TYPE_CHECKING:
    from cmdstanpy import CmdStanModel

_CACHE = "programs"
_SEAL = f"{NAME}.sha256"
_OBJECT = f"{NAME}.o"
_THREADS = "STAN_THREADS=true"
_OURS = re.compile(r"[0-9a-f]{32}|.+-[0-9a-f]{16}", re.DOTALL)
"""Names of entries; those that end in a shorter digest are of earlier versions, and are no longer read."""
_SHOWN_LINES = 20


@dataclass(frozen=True)
class _Product:
    """A file that a program is compiled to: by which home, its name, where `make` runs, and what `make` is told."""

    path: Path
    home: Home
    translation: Translation
    file: str
    folder: Path
    variables: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: Path, home: Home, file: str, folder: Path, *, threads: bool) -> _Product:
        """Translate a program that is to be compiled; refuse one that declares no variables."""
        translation = translate(path, home)
        check_declares(translation.info, path)
        return cls(path, home, translation, file, folder, (_THREADS,) if threads else ())

    @property
    def object(self) -> _Product:
        """The object file that it is linked from, the same for an executable and a library of equal variables."""
        return replace(self, file=_OBJECT, folder=Path())

    @property
    def entry(self) -> Path:
        """Its folder in the cache, named also by the home's place, where it finds its libraries, and by the file."""
        own = os.fsencode(self.home.path)
        if (self.file, self.folder, self.variables) != (NAME, self.home.path, ()):
            own += os.fsencode("\0".join((self.file, str(self.folder), *self.variables)))
        source = source_key(self.translation, self.home)
        return make_user_cache(_CACHE) / hashlib.sha256(source.encode() + own).hexdigest()[:32]

    @property
    def is_whole(self) -> bool:
        """Tell whether it is in the cache, as it was compiled."""
        try:
            return (self.entry / _SEAL).read_text(encoding="ascii") == _seal(self.entry / self.file)
        except (OSError, UnicodeDecodeError):
            return False


def compile_program(
    path: Path, *, threads: bool = False, progress: Progress | None = None
) -> tuple[CmdStanModel, ProgramInfo]:
    """Compile a program, or take it from the cache; return it, ready to run, and what it declares.

    It is compiled with ``STAN_THREADS`` if `threads`, so that `reduce_sum` can use several. `progress` is called with a
    line of text before something that takes long. A program that does not parse or compile, or declares no variables,
    is a `StanProgramError`. It is `CmdStanNotFound` or `HomeBuildError` if there is no CmdStan and none can be
    assembled, and `CacheError` if the cache is not the user's own.
    """
    from cmdstanpy import CmdStanModel

    home = find_cmdstan(progress=progress)
    activate(home)
    product = _Product.of(path, home, NAME, home.path, threads=threads)
    return CmdStanModel(exe_file=str(_compiled(product, progress))), product.translation.info


def compile_library(
    path: Path, *, threads: bool = False, progress: Progress | None = None
) -> tuple[Path, ProgramInfo]:
    """Compile a program as `compile_program`, but to a library with BridgeStan's C interface.

    Several threads can use one with ``STAN_THREADS`` at once; otherwise they take turns, and the library shares what is
    compiled with the program's executable.
    """
    home = bridge_home(progress=progress)
    product = _Product.of(path, home, f"{NAME}_model.so", bridge_folder(home), threads=threads)
    return _compiled(product, progress), product.translation.info


def _compiled(product: _Product, progress: Progress | None) -> Path:
    """Give what a program is compiled to, from the cache if it is there."""
    report = progress or (lambda line: None)
    entry = product.entry
    with building_lock(entry, report):
        if not product.is_whole:
            name = shown(product.path.name)
            if entry.exists():
                report(f"the compiled {name} in the cache is damaged; it is made again")
            if product.folder != product.home.path:
                build_interface(product.folder, product.variables, report)
            if not product.object.is_whole:
                report(f"compiling {name} (once; kept in the cache)")
            _compile(product)
    return entry / product.file


def remove_compiled() -> int:
    """Delete the compiled programs in the cache, and say how many there were.

    One that is being compiled at this moment is left alone, and so is whatever else lies there.
    """
    removed = 0
    sweep(user_cache(_CACHE))
    for entry in user_cache(_CACHE).glob("*"):
        if not _OURS.fullmatch(entry.name) or entry.is_symlink() or not entry.is_dir():
            continue
        with suppress(Timeout), FileLock(f"{entry}.lock", timeout=0):
            removed += not (entry / _OBJECT).exists()  # which is no program yet
            shutil.rmtree(entry, ignore_errors=True)
    return removed


def source_key(translation: Translation, where: Home) -> str:
    """Give the digest of all that decides what a program does: its text with all includes, CmdStan's version, flags."""
    digest = hashlib.sha256(translation.cpp)
    for part in (str(where.version), build_flags(where.path)):
        digest.update(b"\0" + os.fsencode(part))
    return digest.hexdigest()


def _seal(compiled: Path) -> str:
    """Give the line that the tool ``sha256sum`` writes, and checks."""
    with compiled.open("rb") as file:
        return f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {compiled.name}\n"


def _compile(product: _Product) -> None:
    """Fill a product's entry; call with its lock held.

    In a home of ours a product is made from the object of the program that is kept; one that is not there is compiled,
    and kept.
    """
    with working_folder(NAME, _plain_folder(product.entry.parent)) as build:
        if product.home.origin != "assembled":
            _make(product, build)
        else:
            kept = product.object
            with building_lock(kept.entry):  # who waits for the product is told already
                if kept.is_whole:
                    given = build / f"kept-{_OBJECT}"
                    shutil.copy(kept.entry / _OBJECT, given)  # to where make can take its path
                    _make(product, build, f"MODEL_OBJECT={given}")
                else:
                    _make(product, build, "KEEP_OBJECT=true")
                    (build / f"{product.file}.o").rename(build / _OBJECT)
                    _fill(kept, build)
        _fill(product, build)


def _fill(product: _Product, build: Path) -> None:
    """Fill a folder next to the entry with what was made, then move it into place."""
    entry = product.entry
    with working_folder(entry.name, entry.parent) as temporary:
        part = temporary / "entry"
        part.mkdir()
        shutil.copy(build / product.file, part)
        (part / f"{NAME}.stan").write_bytes(product.translation.source)
        (part / _SEAL).write_text(_seal(part / product.file), encoding="ascii")
        if entry.exists():
            shutil.rmtree(entry)
        part.rename(entry)


def _make(product: _Product, build: Path, *variables: str) -> None:
    """Compile the C++ in a folder whose path make can take."""
    check_whole(product.home.path)
    (build / f"{NAME}.hpp").write_bytes(product.translation.cpp)
    tool, path = os.environ.get("MAKE") or "make", product.path
    try:
        done = run_guarded(
            [tool, *product.variables, *variables, build / product.file],
            folder=product.folder,
            environment=build_environment() | {"TMPDIR": str(build)},  # a killed compiler's files
        )
    except FileNotFoundError:
        raise StanProgramError(
            f"{tool} was not found, with which Stan programs are compiled; install GNU make and a C++ compiler."
        ) from None
    if done.code:
        if os.strerror(errno.ENOSPC) in done.printed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(build))
        words = "\n".join(done.printed.strip().splitlines()[-_SHOWN_LINES:])
        raise StanProgramError(f"{shown(path.name)} does not compile:\n{in_own_names(words, path)}")
    if not (build / product.file).is_file():
        raise StanProgramError(
            f"{shown(path.name)} was compiled without an error, but nothing appeared; check the CmdStan "
            f"directory {product.home.path}."
        )


def _plain_folder(preferred: Path) -> Path:
    """Find a folder whose path make can take: the preferred one, or one for temporary files."""
    candidates = (preferred, Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"))
    for folder in candidates:
        if not unfit_character(folder.resolve()) and os.access(folder, os.W_OK):
            return folder.resolve()
    raise StanProgramError(
        f"No folder was found in which make can compile: each of {', '.join(map(str, candidates))} has a character "
        "in its path that make does not take, or cannot be written to; set TMPDIR."
    )
