"""Translate Stan programs by the home's own `stanc`, and compile them once per content, in the user's cache.

A program is translated as a copy under a fixed name, in a folder of ours from which a link of a fixed name leads to its
own folder, where its includes are looked for. So no character in the names of files and folders has a meaning to
`stanc` (which takes a comma for the end of a folder's name), and none of them reaches the C++: programs of equal text
have equal translations, whatever they are called and wherever they lie.

A program's key in the cache is its translation with all that it includes, the CmdStan directory and its version, and
the flags that it is compiled with. A compiled program lies next to its SHA-256, and is made again when the two do not
agree. Most of the time goes into the program's object. In a home of ours it is kept too, and the executable and the
library are linked from the same one; a CmdStan of the user's compiles its executables by its own makefile.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from onebasin.base.errors import CmdStanNotFound, StanProgramError
from onebasin.base.files.cache import make_user_cache
from onebasin.base.files.writing import working_folder
from onebasin.base.processes.children import run_guarded
from onebasin.base.text import shown

from .home.assemble import (
    bridge_folder,
    bridge_home,
    build_interface,
    existing_bridge_home,
    find_cmdstan,
)
from .home.directory import (
    Home,
    Progress,
    activate,
    build_environment,
    build_flags,
    building_lock,
    unfit_character,
)

if TYPE_CHECKING:
    from cmdstanpy import CmdStanModel

NAME = "program"
"""The name of every program while it is translated and compiled."""

_INCLUDED = "included"
"""The link to the program's own folder."""

_NAMESPACE = re.compile(r"\b\w+_model_namespace::\w+: ")
"""The C++ location of a failed check of data, which says nothing about the program."""

SHOWN_LINES, SHOWN_WIDTH = 12, 400

_TELLING = ("Er", "Ex", "Initialization", "Rejecting", "Posterior is improper")
"""Limits of a program's messages: lines shown, their width, and the starts of lines that say what went wrong."""


@dataclass(frozen=True)
class ProgramInfo:
    """The declarations of a Stan program, by block."""

    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    transformed: tuple[str, ...]
    generated: tuple[str, ...]
    includes: tuple[Path, ...]
    tuples: tuple[str, ...] = ()  # Those of the parameters and derived quantities that are tuples.

    @property
    def derived(self) -> tuple[str, ...]:
        """The names of the transformed parameters and generated quantities."""
        return (*self.transformed, *self.generated)


@dataclass(frozen=True)
class Translation:
    """A program with all that it includes, as C++."""

    info: ProgramInfo
    source: bytes  # As it was read, without its includes.
    cpp: bytes


def inspect(path: Path, where: Home) -> ProgramInfo:
    """Parse a program with the CmdStan's own compiler and list what it declares."""
    with working_folder(NAME) as folder:
        return _inspect(_stage(path, folder), path, where)


def translate(path: Path, where: Home) -> Translation:
    """Translate a program to C++."""
    with working_folder(NAME) as folder:
        staged = _stage(path, folder)
        info = _inspect(staged, path, where)
        _stanc(staged, path, where, f"--o={NAME}.hpp")
        return Translation(info, staged.read_bytes(), staged.with_suffix(".hpp").read_bytes())


def check_declares(info: ProgramInfo, path: Path) -> None:
    """Reject a program without variables."""
    if not (info.parameters or info.derived):
        raise StanProgramError(
            f"`path` is {shown(str(path))}, which declares no variables: there is nothing to sample; "
            "declare parameters or generated quantities."
        )


def in_own_names(words: str, path: Path) -> str:
    """Give what `stanc`, the C++ compiler or a compiled program says with the program's own names in it."""
    words = _NAMESPACE.sub("", words)
    words = words.replace(f"'{NAME}.stan'", f"'{shown(path.name)}'").replace(f"'{_INCLUDED}/", "'")
    return words.replace(
        f"Current include paths: {_INCLUDED}", f"Current include paths: {shown(str(path.parent))}"
    )


def _stage(path: Path, folder: Path) -> Path:
    (folder / _INCLUDED).symlink_to(path.parent.resolve())
    staged = folder / f"{NAME}.stan"
    staged.write_bytes(path.read_bytes())
    return staged


def _inspect(staged: Path, path: Path, where: Home) -> ProgramInfo:
    info = json.loads(_stanc(staged, path, where, "--info"))
    derived = info["transformed parameters"] | info["generated quantities"]
    drawn = info["parameters"] | derived
    return ProgramInfo(
        inputs=tuple(info["inputs"]),
        parameters=tuple(info["parameters"]),
        transformed=tuple(info["transformed parameters"]),
        generated=tuple(info["generated quantities"]),
        includes=tuple(
            path.parent / Path(name).relative_to(_INCLUDED) for name in info["included_files"]
        ),
        tuples=tuple(name for name, kind in drawn.items() if isinstance(kind["type"], list)),
    )


def _stanc(staged: Path, path: Path, where: Home, option: str) -> str:
    """Call `stanc` in the program's staging folder; give what it prints."""
    command = [
        str(where.path / "bin" / "stanc"),
        option,
        f"--include-paths={_INCLUDED}",
        staged.name,
    ]
    try:
        done = subprocess.run(
            command,
            cwd=staged.parent,
            env=build_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
    except OSError as error:
        raise CmdStanNotFound(
            f"{command[0]} does not run: {error.strerror}; build that CmdStan (`make build` in its folder), or set "
            "CMDSTAN to another."
        ) from error
    if done.returncode:
        words = in_own_names(done.stderr.strip(), path)
        raise StanProgramError(f"{shown(path.name)} does not parse:\n{words}")
    return done.stdout


def last_words(printed: str) -> str:
    """Return the lines that say what went wrong, such as "Exception: ..."; without one, the last lines."""
    lines = [line[:SHOWN_WIDTH] for line in printed.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(_TELLING)]
    once = list(dict.fromkeys(telling or lines))
    return "\n".join(once[-SHOWN_LINES:])


_CACHE = "programs"
_SEAL = f"{NAME}.sha256"
_OBJECT = f"{NAME}.o"
_THREADS = "STAN_THREADS=true"
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
        """Translate a program that is to be compiled; reject one that declares no variables."""
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
        """Check whether it is in the cache, as it was compiled."""
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
    product = _library(path, bridge_home(progress=progress), threads=threads)
    return _compiled(product, progress), product.translation.info


def has_library(path: Path) -> bool:
    """Check whether the cache has the library that `compile_library` makes of a program; nothing is compiled."""
    home = existing_bridge_home()
    return home is not None and _library(path, home, threads=False).is_whole


def _library(path: Path, home: Home, *, threads: bool) -> _Product:
    return _Product.of(path, home, f"{NAME}_model.so", bridge_folder(home), threads=threads)


def _compiled(product: _Product, progress: Progress | None) -> Path:
    """Give what a program is compiled to, from the cache if it exists."""
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


def source_key(translation: Translation, where: Home) -> str:
    """Return the digest of all that decides what a program does: text, includes, CmdStan's version, flags."""
    digest = hashlib.sha256(translation.cpp)
    for part in (str(where.version), build_flags(where.path)):
        digest.update(b"\0" + os.fsencode(part))
    return digest.hexdigest()


def _seal(compiled: Path) -> str:
    """Return the line that the tool ``sha256sum`` writes, and checks."""
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
            f"{shown(path.name)} was compiled without an error, but no executable was produced; check the CmdStan "
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
