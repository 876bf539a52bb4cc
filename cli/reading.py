"""Posterior files as commands take them: which are one posterior, and a view that messages call by its file's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onebasin.base.errors import ArgumentError, StudyError

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.posteriors.view import DensityAtDraws, View

Files = tuple[Path, ...]

HELP = "A posterior: NetCDF, Zarr, posteriordb's JSON, CSV files of CmdStan."
HELP_MANY = f"{HELP} Chains NAME_1.csv, NAME_2.csv, ... are one posterior."
WRITTEN = ".nc, .zarr, .zarr.zip, .csv, .json or .json.zip"
_STARTS = ("gaussian", "mean", "draw")
"""What `align --reference` takes besides files."""


Program = Annotated[
    Path | None,
    typer.Option(
        metavar="PROGRAM.stan",
        help="The program, or MODEL.py:NAME, on whose log density alignment is checked; by default the Stan program "
        "that the file records, where it is found.",
    ),
]
Data = Annotated[Path | None, typer.Option(metavar="DATA.json", help="Its data.")]


def read(
    files: Path | Sequence[Path],
    argument: str = "RUN.nc",
    program: Path | None = None,
    data: Path | None = None,
) -> View:
    """Open a posterior, which stands on the command's line as `argument`; several files are its runs or chains.

    Alignment of its draws is checked on the log density of a program, the one that is given or that the file records.

    Raises
    ------
    PosteriorFileError
        If a file does not exist or holds no posterior, or several are not of one.
    """
    from onebasin.posteriors import schema
    from onebasin.posteriors.view import view_of_files

    paths = [files] if isinstance(files, Path) else list(files)
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""

    def density(tree: xr.DataTree) -> DensityAtDraws | None:
        if program is not None:
            return _named_density(program, data)
        if not str(tree.attrs.get(schema.PROGRAM_NAME, "")).endswith(".stan"):
            return None
        from onebasin.inference.runs.recorded import RecordedDensity

        return RecordedDensity(tree.attrs, (Path(), *dict.fromkeys(p.parent for p in paths)))

    return view_of_files(paths, argument=argument, name=f"{paths[0]}{more}", density=density)


def _named_density(program: Path, data: Path | None) -> DensityAtDraws:
    from contextlib import ExitStack

    from onebasin.base.processes.libraries import prepare_jax
    from onebasin.inference.density.evaluate import log_density

    from .sampling import opened

    prepare_jax()
    files = ExitStack()  # as long as the function is there
    target = files.enter_context(opened(program, data))

    def evaluate(draws: xr.Dataset, files: ExitStack = files) -> xr.DataArray:
        return log_density(target, draws)

    return evaluate


def posteriors(runs: Sequence[Path]) -> dict[str, Files]:
    """Tell which words are chains of one run, and name every posterior.

    Names are files' stems, with as many folders before them as it takes to tell them apart.

    Raises
    ------
    ValueError
        If a file is given twice.
    """
    from onebasin.posteriors.naming import grouped, stem

    groups = grouped(runs)
    files = [file.resolve() for group in groups for file in group]
    if len(set(files)) < len(files):
        raise ArgumentError("`RUN.nc` is given twice: give every posterior file once.")
    stems = [stem([file.resolve() for file in group]) for group in groups]
    longest = max(len(path.parts) for path in stems)
    for depth in range(1, longest + 1):
        names = ["/".join(path.parts[-depth:]) for path in stems]
        if len(set(names)) == len(names):
            return dict(zip(names, groups, strict=True))
    whole = [str(group[0]) for group in groups]  # run.nc beside run.zarr
    return dict(zip(whole, groups, strict=True))


def files_of(runs: Sequence[Path]) -> list[Path]:
    """All files that words stand for, patterns and folders among them."""
    from onebasin.posteriors.naming import expanded

    return [file for run in runs for file in expanded(run)]


def truth(posteriors: Mapping[str, Files], chosen: Path | None) -> str:
    """Name the posterior that `--truth` chooses: by one of its files, or by its name; the first by default.

    Raises
    ------
    StudyError
        If it is none of them.
    """
    if chosen is None:
        return next(iter(posteriors))
    wanted = {file.resolve() for file in files_of([chosen])}
    for name, group in posteriors.items():
        if chosen.name == name or wanted & {file.resolve() for file in group}:
            return name
    there = ", ".join(str(group[0]) for group in posteriors.values())
    raise StudyError(
        f"`--truth` is {chosen}, which is none of the files to compare ({there}); name it among them too."
    )


def title(runs: Sequence[Path]) -> Path:
    """Name the one posterior whose files are given: its file, or what the names of its chains have in common."""
    from onebasin.posteriors.naming import stem

    files = files_of(runs)
    return files[0] if len(files) == 1 else stem(files)


def reference(word: str) -> Path | None:
    """The posterior that `--reference` names; None for a word of its own, or one that nothing is known of."""
    path = Path(word)
    return path if word not in _STARTS and (path.suffix or path.exists()) else None
