"""Opening a Stan program in this process, where its log density takes microseconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.base.arguments import checks_arguments
from onebasin.base.checks import check_path
from onebasin.base.files.writing import working_folder
from onebasin.base.text import shown
from onebasin.models.target import Target

from .compile import compile_library
from .data import read_data
from .home.bridge import bridge_home
from .home.errors import StanProgramError
from .interpreted import Interpreted
from .opened import Interface, Opened
from .program import StanProgram, definition, stan_program
from .run import write_data
from .stan_library import StanLibrary
from .trial import check_survives


@checks_arguments
def open_library(
    program: StanProgram | Target | str | Path,
    data: Mapping[str, Any] | str | Path | None = None,
    *,
    engine: str | None = None,
    seed: int = 0,
    threads: bool = False,
    on_print: Callable[[str], None] | None = None,
    progress: Callable[[str], None] | None = None,
) -> StanLibrary:
    """Open a Stan program in this process: by the interpreter where that takes the program, else compiled.

    Parameters
    ----------
    program : Target, StanProgram, path or str
        A target with a Stan program, or the program with its data; or a ``.stan`` file, the text of a program, or a
        library ``MODEL_model.so`` that is compiled already.
    data : mapping or path, optional
        The data block's variables, or a JSON file that holds them; for a file, a text or a library.
    engine : {"stanli", "cmdstan"}, optional
        Whether the interpreter evaluates the program or the library that CmdStan compiles.
    seed : int
        Of random numbers in the block `transformed data`, and of generated quantities.
    threads : bool
        Whether several threads may compute at once in a compiled library, by a separate compilation; otherwise they
        take turns, and what is compiled for the executable serves. The interpreter always lets them.
    on_print : callable, optional
        Called with what the program prints; Python's logger `onebasin` is told, at level INFO, if not given.
    progress : callable, optional
        Called with a line of text before something that takes long.

    Returns
    -------
    StanLibrary
        Ready to be evaluated.

    Raises
    ------
    StanProgramError
        If the file is not there, does not parse or compile, or is a library of another Stan version.
    StanDataError
        If the program refuses the data.
    CmdStanNotFound, HomeBuildError
        If there is no CmdStan and none can be assembled.

    Examples
    --------
    >>> library = ob.stan.open_library("mixture.stan", "mixture.json")
    >>> values, gradients = library.log_density_gradient(np.zeros((100, library.dim)))
    >>> values.shape, gradients.shape == (100, library.dim)
    ((100,), True)
    """
    if isinstance(program, Target):
        program = definition(program)
    if not isinstance(program, StanProgram):
        if str(program).endswith(".so"):
            file = check_path("program", program).resolve()
            return _open_compiled(file, data, seed, on_print, progress)
        program = definition(stan_program(program, data))
    choice = program.chosen(engine)
    interface: Opened
    if choice.accepted is not None:
        interface, info = Interpreted(choice.accepted), choice.accepted.info
    else:
        if choice.reason and program.choice is None and progress is not None:
            progress(choice.reason.removesuffix("."))
        file, info = compile_library(program.path, threads=threads, progress=progress)
        interface = Interface(file)  # at once: the file may be removed from the cache
    with working_folder("library") as folder:
        text = write_data(program, info, folder).read_text(encoding="utf-8")
    if choice.accepted is None:
        check_survives(interface.file, program.path, text, seed)
    return StanLibrary(interface, program.path, text, seed=seed, on_print=on_print)


def _open_compiled(
    file: Path,
    data: Mapping[str, Any] | str | Path | None,
    seed: int,
    on_print: Callable[[str], None] | None,
    progress: Callable[[str], None] | None,
) -> StanLibrary:
    if not file.is_file():
        raise StanProgramError(f"`program` is {shown(str(file))}, which is not an existing file.")
    source = file.with_name(f"{file.stem.removesuffix('_model')}.stan")
    if source.is_file() and source.stat().st_mtime > file.stat().st_mtime:
        raise StanProgramError(
            f"`program` is {shown(str(file))}, which was compiled before {shown(source.name)} was changed; give the "
            ".stan file, or compile it again."
        )
    interface = Interface(file)
    ours = ".".join(map(str, bridge_home(progress=progress).version))
    if interface.stan_version != ours:
        raise StanProgramError(
            f"`program` is {shown(str(file))}, a library of Stan {interface.stan_version}, and this is Stan {ours}; "
            "give the .stan file, or compile it again."
        )
    values = read_data(Path(data)) if isinstance(data, str | Path) else dict(data or {})
    text = json.dumps(values, default=lambda value: np.asarray(value).tolist())
    return StanLibrary(interface, source, text, seed=seed, on_print=on_print)
