"""Options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

WRITTEN = ".nc, .zarr, .csv or .parquet"
SYMMETRY = (
    "Interchangeable variables: mu,sigma,theta; by axis 1: W1:1,b1,W2; by two axes: A:0:1,mu; with signs: +-L:1,scale; "
    "whole ones: +-theta:,+-a:; rotations: @load:1,scores:1; complements: mu,1-theta; separate parameters: "
    "mu1~mu2,theta[0]~theta[2]. Repeatable."
)
POSTERIOR = "Posterior: NetCDF, Zarr, Parquet or CSV files of CmdStan."


def option(default: Any, text: str, *names: str, **how: Any) -> Any:
    """Declare an option, by default with the name of the parameter."""
    return typer.Option(default, *names, help=text, **how)


def described(text: str, *names: str, **how: Any) -> Any:
    """Describe an option that several commands share."""
    return typer.Option(*names, help=text, **how)


def argument(metavar: str, text: str, **how: Any) -> Any:
    """Describe an argument."""
    return typer.Argument(metavar=metavar, help=text, **how)


Json = Annotated[bool, described("Write JSON instead of text.", "--json")]
ShowDetails = Annotated[bool, described("Show all rows, numbers and checks.", "--details")]
Progress = Annotated[bool, described("Show progress bars.")]
Force = Annotated[bool, described("Replace an existing file.", "--force")]
Scheduler = Annotated[
    str | None,
    described(
        "Run on the workers of this Dask scheduler; the results are the same.",
        metavar="TCP://HOST:8786",
    ),
]
Seed = Annotated[int, described("Random seed.")]
Quick = Annotated[bool, described("Run a small version that takes minutes.", "--quick")]
Record = Annotated[bool, described("Write the numbers to studies/results.", "--record")]
Build = Annotated[bool, described("Build CmdStan first if it is missing.", "--build/--no-build")]
Program = Annotated[
    Path,
    argument(
        "PROGRAM.stan", "A Stan program; or MODEL.py:NAME, a function that defines a NumPyro model."
    ),
]
Data = Annotated[
    Path | None,
    argument("[DATA.json]", "Data of the model, as JSON; for a function, its arguments by name."),
]
Run = Annotated[
    list[Path],
    argument("RUN.nc", f"{POSTERIOR} Several files are joined as runs or chains of one posterior."),
]
Runs = Annotated[
    list[Path],
    argument("RUN.nc...", f"{POSTERIOR} Chains NAME_1.csv, NAME_2.csv, ... form one posterior."),
]
Exchangeable = Annotated[
    list[str] | None, described(f"{SYMMETRY} By default the symmetry that the posterior declares.")
]
ProgramOf = Annotated[
    Path | None,
    described(
        "The model, on whose log density alignment is checked: a Stan program, MODEL.py:NAME, or 'recorded' for the "
        "program text in the posterior, if you trust it. By default the network that the posterior records, or its "
        "Stan program if that file is unchanged.",
        "--program",
        "--model",
        metavar="PROGRAM.stan",
    ),
]
DataOf = Annotated[
    Path | None, described("Data of that model, as JSON.", "--data", metavar="DATA.json")
]
Var = Annotated[
    list[str] | None,
    described(
        "Use only these variables, such as mu,sigma; --var can be repeated. By default all parameters."
    ),
]


def words_in(words: str | None) -> tuple[str, ...] | None:
    """Split words at commas; return None for None."""
    return tuple(word.strip() for word in words.split(",")) if words is not None else None


def keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    """Make a parameter for `with_options`."""
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def with_options(
    command: Callable[..., None], options: list[inspect.Parameter]
) -> Callable[..., None]:
    """Add options to a command that takes ``**given``; existing options of the same names are replaced."""
    named = {option.name: option for option in options}
    kept = [
        named.pop(own.name, own.replace(kind=own.KEYWORD_ONLY))
        for own in inspect.signature(command).parameters.values()
        if own.kind is not own.VAR_KEYWORD
    ]

    @wraps(command)
    def taking_options(**values: Any) -> None:
        command(**values)

    setattr(taking_options, "__signature__", inspect.Signature([*kept, *named.values()]))  # noqa: B010
    return taking_options
