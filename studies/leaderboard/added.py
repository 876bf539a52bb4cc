"""Methods of a user's own: a callable that returns a posterior, or the file of one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from onebasin.base.errors import OnebasinError, StudyError
from onebasin.models.numpyro_file import ModelFile, loaded
from onebasin.truth import open_reference
from onebasin.truth.produce import sha256

from ..lab import CellFailed

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models import Target

PLACE = "{reference}"
"""The part of a file's name that stands for the reference's name."""
ENGINE = "own"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*")
_FORM = "NAME=MODULE.py:FUNCTION or NAME=FILE.nc, such as mine=sampler.py:sample"


@dataclass(frozen=True)
class Added:
    """A method of a user's own."""

    name: str  # Its name in tables.
    path: str
    """Of the module, or of the posterior, where `{reference}` stands for the name of each."""
    function: str = ""  # Of the module; empty for a posterior's file.


@dataclass(frozen=True)
class Own:
    """The settings of an added method's cell: changed code, or a changed file, is another cell."""

    chains: ClassVar[int] = 4
    """A function may take as many cores as chains of ours do: unless asked for, nothing else is made meanwhile."""

    path: str
    function: str
    sha256: str


def parse(words: str, taken: tuple[str, ...]) -> Added:
    """Read what `--add` was given; a `StudyError` if it cannot be read, or its name is one of those `taken`."""
    name, equals, what = words.partition("=")
    if not (equals and what and _NAME.fullmatch(name)):
        raise StudyError(f"`--add` is {words!r}; give {_FORM}.")
    if name in taken:
        raise StudyError(
            f"`--add` names {name!r}, which is a method already; give it another name."
        )
    path, colon, function = what.rpartition(":")
    if colon and path.endswith(".py") and function.isidentifier():
        return Added(name, path, function)
    if what.endswith(".py"):
        raise StudyError(
            f"`--add` is {words!r}, which names no function of the module; give {_FORM}."
        )
    return Added(name, what)


def settings_for(added: Added, reference: str, *, alone: bool) -> Own:
    """Give the settings of an added method's cell; `alone` says whether this reference is the only one.

    It is a `StudyError` if there is no such file, or one file stands for the posteriors of several references.
    """
    if not added.function and PLACE not in added.path and not alone:
        raise StudyError(
            f"`--add` gives {added.name} one file, {added.path}, and there are several references: name one by --only, "
            f"or write {PLACE} into the file's name where it has that of the reference."
        )
    path = Path(added.path.replace(PLACE, reference))
    if not path.is_file():
        raise StudyError(f"`--add` gives {added.name} the file {path}, which does not exist.")
    return Own(str(path.resolve()), added.function, sha256(path))


def posterior_of(name: str, own: Own, target: Target, seed: int, reference: str) -> xr.DataTree:
    """Call a user's function with the target and a seed, or read a user's file.

    It is `CellFailed` if the module or its function cannot be had, it fails, or there is no posterior of the
    reference's model.
    """
    from onebasin.analysis.compare.reference.compare import check_run
    from onebasin.posteriors.view import as_view

    try:
        if own.function:
            with loaded(ModelFile(Path(own.path), own.function)) as sample:
                view = as_view(sample(target, seed), f"what {own.function} returned")
        else:
            view = as_view(own.path, own.path)
        check_run(view, open_reference(reference).known, reference)
        return view.tree.load()
    except (OnebasinError, AssertionError, TypeError, ValueError) as error:
        raise CellFailed(f"{name}: {error}") from error
