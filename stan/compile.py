"""Compiling a Stan program once per content, in the user's cache.

A program's cache key is the text of the file and of everything it includes, the CmdStan directory and its version. So a
changed line, a changed include or another CmdStan compiles anew; a changed name, date or place does not.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from filelock import FileLock

from .errors import StanProgramError
from .home.directory import Home, Progress, activate
from .home.search import find_cmdstan

if TYPE_CHECKING:
    from cmdstanpy import CmdStanModel


@dataclass(frozen=True)
class ProgramInfo:
    """What a Stan program declares.

    Attributes
    ----------
    inputs, parameters, derived : tuple of str
        Names in the data block; in the parameters block; and in transformed parameters and generated quantities.
    includes : tuple of Path
        Included files.
    """

    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    derived: tuple[str, ...]
    includes: tuple[Path, ...]


def inspect(path: Path, where: Home) -> ProgramInfo:
    """Parse a program with the CmdStan's own compiler and list what it declares.

    Raises
    ------
    StanProgramError
        If it does not parse; the message holds the compiler's own words.
    """
    stanc = where.path / "bin" / "stanc"
    command = [str(stanc), "--info", f"--include-paths={path.parent}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StanProgramError(f"{path.name} does not parse:\n{done.stderr.strip()}")
    info = json.loads(done.stdout)
    return ProgramInfo(
        inputs=tuple(info["inputs"]),
        parameters=tuple(info["parameters"]),
        derived=(*info["transformed parameters"], *info["generated quantities"]),
        includes=tuple(Path(p) for p in info["included_files"]),
    )


def compile_program(
    path: Path, *, progress: Progress | None = None
) -> tuple[CmdStanModel, ProgramInfo]:
    """Compile a program, or take it from the cache.

    Parameters
    ----------
    path : Path
        The ``.stan`` file.
    progress : callable, optional
        Called with a line of text before something that takes long.

    Returns
    -------
    CmdStanModel
        Ready to run; and what the program declares.

    Raises
    ------
    StanProgramError
        If the program does not parse or compile.
    CmdStanNotFound, HomeBuildError
        If there is no CmdStan and none can be assembled.
    """
    from cmdstanpy import CmdStanModel

    where = find_cmdstan(progress=progress)
    activate(where)
    info = inspect(path, where)
    folder = _cache_folder(path, info, where)
    executable = folder / path.stem
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not executable.exists():
            if progress:
                progress(f"compiling {path.name} (once; kept in the cache)")
            _compile_into(folder, path, info)
    return CmdStanModel(exe_file=str(executable)), info


def remove_compiled() -> int:
    """Delete the compiled programs in the cache, and say how many there were."""
    folders = [entry for entry in _programs().glob("*") if entry.is_dir()]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return sum(not folder.name.startswith(".") for folder in folders)


def _programs() -> Path:
    return platformdirs.user_cache_path("onebasin") / "programs"


def _cache_folder(path: Path, info: ProgramInfo, where: Home) -> Path:
    digest = hashlib.sha256(f"{where.path}\n{where.version}\n{path.stem}\n".encode())
    for source in (path, *sorted(info.includes)):
        digest.update(source.name.encode() + b"\n" + source.read_bytes())
    return _programs() / f"{path.stem}-{digest.hexdigest()[:16]}"


def _compile_into(folder: Path, path: Path, info: ProgramInfo) -> None:
    """Compile in a folder of its own, then move it into place, so that an interrupted build leaves nothing."""
    from cmdstanpy import CmdStanModel

    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".building-") as temporary:
        build = Path(temporary) / "program"
        build.mkdir()
        shutil.copy(path, build / path.name)
        try:
            CmdStanModel(
                stan_file=str(build / path.name),
                stanc_options={"include-paths": [str(path.parent)]},
            )
        except ValueError as error:
            raise StanProgramError(f"{path.name} does not compile:\n{error}") from error
        if not (build / path.stem).exists():
            raise StanProgramError(
                f"{path.name} was compiled without an error, but no executable appeared; check the CmdStan directory."
            )
        build.rename(folder)
