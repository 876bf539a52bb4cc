"""Posterior files as commands take them: a view that messages call by the file's name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onebasin.analysis.posterior.view import View


def read(file: Path, argument: str = "RUN.nc") -> View:
    """Read a posterior file, which stands on the command's line as `argument`.

    Raises
    ------
    PosteriorFileError
        If it does not exist or holds no posterior.
    """
    from onebasin.analysis.posterior.view import as_view
    from onebasin.inference.errors import PosteriorFileError
    from onebasin.inference.posterior import open_posterior

    try:
        return as_view(open_posterior(file, lazy=True), str(file))
    except PosteriorFileError as error:
        raise PosteriorFileError(str(error).replace("`path`", f"`{argument}`", 1)) from error
