"""Translate Stan programs with CmdStan's `stanc`, and compile each text once, in the user's cache.

A program is copied to a fixed name in a temporary folder, where a link leads to its own folder for includes. So no
character of a file's or folder's name matters to `stanc` or appears in the C++, and programs with equal text have equal
translations.

The key of a program in the cache is its translation with all includes, the CmdStan directory and its version, and the
flags of the compiler. A compiled program is stored next to its SHA-256, and compiled again if the two do not agree.
Compiling the object file takes most of the time. In a CmdStan that onebasin assembled, the executable and the library
are linked from the same object. The user's own CmdStan compiles executables with its own makefile.
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
from onebasin.base.files.writing import replacing, working_folder
from onebasin.base.processes.children import run_guarded
from onebasin.base.text import shown

from .home import assemble

if TYPE_CHECKING:
    from cmdstanpy import CmdStanModel

NAME = "program"
"""The name that every program has while it is translated and compiled."""
_INCLUDED = "included"
"""The name of the link to the program's own folder."""
_NAMESPACE = re.compile(r"\b\w+_model_namespace::\w+: ")
"""The C++ location of a failed check of data, which users do not need."""
SHOWN_LINES, SHOWN_WIDTH = 12, 400
_TELLING = ("Er", "Ex", "Initialization", "Rejecting", "Posterior is improper")
"""Beginnings of the lines by which a program reports what went wrong."""
_CACHE = "programs"
_SEAL = f"{NAME}.sha256"
_OBJECT = f"{NAME}.o"
_THREADS = "STAN_THREADS=true"
_SHOWN_LINES = 20


@dataclass(frozen=True)
class ProgramInfo:
    """The declarations of a Stan program, by block."""

    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    transformed: tuple[str, ...]
    generated: tuple[str, ...]
    includes: tuple[Path, ...]
    tuples: tuple[str, ...] = ()  # Parameters and derived quantities that are tuples.

    @property
    def derived(self) -> tuple[str, ...]:
        """The names of the transformed parameters and generated quantities."""
        return (*self.transformed, *self.generated)


@dataclass(frozen=True)
class Translation:
    """A program with its includes, as C++."""

    info: ProgramInfo
    source: bytes  # The program without its includes.
    cpp: bytes


def inspect(path: Path, where: assemble.Home) -> ProgramInfo:
    """List the declarations of a program with CmdStan's own compiler, without translating the program."""
    with working_folder(NAME) as folder:
        return _inspect(_stage(path, folder), path, where)


def translate(path: Path, where: assemble.Home) -> Translation:
    """Translate a program to C++ with CmdStan's own compiler, and list its declarations."""
    with working_folder(NAME) as folder:
        staged = _stage(path, folder)
        info = _inspect(staged, path, where)
        _stanc(staged, path, where, f"--o={NAME}.hpp")
        return Translation(info, staged.read_bytes(), staged.with_suffix(".hpp").read_bytes())


def _stage(path: Path, folder: Path) -> Path:
    """Copy a program into a folder, with a link to the folder of its includes."""
    (folder / _INCLUDED).symlink_to(path.parent.resolve())
    staged = folder / f"{NAME}.stan"
    staged.write_bytes(path.read_bytes())
    return staged


def _inspect(staged: Path, path: Path, where: assemble.Home) -> ProgramInfo:
    info = json.loads(_stanc(staged, path, where, "--info"))
    transformed, generated = info["transformed parameters"], info["generated quantities"]
    drawn = info["parameters"] | transformed | generated
    includes = (path.parent / Path(name).relative_to(_INCLUDED) for name in info["included_files"])
    return ProgramInfo(
        inputs=tuple(info["inputs"]),
        parameters=tuple(info["parameters"]),
        transformed=tuple(transformed),
        generated=tuple(generated),
        includes=tuple(includes),
        tuples=tuple(name for name, kind in drawn.items() if isinstance(kind["type"], list)),
    )


def check_declares(info: ProgramInfo, path: Path) -> None:
    """Reject a program without variables."""
    if not (info.parameters or info.derived):
        raise StanProgramError(
            f"The program {shown(str(path))} declares no variables. Declare parameters or generated quantities."
        )


def in_own_names(words: str, path: Path) -> str:
    """Restore the program's own names in a message from `stanc`, the C++ compiler or a compiled program."""
    words = _NAMESPACE.sub("", words)
    words = words.replace(f"'{NAME}.stan'", f"'{shown(path.name)}'").replace(f"'{_INCLUDED}/", "'")
    return words.replace(
        f"Current include paths: {_INCLUDED}", f"Current include paths: {shown(str(path.parent))}"
    )


def _stanc(staged: Path, path: Path, where: assemble.Home, option: str) -> str:
    """Call `stanc` in the program's staging folder; return what it prints."""
    stanc = str(where.path / "bin" / "stanc")
    try:
        done = subprocess.run(
            [stanc, option, f"--include-paths={_INCLUDED}", staged.name],
            cwd=staged.parent,
            env=assemble.build_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
    except OSError as error:
        raise CmdStanNotFound(
            f"{stanc} does not run: {error.strerror}. Build CmdStan (run `make build` in the CmdStan folder), or set "
            "CMDSTAN to another folder."
        ) from error
    if done.returncode:
        words = in_own_names(done.stderr.strip(), path)
        raise StanProgramError(f"{shown(path.name)} does not parse:\n{words}")
    return done.stdout


def last_words(printed: str) -> str:
    """Return the lines that say what went wrong, such as "Exception: ...", or else the last lines."""
    lines = [line[:SHOWN_WIDTH] for line in printed.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(_TELLING)]
    once = list(dict.fromkeys(telling or lines))
    return "\n".join(once[-SHOWN_LINES:])


@dataclass(frozen=True)
class _Product:
    """A file into which a program is compiled."""

    path: Path
    home: assemble.Home
    translation: Translation
    file: str
    folder: Path  # The folder in which `make` runs.
    variables: tuple[str, ...] = ()  # Arguments of `make`.

    @classmethod
    def of(
        cls, path: Path, home: assemble.Home, file: str, folder: Path, *, threads: bool
    ) -> _Product:
        """Translate a program; reject one that declares no variables."""
        translation = translate(path, home)
        check_declares(translation.info, path)
        return cls(path, home, translation, file, folder, (_THREADS,) if threads else ())

    @property
    def object(self) -> _Product:
        """The object file, which an executable and a library with equal `variables` share."""
        return replace(self, file=_OBJECT, folder=Path())

    @property
    def entry(self) -> Path:
        """The folder in the cache; its name also depends on the CmdStan directory, whose libraries a program loads."""
        own = os.fsencode(self.home.path)
        if (self.file, self.folder, self.variables) != (NAME, self.home.path, ()):
            own += os.fsencode("\0".join((self.file, str(self.folder), *self.variables)))
        source = source_key(self.translation, self.home)
        return make_user_cache(_CACHE) / hashlib.sha256(source.encode() + own).hexdigest()[:32]

    @property
    def is_whole(self) -> bool:
        """Check whether the file is in the cache, undamaged."""
        try:
            return (self.entry / _SEAL).read_text(encoding="ascii") == _seal(self.entry / self.file)
        except (OSError, UnicodeDecodeError):
            return False


def compile_program(
    path: Path, *, threads: bool = False, progress: assemble.Progress | None = None
) -> tuple[CmdStanModel, ProgramInfo]:
    """Compile a program or take it from the cache; return the model and the program's declarations.

    With `threads`, `reduce_sum` can use several threads. `progress` is called with a line of text before long steps.
    Raise `StanProgramError` if the program does not parse or compile, or declares no variables. Raise `CmdStanNotFound`
    or `HomeBuildError` if there is no CmdStan and none can be assembled, and `CacheError` if other users may write to
    the cache.
    """
    from cmdstanpy import CmdStanModel

    home = assemble.find_cmdstan(progress=progress)
    assemble.activate(home)
    product = _Product.of(path, home, NAME, home.path, threads=threads)
    return CmdStanModel(exe_file=str(_compiled(product, progress))), product.translation.info


def compile_library(
    path: Path, *, threads: bool = False, progress: assemble.Progress | None = None
) -> tuple[Path, ProgramInfo]:
    """Compile a program, as `compile_program` does, into a library with BridgeStan's C interface.

    With `threads`, several threads can use the library at once. Otherwise they take turns, and the library is linked
    from the same object as the executable.
    """
    product = _library(path, assemble.bridge_home(progress=progress), threads=threads)
    return _compiled(product, progress), product.translation.info


def has_library(path: Path) -> bool:
    """Check whether `compile_library` would find its library in the cache."""
    home = assemble.existing_bridge_home()
    return home is not None and _library(path, home, threads=False).is_whole


def _library(path: Path, home: assemble.Home, *, threads: bool) -> _Product:
    return _Product.of(
        path, home, f"{NAME}_model.so", assemble.bridge_folder(home), threads=threads
    )


def _compiled(product: _Product, progress: assemble.Progress | None) -> Path:
    """Return the compiled file, from the cache if it is there."""
    report = progress or (lambda line: None)
    entry = product.entry
    with assemble.building_lock(entry, report):
        if not product.is_whole:
            name = shown(product.path.name)
            if entry.exists():
                report(f"the compiled {name} in the cache is damaged and will be compiled again")
            if product.folder != product.home.path:
                assemble.build_interface(product.folder, product.variables, report)
            if not product.object.is_whole:
                report(f"compiling {name} (once; kept in the cache)")
            _compile(product)
    return entry / product.file


def source_key(translation: Translation, where: assemble.Home) -> str:
    """Return the digest of a program's translation, CmdStan's version and the compiler's flags."""
    digest = hashlib.sha256(translation.cpp)
    for part in (str(where.version), assemble.build_flags(where.path)):
        digest.update(b"\0" + os.fsencode(part))
    return digest.hexdigest()


def _seal(compiled: Path) -> str:
    """Return the line that ``sha256sum`` writes for a file."""
    with compiled.open("rb") as file:
        return f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {compiled.name}\n"


def _compile(product: _Product) -> None:
    """Compile and store a product, and in an assembled CmdStan also its object; the caller holds the product's lock."""
    candidates = (product.entry.parent, Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"))
    found = (folder.resolve() for folder in candidates if os.access(folder, os.W_OK))
    plain = next((folder for folder in found if not assemble.unfit_character(folder)), None)
    if plain is None:
        raise StanProgramError(
            f"`make` cannot compile in any of the folders {', '.join(map(str, candidates))}, because each folder is "
            "read-only or has a path with a character that `make` does not accept. Set TMPDIR to another folder."
        )
    with working_folder(NAME, plain) as build:
        if product.home.origin != "assembled":
            _make(product, build)
        else:
            kept = product.object
            with assemble.building_lock(kept.entry):
                if kept.is_whole:
                    given = build / f"kept-{_OBJECT}"
                    shutil.copy(kept.entry / _OBJECT, given)  # make may reject the cache.
                    _make(product, build, f"MODEL_OBJECT={given}")
                else:
                    _make(product, build, "KEEP_OBJECT=true")
                    (build / f"{product.file}.o").rename(build / _OBJECT)
                    _fill(kept, build)
        _fill(product, build)


def _fill(product: _Product, build: Path) -> None:
    """Store a compiled file in the cache, completely or not at all."""
    with replacing(product.entry) as part:
        part.mkdir()
        shutil.copy(build / product.file, part)
        (part / f"{NAME}.stan").write_bytes(product.translation.source)
        (part / _SEAL).write_text(_seal(part / product.file), encoding="ascii")


def _make(product: _Product, build: Path, *variables: str) -> None:
    """Compile the C++ in a folder whose path `make` accepts."""
    (build / f"{NAME}.hpp").write_bytes(product.translation.cpp)
    tool, path = os.environ.get("MAKE") or "make", product.path
    try:
        done = run_guarded(
            [tool, *product.variables, *variables, build / product.file],
            folder=product.folder,
            environment=assemble.build_environment()
            | {"TMPDIR": str(build)},  # Removed if it is killed.
        )
    except FileNotFoundError:
        raise StanProgramError(
            f"{tool} was not found, but CmdStan needs it to compile programs. Install GNU make and a C++ compiler."
        ) from None
    if done.code:
        if os.strerror(errno.ENOSPC) in done.printed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(build))
        words = "\n".join(done.printed.strip().splitlines()[-_SHOWN_LINES:])
        raise StanProgramError(f"{shown(path.name)} does not compile:\n{in_own_names(words, path)}")
    if not (build / product.file).is_file():
        raise StanProgramError(
            f"`make` compiled {shown(path.name)} without an error, but wrote no file. Check the CmdStan directory "
            f"{product.home.path}."
        )
