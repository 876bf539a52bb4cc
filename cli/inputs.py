"""Convert the arguments of commands to posteriors, models, symmetries and variables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebasin.base.errors import ArgumentError, StudyError
from onebasin.base.run_log import notice
from onebasin.base.text import dotted

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.symmetry.blocks import Symmetry
    from onebasin.models.symmetry.elements import Shapes
    from onebasin.models.target import Target
    from onebasin.posteriors.view import DensityAtDraws, View

Files = tuple[Path, ...]
_STARTS = ("gaussian", "mean", "draw")
"""Values of `align --reference` that do not name files."""


def read(
    files: Path | Sequence[Path],
    argument: str = "RUN.nc",
    program: Path | None = None,
    data: Path | None = None,
) -> View:
    """Open a posterior, whose argument is called `argument` in messages; several files are its runs or chains.

    Alignment is checked on the log density of the given program, or of the program that the file records.
    """
    from onebasin.posteriors.view import view_of_files

    paths = [files] if isinstance(files, Path) else list(files)
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""

    def density(view: View) -> DensityAtDraws | None:
        if program is None or str(program) == "recorded":
            return recorded_density(view, trusted=program is not None)
        from onebasin.inference.density.evaluate import log_density

        files = ExitStack()  # Open as long as `evaluate` exists.
        target = files.enter_context(opened(program, data))

        def evaluate(draws: xr.Dataset, files: ExitStack = files) -> xr.DataArray:
            return log_density(target, draws)

        return evaluate

    return view_of_files(paths, argument=argument, name=f"{paths[0]}{more}", density=density)


def start_in(options: Mapping[str, Any]) -> tuple[Path | None, dict[str, Any]]:
    """Separate a file of initial values from the options: an `--init` that is not a method's keyword."""
    from onebasin.inference.runs.keywords import is_data

    rest = dict(options)
    if not rest.get("init") or not is_data(rest["init"]):
        return None, rest
    return Path(rest.pop("init")), rest


def recorded_density(view: View, *, trusted: bool = False) -> DensityAtDraws | None:
    """Return the log density of the Stan program that a posterior records; None if it records none."""
    from onebasin.posteriors.schema import stan_program_of

    if not stan_program_of(view.tree.attrs):
        return None
    from onebasin.inference.prediction.models import RecordedProgram

    return RecordedProgram(view, trusted)


def posteriors(runs: Sequence[Path]) -> dict[str, Files]:
    """Group the files that are chains of one run, and give every posterior a name.

    Names are the stems of the files, with as many folders as needed to make them unique.
    """
    from onebasin.posteriors.open import grouped, stem

    groups = grouped(runs)
    files = [os.path.realpath(file) for group in groups for file in group]  # Links may be loops.
    if len(set(files)) < len(files):
        raise ArgumentError("`RUN.nc` names a file twice. Give every file once.")
    stems = [stem([Path(os.path.realpath(file)) for file in group]) for group in groups]
    for depth in range(1, max(len(path.parts) for path in stems) + 1):
        names = ["/".join(path.parts[-depth:]) for path in stems]
        if len(set(names)) == len(names):
            return dict(zip(names, groups, strict=True))
    whole = [str(group[0]) for group in groups]  # Such as run.nc next to run.zarr.
    return dict(zip(whole, groups, strict=True))


def files_of(runs: Sequence[Path]) -> list[Path]:
    """Return all files that paths, patterns and folders refer to."""
    from onebasin.posteriors.open import expanded

    return [file for run in runs for file in expanded(run)]


def claimed(out: Path, read: Sequence[Path], *, force: bool) -> AbstractContextManager[object]:
    """Lock the posterior file of `--out`, which is made from the files in `read`."""
    from onebasin.base.errors import PosteriorFileError
    from onebasin.base.files.writing import claim
    from onebasin.posteriors.writing import format_of

    replaces = format_of(out, argument="--out").replaces
    return claim(
        out, force=force, error=PosteriorFileError, argument="--out", inputs=read, replaces=replaces
    )


def title(runs: Sequence[Path]) -> Path:
    """Name a posterior by its file, or by the common part of its chains' names."""
    from onebasin.posteriors.open import stem

    files = files_of(runs)
    return files[0] if len(files) == 1 else stem(files)


def truth(
    posteriors: Mapping[str, Files], chosen: Path | None, references: Sequence[str] = ()
) -> str:
    """Return the name of the posterior of `--truth`: one of `posteriors`, by default the first, or a reference."""
    if chosen is None:
        return next(iter(posteriors))
    wanted = {os.path.realpath(file) for file in files_of([chosen])}
    for name, group in posteriors.items():
        if chosen.name == name or wanted & {os.path.realpath(file) for file in group}:
            return name
    if str(chosen) in references:
        return str(chosen)
    there = ", ".join(str(group[0]) for group in posteriors.values())
    known = f" or of the references ({', '.join(references)})" if references else ""
    raise StudyError(
        f"`--truth` is {chosen}, which is not one of the files to compare ({there}){known}. Add this file, or choose "
        "one of these names."
    )


def start(word: str) -> str | View:
    """Return the value of `--reference`: a keyword, or a posterior."""
    return read(Path(word), "--reference") if names_file(word) else word


def names_file(word: str) -> bool:
    """Check whether the value of `--reference` is a file rather than a keyword."""
    path = Path(word)
    return word not in _STARTS and (bool(path.suffix) or path.exists())


def variables(words: Sequence[str] | None, view: View) -> list[str] | None:
    """Return the names of `--var`, such as `mu,sigma`, or None; a variable's name may contain a comma."""
    split = ([word] if dotted(word) in view.variables else word.split(",") for word in words or ())
    return [name.strip() for names in split for name in names] or None


def symmetry(words: Sequence[str] | None) -> Symmetry:
    """Read the blocks of `--exchangeable`; see `models.symmetry.blocks` for the syntax."""
    from onebasin.models.symmetry.blocks import read as block_of

    try:
        return tuple(block_of(word) for word in words or ())
    except ValueError as error:
        said = str(error).replace("`exchangeable`", "`--exchangeable`", 1)
        raise StudyError(said) from error


def symmetry_of(words: Sequence[str] | None, view: View) -> Symmetry | None:
    """Return the symmetry that `--exchangeable` declares for a posterior's variables, or None."""
    from onebasin.posteriors.schema import SAMPLE_DIMS

    blocks = symmetry(words)
    names = {name for block in blocks for name in block.variables} & set(view.posterior)
    sizes = {name: view.arrays[name].sizes for name in names}
    shapes = {n: tuple(s for d, s in s.items() if d not in SAMPLE_DIMS) for n, s in sizes.items()}
    return as_meant(blocks, shapes) or None


def as_meant(symmetry: Symmetry, shapes: Shapes) -> Symmetry:
    """Return the blocks as they apply to these shapes, and show a notice if they differ from the declaration."""
    from onebasin.models.symmetry.blocks import as_meant, spell

    meant = tuple(as_meant(block, shapes) for block in symmetry)
    for block, found in zip(symmetry, meant, strict=True):
        if found != block and not found.axes and any(shapes[name] for name in block.axes):
            lengths = " and ".join(str(shapes[n][0] if shapes[n] else 1) for n in block.axes)
            notice(
                f"--exchangeable {spell(block)}: {', '.join(block.axes)} have {lengths} entries and so change "
                f"sign as a whole, which is also written {spell(found)}"
            )
    return meant


@contextmanager
def opened(program: Path, data: Path | None, *, symmetry: Symmetry = ()) -> Iterator[Target]:
    """Make a target of a Stan program or a NumPyro model, ``FILE.py:NAME``, and make its file importable meanwhile."""
    from onebasin.models.numpyro_target import loaded, model_file_in, numpyro_model

    file = model_file_in(program)
    if file is None:
        from onebasin.stan import stan_program

        yield stan_program(program, data, symmetry=symmetry)
        return
    with loaded(file) as model:
        yield numpyro_model(model, data, symmetry=symmetry)


def model(program: Path | None, data: Path | None, files: ExitStack) -> Any:
    """Return the model of a posterior: a target if data are given, otherwise the program or function, or None.

    The file of a function can be imported as long as `files` is open.
    """
    from onebasin.models.numpyro_target import loaded, model_file_in

    if program is not None and data is not None:
        return files.enter_context(opened(program, data))
    file = None if program is None else model_file_in(program)
    return program if file is None else files.enter_context(loaded(file))
