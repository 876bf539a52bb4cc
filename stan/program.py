"""Any Stan program as a target, compiled once per content in the user's cache.

A program's cache key is the text of the file and of everything it includes, the CmdStan directory and its version. So a
changed line, a changed include or another CmdStan compiles anew; a changed name, date or place does not.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import platformdirs
from filelock import FileLock

from onebasin.models.symmetry.blocks import Symmetry
from onebasin.models.target import NetworkTarget, Target

from .errors import StanDataError, StanProgramError
from .home import Home, Progress, activate, home

if TYPE_CHECKING:
    from cmdstanpy import CmdStanModel


@dataclass(frozen=True)
class StanProgram:
    """A Stan file with its data.

    Attributes
    ----------
    path : Path
        The ``.stan`` file; its includes are looked up beside it.
    data : mapping
        The `data` block's variables: numbers, lists or arrays.
    """

    path: Path
    data: Mapping[str, Any] = field(default_factory=dict)


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


def stan_program(
    path: str | Path,
    data: Mapping[str, Any] | str | Path | None = None,
    *,
    symmetry: Symmetry = (),
    name: str | None = None,
    dims: Mapping[str, tuple[str, ...]] | None = None,
) -> Target:
    """Take a Stan program with its data as a target.

    Parameters
    ----------
    path : path
        The ``.stan`` file.
    data : mapping or path, optional
        The data block's variables, or a JSON file that holds them.
    symmetry : tuple of blocks, optional
        Which axes of which variables move together.
    name : str, optional
        The target's name; the file's name without its ending if not given.
    dims : mapping, optional
        Axis names of variables.

    Returns
    -------
    Target
        With a Stan definition only.

    Raises
    ------
    StanProgramError
        If the file is not there or is not a ``.stan`` file.
    StanDataError
        If the data are not to be read, or hold a value that is not finite.
    """
    path = Path(path).resolve()
    if path.suffix != ".stan" or not path.is_file():
        raise StanProgramError(f"`path` is {path}, which is not an existing .stan file.")
    values = _read_data(Path(data)) if isinstance(data, str | Path) else dict(data or {})
    _check_finite(values)
    return Target(
        name=name or path.stem,
        stan_program=StanProgram(path, values),
        symmetry=symmetry,
        dims=dims or {},
    )


def definition(target: Target) -> StanProgram:
    """The target's Stan side.

    Raises
    ------
    ValueError
        If it has none.
    """
    if isinstance(target, NetworkTarget):
        from .network import program_data, program_path

        return StanProgram(program_path(target), program_data(target))
    if target.stan_program is None:
        raise ValueError(
            f"`engine` is 'stan', but the target {target.name!r} has no Stan program; use engine='numpyro'."
        )
    return target.stan_program


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

    where = home(progress=progress)
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


def write_data(definition: StanProgram, info: ProgramInfo, folder: Path) -> Path:
    """Write the data as JSON for CmdStan.

    Raises
    ------
    StanDataError
        If a declared variable is missing.
    """
    from cmdstanpy import write_stan_json

    absent = [name for name in info.inputs if name not in definition.data]
    if absent:
        given = ", ".join(definition.data) or "nothing"
        raise StanDataError(
            f"`data` lacks {', '.join(absent)}, which {definition.path.name} declares; it holds {given}."
        )
    path = folder / "data.json"
    # Only what is declared: a longer JSON file is no mistake.
    write_stan_json(str(path), {name: definition.data[name] for name in info.inputs})
    return path


def _read_data(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text())
    except FileNotFoundError:
        raise StanDataError(f"`data` is {path}, which does not exist.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise StanDataError(f"`data` is {path}, which is not JSON: {error}.") from error
    if not isinstance(values, dict):
        raise StanDataError(f"`data` is {path}, which holds no JSON object of variables.")
    return values


def _check_finite(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        array = np.asarray(value) if not isinstance(value, dict) else np.zeros(0)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise StanDataError(
                f"`data` has a value that is not finite in {name}{list(where)}: {array[where]}; "
                "remove or impute it first."
            )


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
