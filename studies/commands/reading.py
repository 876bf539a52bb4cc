"""Posterior files as commands take them: a view that messages call by the file's name."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onebasin.analysis.posterior.view import View


def read(file: Path, argument: str = "RUN.nc") -> View:
    """Read a posterior file, which stands on the command's line as `argument`.

    It stays open, and is read as far as it is asked for, as long as the view is there.

    Raises
    ------
    PosteriorFileError
        If it does not exist or holds no posterior.
    """
    from onebasin.analysis.posterior.view import as_view
    from onebasin.inference.errors import PosteriorFileError
    from onebasin.inference.posterior import open_posterior

    try:
        tree = open_posterior(file, lazy=True)
    except PosteriorFileError as error:
        raise PosteriorFileError(str(error).replace("`path`", f"`{argument}`", 1)) from error
    view = as_view(tree, str(file))
    weakref.finalize(
        view, tree.close
    )  # a tree's nodes know each other, so that it outlives its last use
    return view
